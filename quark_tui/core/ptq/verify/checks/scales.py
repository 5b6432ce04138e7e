"""Scales: are they there, were they calibrated, and does the KV cache have its own?"""

from __future__ import annotations

import math

from quark_tui.core.ptq.verify.case import Case
from quark_tui.core.ptq.verify.checks.check import Check, module_count, some_names, untestable
from quark_tui.core.ptq.verify.patterns import Patterns


def scales_present(case: Case) -> Check:
    code = "scales_present"
    if (standing := untestable(case, code)) is not None:
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
            f"Scales or zero points are missing in {module_count(len(lacking))}.",
            some_names(shown),
            "Export again.",
        )
    odd = [name for name, value in case.export.scalars.items() if "weight_scale" in name and not 0 < value < math.inf]
    if odd:
        shown = [f"{name} = {case.export.scalars[name]}" for name in odd]
        return Check(
            code, False, f"{len(odd)} weight scales are no usable numbers.", some_names(shown), "Quantize again."
        )
    return Check(
        code,
        True,
        f"Every scale that the scheme needs is there, in {module_count(len(case.quantized))}.",
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
    if (standing := untestable(case, code)) is not None:
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
            case.export.scalars_problem or some_names(unread),
            undecided=True,
        )
    values = case.export.scalars
    odd = [name for name in (*inputs, *outputs) if not 0 < values[name] < math.inf]
    if odd:
        return Check(
            code,
            False,
            f"{len(odd)} calibrated scales are no usable numbers.",
            some_names(f"{n} = {values[n]}" for n in odd),
            "Calibrate again with other samples.",
        )
    ones = [name for name in inputs if values[name] == 1.0]
    if inputs and len(ones) == len(inputs):
        return Check(
            code,
            False,
            f"All {len(inputs)} input scales are exactly 1.0: nothing was calibrated.",
            some_names(ones),
            "Make batch_size no larger than the usable samples and quantize again.",
        )
    flat = [name for name in outputs if values[name] == 1.0]
    if outputs and len(flat) == len(outputs) and case.config.min_kv_scale < 1.0:
        return Check(
            code,
            False,
            f"All {len(outputs)} KV cache scales are exactly 1.0: nothing was calibrated.",
            some_names(flat),
            "Make batch_size no larger than the usable samples and quantize again.",
        )
    if ones:
        return Check(
            code,
            True,
            f"{len(inputs) - len(ones)} of {len(inputs)} input scales were calibrated.",
            f"exactly 1.0: {some_names(ones)}",
        )
    return Check(
        code,
        True,
        f"{len(inputs) + len(outputs)} scales were calibrated.",
        "none of the values is the initial 1.0" if not flat else some_names(flat),
    )


def uncalibrated(case: Case) -> list[str]:
    """Input scales that kept their initial value 1.0 although others did not."""
    names, unread = _activation(case, "input")
    ones = [name for name in names if case.export.scalars.get(name) == 1.0]
    return ones if not unread and 0 < len(ones) < len(names) else []


def kv_consistent(case: Case) -> Check:
    code = "kv_consistent"
    if (standing := untestable(case, code)) is not None:
        return standing
    config = case.config
    scaled = [name for name, module in case.modules.items() if "output_scale" in module.parts]
    specified = [pattern for pattern, spec in config.layers.items() if spec is not None and spec.outputs]
    problems = []
    if case.expectation.kv_asked and not config.kv_patterns:
        problems.append("the plan wants the KV cache quantized, kv_cache_quant_config is empty")
    if not case.expectation.kv_asked and config.kv_patterns:
        problems.append(f"kv_cache_quant_config names {some_names(config.kv_patterns)}, the plan wants none")
    group = config.kv_group or ()
    if config.kv_group is not None and set(config.kv_patterns) != set(group):
        problems.append(
            f"export.kv_cache_group is [{some_names(group)}], kv_cache_quant_config has "
            f"[{some_names(config.kv_patterns)}]"
        )
    if not problems and not config.kv_patterns and not scaled:
        return Check(code, None, "The KV cache is not quantized.")
    patterns = Patterns(config.kv_patterns or group, loose=True)
    if patterns:
        layers = [name for name, module in case.modules.items() if module.weight is not None and patterns.matches(name)]
        bare = [name for name in layers if "output_scale" not in case.modules[name].parts]
        if not layers:
            problems.append(f"no module matches {some_names(patterns.items)}")
        elif bare:
            problems.append(f"{len(bare)} of {len(layers)} KV layers have no output_scale: {some_names(bare)}")
    outputs = Patterns([*patterns.items, *specified], loose=True)
    everywhere = config.global_spec is not None and bool(config.global_spec.outputs)
    stray = [name for name in scaled if not outputs.matches(name)] if not everywhere else []
    if stray:
        problems.append(f"{len(stray)} modules have an output_scale that no KV layer explains: {some_names(stray)}")
    if problems:
        return Check(
            code,
            False,
            "Plan, configuration and tensors disagree about the KV cache.",
            "; ".join(problems),
            "Export again; a newer amd-quark may write these fields consistently. Never mend config.json by hand.",
        )
    return Check(code, True, f"{len(scaled)} KV layers have their output scale.", some_names(patterns.items))
