"""The run of a job: what runs, the task tree and the log, side by side. Leaving it never touches the run."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from quark_tui.core.answer import Answer
from quark_tui.core.finding import Finding
from quark_tui.core.text import cell_width, elide_end, elide_middle, human_duration
from quark_tui.ui.actions import ACTIONS, COMMON, STEPS, Action, bindings
from quark_tui.ui.job import JobView
from quark_tui.ui.looker import Looker
from quark_tui.ui.modals.stop import StopModal
from quark_tui.ui.modals.whole import WholeModal
from quark_tui.ui.screens.base import Problem, attempt
from quark_tui.ui.screens.step import StepScreen
from quark_tui.ui.services import RunWatch, Sight
from quark_tui.ui.text import Part, ends, exact, safe
from quark_tui.ui.views import run as view
from quark_tui.ui.views.tasks import done
from quark_tui.ui.widgets.log_view import LogView
from quark_tui.ui.widgets.task_tree import TaskTree

_IDS = (
    "run.follow", "run.search", "run.next", "run.previous", "run.regex", "run.case", "run.pane", "run.zoom",
    "run.detail", "run.stop", "run.command", "run.result", *STEPS, *COMMON,
)  # fmt: skip
_SEARCHING = ("run.regex", "run.case", "app.home")
#: Seconds that a remark stays where no key takes it away, and after which a missing look is said.
_REMARK: Final = 8.0
_OVERDUE: Final = 5.0
#: Seconds in which a signal may still be heeded, where no record of it tells.
_HEEDING: Final = 10.0
#: The seconds that tell how old something is.
clock = time.monotonic


class Seen(Message):
    """The looker saw the run, or was told why it could not."""

    def __init__(self, seen: Sight | Problem) -> None:
        super().__init__()
        self.seen = seen


class RunScreen(StepScreen):
    """One thread looks at the run; the next look waits until the screen has taken the last one."""

    STEP = 5
    IDS = _IDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(_IDS)

    def __init__(self, job: JobView) -> None:
        super().__init__(job)
        self._sight: Sight | None = None
        self._problem: Problem | None = None
        self._at = 0.0  # when the last look came, by the clock
        self._shown_at = 0.0  # since when nothing covers this screen
        self._remark: tuple[Part, float] | None = None
        self._greeted = self._searching = False
        self._regex = self._case = False
        self._query = ""
        self._sent: list[str] = []  # signals that this screen has sent to the run that is shown
        self._sent_at = 0.0
        self._asking = False
        self._log_word, self._matches, self._match = "FOLLOW", 0, 0
        self._pending = ""
        self._zoomed = ""
        self._ticks: Timer | None = None
        self._watch: RunWatch | None = None
        # What the looker's thread shares with the screen: plain values, each written by one of them.
        self._taken = True
        self._wide_log = False
        self._pace: float | None = None
        self._looker: Looker[Sight | Problem | None] = Looker(self._look, self._tell, lambda took: self._pace)

    def body(self) -> ComposeResult:
        with Horizontal(id="run-first"):
            yield Static(id="run-when")
            yield Static(id="run-for")
        yield Static(id="run-folder")
        yield Static(id="run-command")
        yield Static(id="run-note")
        with Horizontal(id="panes"):
            with Vertical(id="tree-pane"):
                yield TaskTree(self.quark.ascii_only, id="tree")
                yield Static(id="tree-state")
            with Vertical(id="log-pane"):
                yield LogView(id="log")
                with Horizontal(id="search-line"):
                    yield Static("/ ", id="search-sign", markup=False)
                    yield Input(id="search", compact=True)
                yield Static(id="log-state")

    def on_mount(self) -> None:
        self._task_tree.focus()
        self._ticks = self.set_interval(1.0, self.paint, pause=True)
        self._watch = self.quark.services.watch(self.job.path)
        self._looker.look()

    def on_unmount(self) -> None:
        self._looker.stop()

    def on_screen_resume(self) -> None:
        self._shown_at = clock()
        super().on_screen_resume()
        if self._watch is not None:
            self._looker.look()

    @property
    def _task_tree(self) -> TaskTree:
        return self.query_one(TaskTree)

    @property
    def _log_view(self) -> LogView:
        return self.query_one(LogView)

    @property
    def _in_log(self) -> bool:
        """Whether the log pane has the keys."""
        return self.focused is not None and self.focused.id in ("log", "search")

    # Looks: in the looker's thread.

    def _look(self) -> Sight | Problem | None:
        """None when the last look is not taken yet, or the screen is covered: nothing is painted that is not seen."""
        watch = self._watch
        if watch is None or self.covered or not self._taken:
            return None
        try:
            seen = attempt(watch.look)
        except Exception as error:
            # Watching goes on whatever one look meets: the run is what counts.
            seen = Problem(f"this look met {type(error).__name__}: {safe(error)}")
        self._pace = view.pace(None if isinstance(seen, Problem) else seen, self._wide_log)
        return seen

    def _tell(self, seen: Sight | Problem | None) -> None:
        if seen is not None:
            self._taken = False
            self.post_message(Seen(seen))

    # Looks: on the event loop.

    def on_seen(self, message: Seen) -> None:
        try:
            self._take(message.seen)
        finally:
            self._taken = True

    def _take(self, seen: Sight | Problem) -> None:
        self._at = clock()
        if isinstance(seen, Problem):
            if self._problem is None:
                self._remark = None
            self._problem = seen
            self._tick(True)
            self.paint()
            return
        self._problem = None
        before, self._sight = self._sight, seen
        self.job.status = seen.status
        living = view.alive(seen.status.body)
        self._tick(living)
        if not living:
            self._remark = None
        if seen.begun:
            self._log_view.reset()
            self._pending = ""
        if living and not self._greeted:
            self._greeted = True
            self._show_remark(f"safe to disconnect; back to it with: {self._back}")
        if before is not None and before.folder != seen.folder:
            self._task_tree.release()
            self._sent = []
            self._show_remark("another run was started: this is the newest one now")
        elif seen.remark:
            self._show_remark(seen.remark)
        if before is None or before.status is not seen.status:
            self._task_tree.present(seen.status.body["tasks"], seen.status.findings)
        if seen.lines or seen.pending != self._pending:
            self._pending = seen.pending
            self._log_view.show(seen.lines, seen.pending)
        self.paint()

    def _tick(self, on: bool) -> None:
        if self._ticks is not None:
            (self._ticks.resume if on else self._ticks.pause)()

    def _show_remark(self, text: str, tone: str = "waiting") -> None:
        self._remark = ((text, f"${tone}"), clock() + _REMARK)
        self.set_timer(_REMARK, self.paint)

    def say(self, text: str, tone: str = "muted") -> None:
        """Show a sentence for some seconds, or until the next action: the truth about a run is not hidden for long."""
        self._show_remark(text, tone)
        self.paint()

    def act(self, name: str) -> None:
        self._remark = None
        super().act(name)
        self.paint()

    # Texts.

    @property
    def _found(self) -> Sequence[Finding]:
        return self._sight.status.findings if self._sight else ()

    @property
    def _back(self) -> str:
        return f"quark-tui {shlex.quote(safe(self.job.path))}"

    @property
    def _age(self) -> float:
        """Seconds since the last look came."""
        return max(0.0, clock() - self._at)

    def ready(self) -> bool:
        return (self._sight is not None or self._problem is not None) and super().ready()

    def twin(self) -> str:
        return f"quark-tui status {shlex.quote(safe(self.job.path))} --follow"

    def about(self) -> str:
        return (
            "The run as its own files tell it: tasks on the left, the log on the right. It goes on whatever happens to "
            f"this screen or this connection: it is safe to disconnect, and {self._back} comes back to it. The log "
            "moves only while it says FOLLOW. An exit status of 0 is not success: step 6 says what is on disk."
        )

    def copy_text(self) -> str:
        if self._in_log:
            line = self._log_view.current_line()
            return line.text if line else ""
        row = self._task_tree.row
        return row.copy if row else ""

    def labels(self) -> dict[str, str]:
        return {"app.home": "close search"} if self._searching else {}

    def offered(self) -> list[Action]:
        """While a search is typed, letters are text: only what its line understands is offered. Once the run is over
        its result comes first."""
        if self._searching:
            return [replace(ACTIONS[one], footer=place) for place, one in enumerate(_SEARCHING, 1)]
        over = not self.blocked("run.result")
        return [replace(one, footer=1) if over and one.id == "run.result" else one for one in super().offered()]

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        sight = self._sight
        if sight is None:
            left: list[Part] = [("this run cannot be looked at", "$failed")] if self._problem else []
            return self._said_now(self.size.width - 3) or left, []
        body = sight.status.body
        over = bool(sight.folder) and body["liveness"] in ("finished", "dead")
        right: list[Part] = [(f"pid {view.pid(body)}", "$muted")] if body["process"] else []
        room = self.size.width - 3 - sum(cell_width(text) for text, _ in right)
        if said := self._said_now(room):
            return said, right
        if self._problem is not None:
            told = safe(body["liveness"])
            return [("cannot be looked at now", "$failed"), (f" · {told} when last seen", "$muted")], right
        waited = clock() - max(self._at, self._shown_at)
        if waited > _OVERDUE and not over:
            late: Part = (f"no answer from the disk for {human_duration(waited)}", "$warning")
            return [late, (" · before: ", "$muted"), *view.truths(sight, self._age, room, self.quark.ascii_only)], right
        return view.truths(sight, self._age, room, self.quark.ascii_only), right

    def _said_now(self, room: int) -> list[Part]:
        """The remark of the moment, in ``room`` cells; nothing where there is none."""
        if self._remark is None or clock() >= self._remark[1]:
            return []
        text, style = self._remark[0]
        return [(elide_middle(text, room), style)]

    def paint_body(self) -> None:
        width = self.size.width
        sight, ascii_only = self._sight, self.quark.ascii_only
        if sight is None:
            self.text("run-when", [[(" ", ""), ("looking at the run" if not self._problem else "", "$muted")]])
            self.text("run-folder", [[(f" {elide_middle(self.home_path(self.job.path), width - 2)}", "$muted")]])
        else:
            left, right = view.facts(sight, self._age, width, ascii_only)
            # What ticks stands apart: each second sends it, and no more.
            ticks = view.alive(sight.status.body) and bool(right)
            self.query_one("#run-for", Static).display = ticks
            shown = ends([(" ", ""), *left], [] if ticks else [*right, (" ", "")], width - (view.FOR if ticks else 0))
            self.text("run-when", [shown])
            self.text("run-for", [ends([], [*right, (" ", "")], view.FOR) if ticks else []])
            folder = self.home_path(sight.folder or self.job.path)
            self.text("run-folder", [[(f" {elide_middle(folder, width - 2)}", "$muted")]])
            shell = safe(sight.command.shell) if sight.command else "the command is not known"
            self.text("run-command", [[(f" {elide_end(shell, width - 2)}", "$foreground")]])
        self._paint_note(width)
        self._paint_panes()

    def _paint_note(self, width: int) -> None:
        line: list[Part] = []
        if self._problem is not None:
            line = [(f"{safe(self._problem)}", "$failed"), ("; it is looked for again and again", "$muted")]
        elif self._sight is not None:
            line = view.note(self._sight, self.quark.ascii_only)
        self.query_one("#run-note").display = bool(line)
        self.text("run-note", [ends([(" ", ""), *line], [], width)])

    def _paint_panes(self) -> None:
        panes = self.query_one("#panes")
        panes.set_class(self._zoomed == "tree", "-tree")
        panes.set_class(self._zoomed == "log", "-log")
        self.query_one("#search-line").display = self._searching
        body = self._sight.status.body if self._sight else None
        counted = done(body["tasks"]) if body else ""
        tasks: list[Part] = [*_sign(not self._in_log), ("tasks", "$muted"), (f"  {counted}", "$muted")]
        self.text("tree-state", [_fitting(tasks, self._task_tree.size.width)])
        self.text("log-state", [_fitting([*_sign(self._in_log), *self._log_parts()], self._log_view.size.width)])

    def _log_parts(self) -> list[Part]:
        if self._searching:
            kind = "regex" if self._regex else "text"
            case = "exact case" if self._case else "any case"
            keys = [(ACTIONS[one].shown_key, "bold $strong") for one in ("run.regex", "run.case")]
            return [keys[0], (f" {kind}  ", "$foreground"), keys[1], (f" {case}", "$foreground")]
        following = self._log_word == "FOLLOW"
        parts: list[Part] = [("log  ", "$muted"), (self._log_word, "bold $running" if following else "bold $waiting")]
        if self._log_view.sought:
            if self._matches:
                found = f"{self._match} of {self._matches}" if self._match else f"{self._matches} found"
            else:
                found = "not found"
            parts += [(f"  {found}", "$foreground"), (f"  /{elide_end(safe(self._log_view.sought), 16)}", "$muted")]
        if self._sight is not None and self._sight.log_problem and self._sight.lines == ():
            parts.append((f"  {safe(self._sight.log_problem)}", "$warning"))
        return parts

    # What widgets tell.

    def on_row_list_moved(self) -> None:
        self.paint()

    def on_row_list_chosen(self) -> None:
        if self.on_top:
            self.act("run.detail")

    def on_descendant_focus(self) -> None:
        if self.is_mounted:
            self.paint()

    def on_log_view_changed(self, message: LogView.Changed) -> None:
        self._log_word, self._matches, self._match = message.word, message.matches, message.match
        self.paint()

    # Actions.

    def blocked(self, action: str) -> str:
        body = self._sight.status.body if self._sight else None
        if action in ("run.next", "run.previous") and not self._log_view.sought:
            return "nothing was searched for yet: / searches the log"
        if action in ("run.regex", "run.case") and not self._searching:
            return "this changes how a search is made: / begins one"
        if action == "run.command" and (self._sight is None or self._sight.command is None):
            return "the command is not known: the run's record does not name it"
        if action == "run.detail" and not self._in_log and self._task_tree.row is None:
            return "nothing is under the cursor"
        if action == "run.result":
            return self.blocked("step.6") or ("" if body else "the run was not seen yet")
        if action == "run.stop":
            return self._not_stoppable(body)
        return super().blocked(action)

    def _not_stoppable(self, body: Mapping[str, Any] | None) -> str:
        if self._asking:
            return "what a stop would do is being looked up"
        if body is None:
            return "the run was not seen yet"
        if body["liveness"] == "unknown":
            return "it cannot be told whether it runs: stop it on the host that it started on"
        if not view.alive(body):
            return "nothing runs: there is nothing to stop" if body["liveness"] else "no run was started yet"
        if self._sent and clock() - self._sent_at < _HEEDING:
            return f"{self._sent[-1]} was sent just now: wait whether it is heeded"
        waits = next((one for one in self._found if one.code == "stop_sent"), None)
        return f"{safe(waits.message)}: wait whether it is heeded" if waits else ""

    def do_run_follow(self) -> None:
        self._log_view.follow()

    def do_run_pane(self) -> None:
        """Give the other pane the keys; while one has the whole width, also the place."""
        to_log = not self._in_log
        if self._zoomed:
            self._zoom("log" if to_log else "tree")
        self._close_search()
        # At once: the next key is for the other pane already.
        self.set_focus(self._log_view if to_log else self._task_tree)

    def do_run_zoom(self) -> None:
        self._zoom("" if self._zoomed else "log" if self._in_log else "tree")

    def _zoom(self, pane: str) -> None:
        self._zoomed, self._wide_log = pane, pane == "log"
        self.paint()

    def do_run_detail(self) -> None:
        if not self._in_log:
            if row := self._task_tree.row:
                self.app.push_screen(WholeModal("Task" if self._task_tree.on_task else "Finding", row.detail, row.copy))
            return
        line = self._log_view.current_line()
        if line is None:
            self.say("no line of the log is under the cursor")
            return
        where = f"Line {line.number} of output.log" if line.number else "Of quark-tui, not of the log"
        self.app.push_screen(WholeModal(where, [(line.text, "text")], line.text))

    def do_run_command(self) -> None:
        sight = self._sight
        if sight is not None and sight.command is not None:
            detail = view.command_detail(sight.command, sight.folder)
            self.app.push_screen(WholeModal("The command that was started", detail, exact(sight.command.shell)))

    def do_run_result(self) -> None:
        self.act("step.6")

    # Searching.

    def do_run_search(self) -> None:
        self._searching = True
        if self._zoomed == "tree":
            self._zoom("log")
        line = self.query_one("#search", Input)
        line.value = self._query
        self.paint()
        line.focus()

    def do_run_regex(self) -> None:
        self._regex = not self._regex
        self.paint()

    def do_run_case(self) -> None:
        self._case = not self._case
        self.paint()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._query = event.value
        self._log_view.search(event.value, regex=self._regex, case=self._case)
        if self._log_view.problem:
            self.say(safe(self._log_view.problem), "warning")
            return
        self._close_search()
        self._log_view.focus()

    def do_app_home(self) -> None:
        if self._searching:
            self._close_search()
            self._log_view.focus()
            return
        super().do_app_home()

    def _close_search(self) -> None:
        self._searching = False
        self.paint()

    def do_run_next(self) -> None:
        self._log_view.next_match(1)

    def do_run_previous(self) -> None:
        self._log_view.next_match(-1)

    # Stopping.

    def do_run_stop(self) -> None:
        """Ask what the next signal would do; it is sent only after the second question."""
        sight = self._sight
        if sight is None:
            return
        folder = sight.folder or self.job.path
        name = view.next_signal((*sight.stops, *self._sent))
        self._asking = True

        def told(answer: Answer) -> None:
            self._asking = False
            if self.on_top:
                self.app.push_screen(StopModal(answer), lambda yes: self._send(folder, name) if yes else None)

        def wrong(problem: Problem) -> None:
            self._asking = False
            self.say(f"{problem}; nothing was sent", "failed")

        self.ask(lambda: self.quark.services.stop(folder, name, False), told, wrong)

    def _send(self, folder: str, name: str) -> None:
        self._asking = True

        def told(answer: Answer) -> None:
            self._asking = False
            self._looker.look()
            refused = next((one for one in answer.findings if one.level in ("block", "medium", "high")), None)
            if answer.body["sent"]:
                self._sent.append(name)
                self._sent_at = clock()
            if refused is not None:
                self.say(safe(refused.message), "warning")
            elif answer.body["sent"]:
                self._show_remark(f"{name} was sent; whether it is heeded is shown here")
            else:
                self.say(safe(answer.body["next"]), "warning")

        def wrong(problem: Problem) -> None:
            self._asking = False
            self.say(f"{problem}; whether {name} was sent is not known: the next look shows it", "failed")

        self.ask(lambda: self.quark.services.stop(folder, name, True), told, wrong, changes=True)


def _sign(here: bool) -> list[Part]:
    """What marks the pane that has the keys."""
    return [("▸ " if here else "  ", "bold $strong")]


def _fitting(parts: list[Part], width: int) -> list[Part]:
    return ends(parts, [], width) if width else parts
