"""What was quantized against what should have been: scheme, count, exclusions, overrides."""

from __future__ import annotations

from collections.abc import Sequence

from quark_tui.core.ptq.verify.case import Case, Judged
from quark_tui.core.ptq.verify.checks.check import AGAIN, Check, module_count, some_names, untestable
from quark_tui.core.ptq.verify.layout import differences
from quark_tui.core.ptq.verify.modules import is_router
from quark_tui.core.ptq.verify.patterns import Patterns
from quark_tui.core.text import clean


def _against(found: Sequence[Judged]) -> str:
    shown = [f"{clean(one.module.name)[:120]}: {one.judgement.contradictions[0]}" for one in found[:2]]
    return "; ".join(shown) + (f" and {len(found) - 2} more" if len(found) > 2 else "")


def scheme_matches(case: Case) -> Check:
    code = "scheme_matches"
    config, expectation = case.config, case.expectation
    name = clean(expectation.scheme)[:60] or "no scheme"
    if (standing := untestable(case, code, needs=False)) is not None:
        return standing
    if case.export.config.unreadable:
        return Check(code, None, "config.json could not be read.", undecided=True)
    usable = case.export.config.present and not case.export.config.problem
    if not usable and expectation.against == "config":
        return Check(code, None, "There is no configuration to hold the tensors against.")
    if config.method is None and usable:
        if case.quantized:
            return Check(
                code,
                False,
                f"Quantized, and config.json does not say so: {module_count(len(case.quantized))}.",
                some_names(case.quantized),
                AGAIN,
                "fatal",
            )
        if expectation.against == "plan":
            return Check(
                code,
                False,
                f"The plan wants {name}; config.json names no quantization.",
                "config.json",
                AGAIN,
            )
        return Check(code, None, "No quantization is promised, so there is no scheme to hold the tensors against.")
    said: list[str] = []
    if expectation.against == "plan" and usable and config.method != "quark":
        said.append(f"quant_method is {clean(config.method)[:60]}, Quark writes quark")
    elif expectation.against == "plan" and expectation.scheme_spec and config.global_spec:
        said += differences(expectation.scheme_spec, config.global_spec)
    relevant = [one for one in case.judged if not one.override and one.rule.specs]
    wrong = [one for one in relevant if one.judgement.contradictions]
    if wrong:
        everywhere = len(wrong) == len(relevant)
        return Check(
            code,
            False,
            f"The tensors of {len(wrong)} of {module_count(len(relevant))} contradict {name}.",
            _against(wrong),
            AGAIN,
            "fatal" if everywhere else "partial",
        )
    if said:
        return Check(
            code,
            False,
            f"config.json disagrees with the plan's {name}.",
            "; ".join(said),
            AGAIN,
        )
    if expectation.scheme_spec is None and not (expectation.against == "config" and case.judged):
        return Check(
            code,
            None,
            f"What {name} leaves behind is not known here.",
            "the plan or quantization_config",
            undecided=True,
        )
    if not relevant:
        if any(one.rule.pattern is None for one in case.judged):
            return Check(code, None, f"{name} is not given.", "quantization_config", undecided=True)
        if case.judged:
            return Check(code, None, "Every quantized module is under an override.")
        if not case.seen:
            return Check(code, None, "No tensor was seen.")
        return Check(code, False, f"Not one module carries {name}.", case.names, AGAIN, "fatal")
    return Check(
        code,
        True,
        f"The tensors of {module_count(len(relevant))} are those of {name}.",
        "types and shapes of weights and scales",
    )


