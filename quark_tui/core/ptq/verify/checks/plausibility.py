"""Is the result as a whole plausible: its size, its metric?"""

from __future__ import annotations

import math

from quark_tui.core.ptq.verify.case import Case
from quark_tui.core.ptq.verify.checks.check import Check
from quark_tui.core.text import human_bytes

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
