"""What is wrong with a plan: scheme, algorithm, calibration, compute, template. Patterns and the output have their own.

Every check takes the resolved :class:`Draft` and yields :class:`Issue` values. An issue knows which rows or patterns it
is about, so that a change is refused for what it did and not for what was wrong before.
"""

from __future__ import annotations

from quark_tui.core.ptq.checks.calibration import check_algorithm, check_calibration, needs_calibration
from quark_tui.core.ptq.checks.compute import check_compute, check_memory
from quark_tui.core.ptq.checks.draft import Draft, Issue, issue, nearest, shown
from quark_tui.core.ptq.checks.model import check_model, check_remote_code
from quark_tui.core.ptq.checks.schemes import check_schemes

__all__ = [
    "Draft",
    "Issue",
    "check_algorithm",
    "check_calibration",
    "check_compute",
    "check_memory",
    "check_model",
    "check_remote_code",
    "check_schemes",
    "issue",
    "nearest",
    "needs_calibration",
    "shown",
]
