"""Paragraphs in a list of their own: wrapped to its width, scrolled line by line, without a cursor."""

from __future__ import annotations

from collections.abc import Sequence

from quark_tui.ui.text import Part, wrapped
from quark_tui.ui.widgets.row_list import Column, Entry, RowList


class TextLines(RowList):
    """:meth:`tell` takes paragraphs of (text, tone), all of them safe; nothing of them is cut.

    ``Moved`` is posted when other lines are in view.
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(lambda width: (Column("", width),), titles=False, id=id)
        self._told: tuple[Part, ...] = ()

    def tell(self, parts: Sequence[Part]) -> None:
        """Show ``parts``; none of them hides the widget."""
        self._told = tuple(parts)
        self.display = bool(self._told)
        self._wrap()

    def more(self) -> list[Part]:
        """In words, that there are lines below; nothing when all are in view."""
        return [(f"{self.below} more lines: tab, j", "$muted")] if self.display and self.below else []

    def _wrap(self) -> None:
        width = max(10, self.size.width - 4)
        lines = [(line, tone) for text, tone in self._told for line in wrapped(text, width)]
        self.show(Entry(str(number), (line,), span=True, passive=True) for number, line in enumerate(lines))

    def on_resize(self) -> None:
        self._wrap()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Moved(self))

    def action_move(self, rows: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False, immediate=True)

    def action_first(self) -> None:
        self.scroll_to(y=0, animate=False, immediate=True)

    def action_last(self) -> None:
        self.scroll_to(y=len(self.entries), animate=False, immediate=True)

    def _reveal(self, whole_top: bool = False) -> None:
        """There is no cursor to keep in view."""
