"""The four truths of one job for a list: alive, fresh, advancing, decided; kept apart, each with what it rests on.

From plain JSON, locks and the end of the log, as the list itself: no validator is loaded and no header is read.
"""

from __future__ import annotations

import time
from typing import Any

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.text import clean
from quark_tui.engine.listing import job_row, newest_run
from quark_tui.io.runs.reading import read_run


def truths(path: str, now: float | None = None) -> dict[str, Any]:
    """The row of the job at ``path`` (see ``listing.job_row``) with ``pid``, ``liveness_evidence`` and
    ``fresh_seconds`` (since anything of a living run changed, None when it is over).

    ``now`` is in seconds since the epoch. Raises OSError or WrongQuestion when there is no readable job.
    """
    try:
        row, pid = job_row(path)
    except ValueError as error:
        raise WrongQuestion(f"quark-tui: {clean(path)}: job.json cannot be read: {clean(error)}") from None
    evidence, fresh = "no run was started", None
    if (folder := newest_run(path)) is not None:
        state = read_run(folder)
        evidence = state.exit.words if state.exit is not None else state.liveness_evidence
        if state.updated_at is not None and row["liveness"] in ("alive", "unknown"):
            fresh = max(0.0, (time.time() if now is None else now) - state.updated_at)
    return {**row, "pid": pid, "liveness_evidence": clean(evidence), "fresh_seconds": fresh}
