"""The sixteen checks, one function each, in the order in which they are answered."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from quark_tui.core.ptq.verify.case import Case, Judged
from quark_tui.core.ptq.verify.layout import differences
from quark_tui.core.ptq.verify.modules import is_router
from quark_tui.core.ptq.verify.patterns import Patterns, canonical
from quark_tui.core.text import clean, human_bytes

Weight = Literal["fatal", "partial", "advisory"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the verdict. ``ok`` is None when the check does not apply or, with ``undecided``, could not be made.

    ``weight`` says what a false check costs: the verdict failed, partial, or nothing.
    """

    code: str
    ok: bool | None
    message: str
    evidence: str = ""
    next_step: str = ""
    weight: Weight = "partial"
    undecided: bool = False


_BLIND = "Part of the weights could not be read."
_FOREIGN = "Another method's quantization is not judged here."


def _some(names: Iterable[str], most: int = 3) -> str:
    """The first names, cleaned and cut, and how many more there are."""
    listed = list(names)
    shown = ", ".join(clean(name)[:120] for name in listed[:most])
    return shown + (f" and {len(listed) - most} more" if len(listed) > most else "")


def _modules(count: int) -> str:
    return "1 module" if count == 1 else f"{count} modules"


def _standing(case: Case, code: str, *, needs: bool = True) -> Check | None:
    """The answer of a check that rests on tensors when there are none to rest on."""
    if case.blind:
        return Check(code, None, _BLIND, _some(case.export.unreadable) or case.export.problem, undecided=True)
    if case.foreign:
        return Check(code, None, _FOREIGN, f"{case.config.where}: {case.foreign}", undecided=code == "scheme_matches")
    if needs and not case.seen:
        return Check(code, None, "No tensor was seen.")
    return None


_PART = re.compile(r"(?s)(.*)-(\d{1,9})-of-(\d{1,9})\.safetensors\Z")


def _lost_shards(case: Case) -> list[str]:
    """Weight files that the index, or the numbering of those that are there, promises."""
    present = {shard.name for shard in case.export.checkpoint.shards}
    if "model.safetensors" in present:  # loaded alone, whatever an index beside it says
        return []
    lost = set((case.export.checkpoint.index or {}).values()) - present
    for name in present:
        match = _PART.match(name)
        if match and int(match[3]) <= 100_000:
            width = len(match[2])
            whole = (
                f"{match[1]}-{number:0{width}d}-of-{match[3]}.safetensors" for number in range(1, int(match[3]) + 1)
            )
            missing = [part for part in whole if part not in present]
            lost.update(missing)
            break
    return sorted(lost)


def weights_present(case: Case) -> Check:
    code, shards = "weights_present", case.export.checkpoint.shards
    if case.export.refused:
        return Check(
            code, None, "The folder could not be looked into.", case.export.problem, undecided=True, weight="fatal"
        )
    lost = _lost_shards(case)
    if shards and not lost:
        size = sum(shard.size for shard in shards)
        return Check(
            code,
            True,
            f"{len(shards)} weight file(s), {human_bytes(size)}.",
            _some(s.name for s in shards),
            weight="fatal",
        )
    if lost:
        return Check(
            code,
            False,
            f"{len(lost)} weight file(s) that are promised are not there.",
            _some(lost),
            "Look into the log for what ended the export; run it again into an empty folder.",
            "fatal",
        )
    other = case.export.checkpoint.other_weights
    if other and case.expectation.against == "config":
        return Check(
            code,
            None,
            "The weights are in a format without readable headers.",
            _some(other),
            "Verify a safetensors export.",
            "fatal",
            True,
        )
    return Check(
        code,
        False,
        case.export.problem or "There is no safetensors file.",
        _some(name for name, _ in case.export.files),
        "Look into the log for what ended the export: weights are written last.",
        "fatal",
    )


