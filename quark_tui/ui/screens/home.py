"""Home: every job that is known on this machine, with its state. It starts no probe and imports no validator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input, Static

from quark_tui.core.answer import Answer
from quark_tui.core.text import elide_end, elide_middle, human_duration
from quark_tui.ui.actions import COMMON, bindings
from quark_tui.ui.job import JobView
from quark_tui.ui.listing import Listing, Row
from quark_tui.ui.looker import Looker
from quark_tui.ui.screens.base import BaseScreen, Problem
from quark_tui.ui.services import Services
from quark_tui.ui.text import Lines, Part, safe
from quark_tui.ui.views.home import entries, layout, matching
from quark_tui.ui.widgets.field import SafeInput
from quark_tui.ui.widgets.row_list import RowList

_IDS = ("home.open", "home.new", "home.filter", "home.look", *COMMON)
#: Seconds between two looks, and how much of a core all looks together may take.
_EVERY, _SHARE = 5.0, 0.004
_EMPTY = (
    "No jobs yet.",
    "",
    "A job is a folder for one piece of work on one model: n makes one.",
    "The same from a shell:",
    "",
    "    quark-tui new DIR --workflow ptq --model MODEL_DIRECTORY",
)


class Listed(Message):
    """The looker has seen the disk."""

    def __init__(self, listing: Listing) -> None:
        super().__init__()
        self.listing = listing


class HomeScreen(BaseScreen):
    """The list is looked up in a thread of its own, first after the first paint; nothing here waits for it."""

    IDS = _IDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(_IDS)

    def __init__(self, services: Services, host: str, path: str | None) -> None:
        super().__init__()
        self._services, self._host, self._path = services, host, path
        self._listing: Listing | None = None
        self._complete = self._selected_once = False
        self._query = ""
        self._wanted = ""
        self._strip: tuple[str, Mapping[str, Any] | Problem] | None = None
        self._strip_asked = ""
        self._looker = Looker(
            services.listing,
            lambda listing: self.post_message(Listed(listing)),
            lambda took: None if self.covered else max(_EVERY, took / _SHARE),
        )

    def body(self) -> ComposeResult:
        yield Static(id="summary")
        filter_line = SafeInput(id="filter", placeholder="filter: words that a row holds", compact=True)
        filter_line.display, filter_line.disabled = False, True
        yield filter_line
        yield RowList(partial(layout, ascii_only=self.quark.ascii_only), id="sessions")
        yield Static(id="empty")
        yield Static(id="strip")
        yield Static(id="notes")

    def on_mount(self) -> None:
        self.query_one(RowList).focus()
        self.call_after_refresh(self._begin)

    def on_unmount(self) -> None:
        self._looker.stop()

    def _begin(self) -> None:
        if self._path is None:
            self._looker.look()
            return
        path = self._path
        self.ask(lambda: self._services.what(path), lambda kind: self._opened(path, kind))

    def _opened(self, path: str, kind: str) -> None:
        self._looker.look()
        if kind in ("job", "run"):
            self._open(path)
        elif kind == "model":
            self._wanted = path

    # Looks.

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self._listing is not None:
            self._take(self._listing)
            self._looker.look()

    def on_listed(self, message: Listed) -> None:
        self._listing, self._complete = message.listing, True
        if not self.covered:
            self._take(message.listing)

    def _take(self, listing: Listing) -> None:
        # What was named on the command line gets the cursor once; after that it stays where she put it.
        selected = None if self._selected_once else listing.selected
        self._selected_once = True
        self._show(selected)
        if self._wanted:
            # The list is complete before the form covers it.
            model, self._wanted = self._wanted, ""
            self.call_after_refresh(self._new, "", model)
        if (row := self._row) is not None and row.look.word == "running":
            self._look_closer(row.key)
        self.call_after_refresh(self.keep_focus)

    def _show(self, selected: str | None = None) -> None:
        listing = self._listing or Listing()
        rows = matching(listing.rows, self._query)
        self.query_one(RowList).show(entries(rows, self.quark.ascii_only), selected)
        self.paint()

    @property
    def _row(self) -> Row | None:
        key = self.query_one(RowList).current
        return next((row for row in (self._listing or Listing()).rows if row.key == key), None) if key else None

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        self.paint()
        if message.key is not None:
            self._look_closer(message.key)

    def _look_closer(self, key: str) -> None:
        """Ask for the four truths of the row; one question at a time, the newest row wins."""
        if not key.startswith("/") or key.startswith("/proc/"):
            return
        busy, self._strip_asked = bool(self._strip_asked), key
        if not busy:
            self._ask_closer(key)

    def _ask_closer(self, key: str) -> None:
        def told(answer: Mapping[str, Any] | Problem) -> None:
            self._strip = (key, answer)
            wanted, self._strip_asked = self._strip_asked, ""
            if wanted != key:
                self._strip_asked = wanted
                self._ask_closer(wanted)

        self.ask(lambda: self._services.truths(key), told, told, quiet=True)

    # Texts.

    def ready(self) -> bool:
        return self._complete and super().ready()

    def twin(self) -> str:
        return "quark-tui sessions"

    def about(self) -> str:
        return (
            "Every job that this user made here, jobs below the folders that were named, and running quark processes "
            "that may be read. What needs a person stands first. The lines below the list tell of the row under the "
            "cursor whether it is alive, fresh and advancing, and what was decided."
        )

    def copy_text(self) -> str:
        row = self._row
        return row.key if row else ""

    def title_parts(self) -> tuple[list[Part], list[Part]]:
        return [(" quark-tui", "bold $strong")], [(self._host, "$muted")]

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        listing = self._listing or Listing()
        places = ", ".join(("known jobs", "running quark processes", *listing.roots))
        return [(elide_middle(f"looked at: {places}", self.size.width - 3), "$muted")], []

    def paint_body(self) -> None:
        listing, width = self._listing or Listing(), self.size.width
        self.set_class(self._listing is not None and not listing.rows, "-empty")
        shown = len(self.query_one(RowList).entries)
        summary = _summary(listing.rows, shown) if self._listing is not None else "looking for jobs"
        self.text("summary", [[(f" {summary}", "$muted")]])
        self.text("empty", [[(line, "$strong" if line.startswith("    ") else "")] for line in _EMPTY])
        self.text("strip", self._strip_lines(self._row, width))
        self.text("notes", self._notes(listing, width))

    def _notes(self, listing: Listing, width: int) -> Lines:
        problems = (*(f"{safe(one.message)}: {safe(one.evidence)}" for one in self.quark.findings), *listing.problems)
        lines = [(elide_middle(problem, width - 4), "$warning") for problem in problems[:1]]
        if len(problems) > 1:
            text, style = lines[0]
            more = f"  (+{len(problems) - 1} more)"
            lines[0] = (elide_middle(text, width - 4 - len(more)) + more, style)
        if listing.hint:
            lines.append((elide_middle(listing.hint, width - 3), "$waiting"))
        return [[(f" {text}", style)] for text, style in lines]

    def _strip_lines(self, row: Row | None, width: int) -> Lines:
        if row is None:
            return []
        told = self._strip[1] if self._strip and self._strip[0] == row.key else None
        if isinstance(told, Mapping):
            truths, why = _truths(told)
        else:
            facts = [row.look.word, row.where, row.liveness, row.started and f"started {row.started}"]
            truths, why = " · ".join(filter(None, facts)), ""
        return [
            [(f" {elide_middle(row.model, width - 2)}", "bold $strong")],
            [(f"   {elide_end(truths, width - 4)}", "$foreground")],
            [(f"   {elide_end(why, width - 4)}", "$muted")],
            [(f"   {elide_middle(self.home_path(row.path), width - 4)}", "$muted")],
        ]

    # Actions.

    def labels(self) -> dict[str, str]:
        listing = self._listing
        return {"home.new": "New job here"} if listing is not None and listing.hint and listing.roots else {}

    def blocked(self, action: str) -> str:
        if action in ("home.open", "app.copy") and self._row is None:
            return "no job is under the cursor"
        if action == "home.open" and (row := self._row) is not None and row.key.startswith("/proc/"):
            return "a process that was not started from here: it has no record to open"
        return super().blocked(action)

    def do_home_open(self) -> None:
        if row := self._row:
            self._open(row.key)

    def on_row_list_chosen(self) -> None:
        if self.on_top:
            self.act("home.open")

    def _open(self, path: str) -> None:
        def told(answer: Answer) -> None:
            row = next((one for one in (self._listing or Listing()).rows if one.key == path), None)
            job = JobView(path, row.model if row else _model(answer), safe(answer.body["kind"]), answer)
            if self.on_top:
                self.quark.open(job)

        self.ask(lambda: self._services.status(path), told)

    def do_home_new(self) -> None:
        # An empty folder can be the job itself; one that holds jobs gets another folder in it.
        listing = self._listing or Listing()
        root = listing.roots[0] if listing.roots else ""
        self._new(root if not root or listing.hint else f"{root.rstrip('/')}/", "")

    def _new(self, folder: str, model: str) -> None:
        from quark_tui.ui.modals.new_job import NewJobModal

        def made(job: str | None) -> None:
            if job:
                self._looker.look()
                self._open(job)

        self.app.push_screen(NewJobModal(self._services, folder, model), made)

    def do_home_look(self) -> None:
        self._complete = False
        self._strip = None
        self.paint()
        self._looker.look()

    def do_home_filter(self) -> None:
        line = self.query_one("#filter", Input)
        line.display, line.disabled = True, False
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._query = event.value
        self._show()

    def on_input_submitted(self) -> None:
        self.query_one(RowList).focus()

    def key_escape(self) -> None:
        """Take the filter away, and give the list the keys back."""
        line = self.query_one("#filter", Input)
        line.value = ""
        line.display, line.disabled = False, True
        self.query_one(RowList).focus()


def _summary(rows: tuple[Row, ...], shown: int) -> str:
    if not rows:
        return "no jobs"
    counted = {word: sum(row.look.word == word for row in rows) for word in ("running", "not started")}
    parts = [f"{len(rows)} job{'s' if len(rows) > 1 else ''}"]
    parts += [f"{count} {word}" for word, count in counted.items() if count]
    if shown != len(rows):
        parts.append(f"{shown} shown by the filter")
    return " · ".join(parts)


def _truths(told: Mapping[str, Any]) -> tuple[str, str]:
    """Decided, alive, fresh, advancing: apart, and what the second rests on."""
    fresh, alive = told["fresh_seconds"], told["liveness"]
    parts = [
        f"verdict {safe(told['verdict']).replace('_', ' ')}",
        "no run yet" if alive is None else "liveness unknown" if alive == "unknown" else safe(alive),
        "" if fresh is None else f"changed {human_duration(fresh)} ago",
        safe(told["stage"], ""),
    ]
    evidence = (safe(told["liveness_evidence"], ""), "" if told["pid"] is None else f"pid {safe(told['pid'])}")
    return " · ".join(filter(None, parts)), " · ".join(filter(None, evidence))


def _model(answer: Answer) -> str:
    return safe(answer.body.get("model"), "")
