"""What the screens of one job share: the newest answers about it. It decides nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quark_tui.core.answer import Answer
from quark_tui.core.finding import blocks
from quark_tui.ui.states import task_look
from quark_tui.ui.text import Part, safe

if TYPE_CHECKING:
    from quark_tui.engine.review import Review

STEPS = ("Environment", "Model", "Plan", "Command", "Run", "Result")
#: Which tasks of a tree a step stands for; Environment has none.
_TASKS: Mapping[str, tuple[str, ...]] = {
    "Model": ("analysis",),
    "Plan": ("plan",),
    "Command": ("command", "approval"),
    "Run": ("load", "calibration_data", "quantize", "freeze", "export", "evaluate"),
    "Result": ("verify", "accept"),
}


@dataclass(slots=True)
class JobView:
    """``path`` is absolute: a job, or one of its runs (``scope``). Answers are None until they have come."""

    path: str
    model: str = ""
    workflow: str = "ptq"
    status: Answer | None = None
    review: Review | None = None
    verified: Answer | None = None

    @property
    def name(self) -> str:
        """The folder's name, safe to show."""
        return safe(os.path.basename(self.path.rstrip("/")))

    @property
    def tasks(self) -> Sequence[Mapping[str, Any]]:
        return self.status.body["tasks"] if self.status else ()

    def present_step(self) -> int:
        """1 to 6: where the work stands by the answer of ``status``. 2 before that answer has come."""
        if self.status is None:
            return 2
        body = self.status.body
        passed = body.get("checkpoints") or {"analysis": True, "plan": True}
        if body["liveness"] in ("alive", "unknown"):
            return 5
        if body["liveness"] is not None and passed["analysis"] and passed["plan"]:
            return 6
        if body["scope"] == "run":
            return 5
        return 2 if not passed["analysis"] else 3 if not passed["plan"] else 4

    def rail(self, step: int, ascii_only: bool) -> list[Part]:
        """The line of steps: each with the state of what it stands for, the shown one marked."""
        parts: list[Part] = [(" ", "")]
        for number, name in enumerate(STEPS, 1):
            state = self._environment() if name == "Environment" else _joined(self._states(_TASKS[name]))
            here = number == step
            look = task_look("active" if here else state)
            style = "bold $strong" if here else "$muted" if state == "pending" else f"${_tone(look.tone)}"
            parts += [(f"{look.mark(ascii_only)} {name}", style), ("  ", "")]
        return parts[:-1]

    def _environment(self) -> str:
        if self._states(("approval",)) == ["done"]:
            return "done"
        if self.review is None or self.review.environment is None:
            return "pending"
        return "failed" if blocks(self.review.environment.findings) else "done"

    def _states(self, keys: Iterable[str]) -> list[str]:
        wanted = set(keys)
        return [task["state"] for task in self.tasks if task["key"] in wanted]


def _tone(tone: str) -> str:
    return {"text": "foreground"}.get(tone, tone)


def _joined(states: Sequence[str]) -> str:
    for state in ("failed", "interrupted", "active"):
        if state in states:
            return state
    if states and all(state in ("done", "skipped") for state in states):
        return "done" if "done" in states else "skipped"
    return "pending"