def index_matches(case: Case) -> Check:
    code, checkpoint = "index_matches", case.export.checkpoint
    if not checkpoint.shards:
        return Check(code, None, "There are no weight files that an index could name.")
    if case.export.unreadable:
        return Check(code, None, _BLIND, _some(case.export.unreadable), undecided=True)
    found = [clean(text)[:300] for text in checkpoint.index_disagreements()]
    owners: dict[str, str] = {}
    twice = [
        name
        for shard in checkpoint.shards
        for name in shard.tensors
        if owners.setdefault(name, shard.name) != shard.name
    ]
    if twice:
        found.append(f"{len(twice)} tensors are in more than one file, first {_some(twice, 1)}")
    if checkpoint.index is None and not checkpoint.index_problem:
        if len(checkpoint.shards) > 1 and not any(shard.name == "model.safetensors" for shard in checkpoint.shards):
            found.append(f"{len(checkpoint.shards)} weight files without model.safetensors.index.json")
        if not found:
            return Check(code, None, "One weight file needs no index.")
    if found:
        return Check(
            code,
            False,
            "Index and weight files disagree.",
            "; ".join(found[:5]),
            "Export again into an empty folder: files of an earlier run may have stayed.",
        )
    return Check(
        code,
        True,
        f"The index and {len(checkpoint.shards)} weight file(s) agree.",
        f"{len(checkpoint.index or {})} tensors",
    )


def headers_sound(case: Case) -> Check:
    code, shards = "headers_sound", case.export.checkpoint.shards
    if not shards:
        return Check(code, None, "There is no header to read.", weight="fatal")
    bad = [
        f"{shard.name}: {shard.problem}"
        for shard in shards
        if shard.problem and shard.name not in case.export.unreadable
    ]
    if bad:
        return Check(
            code,
            False,
            f"{len(bad)} weight file(s) cannot be believed.",
            _some((text[:300] for text in bad), 2),
            "Check free space and quota; export again.",
            "fatal",
        )
    if case.export.unreadable:
        return Check(
            code,
            None,
            _BLIND,
            _some(case.export.unreadable),
            "Run as the user who owns the files, or have them made readable.",
            "fatal",
            True,
        )
    if not case.tensors:
        return Check(
            code, False, "The weight files hold no tensor.", _some(s.name for s in shards), "Export again.", "fatal"
        )
    return Check(code, True, f"{len(case.tensors)} tensors; every file is as long as its header says.", weight="fatal")


def config_present(case: Case) -> Check:
    code, document = "config_present", case.export.config
    where = "config.json"
    if case.export.refused or document.unreadable:
        return Check(
            code,
            None,
            "config.json could not be read.",
            document.problem or case.export.problem,
            undecided=True,
            weight="fatal",
        )
    if not document.present:
        return Check(
            code, False, "There is no config.json.", where, "Look into the log for what ended the export.", "fatal"
        )
    if document.problem:
        return Check(
            code, False, "config.json cannot be used.", clean(document.problem)[:300], "Export again.", "fatal"
        )
    if case.config.problems:
        return Check(
            code,
            False,
            "quantization_config cannot be understood.",
            _some(case.config.problems),
            "Export again; never mend it by hand.",
            "fatal",
        )
    if case.config.method is None:
        return Check(code, True, "config.json was read; it names no quantization.", where, weight="fatal")
    version = f", version {clean(case.config.version)[:40]}" if case.config.version else ""
    method = clean(case.config.method)[:60]
    return Check(
        code, True, f"config.json was read; quantization method {method}{version}.", case.config.where, weight="fatal"
    )


def _against(found: Sequence[Judged]) -> str:
    shown = [f"{clean(one.module.name)[:120]}: {one.judgement.contradictions[0]}" for one in found[:2]]
    return "; ".join(shown) + (f" and {len(found) - 2} more" if len(found) > 2 else "")


_AGAIN = "Compare the recorded command with the plan; export again."


