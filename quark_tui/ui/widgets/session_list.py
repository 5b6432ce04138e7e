"""The list of jobs: one line each, painted from plain rows, so that ten thousand cost no more than what is visible."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quark_tui.core.text import elide_end, elide_middle, pad
from quark_tui.ui.listing import Row

_MARK = 3
_GAP = 2
_STATE = 15
_WORKFLOW = 10
#: From this width on the path has a column of its own.
_WIDE = 110
#: Lines above the first row: the names of the columns, which do not scroll.
_HEADER = 1


def widths(cells: int) -> tuple[int, ...]:
    """Cells of the columns state, workflow, model, where it stands and, in a wide list, path."""
    rest = max(0, cells - _MARK - _STATE - _WORKFLOW - 3 * _GAP - 1)
    if cells < _WIDE:
        model = max(0, rest * 2 // 5)
        return _STATE, _WORKFLOW, model, rest - model
    model, where = rest * 36 // 100, 26
    return _STATE, _WORKFLOW, model, where, rest - model - where - _GAP


class SessionList(ScrollView, can_focus=True):
    """Rows by key: a new look keeps the cursor on the row that it was on, and repaints only when something changed."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "session-list--header",
        "session-list--cursor",
        "session-list--text",
        "session-list--strong",
        "session-list--muted",
        "session-list--running",
        "session-list--waiting",
        "session-list--ok",
        "session-list--warning",
        "session-list--failed",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("home,g", "first", "first", show=False),
        Binding("end,G", "last", "last", show=False),
    ]

    class Moved(Message):
        """The cursor is on another row, or its row changed; ``row`` is None when the list is empty."""

        def __init__(self, row: Row | None) -> None:
            super().__init__()
            self.row = row

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: tuple[Row, ...] = ()
        self.cursor = 0

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def show(self, rows: tuple[Row, ...], selected: str | None = None) -> None:
        """Take ``rows``; the cursor goes to the key ``selected``, else stays on the key it was on."""
        before, changed = self.row, rows != self.rows
        wanted = selected if selected is not None else before.key if before else None
        self.rows = rows
        at = next((index for index, one in enumerate(rows) if one.key == wanted), None)
        self.cursor = at if at is not None else max(0, min(self.cursor, len(rows) - 1))
        if changed:
            self.virtual_size = Size(0, len(rows) + _HEADER)
            self.refresh()
        self._reveal()
        if self.row != before or changed:
            self.post_message(self.Moved(self.row))

    def move_to(self, index: int) -> None:
        """Put the cursor on row ``index``, or the nearest there is."""
        index = max(0, min(index, len(self.rows) - 1))
        if not self.rows or index == self.cursor:
            return
        for line in (self.cursor, index):
            self.refresh_line(line + _HEADER)
        self.cursor = index
        self._reveal()
        self.post_message(self.Moved(self.row))

    def _reveal(self) -> None:
        visible = self.size.height - _HEADER
        top = self.scroll_offset.y
        if visible > 0 and not top <= self.cursor < top + visible:
            self.scroll_to(y=self.cursor if self.cursor < top else self.cursor - visible + 1, animate=False)

    def action_move(self, rows: int) -> None:
        self.move_to(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        self.move_to(self.cursor + pages * max(1, self.size.height - _HEADER - 1))

    def action_first(self) -> None:
        self.move_to(0)

    def action_last(self) -> None:
        self.move_to(len(self.rows) - 1)

    def on_click(self, event: events.Click) -> None:
        if _HEADER <= event.y < len(self.rows) + _HEADER:
            self.move_to(event.y - _HEADER + self.scroll_offset.y)

    def on_resize(self) -> None:
        self._reveal()

    def render_line(self, y: int) -> Strip:
        """Line ``y`` of the widget: the header, a row, or nothing."""
        width = self.size.width
        base = self.rich_style
        index = y - _HEADER + self.scroll_offset.y
        if y < _HEADER:
            segments = self._header(width) if self.rows else []
        else:
            segments = self._line(self.rows[index], index == self.cursor, width) if index < len(self.rows) else []
        if y >= _HEADER and self.rows and index == self.cursor:
            base += self._tone("cursor")
        return Strip([Segment(one.text, base + (one.style or Style.null())) for one in segments]).adjust_cell_length(
            width, base
        )

    def _tone(self, name: str) -> Style:
        return self.get_component_rich_style(f"session-list--{name}", partial=True)

    def _header(self, width: int) -> list[Segment]:
        names = ("STATE", "WORKFLOW", "MODEL", "WHERE IT STANDS", "PATH")
        cells = (pad(elide_end(name, w), w) for name, w in zip(names, widths(width), strict=False))
        return [Segment(" " * _MARK + (" " * _GAP).join(cells), self._tone("header"))]

    def _line(self, row: Row, here: bool, width: int) -> list[Segment]:
        columns = widths(width)
        texts = (
            (elide_end(f"{row.look.glyph} {row.look.word}", columns[0]), row.look.tone),
            (elide_end(row.workflow, columns[1]), "text"),
            (elide_middle(row.model, columns[2]), "strong"),
            (elide_end(row.where, columns[3]), "text"),
            *((elide_middle(row.path, one), "muted") for one in columns[4:]),
        )
        segments = [Segment(" ▸ " if here else "   ", self._tone("strong"))]
        for (text, tone), cells in zip(texts, columns, strict=True):
            segments.append(Segment(pad(text, cells + _GAP), self._tone(tone)))
        return segments
