"""One thing whole: a row with its evidence, a command, a line of a log; scrolled where it is longer than the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from quark_tui.ui.actions import bindings
from quark_tui.ui.modals.base import BaseModal
from quark_tui.ui.text import Part, wrapped
from quark_tui.ui.widgets.row_list import Column, Entry, RowList


class WholeModal(BaseModal[None]):
    """``detail``: paragraphs of (text, tone), all of them safe; ``copy`` is what ``y`` copies."""

    IDS = ("modal.close", "app.copy")
    BINDINGS: ClassVar[list[BindingType]] = bindings(("modal.close", "app.copy"))

    def __init__(self, title: str, detail: Sequence[Part], copy: str = "") -> None:
        super().__init__()
        self._title, self._detail = title, detail
        self._copy = copy or "\n".join(text for text, _ in detail)

    def heading(self) -> str:
        return self._title

    def body(self) -> ComposeResult:
        yield RowList(lambda width: (Column("", width),), titles=False, id="whole")

    def paint(self) -> None:
        super().paint()
        rows = self.query_one("#whole", RowList)
        width = max(10, rows.size.width - 4)
        lines = [(line, tone) for text, tone in self._detail for line in wrapped(text, width)]
        self.fit(len(lines), 0)
        rows.show(Entry(str(number), (line,), span=True) for number, line in enumerate(lines))

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        below = self.query_one("#whole", RowList).below
        return ([(f"{below} more lines below: j", "$muted")] if below else []), []

    def on_row_list_moved(self) -> None:
        super().paint()

    def do_app_copy(self) -> None:
        self.quark.copy(self._copy, self.say)