def scheme_matches(case: Case) -> Check:
    code = "scheme_matches"
    config, expectation = case.config, case.expectation
    name = clean(expectation.scheme)[:60] or "no scheme"
    if (standing := _standing(case, code, needs=False)) is not None:
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
                f"Quantized, and config.json does not say so: {_modules(len(case.quantized))}.",
                _some(case.quantized),
                _AGAIN,
                "fatal",
            )
        if expectation.against == "plan":
            return Check(
                code,
                False,
                f"The plan wants {name}; config.json names no quantization.",
                "config.json",
                _AGAIN,
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
            f"The tensors of {len(wrong)} of {_modules(len(relevant))} contradict {name}.",
            _against(wrong),
            _AGAIN,
            "fatal" if everywhere else "partial",
        )
    if said:
        return Check(
            code,
            False,
            f"config.json disagrees with the plan's {name}.",
            "; ".join(said),
            _AGAIN,
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
        return Check(code, False, f"Not one module carries {name}.", case.names, _AGAIN, "fatal")
    return Check(
        code,
        True,
        f"The tensors of {_modules(len(relevant))} are those of {name}.",
        "types and shapes of weights and scales",
    )


def count_matches(case: Case) -> Check:
    code = "count_matches"
    if (standing := _standing(case, code, needs=False)) is not None:
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
            f"Quantized: {_modules(len(quantized))}; nothing says which should be.",
            case.export.config.name,
        )
    expected = set(case.expected)
    if quantized == expected:
        return Check(
            code,
            True,
            f"All {_modules(len(expected))} that should be quantized are, and no other.",
            f"names from {clean(case.names)}",
        )
    left, more = [n for n in case.expected if n not in quantized], [n for n in case.quantized if n not in expected]
    parts = []
    gone = set(case.absent)
    if plain := [name for name in left if name not in gone]:
        parts.append(f"{len(plain)} left unquantized: {_some(plain)}")
    if case.absent:
        parts.append(f"{len(case.absent)} not there at all: {_some(case.absent)}")
    if more:
        parts.append(f"{len(more)} quantized that should not be: {_some(more)}")
    return Check(
        code,
        False,
        f"{len(quantized)} modules are quantized, {len(expected)} should be.",
        "; ".join(parts),
        "Look at the log's module tables for these names.",
    )


def excludes_respected(case: Case) -> Check:
    code = "excludes_respected"
    if (standing := _standing(case, code)) is not None:
        return standing
    if not case.expectation.excludes:
        return Check(code, None, "Nothing is excluded.")
    broken = [name for name in case.quantized if case.rules[name].excluded]
    if broken:
        return Check(
            code,
            False,
            f"Quantized although excluded: {_modules(len(broken))}.",
            _some(broken),
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
                f"Excluded by the plan and not in config.json's exclude: {_modules(len(silent))}.",
                _some(silent),
                "A loader will look for quantized weights there; export again.",
            )
    return Check(
        code,
        True,
        f"Excluded and not quantized: {_modules(len(case.excluded))}.",
        _some(case.expectation.excludes.items),
    )


def scales_present(case: Case) -> Check:
    code = "scales_present"
    if (standing := _standing(case, code)) is not None:
        return standing
    if not case.quantized:
        return Check(code, None, "Nothing is quantized, so there is nothing to scale.")
    lacking: dict[str, str] = {
        one.module.name: ", ".join(one.judgement.missing) for one in case.judged if one.judgement.missing
    }
    for name in case.quantized:
        if not case.modules[name].scaled:
            lacking.setdefault(name, "weight_scale")
    if lacking:
        shown = [f"{name} lacks {what}" for name, what in lacking.items()]
        return Check(
            code,
            False,
            f"Scales or zero points are missing in {_modules(len(lacking))}.",
            _some(shown),
            "Export again.",
        )
    odd = [name for name, value in case.export.scalars.items() if "weight_scale" in name and not 0 < value < math.inf]
    if odd:
        shown = [f"{name} = {case.export.scalars[name]}" for name in odd]
        return Check(code, False, f"{len(odd)} weight scales are no usable numbers.", _some(shown), "Quantize again.")
    return Check(
        code,
        True,
        f"Every scale that the scheme needs is there, in {_modules(len(case.quantized))}.",
        "names in the headers",
    )


def _activation(case: Case, kind: str) -> tuple[list[str], list[str]]:
    """(names of all scalar scales of that kind, names of those that could not be read)."""
    names = [
        name
        for name, tensor in case.tensors.items()
        if (name.endswith((f".{kind}_scale", f".{kind}_scale_2"))) and tensor.elements == 1
    ]
    return names, [name for name in names if name not in case.export.scalars]


