"""What can follow a run that has ended, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quark_tui.ui.states import Look
from quark_tui.ui.text import Part, safe
from quark_tui.ui.views import Row
from quark_tui.ui.widgets.row_list import Column, Entry

if TYPE_CHECKING:
    from quark_tui.engine.follow_up import FollowUp

#: The step of the screens that each checkpoint is passed on.
STEPS: Final = {"analysis": 2, "plan": 3, "command": 4}
_WORD, _BACK = 16, 14
_NUMBERS: Final = {"analysis": 1, "plan": 2, "command": 3}
_RECOMMENDED: Final = Look("◆", "[..]", "recommended", "waiting")
_POSSIBLE: Final = Look("·", "[..]", "possible", "text")
_BLOCKED: Final = Look("✗", "[XX]", "not now", "failed")
_STAYS: Final = "The run before stays as it is, with its log and output; nothing runs again without a new approval."


def layout(width: int) -> Sequence[Column]:
    """How it stands, what it is, the checkpoint that it goes back to."""
    return Column("", _WORD), Column("WHAT", max(0, width - _WORD - _BACK - 5)), Column("BACK TO", _BACK)


def rows(choices: Sequence[FollowUp], ascii_only: bool) -> list[Row]:
    """One row a choice under its code; the first one that may begin is the recommended one."""
    shown, recommended = [], False
    for one in choices:
        state = _BLOCKED if not one.legal else _POSSIBLE if recommended else _RECOMMENDED
        recommended = recommended or one.legal
        name = safe(one.checkpoint)
        number = _NUMBERS.get(one.checkpoint, "?")
        entry = Entry(
            safe(one.code),
            (
                (f"{state.mark(ascii_only)} {state.word}", state.tone),
                (safe(one.title), "strong" if one.legal else "muted"),
                (f"{number} {name}", "text"),
            ),
        )
        shown.append(Row(entry, _detail(one, f"Checkpoint {number} ({name})"), safe(one.title)))
    return shown


def _detail(one: FollowUp, back: str) -> tuple[Part, ...]:
    parts: list[Part] = [] if one.legal else [(f"not now: {safe(one.reason)}", "failed")]
    if one.why:
        parts.append((safe(one.why), "text"))
    parts += [(f"sets {safe(key)} = {safe(value)}", "text") for key, value in one.changes]
    parts.append((f"It goes back to {back}. {_STAYS}", "muted"))
    return tuple(parts)
