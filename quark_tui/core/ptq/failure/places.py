"""Where in a run something was raised."""

from __future__ import annotations

import re

from quark_tui.core.ptq.failure.values import Case
from quark_tui.core.ptq.phases import PhaseKey

# The functions that torch_llm_ptq's run() calls, the innermost named one deciding (read in 0.12.post1 and 0.13).
_FRAME_PHASES: tuple[tuple[str, PhaseKey], ...] = (
    ("ppl_eval", "evaluate"),
    ("export_safetensors", "export"),
    ("freeze", "freeze"),
    ("_do_calibration", "calibrate"),
    ("_apply_advanced_quant_algo", "algorithm"),
    ("_prepare_model", "replace"),
    ("quantize_model", "replace"),
    ("get_calib_dataloader", "calibration_data"),
    ("get_tokenizer", "tokenizer"),
    ("get_model", "model"),
)

_FUNCTION = re.compile(r"^ +File .*, line \d+, in (\w+)$", re.MULTILINE)


def phase_of(frames: str) -> PhaseKey | None:
    """The phase that the frames of a traceback pass through, None when they name none."""
    called = set(_FUNCTION.findall(frames))
    return next((phase for function, phase in _FRAME_PHASES if function in called), None)


def phase_evidence(case: Case) -> tuple[str, ...]:
    """Where the phase of the case was seen."""
    seen = next((item for item in case.report.seen if item.key == case.phase), None)
    if seen is not None:
        return (f"line {seen.line}: the phase {case.phase} began",)
    return (f"the traceback passes through the phase {case.phase}",) if case.phase else ()