def scales_calibrated(case: Case) -> Check:
    code = "scales_calibrated"
    if (standing := _standing(case, code)) is not None:
        return standing
    inputs, unread = _activation(case, "input")
    outputs, unread_outputs = _activation(case, "output")
    unread += unread_outputs
    if not inputs and not outputs:
        return Check(code, None, "No scale of this folder comes from calibration.")
    if unread:
        return Check(
            code,
            None,
            f"{len(unread)} calibrated scales could not be read.",
            case.export.scalars_problem or _some(unread),
            undecided=True,
        )
    values = case.export.scalars
    odd = [name for name in (*inputs, *outputs) if not 0 < values[name] < math.inf]
    if odd:
        return Check(
            code,
            False,
            f"{len(odd)} calibrated scales are no usable numbers.",
            _some(f"{n} = {values[n]}" for n in odd),
            "Calibrate again with other samples.",
        )
    ones = [name for name in inputs if values[name] == 1.0]
    if inputs and len(ones) == len(inputs):
        return Check(
            code,
            False,
            f"All {len(inputs)} input scales are exactly 1.0: nothing was calibrated.",
            _some(ones),
            "Make batch_size no larger than the usable samples and quantize again.",
        )
    flat = [name for name in outputs if values[name] == 1.0]
    if outputs and len(flat) == len(outputs) and case.config.min_kv_scale < 1.0:
        return Check(
            code,
            False,
            f"All {len(outputs)} KV cache scales are exactly 1.0: nothing was calibrated.",
            _some(flat),
            "Make batch_size no larger than the usable samples and quantize again.",
        )
    if ones:
        return Check(
            code,
            True,
            f"{len(inputs) - len(ones)} of {len(inputs)} input scales were calibrated.",
            f"exactly 1.0: {_some(ones)}",
        )
    return Check(
        code,
        True,
        f"{len(inputs) + len(outputs)} scales were calibrated.",
        "none of the values is the initial 1.0" if not flat else _some(flat),
    )


def uncalibrated(case: Case) -> list[str]:
    """Input scales that kept their initial value 1.0 although others did not."""
    names, unread = _activation(case, "input")
    ones = [name for name in names if case.export.scalars.get(name) == 1.0]
    return ones if not unread and 0 < len(ones) < len(names) else []


def kv_consistent(case: Case) -> Check:
    code = "kv_consistent"
    if (standing := _standing(case, code)) is not None:
        return standing
    config = case.config
    scaled = [name for name, module in case.modules.items() if "output_scale" in module.parts]
    specified = [pattern for pattern, spec in config.layers.items() if spec is not None and spec.outputs]
    problems = []
    if case.expectation.kv_asked and not config.kv_patterns:
        problems.append("the plan wants the KV cache quantized, kv_cache_quant_config is empty")
    if not case.expectation.kv_asked and config.kv_patterns:
        problems.append(f"kv_cache_quant_config names {_some(config.kv_patterns)}, the plan wants none")
    group = config.kv_group or ()
    if config.kv_group is not None and set(config.kv_patterns) != set(group):
        problems.append(
            f"export.kv_cache_group is [{_some(group)}], kv_cache_quant_config has [{_some(config.kv_patterns)}]"
        )
    if not problems and not config.kv_patterns and not scaled:
        return Check(code, None, "The KV cache is not quantized.")
    patterns = Patterns(config.kv_patterns or group, loose=True)
    if patterns:
        layers = [name for name, module in case.modules.items() if module.weight is not None and patterns.matches(name)]
        bare = [name for name in layers if "output_scale" not in case.modules[name].parts]
        if not layers:
            problems.append(f"no module matches {_some(patterns.items)}")
        elif bare:
            problems.append(f"{len(bare)} of {len(layers)} KV layers have no output_scale: {_some(bare)}")
    outputs = Patterns([*patterns.items, *specified], loose=True)
    everywhere = config.global_spec is not None and bool(config.global_spec.outputs)
    stray = [name for name in scaled if not outputs.matches(name)] if not everywhere else []
    if stray:
        problems.append(f"{len(stray)} modules have an output_scale that no KV layer explains: {_some(stray)}")
    if problems:
        return Check(
            code,
            False,
            "Plan, configuration and tensors disagree about the KV cache.",
            "; ".join(problems),
            "Export again; a newer amd-quark may write these fields consistently. Never mend config.json by hand.",
        )
    return Check(code, True, f"{len(scaled)} KV layers have their output scale.", _some(patterns.items))


