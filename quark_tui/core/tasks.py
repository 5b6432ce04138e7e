"""Task tree values, their invariants, and the difference of two trees by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

State = Literal["pending", "active", "done", "failed", "skipped", "interrupted"]
STATES: tuple[State, ...] = ("pending", "active", "done", "failed", "skipped", "interrupted")


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of ``total`` (None when the total is unknown) in ``unit``."""

    done: int
    total: int | None
    unit: str

    def to_json(self) -> dict[str, Any]:
        return {"done": self.done, "total": self.total, "unit": self.unit}


@dataclass(frozen=True, slots=True)
class Task:
    """One line of a task tree. ``source`` (``from`` in JSON) names the evidence that its state rests on."""

    key: str
    title: str
    state: State = "pending"
    detail: str = ""
    reason: str = ""
    source: str = ""
    progress: Progress | None = None
    children: tuple[Task, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "title": self.title,
            "state": self.state,
            "detail": self.detail,
            "reason": self.reason,
            "from": self.source,
            "progress": self.progress.to_json() if self.progress else None,
            "children": [child.to_json() for child in self.children],
        }


def problems(tree: Sequence[Task], *, running: bool) -> list[str]:
    """Each invariant that ``tree`` breaks, in words; empty for a sound tree."""
    found: list[str] = []
    keys = [task.key for task in tree]
    if len(set(keys)) != len(keys):
        found.append("two top-level tasks share a key")
    active = [task.key for task in tree if task.state == "active"]
    if running and len(active) > 1:
        found.append(f"more than one active task: {active}")
    if not running and active:
        found.append(f"active although nothing runs: {active}")
    failed = False
    for task in tree:
        if failed and task.state not in ("skipped",):
            found.append(f"{task.key} is {task.state} after a failed task")
        if task.state == "skipped" and not task.reason:
            found.append(f"{task.key} is skipped without a reason")
        failed = failed or task.state == "failed"
    return found


def skip_after_failure(tree: Sequence[Task]) -> tuple[Task, ...]:
    """``tree`` with everything behind the first failed task skipped, the reason naming that task."""
    result: list[Task] = []
    failed: Task | None = None
    for task in tree:
        if failed is None:
            result.append(task)
            failed = task if task.state == "failed" else None
        else:
            result.append(replace(task, state="skipped", reason=f"not reached: {failed.title} failed", progress=None))
    return tuple(result)


def changed(old: Sequence[Task], new: Sequence[Task]) -> list[str]:
    """Keys (dotted for children) whose task differs between two trees, in the new tree's order, then removed ones."""
    before, after = dict(_flatten(old)), dict(_flatten(new))
    return [key for key, task in after.items() if before.get(key) != task] + [key for key in before if key not in after]


def _flatten(tree: Sequence[Task], prefix: str = "") -> list[tuple[str, Task]]:
    flat: list[tuple[str, Task]] = []
    for task in tree:
        flat.append((prefix + task.key, replace(task, children=())))
        flat += _flatten(task.children, f"{prefix}{task.key}.")
    return flat
