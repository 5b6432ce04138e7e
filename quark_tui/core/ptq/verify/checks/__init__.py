"""The checks of a verdict, in the order in which they are told; each looks at a Case and answers with a Check."""

from __future__ import annotations

from collections.abc import Callable

from quark_tui.core.ptq.verify.case import Case
from quark_tui.core.ptq.verify.checks.check import Check
from quark_tui.core.ptq.verify.checks.files import config_present, headers_sound, index_matches, weights_present
from quark_tui.core.ptq.verify.checks.modules import (
    count_matches,
    excludes_respected,
    overrides_consistent,
    scheme_matches,
)
from quark_tui.core.ptq.verify.checks.mtp import mtp_excluded
from quark_tui.core.ptq.verify.checks.plausibility import metric_present, size_plausible
from quark_tui.core.ptq.verify.checks.scales import kv_consistent, scales_calibrated, scales_present, uncalibrated
from quark_tui.core.ptq.verify.checks.tokenizer import tokenizer_present, tokenizer_unchanged

__all__ = ["CHECKS", "CODES", "Check", "uncalibrated"]

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
