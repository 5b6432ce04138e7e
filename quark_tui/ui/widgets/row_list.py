"""A list of rows by key with a cursor: the one table of the program.

Rows are painted from plain values, so that ten thousand cost no more than what is visible; a changed row repaints its
own line. Texts are segments and never markup; the cursor's row is marked by a sign as well as by colour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quark_tui.core.text import cell_width, elide_end, elide_middle, pad

_MARK: Final = 3
_GAP: Final = 2
TONES: Final = ("text", "strong", "muted", "running", "waiting", "ok", "warning", "failed")


@dataclass(frozen=True, slots=True)
class Column:
    """``cells`` wide; numbers stand ``right``, paths are shortened in the ``middle``."""

    title: str
    cells: int
    right: bool = False
    middle: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One row. ``cells``: (text, tone) for each column; ``span``: the first one takes the whole width.

    ``passive``: the cursor steps over it (a heading, an empty line).
    """

    key: str
    cells: tuple[tuple[str, str], ...]
    span: bool = False
    passive: bool = False


def heading(key: str, text: str) -> Entry:
    """A line that only names what comes below it."""
    return Entry(key, ((text, "muted"),), span=True, passive=True)


class RowList(ScrollView, can_focus=True):
    """``layout`` gives the columns for a width in cells; without ``titles`` no line names them."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-list--cursor", *(f"row-list--{tone}" for tone in TONES)}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("ctrl+d", "half(1)", "half a page down", show=False),
        Binding("ctrl+u", "half(-1)", "half a page up", show=False),
        Binding("home,g", "first", "first", show=False),
        Binding("end,G", "last", "last", show=False),
    ]

    class Moved(Message):
        """The cursor is on another row, or its row changed; ``key`` is None when there is no row."""

        def __init__(self, rows: RowList) -> None:
            super().__init__()
            self.key = rows.current

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, RowList.Moved)

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
        self._layout, self._titles, self._empty = layout, titles, empty
        self.entries: tuple[Entry, ...] = ()
        self.cursor = 0
        self._seen: set[str] = set()
        self._seen_at = 0

    @property
    def header(self) -> int:
        """Lines above the first row: the names of the columns, which do not scroll."""
        return 1 if self._titles else 0

    @property
    def current(self) -> str | None:
        """The key of the row under the cursor."""
        if self.cursor < len(self.entries) and not self.entries[self.cursor].passive:
            return self.entries[self.cursor].key
        return None

    def show(self, entries: Iterable[Entry], selected: str | None = None) -> None:
        """Take ``entries``; the cursor goes to the key ``selected``, else stays on the key it was on."""
        before, old = self.current, self.entries
        new = tuple(entries)
        wanted = selected if selected is not None else before
        self.entries = new
        at = next((index for index, one in enumerate(new) if one.key == wanted and not one.passive), None)
        cursor = self._active(at if at is not None else max(0, min(self.cursor, len(new) - 1)), 1)
        moved, self.cursor = cursor != self.cursor, cursor
        if len(new) != len(old):
            self.virtual_size = Size(0, len(new) + self.header)
            self.refresh()
        elif moved:
            self.refresh()
        else:
            for index, (one, other) in enumerate(zip(old, new, strict=True)):
                if one != other:
                    self._refresh_row(index)
        self._reveal()
        if new != old or self.current != before:
            self.post_message(self.Moved(self))

    def move_to(self, index: int, direction: int = 1) -> None:
        """Put the cursor on row ``index``, or the nearest that it can be on."""
        index = self._active(max(0, min(index, len(self.entries) - 1)), direction)
        if not self.entries or index == self.cursor:
            self._reveal(direction < 0 and index == self._active(0, 1))
            return
        self._refresh_row(self.cursor)
        self._refresh_row(index)
        self.cursor = index
        self._reveal(direction < 0 and index == self._active(0, 1))
        self.post_message(self.Moved(self))

    def _active(self, index: int, direction: int) -> int:
        """The nearest row from ``index`` on in ``direction`` that is not passive, else one in the other direction."""
        for step in (direction, -direction):
            at = index
            while 0 <= at < len(self.entries):
                if not self.entries[at].passive:
                    return at
                at += step
        return index

    def _refresh_row(self, index: int) -> None:
        line = index + self.header - self.scroll_offset.y
        if self.header <= line < self.size.height:
            self.refresh_line(index + self.header)

    def _reveal(self, whole_top: bool = False) -> None:
        # Forced: before its first layout a view does not allow to be scrolled, and would stay where it is.
        visible = self.size.height - self.header
        top = self.scroll_offset.y
        if visible <= 0:
            return
        if whole_top:
            self.scroll_to(y=0, animate=False, immediate=True, force=True)
        elif not top <= self.cursor < top + visible:
            y = self.cursor if self.cursor < top else self.cursor - visible + 1
            self.scroll_to(y=y, animate=False, immediate=True, force=True)

    @property
    def below(self) -> int:
        """Rows that are not in view below the last visible one."""
        return max(0, len(self.entries) - self.scroll_offset.y - max(0, self.size.height - self.header))

    def unseen(self, rows: int) -> int:
        """How many of the first ``rows`` rows have never been in view; a jump to the end passes over some."""
        if self.size.width != self._seen_at:
            # Lines that are wrapped anew are other lines, whatever their keys.
            self._seen_at = self.size.width
            self._seen.clear()
        top, height = self.scroll_offset.y, max(0, self.size.height - self.header)
        self._seen.update(entry.key for entry in self.entries[top : top + height])
        return sum(entry.key not in self._seen for entry in self.entries[:rows])

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.unseen(0)

    def action_move(self, rows: int) -> None:
        self.move_to(self.cursor + rows, 1 if rows > 0 else -1)

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.size.height - self.header - 1))

    def action_half(self, halves: int) -> None:
        self.action_move(halves * max(1, (self.size.height - self.header) // 2))

    def action_first(self) -> None:
        self.move_to(0, -1)

    def action_last(self) -> None:
        self.move_to(len(self.entries) - 1)

    def on_click(self, event: events.Click) -> None:
        index = event.y - self.header + self.scroll_offset.y
        if event.y >= self.header and index < len(self.entries) and not self.entries[index].passive:
            self.move_to(index)
            if event.chain == 2:
                self.post_message(self.Chosen())

    def on_resize(self) -> None:
        self._reveal()

    def render_line(self, y: int) -> Strip:
        """Line ``y`` of the widget: the titles, a row, or nothing."""
        width = self.size.width
        base = self.rich_style
        index = y - self.header + self.scroll_offset.y
        segments: list[Segment] = []
        if y < self.header:
            segments = self._heading(width) if self.entries else []
        elif index < len(self.entries):
            here = index == self.cursor and not self.entries[index].passive
            segments = self._line(self.entries[index], here, width)
            if here:
                base += self._tone("cursor")
        elif not self.entries and y == self.header and self._empty:
            segments = [Segment(" " * _MARK + self._empty, self._tone("muted"))]
        return Strip([Segment(one.text, base + (one.style or Style.null())) for one in segments]).adjust_cell_length(
            width, base
        )

    def _tone(self, name: str) -> Style:
        return self.get_component_rich_style(f"row-list--{name}", partial=True)

    def _heading(self, width: int) -> list[Segment]:
        cells = (
            pad(elide_end(column.title, column.cells), column.cells, right=column.right)
            for column in self._layout(width - _MARK)
        )
        return [Segment(" " * _MARK + (" " * _GAP).join(cells), self._tone("muted"))]

    def _line(self, entry: Entry, here: bool, width: int) -> list[Segment]:
        segments = [Segment(" ▸ " if here else "   ", self._tone("strong"))]
        if entry.span:
            room = width - _MARK - 1
            for text, tone in entry.cells:
                piece = elide_end(text, max(0, room))
                segments.append(Segment(piece, self._tone(tone)))
                room -= cell_width(piece)
            return segments
        columns = self._layout(width - _MARK)
        for (text, tone), column in zip(entry.cells, columns, strict=False):
            shorten = elide_middle if column.middle else elide_end
            piece = pad(shorten(text, column.cells), column.cells, right=column.right)
            segments.append(Segment(piece + " " * _GAP, self._tone(tone)))
        return segments
