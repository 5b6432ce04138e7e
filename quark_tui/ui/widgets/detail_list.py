"""A list and, below it or beside it, what the row under the cursor says whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from quark_tui.ui.text import Lines, Part, content, wrapped
from quark_tui.ui.views import Row
from quark_tui.ui.widgets.row_list import Column, RowList

#: Lines of the detail where it stands below the list.
_LINES = 4


class DetailList(Widget):
    """``layout`` as for RowList. In a wide terminal the detail is a column on the right and scrolls by itself."""

    class Moved(Message):
        """The cursor is on another row, or the row changed."""

    class Chosen(Message):
        """A row was double-clicked."""

    def __init__(
        self,
        layout: Callable[[int], Sequence[Column]],
        *,
        titles: bool = True,
        empty: str = "",
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.list = RowList(layout, titles=titles, empty=empty)
        self._rows: dict[str, Row] = {}
        self._shown: Lines = []

    def compose(self) -> ComposeResult:
        yield self.list
        with VerticalScroll(id="detail", can_focus=False):
            yield Static(id="detail-text")

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self._rows.get(self.list.current or "")

    def show(self, rows: Iterable[Row], selected: str | None = None) -> None:
        """Take ``rows``; the cursor keeps its key, or goes to ``selected``."""
        kept = tuple(rows)
        self._rows = {row.entry.key: row for row in kept}
        self.list.show((row.entry for row in kept), selected)
        self.paint()

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        message.stop()
        self.paint()
        self.post_message(self.Moved())

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        message.stop()
        self.post_message(self.Chosen())

    def on_resize(self) -> None:
        self.paint()

    def paint(self) -> None:
        """The detail of the row under the cursor, as much as there is room for."""
        box = self.query_one("#detail", VerticalScroll)
        wide = self.screen.has_class("-wide")
        width = max(10, (box.size.width or self.size.width) - (3 if wide else 4))
        lines = detail_lines(self.row.detail if self.row else (), width)
        if not wide and len(lines) > _LINES:
            hidden = len(lines) - _LINES + 1
            lines = [*lines[: _LINES - 1], [(f"… {hidden} more lines: ↵ shows all", "$muted")]]
        if lines != self._shown:
            self._shown = lines
            self.query_one("#detail-text", Static).update(content(lines))


def detail_lines(detail: Sequence[Part], width: int) -> Lines:
    """``detail`` in lines of ``width`` cells; a tone becomes a style."""
    return [[(line, _style(tone))] for text, tone in detail for line in wrapped(text, width)]


def _style(tone: str) -> str:
    return {"text": "$foreground", "strong": "bold $strong"}.get(tone, f"${tone}")