def count_matches(case: Case) -> Check:
    code = "count_matches"
    if (standing := untestable(case, code, needs=False)) is not None:
        return standing
    if not case.seen and case.export.checkpoint.shards:
        return Check(code, None, "No tensor was seen.")
    quantized = set(case.quantized)
    if not quantized:
        fake = (
            " (its weight_format is not real_quantized)"
            if case.config.weight_format not in ("", "real_quantized")
            else ""
        )
        return Check(
            code,
            False,
            f"Nothing is quantized{fake}.",
            "no weight is stored in a low-bit type",
            "Look at the excludes: they may cover everything.",
            "fatal",
        )
    if case.expected is None:
        return Check(
            code,
            False,
            f"Quantized: {module_count(len(quantized))}; nothing says which should be.",
            case.export.config.name,
        )
    expected = set(case.expected)
    if quantized == expected:
        return Check(
            code,
            True,
            f"All {module_count(len(expected))} that should be quantized are, and no other.",
            f"names from {clean(case.names)}",
        )
    left, more = [n for n in case.expected if n not in quantized], [n for n in case.quantized if n not in expected]
    parts = []
    gone = set(case.absent)
    if plain := [name for name in left if name not in gone]:
        parts.append(f"{len(plain)} left unquantized: {some_names(plain)}")
    if case.absent:
        parts.append(f"{len(case.absent)} not there at all: {some_names(case.absent)}")
    if more:
        parts.append(f"{len(more)} quantized that should not be: {some_names(more)}")
    return Check(
        code,
        False,
        f"{len(quantized)} modules are quantized, {len(expected)} should be.",
        "; ".join(parts),
        "Look at the log's module tables for these names.",
    )


def excludes_respected(case: Case) -> Check:
    code = "excludes_respected"
    if (standing := untestable(case, code)) is not None:
        return standing
    if not case.expectation.excludes:
        return Check(code, None, "Nothing is excluded.")
    broken = [name for name in case.quantized if case.rules[name].excluded]
    if broken:
        return Check(
            code,
            False,
            f"Quantized although excluded: {module_count(len(broken))}.",
            some_names(broken),
            "A checkpoint that was dequantized on load may be quantized again in spite of excludes; compare the log.",
        )
    if case.expectation.against == "plan" and case.config.method == "quark":
        said = Patterns(case.config.excludes, loose=True)
        # A router may be wrapped while it runs: config.json then names its inner module.
        silent = [name for name in case.excluded if not said.matches(name) and not is_router(case.modules[name])]
        if silent:
            return Check(
                code,
                False,
                f"Excluded by the plan and not in config.json's exclude: {module_count(len(silent))}.",
                some_names(silent),
                "A loader will look for quantized weights there; export again.",
            )
    return Check(
        code,
        True,
        f"Excluded and not quantized: {module_count(len(case.excluded))}.",
        some_names(case.expectation.excludes.items),
    )


def overrides_consistent(case: Case) -> Check:
    code = "overrides_consistent"
    if (standing := untestable(case, code)) is not None:
        return standing
    relevant = [one for one in case.judged if one.override]
    wanted = case.expectation.overrides
    tables = [name for name in case.embeddings if wanted and _overridden(case, name)]
    plain = [name for name in tables if not {"_weight_scale", "weight_scale"} & case.modules[name].parts.keys()]
    quantized = set(case.quantized)
    overlooked = [name for name in case.expected or () if name not in quantized and _overridden(case, name)]
    if not relevant and not tables and not overlooked:
        return Check(code, None, "No module is under an override." if wanted else "There are no overrides.")
    unknown = [one for one in relevant if not one.rule.specs]
    wrong = [one for one in relevant if one.judgement.contradictions]
    parts = []
    if wrong:
        schemes = dict.fromkeys(clean(one.rule.scheme)[:60] for one in wrong)
        parts.append(f"{module_count(len(wrong))} against {some_names(schemes)}: {_against(wrong)}")
    if overlooked:
        parts.append(f"under an override and not quantized: {some_names(overlooked)}")
    if plain:
        parts.append(f"under an override and without a scale: {some_names(plain)}")
    if parts:
        return Check(code, False, "Overrides are not what the tensors show.", "; ".join(parts), AGAIN)
    if unknown:
        return Check(
            code,
            None,
            "What some overrides leave behind is not known here.",
            some_names(one.rule.scheme for one in unknown),
            undecided=True,
        )
    return Check(
        code,
        True,
        f"The tensors of {module_count(len(relevant) + len(tables))} are those of their override.",
        some_names(wanted.items),
    )


def _overridden(case: Case, name: str) -> bool:
    rule = case.rules[name]
    if rule.excluded or rule.pattern is None:
        return False
    common = case.expectation.scheme_spec
    if case.expectation.against == "plan" or common is None:
        return True
    return any((spec.weight, spec.inputs) != (common.weight, common.inputs) for spec in rule.specs)
