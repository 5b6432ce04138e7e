"""What job.json says of a job for lists, which read nothing else of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quark_tui.core.ptq.follow_up import Checkpoint

#: What a job waits for at each checkpoint.
WAITS: Mapping[Checkpoint, str] = {
    "analysis": "confirm the analysis",
    "plan": "confirm the plan",
    "command": "approve the command",
}


def waiting(state: Mapping[str, Any], checkpoint: Checkpoint, moment: str) -> dict[str, Any]:
    """``state`` of a job that waits for a person at ``checkpoint`` since ``moment`` (ISO 8601 UTC).

    What is on record of its newest run stays on record.
    """
    record = {key: state[key] for key in ("word", "run", "follow_up") if key in state} if "run" in state else {}
    return {"word": "waits", **record, "where": WAITS[checkpoint], "updated_at": moment}


def earliest_open(analysis_confirmed: bool, plan_confirmed: bool) -> Checkpoint:
    """The first checkpoint that was not passed; the command's is open until its run starts."""
    if not analysis_confirmed:
        return "analysis"
    return "command" if plan_confirmed else "plan"
