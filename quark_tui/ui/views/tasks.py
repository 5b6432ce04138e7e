"""A task tree as rows and in a few words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from quark_tui.core.text import cell_width, elide_end, pad
from quark_tui.ui.states import task_look
from quark_tui.ui.text import Part, safe
from quark_tui.ui.views import Row
from quark_tui.ui.widgets.row_list import Entry

#: A task as ``status`` answers it.
Task: TypeAlias = Mapping[str, Any]

#: States in which a person looks for what stands below; the other tasks begin folded.
_OPEN: Final = ("active", "failed", "interrupted")
#: Cells of a reason that are worth showing beside a title.
_NOTE: Final = 8


@dataclass(frozen=True, slots=True)
class Node:
    """A task in its place. ``key`` is dotted and unique; ``parent`` is None at the top; ``open`` is None for a leaf."""

    key: str
    task: Task
    depth: int
    parent: str | None
    open: bool | None


def nodes(tasks: Sequence[Task], folds: Mapping[str, bool]) -> tuple[Node, ...]:
    """The tasks that are in view, from top to bottom. ``folds``: open or not, by key, where a person chose."""
    taken: set[str] = set()
    return tuple(_nodes(tasks, folds, 0, None, taken))


def _nodes(
    tasks: Sequence[Task], folds: Mapping[str, bool], depth: int, parent: str | None, taken: set[str]
) -> Iterator[Node]:
    for task in tasks:
        name = safe(task["key"])
        key = first = name if parent is None else f"{parent}.{name}"
        number = 1
        while key in taken:
            number += 1
            key = f"{first}#{number}"
        taken.add(key)
        is_open = folds.get(key, task["state"] in _OPEN) if task["children"] else None
        yield Node(key, task, depth, parent, is_open)
        if is_open:
            yield from _nodes(task["children"], folds, depth + 1, key, taken)


def row(node: Node, width: int, ascii_only: bool) -> Row:
    """``node`` on one line of ``width`` cells: title on the left, count or state on the right, a note between."""
    task, look = node.task, task_look(safe(node.task["state"]))
    lead = f"{'  ' * min(node.depth, 8)}{look.mark(ascii_only)} "
    title = safe(task["title"])
    room = width - cell_width(lead)
    right = _right(task, look.word, room - cell_width(title) - 2)
    room -= cell_width(right) + 2
    shown = elide_end(title, max(0, room))
    room -= cell_width(shown)
    notes = "".join(_notes(node, room))
    fill = pad("", max(0, room - cell_width(notes)) + 2)
    strong = "strong" if task["state"] == "active" else "muted" if look.tone == "muted" else "text"
    cells = ((lead, look.tone), (shown, strong), (notes + fill, "muted"), (right, look.tone))
    detail = task_detail(node)
    return Row(Entry(node.key, cells, span=True), detail, "\n".join(text for text, _ in detail))


def _right(task: Task, word: str, room: int) -> str:
    """Count and state, or of both what says more where there is no room: while it goes on that is the count."""
    counts, short = counted(task), counted(task, unit=False)
    if not counts:
        return word
    active = task["state"] == "active"
    choices = (counts, short) if active else (f"{word} at {counts}", f"{word} at {short}", word)
    return next((one for one in choices if cell_width(one) <= room), choices[-1])


def _notes(node: Node, room: int) -> Iterator[str]:
    """What stands behind a title, as far as it fits: folded tasks, the log as the only witness, the reason."""
    folded = len(node.task["children"]) if node.open is False else 0
    for text in (f" +{folded}" if folded else "", " (log)" if node.task["from"] == "log" else ""):
        if text and cell_width(text) <= room:
            room -= cell_width(text)
            yield text
    why = safe(node.task["reason"] or node.task["detail"])
    if why and room >= _NOTE + 2:
        yield f"  {elide_end(why, room - 2)}"


def task_detail(node: Node) -> tuple[Part, ...]:
    """Everything about a task, with where it is known from."""
    task = node.task
    look = task_look(safe(task["state"]))
    counts = counted(task)
    parts: list[Part] = [(safe(task["title"]), "strong"), (f"{look.word}{f': {counts}' if counts else ''}", look.tone)]
    parts += [(safe(task[name]), "text") for name in ("detail", "reason") if task[name]]
    source = safe(task["from"])
    if source == "log":
        parts.append(("known from the log alone: it shows where the run is, and decides no verdict", "muted"))
    elif source:
        parts.append((f"known from: {source}", "muted"))
    for child in task["children"]:
        below = task_look(safe(child["state"]))
        counts = counted(child)
        parts.append((f"  {safe(child['title'])}: {below.word}{f' {counts}' if counts else ''}", below.tone))
    parts.append((f"key {node.key}", "muted"))
    return tuple(parts)


def standing(tasks: Sequence[Task]) -> list[Task]:
    """Where the work stands, from the top-level task to the innermost: active, else failed, interrupted, or next."""
    for state in ("active", "failed", "interrupted", "pending"):
        path: list[Task] = []
        level = tasks
        while found := next((one for one in level if one["state"] == state), None):
            path.append(found)
            level = found["children"]
        if path:
            return path
    return []


def standing_key(tasks: Sequence[Task], shown: Sequence[Node]) -> str | None:
    """The key of the innermost of ``shown`` nodes where the work stands; None where it is over and nothing waits."""
    path = standing(tasks)
    return next((node.key for node in reversed(shown) if any(node.task is one for one in path)), None)


def done(tasks: Sequence[Task]) -> str:
    """``8 of 12 done``: skipped tasks count as neither."""
    asked = [one for one in tasks if one["state"] != "skipped"]
    return f"{sum(one['state'] == 'done' for one in asked)} of {len(asked)} done" if asked else ""


def advance(tasks: Sequence[Task], *, unit: bool = True) -> str:
    """Where the work stands now: the innermost active task with its count; else the first that failed or waits."""
    path = standing(tasks)
    if not path:
        return ""
    word = {"failed": "failed at ", "interrupted": "interrupted at ", "pending": "next: "}.get(path[0]["state"], "")
    counts = counted(path[-1], unit=unit)
    return f"{word}{safe(path[-1]['title'])}{f' {counts}' if counts else ''}"


def counted(task: Task, *, unit: bool = True) -> str:
    """``31 of 128 batches``, or without the unit; "" without progress."""
    progress = task["progress"]
    if not progress:
        return ""
    total = "" if progress["total"] is None else f" of {safe(progress['total'])}"
    said = f"{safe(progress['done'])}{total}"
    return f"{said} {safe(progress['unit'])}" if unit else said