def overrides_consistent(case: Case) -> Check:
    code = "overrides_consistent"
    if (standing := _standing(case, code)) is not None:
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
        parts.append(f"{_modules(len(wrong))} against {_some(schemes)}: {_against(wrong)}")
    if overlooked:
        parts.append(f"under an override and not quantized: {_some(overlooked)}")
    if plain:
        parts.append(f"under an override and without a scale: {_some(plain)}")
    if parts:
        return Check(code, False, "Overrides are not what the tensors show.", "; ".join(parts), _AGAIN)
    if unknown:
        return Check(
            code,
            None,
            "What some overrides leave behind is not known here.",
            _some(one.rule.scheme for one in unknown),
            undecided=True,
        )
    return Check(
        code,
        True,
        f"The tensors of {_modules(len(relevant) + len(tables))} are those of their override.",
        _some(wanted.items),
    )


def _overridden(case: Case, name: str) -> bool:
    rule = case.rules[name]
    if rule.excluded or rule.pattern is None:
        return False
    common = case.expectation.scheme_spec
    if case.expectation.against == "plan" or common is None:
        return True
    return any((spec.weight, spec.inputs) != (common.weight, common.inputs) for spec in rule.specs)


_MTP_KEYS = (
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_layers",
    "mtp_num_layers",
    "num_mtp_modules",
    "num_nextn_layers",
    "mtp_layers",
    "n_mtp_layers",
    "num_mtp_hidden_layers",
    "mtp_transformer_layers",
)
_MTP_PART = re.compile(r"(?i)(?:mtp|nextn|next_n)(?:[_.]?[a-z]+)*_?\d*\Z")


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= 100_000 else None


def _configs(case: Case) -> list[Any]:
    document = case.document
    return [
        document,
        *(
            document[key]
            for key in ("text_config", "llm_config", "language_config")
            if isinstance(document.get(key), dict)
        ),
    ]


def mtp_excluded(case: Case) -> Check:
    code = "mtp_excluded"
    promised, depth = 0, None
    for config in _configs(case):
        promised = max([promised, *(_count(config.get(key)) or 0 for key in _MTP_KEYS)])
        depth = _count(config.get("num_hidden_layers")) if depth is None else depth
    if (standing := _standing(case, code)) is not None:
        return standing
    names = []
    tables = set(case.embeddings)
    for name, module in case.modules.items():
        parts = canonical(name).split(".")
        behind = (
            promised > 0
            and depth is not None
            and len(parts) > 1
            and parts[0] == "layers"
            and parts[1].isdigit()
            and len(parts[1]) < 7
            and int(parts[1]) >= depth
        )
        named = any(_MTP_PART.match(part) for part in parts[:3])
        if (behind or named) and module.weight is not None and name not in tables:
            names.append(name)
    if not promised and not names:
        return Check(code, None, "The model has no layers that predict further tokens.")
    if not names:
        return Check(
            code,
            None,
            "config.json counts layers that predict further tokens; the weights hold none.",
            f"{promised} promised",
        )
    said = Patterns(case.config.excludes, loose=True)
    plain = [
        name
        for name in names
        if not case.modules[name].quantized
        and len(case.modules[name].parts["weight"].shape) == 2
        and not said.matches(name)
    ]
    if plain:
        return Check(
            code,
            False,
            f"Layers for further tokens (MTP) neither quantized nor excluded: {_modules(len(plain))}.",
            _some(plain),
            "Add their pattern to exclude_layers and export again: loaders take them for quantized.",
        )
    return Check(code, True, "The layers that predict further tokens are quantized or excluded.", _some(names))


_VOCABULARY = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tekken.json",
    "sentencepiece.bpe.model",
)


def tokenizer_present(case: Case) -> Check:
    code = "tokenizer_present"
    if case.export.refused:
        return Check(code, None, "The folder could not be looked into.", case.export.problem)
    files = {file.name: file for file in case.export.tokenizer}
    vocabulary = [name for name in files if name in _VOCABULARY or name.endswith(".tiktoken")]
    bad = [f"{name}: {file.problem}" for name, file in files.items() if file.problem]
    empty = [name for name in (*vocabulary, "tokenizer_config.json") if name in files and files[name].size == 0]
    missing = [] if vocabulary else ["a vocabulary (tokenizer.json, tokenizer.model, …)"]
    if "tokenizer_config.json" not in files:
        missing.append("tokenizer_config.json")
    if missing or bad or empty:
        text = "; ".join([*(f"missing: {name}" for name in missing), *bad[:3], *(f"empty: {name}" for name in empty)])
        return Check(
            code,
            False,
            "The tokenizer is not whole.",
            clean(text)[:400],
            "Copy nothing by hand before you know why: the tokenizer is saved last, after the weights.",
        )
    return Check(code, True, f"{len(files)} tokenizer file(s).", _some(files))


