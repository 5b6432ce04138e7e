"""Checkpoint 4: one result, with what is not as planned, and one deliberate key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from quark_tui.ui.actions import bindings
from quark_tui.ui.modals.base import BaseModal
from quark_tui.ui.text import Part
from quark_tui.ui.widgets.text_lines import TextLines

_IDS = ("approve.cancel", "accept.yes", "app.copy")


class AcceptModal(BaseModal[bool]):
    """Gives back True when the result was accepted. ``detail``: paragraphs that say what is accepted, all of them safe;
    ``digest`` is what ``y`` copies.

    Cancel has the focus. Accepting takes another key than the one that opened this, and takes it only after everything
    has been on the screen.
    """

    IDS = _IDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(_IDS)

    def __init__(self, detail: Sequence[Part], digest: str) -> None:
        super().__init__()
        self._detail, self._digest = tuple(detail), digest
        self._unseen: int | None = None
        self._over = False

    def heading(self) -> str:
        return "Accept this result?"

    def body(self) -> ComposeResult:
        yield TextLines(id="lines")
        yield Static(id="buttons")

    def labels(self) -> dict[str, str]:
        return {"app.copy": "copy digest"}

    def on_mount(self) -> None:
        lines = self.query_one(TextLines)
        lines.tell(self._detail)
        lines.focus()
        super().on_mount()

    def paint(self) -> None:
        lines = self.query_one(TextLines)
        if lines.size.height:
            self._unseen = lines.unseen(len(lines.entries))
        super().paint()
        ready = not self.blocked("accept.yes")
        yes: Part = ("  A Accept it  ", "$strong" if ready else "$muted")
        self.text("buttons", [[("            ", ""), ("[ Cancel ]", "reverse"), ("     ", ""), yes]])

    def on_row_list_moved(self) -> None:
        self._said = None  # how many lines are left is another number now
        self.paint()

    def blocked(self, action: str) -> str:
        if self._over:
            return "this question is answered"
        if action != "accept.yes":
            return ""
        if self._unseen is None:
            return "it has not been on the screen yet"
        return f"{self._unseen} lines have not been on the screen yet: j or ctrl+d" if self._unseen else ""

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        reason = self.blocked("accept.yes")
        return [(reason, "$waiting") if reason else ("nothing has been accepted yet", "$muted")], []

    def do_approve_cancel(self) -> None:
        self._end(False)

    def do_accept_yes(self) -> None:
        self._end(True)

    def _end(self, yes: bool) -> None:
        self._over = True
        self.dismiss(yes)

    def do_app_copy(self) -> None:
        self.quark.copy(self._digest, self.say)
