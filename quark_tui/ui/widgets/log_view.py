"""A log that is followed: a bounded number of lines, one under the cursor, of which only what changed is painted.

The view scrolls by itself instead of by Textual's offsets: these count rows, and rows move when old lines go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quark_tui.core.logtext import Line
from quark_tui.core.text import cell_width, clean
from quark_tui.ui.widgets.search import Search

#: Lines that are kept, and characters: a log of very long lines keeps fewer of them.
KEPT_LINES = 20_000
KEPT_CHARACTERS = 16 << 20
#: Seconds between two batches: four repaints of a whole pane a second stay below 40 kB/s at 120×40.
BATCH_SECONDS = 0.25
#: Cells for the mark of the line cursor.
_GUTTER = 2
_SHIFT = 8
_WHEEL = 3
_ON = "…"
_EMPTY = "nothing was written yet"
_TONES = {"error": "failed", "warning": "warning"}


@dataclass(frozen=True, slots=True)
class Cut:
    """What of a text is between two columns: ``text[start:stop]`` with marks where it goes on, ``cells`` wide."""

    lead: str
    start: int
    stop: int
    tail: str
    cells: int


def cut(text: str, left: int, room: int) -> Cut:
    """The part of ``text`` from column ``left`` on, at most ``room`` cells. Half of a wide character is a space."""
    if room <= 0:
        return Cut("", 0, 0, "", 0)
    lead = _ON if left and text else ""
    if text.isascii():
        start = min(len(text), left + len(lead))
        room -= len(lead)
        if room <= 0:
            return Cut(lead, start, start, "", len(lead))
        on = len(text) - start > room
        stop = start + room - 1 if on else len(text)
        return Cut(lead, start, stop, _ON if on else "", len(lead) + stop - start + on)
    start, column = _reach(text, 0, left + len(lead))
    lead = (lead + " " * (column - left - len(lead)))[:room] if lead and column > left else lead
    room -= len(lead)
    if room <= 0:
        return Cut(lead, start, start, "", len(lead))
    stop, used = _reach(text, start, room, over=False)
    if stop == len(text):
        return Cut(lead, start, stop, "", len(lead) + used)
    stop, used = _reach(text, start, room - 1, over=False)
    tail = " " * (room - 1 - used) + _ON
    return Cut(lead, start, stop, tail, len(lead) + used + cell_width(tail))


def _reach(text: str, start: int, cells: int, *, over: bool = True) -> tuple[int, int]:
    """The index behind the first ``cells`` cells from ``start``, and the cells up to it.

    A wide character that does not fit is passed (``over``) or not. What has no width belongs to what is before it.
    """
    used = 0
    for index in range(start, len(text)):
        width = cell_width(text[index])
        if width and (used >= cells or (used + width > cells and not over)):
            return index, used
        used += width
    return len(text), used


def sure(text: str) -> str:
    """``text`` with U+FFFD for every character whose width or effect is not sure, as many cells wide.

    Widths differ between what Textual and what :func:`cell_width` knows for a few scripts, emoji and sequences.
    """
    if _is_sure(text):
        return text
    shown = "".join(char if _is_sure(char) else "\ufffd" * cell_width(char) for char in text)
    if _is_sure(shown) and cell_width(shown) == cell_width(text):
        return shown
    return "".join(
        char if char.isascii() and char.isprintable() else "\ufffd" * (1 if char.isascii() else cell_width(char))
        for char in text
    )


def _is_sure(text: str) -> bool:
    if text.isascii():
        return text.isprintable()
    return clean(text) == text and cell_len(text) == cell_width(text)


class LogView(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines that :meth:`show` was given. On the last one it follows; anywhere else it stays, whatever comes.

    Rows are known by an id that grows with each line, so that a paused view keeps its lines when older ones go: those
    that it still shows are held until it moves.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-view--cursor",
        "log-view--text",
        "log-view--strong",
        "log-view--muted",
        "log-view--warning",
        "log-view--failed",
        "log-view--match",
        "log-view--current",
    }
    DEFAULT_CSS = """
    LogView {
        height: 1fr;
        overflow: hidden hidden;
        background: $background;
        color: $foreground;
    }
    LogView:focus > .log-view--cursor { background: $cursor; }
    LogView > .log-view--text { color: $foreground; }
    LogView > .log-view--strong { color: $strong; text-style: bold; }
    LogView > .log-view--muted { color: $muted; }
    LogView > .log-view--warning { color: $warning; }
    LogView > .log-view--failed { color: $failed; }
    LogView > .log-view--match { text-style: reverse; }
    LogView > .log-view--current { text-style: bold reverse underline; }
    """
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "down", show=False),
        Binding("k,up", "move(-1)", "up", show=False),
        Binding("ctrl+d", "page(0.5)", "half a page down", show=False),
        Binding("ctrl+u", "page(-0.5)", "half a page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("g,home", "first", "first", show=False),
        Binding("G,end", "follow", "last, follow", show=False),
        Binding("h,left", "shift(-1)", "left", show=False),
        Binding("l,right", "shift(1)", "right", show=False),
        Binding("0", "column(0)", "first column", show=False),
    ]

    class Changed(Message):
        """Following, the lines that came while paused, or the search are not what they were.

        ``word`` is ``FOLLOW``, ``PAUSED`` or ``PAUSED +123``; ``match`` of ``matches`` is the one under the cursor (0:
        none); ``problem`` says why there was no search, "" when there was.
        """

        def __init__(self, view: LogView) -> None:
            super().__init__()
            self.view = view
            self.word, self.matches, self.match, self.problem = view._state

        @property
        def control(self) -> LogView:
            """The view, for selectors."""
            return self.view

        def can_replace(self, message: Message) -> bool:
            """Only the newest state counts."""
            return isinstance(message, LogView.Changed) and message.view is self.view

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._search = Search()
        self._forget()

    def _forget(self) -> None:
        self._lines: deque[Line] = deque()
        self._pinned: dict[int, Line] = {}  # lines that are gone, and that a paused view shows
        self._characters = 0
        self._first = 0  # the id of the oldest kept line
        self._pending = ""
        self._top = self._cursor = 0  # ids
        self._left = 0  # the first column
        self._following = True
        self.unseen = 0
        self._current: tuple[int, int] | None = None  # the match that was gone to: line, index in the line
        self._painted: list[object] = []  # what each row was made of when it was last painted
        self._state = ("FOLLOW", 0, 0, "")

    # what the outside asks

    @property
    def following(self) -> bool:
        """True when new lines move the view."""
        return self._following

    @property
    def sought(self) -> str:
        """What is searched for, "" for nothing."""
        return self._search.query

    @property
    def matches(self) -> int:
        """Matches in the kept lines that are finished."""
        return self._search.total

    @property
    def problem(self) -> str:
        """Why the query was not searched for, "" when it was."""
        return self._search.problem

    @property
    def word(self) -> str:
        """``FOLLOW``, ``PAUSED`` or ``PAUSED +123``."""
        return "FOLLOW" if self._following else f"PAUSED +{self.unseen:,}" if self.unseen else "PAUSED"

    def current_line(self) -> Line | None:
        """The line under the cursor; None when there is none, or when it is a remark of ours (number 0)."""
        if self._cursor == self._next and self._pending:
            return Line(self._pending, "", self._lines[-1].number + 1 if self._lines else 1)
        line = self._line(self._cursor)
        return line if line is not None and line.number else None

    # what comes

    def show(self, lines: Sequence[Line], pending: str) -> None:
        """Add finished ``lines``; ``pending`` is the unfinished last one, "" for none, and replaces the one before.

        Every text is safe to show (as :class:`Folder` makes it) and free of credentials.
        """
        self._search.extend((self._next + index, line.text) for index, line in enumerate(lines))
        self._lines.extend(lines)
        self._characters += sum(len(line.text) for line in lines)
        if not self._following:
            self.unseen += len(lines)
        self._pending = pending
        self._trim()
        if self._following:
            self._cursor = self._end
            self._top = self._last_top
        else:
            self._cursor = min(self._cursor, self._end)
        self._paint()

    def reset(self) -> None:
        """Forget all lines and the search; follow."""
        self._search = Search()
        self._forget()
        self.refresh()
        self.post_message(self.Changed(self))

    def _trim(self) -> None:
        shown = range(0) if self._following else range(self._top, self._top + self.size.height)
        remark = self._remark()
        while len(self._lines) > KEPT_LINES or (self._characters > KEPT_CHARACTERS and len(self._lines) > 1):
            if remark is not None and self._first - 1 in shown:
                self._pinned.setdefault(self._first - 1, remark)
            remark = None
            line = self._lines.popleft()
            self._characters -= len(line.text)
            if self._first in shown:
                self._pinned[self._first] = line
            else:
                self._search.forget(self._first)
            self._first += 1

    def _remark(self) -> Line | None:
        """What stands in the place of the lines that went."""
        if not self._first:
            return None
        lines = "1 line before this is" if self._first == 1 else f"{self._first:,} lines before this are"
        return Line(f"quark-tui: {lines} no longer kept here", "", 0)

    # ids and rows

    @property
    def _next(self) -> int:
        """The id of the line that is not finished yet."""
        return self._first + len(self._lines)

    @property
    def _end(self) -> int:
        """The id of the last row."""
        return self._next if self._pending else max(self._floor, self._next - 1)

    @property
    def _floor(self) -> int:
        """The id of the first row: where lines went, a remark says so in the place of the last of them."""
        return self._first - 1 if self._first else 0

    @property
    def _last_top(self) -> int:
        return max(self._floor, self._end - max(1, self.size.height) + 1)

    def _line(self, ident: int) -> Line | None:
        if ident < self._first:
            return self._pinned.get(ident) or (self._remark() if ident == self._first - 1 else None)
        index = ident - self._first
        return self._lines[index] if index < len(self._lines) else None

    def _row(self, ident: int) -> tuple[str, str] | None:
        """Text and tone of a row; None where there is none."""
        if line := self._line(ident):
            return line.text, _TONES.get(line.level, "text") if line.number else "muted"
        if ident == self._next and self._pending:
            return self._pending, "text"
        if ident == 0 and not self._first and not self._lines:
            return _EMPTY, "muted"
        return None

    # moving

    def follow(self) -> None:
        """Go to the last line and stay there."""
        self._following, self.unseen = True, 0
        self._cursor, self._top = self._end, self._last_top
        self._settle()

    def action_follow(self) -> None:
        self.follow()

    def action_move(self, rows: int) -> None:
        self._go(self._cursor + rows)

    def action_page(self, pages: float) -> None:
        rows = int(max(1, (self.size.height - 1) * abs(pages))) * (1 if pages > 0 else -1)
        self._top = self._within(self._top + rows)
        self._go(self._cursor + rows)

    def action_first(self) -> None:
        self._go(self._floor)

    def action_shift(self, steps: int) -> None:
        if steps < 0 or self._goes_on():
            self.action_column(self._left + steps * _SHIFT)

    def action_column(self, column: int) -> None:
        self._left = max(0, column)
        self._paint()

    def on_click(self, event: events.Click) -> None:
        if self._row(self._top + event.y) is not None:
            self._go(self._top + event.y)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1)

    def on_resize(self) -> None:
        self._painted = []
        if self._following:
            self._top = self._last_top
        else:
            self._reveal()
        self._settle()

    def _wheel(self, event: events.MouseScrollUp | events.MouseScrollDown, direction: int) -> None:
        event.prevent_default().stop()
        if event.ctrl or event.shift:
            self.action_shift(direction)
            return
        self._top = self._within(self._top + direction * _WHEEL)
        if direction > 0 and self._top == self._last_top:
            self.follow()
            return
        if direction < 0:
            self._following = False
        self._cursor = max(self._top, min(self._cursor, self._top + max(1, self.size.height) - 1))
        self._settle()

    def _go(self, ident: int) -> None:
        """Put the cursor on a row, or the nearest there is; on the last one it follows."""
        self._cursor = max(self._floor, min(ident, self._end))
        self._following = self._cursor == self._end
        if self._following:
            self.unseen = 0
        self._reveal()
        self._settle()

    def _reveal(self) -> None:
        height = max(1, self.size.height)
        self._top = max(self._cursor - height + 1, min(self._top, self._cursor))

    def _within(self, top: int) -> int:
        return max(self._floor, min(top, self._last_top))

    def _settle(self) -> None:
        """After a move: lines that were only held for the view are let go as soon as it leaves them."""
        shown = range(self._top, min(self._top + self.size.height, self._end + 1))
        if self._pinned and (self._top not in self._pinned or any(self._row(ident) is None for ident in shown)):
            for ident in self._pinned:
                self._search.forget(ident)
            self._pinned = {}
        if not self._pinned:
            self._top = self._within(self._top)
            self._cursor = max(self._floor, min(self._cursor, self._end))
        self._paint()

    def _goes_on(self) -> bool:
        """True when a visible line has more text to the right."""
        rows = (self._row(self._top + y) for y in range(self.size.height))
        return any(row and cut(row[0], self._left, self._room).tail for row in rows)

    # searching

    def search(self, query: str, *, regex: bool, case: bool) -> None:
        """Mark what matches ``query`` ("" ends it) and go to the nearest match.

        That is the next one from the cursor on, else the last one before it: who follows gets the newest. What cannot
        be searched for is told by :attr:`problem`; nothing is raised.
        """
        numbered = ((self._first + index, line.text) for index, line in enumerate(self._lines))
        self._search.start(query, regex=regex, case=case, lines=numbered)
        self._current = None
        here = (self._cursor, -1)
        self._go_to_match(self._search.after(*here) or self._search.before(*here))

    def next_match(self, direction: int) -> None:
        """Go to the next match (1) or the one before (-1); at the end, on from the other end."""
        here = self._current
        if here is None or here[0] != self._cursor or here[0] not in self._search.found:
            here = (self._cursor, -1)
        found = self._search.after(*here) if direction > 0 else self._search.before(*here)
        around = self._search.after(-1, 0) if direction > 0 else self._search.before(self._next, 0)
        self._go_to_match(found or around)

    def _go_to_match(self, match: tuple[int, int] | None) -> None:
        self._current = match
        if match is not None:
            ident, index = match
            self._following = False
            self._cursor = ident
            if not self._top <= ident < self._top + self.size.height:
                self._top = self._within(ident - self.size.height // 2)
            if line := self._line(ident):
                self._reveal_columns(line.text, *self._search.spans(line.text)[index])
        self._settle()

    def _reveal_columns(self, text: str, start: int, stop: int) -> None:
        seen = cut(text, self._left, self._room)
        if not (seen.start <= start and stop <= seen.stop):
            column = cell_width(text[:start])
            room = self._room
            fits = column + cell_width(text[start:stop]) < room
            self._left = 0 if fits else max(0, (column - room // 3) // _SHIFT * _SHIFT)

    # painting

    @property
    def _room(self) -> int:
        return max(0, self.size.width - _GUTTER)

    def _paint(self) -> None:
        """Repaint the rows that are not what they were, and tell when something else is not."""
        painted = [self._made_of(self._top + y) for y in range(self.size.height)]
        if len(painted) == len(self._painted):
            width = self.size.width
            rows = zip(painted, self._painted, strict=True)
            changed = [Region(0, y, width, 1) for y, (now, before) in enumerate(rows) if now != before]
            if changed:
                self.refresh(*changed)
        else:
            self.refresh()
        self._painted = painted
        place = self._search.place(*self._current) if self._current and self._current[0] in self._search.found else 0
        state = (self.word, self._search.total, place, self._search.problem)
        if state != self._state:
            self._state = state
            self.post_message(self.Changed(self))

    def _made_of(self, ident: int) -> object:
        """Equal as long as the row looks the same."""
        row = self._row(ident)
        if row is None:
            return None
        here = ident == self._cursor and bool(self._lines or self._pending)
        current = self._current[1] if self._current and self._current[0] == ident else -1
        marked = (self._search.pattern, current) if ident in self._search.found else None
        return row, here, self._left, marked

    def render_line(self, y: int) -> Strip:
        """Line ``y`` of the widget."""
        width = self.size.width
        ident = self._top + y
        row = self._row(ident)
        base = self.rich_style
        if row is None:
            return Strip.blank(width, base)
        text, tone = row
        here = ident == self._cursor and bool(self._lines or self._pending)
        if here:
            base += self._tone("cursor")
        style = base + self._tone(tone)
        part = cut(text, self._left, self._room)
        fill = " " * (self._room - part.cells)
        pieces = [(part.lead, style), *self._pieces(ident, text, part, style), (part.tail + fill, style)]
        gutter = ("▸ ", base + self._tone("strong")) if here else (" " * _GUTTER, style)
        return Strip(_joined([gutter, *pieces]), max(width, _GUTTER)).crop(0, width)

    def _pieces(self, ident: int, text: str, part: Cut, style: Style) -> Iterator[tuple[str, Style]]:
        """The visible text, with its matches marked."""
        at = part.start
        spans = self._search.spans(text) if ident in self._search.found else ()
        for index, (start, stop) in enumerate(spans):
            if stop <= part.start:
                continue
            if start >= part.stop:
                break
            start, stop = max(at, _whole(text, start)), min(_whole(text, stop), part.stop)
            is_current = self._current == (ident, index)
            yield sure(text[at:start]), style
            yield sure(text[start:stop]), style + self._tone("current" if is_current else "match")
            at = max(at, stop)
        yield sure(text[at : part.stop]), style

    def _tone(self, name: str) -> Style:
        return self.get_component_rich_style(f"log-view--{name}", partial=True)


def _whole(text: str, index: int) -> int:
    """``index``, or the next one that is not in the middle of a character and its marks."""
    while index < len(text) and not cell_width(text[index]):
        index += 1
    return index


def _joined(pieces: Sequence[tuple[str, Style]]) -> list[Segment]:
    """Segments; neighbours of one style are one, since each costs two escape sequences."""
    segments: list[Segment] = []
    for text, style in pieces:
        if not text:
            continue
        if segments and segments[-1].style == style:
            segments[-1] = Segment(segments[-1].text + text, style)
        else:
            segments.append(Segment(text, style))
    return segments
