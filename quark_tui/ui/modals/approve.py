"""Checkpoint 3: one exact command, shown whole, and one deliberate key."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from quark_tui.core.answer import Answer
from quark_tui.ui.actions import bindings
from quark_tui.ui.job import JobView
from quark_tui.ui.modals.base import BaseModal
from quark_tui.ui.screens.base import Problem, Told, attempt
from quark_tui.ui.text import Part, exact, safe
from quark_tui.ui.views import Row, findings, title
from quark_tui.ui.views import command as view
from quark_tui.ui.widgets.row_list import RowList

_IDS = ("approve.cancel", "approve.run", "app.copy")


class ApproveModal(BaseModal[str]):
    """Gives back the run's folder, None when it was cancelled. Cancel has the focus; running takes its own key, and
    takes it only after everything down to the digest has been on the screen."""

    IDS = _IDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(_IDS)

    def __init__(self, job: JobView, command: Answer) -> None:
        super().__init__()
        self._job, self._command = job, command
        self._starting = False
        self._refused: tuple[Row, ...] = ()

    def heading(self) -> str:
        return "Run these exact bytes?"

    def body(self) -> ComposeResult:
        yield RowList(view.layout, titles=False, id="command")
        yield Static(id="buttons")

    @property
    def _rows(self) -> RowList:
        return self.query_one("#command", RowList)

    def paint(self) -> None:
        rows = [*self._refused, *view.rows(self._command, self.quark.ascii_only)]
        entries = [row.entry for row in view.whole(rows, self._rows.size.width - 4)]
        self.fit(len(entries), 1)
        self._rows.show(entries)
        super().paint()
        ready = not self.blocked("approve.run")
        run: Part = ("  r Run it  ", "$strong" if ready else "$muted")
        self.text("buttons", [[("            ", ""), ("[ Cancel ]", "reverse"), ("     ", ""), run]])

    def _unseen(self) -> int:
        keys = [entry.key for entry in self._rows.entries]
        return self._rows.unseen(keys.index(view.LAST) + 1 if view.LAST in keys else len(keys))

    def on_row_list_moved(self) -> None:
        if not self._starting:
            self._said = None  # how many lines are left is another number now
        self.paint()

    def blocked(self, action: str) -> str:
        if self._starting:
            return "it is being started: wait for the answer"
        if action != "approve.run":
            return ""
        if self._refused:
            return "it was refused: look at the command as it is now"
        unseen = self._unseen()
        return f"{unseen} lines have not been on the screen yet: j or ctrl+d" if unseen else ""

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        if self._starting:
            return [("starting…", "$running")], []
        if self._refused:
            return [("✗ refused: nothing was started, the approval was not used", "$failed")], []
        if reason := self.blocked("approve.run"):
            return [(reason, "$waiting")], []
        return [("nothing has been created, downloaded or started", "$muted")], []

    def do_approve_cancel(self) -> None:
        self.dismiss(None)

    def do_approve_run(self) -> None:
        import threading

        self._starting = True
        self.paint()
        services, path, digest = self.quark.services, self._job.path, self._command.body["digest"]

        def work() -> None:
            value = attempt(lambda: services.approve(path, digest))
            self.post_message(Told(lambda: self._told(value)))

        thread = threading.Thread(target=work, name="quark-tui-approve", daemon=True)
        self.quark.hold(thread)
        thread.start()

    def on_told(self, message: Told) -> None:
        message.then()

    def _told(self, value: Answer | Problem) -> None:
        self._starting, self._said = False, None
        if isinstance(value, Problem):
            self._refuse([Row(title("wrong", str(value)).entry, ((str(value), "failed"),), str(value))])
        elif value.exit or value.body["pid"] is None:
            self._refuse(findings(value.findings, self.quark.ascii_only, prefix="refused"))
        else:
            self.dismiss(safe(value.body["run_folder"]))

    def _refuse(self, rows: list[Row]) -> None:
        self._refused = (*rows, title("refused-gap", ""))
        self.paint()
        self._rows.action_first()

    def do_app_copy(self) -> None:
        shells = [exact(one["shell"]) for one in self._command.body["commands"]]
        self.quark.copy("\n".join(shells), self.say)
