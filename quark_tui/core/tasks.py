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
        found += _child_problems(task, task.key)
    return found


def _child_problems(task: Task, path: str) -> list[str]:
    found: list[str] = []
    if len({child.key for child in task.children}) != len(task.children):
        found.append(f"two children of {path} share a key")
    for child in task.children:
        if child.state == "active" and task.state != "active":
            found.append(f"{path}.{child.key} is active in a task that is {task.state}")
        found += _child_problems(child, f"{path}.{child.key}")
    return found


def skip_after_failure(tree: Sequence[Task]) -> tuple[Task, ...]:
    """``tree`` with everything behind the first failed task skipped, the reason naming that task.

    What was skipped for a reason of its own keeps it; a child that is done or failed keeps its state.
    """
    result: list[Task] = []
    reason = ""
    for task in tree:
        result.append(_skipped(task, reason) if reason else task)
        if not reason and task.state == "failed":
            reason = f"not reached: {task.title} failed"
    return tuple(result)


def _skipped(task: Task, reason: str) -> Task:
    children = tuple(child if child.state in ("done", "failed") else _skipped(child, reason) for child in task.children)
    own = task.reason if task.state == "skipped" else ""
    return replace(task, state="skipped", reason=own or reason, progress=None, children=children)


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
