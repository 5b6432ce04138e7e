"""The list of jobs as rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quark_tui.ui.listing import Row
from quark_tui.ui.widgets.row_list import Column, Entry

_STATE, _ASCII_STATE, _WORKFLOW, _NAME = 14, 17, 10, 12
#: From this width on the path has a column of its own.
_WIDE = 107


def layout(width: int, ascii_only: bool = False) -> Sequence[Column]:
    """State, workflow, model, where it stands, job and, in a wide list, its path."""
    state = _ASCII_STATE if ascii_only else _STATE
    wide = width >= _WIDE
    rest = max(0, width - state - _WORKFLOW - _NAME - 2 * (6 if wide else 5))
    model = rest * (28 if wide else 48) // 100
    where = min(28, rest - model) if wide else rest - model
    columns = [
        Column("STATE", state),
        Column("WORKFLOW", _WORKFLOW),
        Column("MODEL", model, middle=True),
        Column("WHERE IT STANDS", where),
        Column("JOB", _NAME, middle=True),
    ]
    return [*columns, Column("PATH", rest - model - where, middle=True)] if wide else columns


def entries(rows: Iterable[Row], ascii_only: bool) -> tuple[Entry, ...]:
    """One entry a job, under its path."""
    return tuple(
        Entry(
            row.key,
            (
                (f"{row.look.mark(ascii_only)} {row.look.word}", row.look.tone),
                (row.workflow, "text"),
                (row.model, "strong"),
                (row.where, "text"),
                (row.name, "text"),
                (row.path, "muted"),
            ),
        )
        for row in rows
    )


def matching(rows: Sequence[Row], query: str) -> tuple[Row, ...]:
    """The rows that hold every word of ``query`` somewhere, whatever the case."""
    words = query.lower().split()
    if not words:
        return tuple(rows)
    return tuple(row for row in rows if all(word in row.haystack for word in words))
