"""``sessions``: known jobs, jobs under given roots, and running quark processes that we may read. Reads only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding
from quark_tui.core.text import clean
from quark_tui.engine.listing import in_order, listed
from quark_tui.engine.status import status
from quark_tui.io.paths import absolute


def sessions(roots: Sequence[str]) -> Answer:
    """Known jobs come from the state folder; each root is searched three folders deep. Exit 0 whatever is found.

    Raises WrongQuestion for a root that does not exist.
    """
    looked = [absolute(root) for root in roots]
    for root in looked:
        if not os.path.isdir(root):
            raise WrongQuestion(f"quark-tui: {clean(root)}: no such folder")
    rows, problems = listed(looked)
    findings = tuple(
        Finding(
            "medium", "job_unreadable", f"{clean(path)}: job.json cannot be read", why, "quark-tui status says more"
        )
        for path, why in problems
    )
    return Answer("sessions", {"roots": looked, "sessions": in_order([_judged(row) for row in rows])}, findings)


def _judged(row: dict[str, Any]) -> dict[str, Any]:
    """A list reads no headers; whoever asks for one in full gets what an ended, never verified run really left."""
    if row["verdict"] != "unknown" or row["liveness"] != "finished":
        return row
    told = status(row["path"]).body
    return {**row, "verdict": told["verdict"], "stage": told["stage"]}
