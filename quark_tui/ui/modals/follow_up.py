"""What can follow a run that has ended: bounded choices, the recommended one first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from quark_tui.ui.actions import bindings
from quark_tui.ui.modals.base import BaseModal
from quark_tui.ui.text import Part, safe
from quark_tui.ui.views import follow_up as view
from quark_tui.ui.widgets.row_list import RowList
from quark_tui.ui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from quark_tui.engine.follow_up import FollowUp

_IDS = ("modal.choose", "modal.close", "app.copy")


class FollowUpModal(BaseModal[str]):
    """Gives back the code of the choice; None when it was closed."""

    IDS = _IDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(_IDS)

    def __init__(self, choices: Sequence[FollowUp]) -> None:
        super().__init__()
        self._choices = tuple(choices)
        self._over = False

    def heading(self) -> str:
        return "What comes next?"

    def labels(self) -> dict[str, str]:
        return {"modal.choose": "begin it"}

    def body(self) -> ComposeResult:
        yield RowList(view.layout, id="choices")
        yield TextLines(id="lines")

    @property
    def _choice(self) -> FollowUp | None:
        rows = self.query_one("#choices", RowList)
        return self._choices[rows.cursor] if rows.cursor < len(self._choices) else None

    def on_mount(self) -> None:
        rows = self.query_one("#choices", RowList)
        rows.show(row.entry for row in view.rows(self._choices, self.quark.ascii_only))
        rows.focus()
        super().on_mount()

    def paint(self) -> None:
        at = self.query_one("#choices", RowList).cursor
        shown = view.rows(self._choices, self.quark.ascii_only)
        self.query_one("#lines", TextLines).tell(shown[at].detail if at < len(shown) else ())
        super().paint()

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        self.paint()

    def on_row_list_chosen(self) -> None:
        self.act("modal.choose")

    def blocked(self, action: str) -> str:
        if self._over:
            return "one was chosen"
        if action == "modal.choose":
            choice = self._choice
            if choice is None:
                return "there is nothing to choose"
            if not choice.legal:
                return safe(choice.reason) or "it may not begin now"
        return ""

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        return [("nothing has been changed yet", "$muted")], []

    def do_modal_choose(self) -> None:
        if choice := self._choice:
            self._over = True
            self.dismiss(choice.code)

    def do_app_copy(self) -> None:
        if choice := self._choice:
            self.quark.copy(safe(choice.title), self.say)
