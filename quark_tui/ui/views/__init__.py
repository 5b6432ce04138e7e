"""Answers of the engine as rows: pure functions, no widget and no file here.

A view gives rows for a list; each row knows what it says whole, and what of it is copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quark_tui.core.finding import LEVELS, Finding
from quark_tui.ui.states import level_look
from quark_tui.ui.text import Part, safe
from quark_tui.ui.widgets.row_list import Entry, heading


@dataclass(frozen=True, slots=True)
class Row:
    """``detail``: paragraphs of (text, tone) that say the row whole, with where it comes from."""

    entry: Entry
    detail: tuple[Part, ...] = ()
    copy: str = field(default="")


def title(key: str, text: str) -> Row:
    """A line that only names what comes below it."""
    return Row(heading(key, text))


def section(key: str, text: str) -> list[Row]:
    """An empty line, and one that names what comes below it."""
    return [title(f"gap-{key}", ""), title(key, text)]


def findings(found: Iterable[Finding], ascii_only: bool, *, prefix: str = "finding") -> list[Row]:
    """One row a finding, by weight; its evidence and next step are in its detail."""
    rows = []
    ordered = sorted(found, key=lambda one: -LEVELS.index(one.level))
    for number, one in enumerate(ordered):
        look = level_look(one.level)
        message = safe(one.message)
        entry = Entry(
            f"{prefix}-{number}-{safe(one.code)}",
            ((f"{look.mark(ascii_only)} {look.word}: ", look.tone), (message, "text")),
            span=True,
        )
        rows.append(Row(entry, finding_detail(one), "\n".join((message, safe(one.evidence), safe(one.next_step)))))
    return rows


def weighed(found: Iterable[Finding], ascii_only: bool) -> tuple[list[Row], list[Row]]:
    """(what stands before everything else, what stands behind it): findings from medium on, and the lighter ones."""
    every = tuple(found)
    heavy = [one for one in every if one.level in ("medium", "high", "block")]
    light = findings((one for one in every if one not in heavy), ascii_only, prefix="note")
    return findings(heavy, ascii_only), [*section("title-notes", "notes"), *light] if light else []


def finding_detail(one: Finding) -> tuple[Part, ...]:
    """What happened, the evidence, the next step."""
    parts: list[Part] = [(f"{safe(one.message)}  [{safe(one.code)}]", "text")]
    parts += [(safe(line), "muted") for line in one.evidence.splitlines() if line.strip()]
    if one.next_step:
        parts.append((f"next: {safe(one.next_step)}", "strong"))
    return tuple(parts)