def tokenizer_unchanged(case: Case) -> Check:
    code, source = "tokenizer_unchanged", case.source.tokenizer
    if source is None:
        return Check(code, None, "There is no source to compare with.", weight="advisory")
    mine = {file.name: file for file in case.export.tokenizer}
    changed: list[str] = []
    compared = 0
    for file in source:
        other = mine.get(file.name)
        if other is None:
            changed.append(f"{file.name} is not there")
            continue
        if file.problem or other.problem or file.sha256 is None or other.sha256 is None:
            continue
        compared += 1
        if file.sha256 == other.sha256:
            continue
        found = [
            f"{file.name} {key}: {_short(file.settings.get(key))} → {_short(other.settings.get(key))}"
            for key in dict.fromkeys([*file.settings, *other.settings])
            if file.settings.get(key) != other.settings.get(key)
        ]
        if file.rest_sha256 is None or file.rest_sha256 != other.rest_sha256:
            found.append(f"{file.name}: other content")
        changed += found or [f"{file.name}: written differently, the same content"]
    if not source or not compared:
        return Check(code, None, "The source has no tokenizer files that could be compared.", weight="advisory")
    if all(text.endswith("the same content") for text in changed):
        return Check(code, True, f"{compared} tokenizer file(s) are the source's.", _some(changed), weight="advisory")
    return Check(
        code,
        False,
        "The tokenizer differs from the source's.",
        clean("; ".join(changed[:12])),
        "quark-cli always rewrites padding, truncation and pad_token; set them back for serving.",
        "advisory",
    )


def _short(value: Any) -> str:
    if isinstance(value, dict):
        picked = [f"{key}={value[key]}" for key in ("max_length", "strategy", "direction", "pad_token") if key in value]
        return clean(" ".join(picked))[:80] or "set"
    return clean("none" if value is None else value)[:60]


#: Estimates of real exports came within 2 %; beyond this share something else was written.
_TOLERANCE = 0.10


def size_plausible(case: Case) -> Check:
    code, estimate = "size_plausible", case.source.estimate_bytes
    if estimate is None or estimate <= 0 or not case.export.checkpoint.shards:
        return Check(code, None, "There is no estimate to compare with.", weight="advisory")
    size = sum(shard.size for shard in case.export.checkpoint.shards)
    text = f"{human_bytes(size)} of weight files, {human_bytes(estimate)} estimated"
    ok = abs(size - estimate) <= estimate * _TOLERANCE
    if ok:
        return Check(code, True, "The size is what the plan's estimate says.", text, weight="advisory")
    return Check(
        code,
        False,
        "The size is not what the plan's estimate says.",
        text,
        "Compare the count of quantized modules.",
        "advisory",
    )


def metric_present(case: Case) -> Check:
    code, metric = "metric_present", case.source.metric
    if not case.expectation.evaluation:
        return Check(code, None, "No evaluation was asked for.")
    if metric is None:
        return Check(
            code, False, "An evaluation was asked for and no metric was seen.", "", "Look at the end of the log."
        )
    if not math.isfinite(metric):
        return Check(
            code, False, f"The metric is {metric}, no usable number.", "", "Do not use this model before you know why."
        )
    return Check(code, True, f"The metric is {metric:g}.", "")


CHECKS: tuple[Callable[[Case], Check], ...] = (
    weights_present,
    index_matches,
    headers_sound,
    config_present,
    scheme_matches,
    count_matches,
    excludes_respected,
    scales_present,
    scales_calibrated,
    kv_consistent,
    overrides_consistent,
    mtp_excluded,
    tokenizer_present,
    tokenizer_unchanged,
    size_plausible,
    metric_present,
)
#: Their codes, in the order in which they are answered.
CODES = tuple(check.__name__ for check in CHECKS)
