"""Home: every job that is known on this machine, with its state. It starts no probe and imports no validator."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from quark_tui.core.text import cell_width, elide_end, elide_middle
from quark_tui.ui.listing import Listing, Row
from quark_tui.ui.looker import Looker
from quark_tui.ui.widgets.session_list import SessionList

#: Columns and rows that the screens are made for; below them a sentence is shown instead.
SMALLEST = (80, 24)
_KEYS = "j/k move   r look again   ? help   q quit"
_HELP = (
    "j k ↑ ↓ move · g G first, last · r look again · q quit, runs go on",
    "every screen has a plain twin: quark-tui --help",
)
_EMPTY = (
    "No jobs yet.",
    "",
    "A job is a folder for one piece of work on one model. Make one:",
    "",
    "    quark-tui new DIR --workflow ptq --model MODEL_DIRECTORY",
    "",
    "It appears here after r. All commands: quark-tui --help",
)


#: Lines of (text, style) parts. Styles are words of Textual's; texts are never parsed as markup.
Lines: TypeAlias = list[list[tuple[str, str]]]


class Listed(Message):
    """The looker has seen the disk."""

    def __init__(self, listing: Listing) -> None:
        super().__init__()
        self.listing = listing


class HomeScreen(Screen[None]):
    """``read`` is called in a thread of its own, first after the first paint; nothing here waits for it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", "quit"),
        Binding("r", "look", "look again"),
        Binding("question_mark", "help", "help"),
    ]

    def __init__(self, read: Callable[[], Listing], host: str) -> None:
        super().__init__()
        self._host = host
        self._listing: Listing | None = None
        self._complete = False
        self._help = False
        self._selected_once = False
        self._shown: dict[str, Lines] = {}
        self._looker = Looker(read, lambda listing: self.post_message(Listed(listing)))

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        yield Static(id="small")
        yield Static(id="summary")
        yield SessionList(id="sessions")
        yield Static(id="empty")
        yield Static(id="detail")
        yield Static(id="notes")
        yield Static(id="bottom")

    def on_mount(self) -> None:
        self._focus()
        self.call_after_refresh(self._looker.look)

    def on_unmount(self) -> None:
        self._looker.stop()

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        small = width < SMALLEST[0] or height < SMALLEST[1]
        self.set_class(small, "-small")
        self._paint()
        self.call_after_refresh(self._focus)

    def action_look(self) -> None:
        self._complete = False
        self._paint()
        self._looker.look()

    def action_help(self) -> None:
        self._help = not self._help
        self._paint()

    def on_listed(self, message: Listed) -> None:
        self._listing, self._complete = message.listing, True
        with self.app.batch_update():
            # What was named on the command line gets the cursor once; after that it stays where she put it.
            selected = None if self._selected_once else message.listing.selected
            self._selected_once = True
            self.query_one(SessionList).show(message.listing.rows, selected)
            self._paint()
        self.call_after_refresh(self._focus)

    def _focus(self) -> None:
        """Give the list the keys back: a widget that was hidden for a while has lost them."""
        if self.focused is None:
            self.query_one(SessionList).focus()

    def on_session_list_moved(self, message: SessionList.Moved) -> None:
        self._text("detail", self._detail(message.row))

    def _paint(self) -> None:
        """Every text from the present state; a text that did not change is not painted again."""
        width = self.size.width
        listing = self._listing or Listing()
        self.set_class(self._listing is not None and not listing.rows, "-empty")
        self._text("title", _ends([("quark-tui", "bold $strong")], [(self._host, "$muted")], width))
        self._text(
            "small",
            [
                [(f"This screen needs {SMALLEST[0]}×{SMALLEST[1]}; the terminal is {width}×{self.size.height}.", "")],
                [("Everything here is also said by: quark-tui sessions", "$muted")],
            ],
        )
        summary = _summary(listing.rows) if self._listing is not None else "looking for jobs"
        self._text("summary", [[(f" {summary}", "$muted")]])
        self._text("empty", [[(line, "$strong" if line.startswith("    ") else "")] for line in _EMPTY])
        self._text("detail", self._detail(self.query_one(SessionList).row))
        self._text("notes", self._notes(listing, width))
        word = "ready" if self._complete else "looking"
        self._text(
            "bottom", _ends([(_KEYS, "$foreground")], [(word, "bold $ok" if self._complete else "$muted")], width)
        )

    def _notes(self, listing: Listing, width: int) -> Lines:
        if self._help:
            return [[(f" {elide_end(line, width - 2)}", "$foreground")] for line in _HELP]
        lines = [(elide_middle(problem, width - 4), "$warning") for problem in listing.problems[:1]]
        if len(listing.problems) > 1:
            text, style = lines[0]
            more = f"  (+{len(listing.problems) - 1} more)"
            lines[0] = (elide_middle(text, width - 4 - len(more)) + more, style)
        if listing.hint:
            lines.append((listing.hint, "$waiting"))
        if not lines:
            places = ", ".join(("known jobs", "running quark processes", *listing.roots))
            lines.append((elide_middle(f"looked at: {places}", width - 2), "$muted"))
        return [[(f" {text}", style)] for text, style in lines]

    def _detail(self, row: Row | None) -> Lines:
        if row is None:
            return []
        width = self.size.width
        facts = [row.look.word, row.where, row.liveness, row.started and f"started {row.started}"]
        return [
            [(f" {elide_middle(row.model, width - 2)}", "bold $strong")],
            [(f"   {elide_end(' · '.join(filter(None, facts)), width - 4)}", "$foreground")],
            [(f"   {elide_middle(row.path, width - 4)}", "$muted")],
        ]

    def _text(self, name: str, lines: Lines) -> None:
        if self._shown.get(name) != lines:
            self._shown[name] = lines
            self.query_one(f"#{name}", Static).update(Content("\n").join([Content.assemble(*line) for line in lines]))


def _summary(rows: tuple[Row, ...]) -> str:
    if not rows:
        return "no jobs"
    counted = {word: sum(row.look.word == word for row in rows) for word in ("running", "not started")}
    parts = [f"{len(rows)} job{'s' if len(rows) > 1 else ''}"]
    parts += [f"{count} {word}" for word, count in counted.items() if count]
    return " · ".join(parts)


def _ends(left: list[tuple[str, str]], right: list[tuple[str, str]], width: int) -> Lines:
    """One line with a text at each end, a space away from the edges."""
    used = sum(cell_width(text) for text, _ in [*left, *right])
    return [[(" ", ""), *left, (" " * max(1, width - used - 2), ""), *right]]
