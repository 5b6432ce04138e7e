"""A job from a model directory: two lines to type, and what the engine says to them."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from quark_tui.core.answer import Answer
from quark_tui.core.finding import blocks
from quark_tui.core.text import pad
from quark_tui.ui.actions import bindings
from quark_tui.ui.modals.base import BaseModal
from quark_tui.ui.screens.base import Problem, Told, attempt
from quark_tui.ui.services import Services
from quark_tui.ui.text import Lines, Part, safe, wrapped
from quark_tui.ui.views import finding_detail
from quark_tui.ui.widgets.field import LABEL, Field
from quark_tui.ui.widgets.row_list import RowList
from quark_tui.ui.widgets.text_lines import TextLines

_IDS = ("form.submit", "form.next", "modal.close")
#: Lines that one fact may take.
_FACT_LINES = 4
T = TypeVar("T")


class NewJobModal(BaseModal[str]):
    """Gives back the path of the job that was made. ``folder`` and ``model`` are typed already, "" for nothing."""

    IDS = _IDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(_IDS)

    def __init__(self, services: Services, folder: str, model: str) -> None:
        super().__init__()
        self._services = services
        self._folder = Field("job folder", folder, "a folder for this piece of work, such as ~/jobs/NAME", id="folder")
        self._model = Field("model directory", model, "holds config.json and the weights", id="model")
        self._interpreter = "looking"
        self._making = False
        #: The job, when it was made although something blocks.
        self._made = ""
        self._told: tuple[Part, ...] = ()

    def heading(self) -> str:
        return "New job: quantize a model (ptq)"

    def labels(self) -> dict[str, str]:
        if self._made:
            return {"form.submit": "open it", "modal.close": "back to the list"}
        return {"form.submit": "next, then make", "modal.close": "close, nothing is made"}

    def body(self) -> ComposeResult:
        yield self._folder
        yield self._model
        yield Static(id="facts")
        yield TextLines(id="found")

    def on_mount(self) -> None:
        (self._model if self._folder.value and not self._model.value else self._folder).input.focus()
        self.query_one("#found", TextLines).display = False
        super().on_mount()
        self._ask(self._services.interpreter, self._named)

    # Calls.

    def _ask(self, call: Callable[[], T], then: Callable[[T | Problem], None]) -> None:
        def work() -> None:
            value = attempt(call)
            self.post_message(Told(lambda: then(value)))

        thread = threading.Thread(target=work, name="quark-tui-new", daemon=True)
        self.quark.hold(thread)
        thread.start()

    def on_told(self, message: Told) -> None:
        message.then()
        self.paint()

    def _named(self, value: str | Problem) -> None:
        self._interpreter = str(value) if isinstance(value, Problem) else safe(value)

    # Texts.

    def paint(self) -> None:
        width = (self.query_one("#box").content_size.width or 70) - LABEL
        lines: Lines = [[]]
        for label, text in (("interpreter", self._interpreter), ("the same as", safe(shlex.join(self._argv())))):
            for number, piece in enumerate(wrapped(text, width)[:_FACT_LINES]):
                lines.append([(pad("" if number else f"  {label}", LABEL), "$muted"), (piece, "$foreground")])
        self.text("facts", lines)
        self.query_one("#found", TextLines).tell(self._told)
        super().paint()

    def _argv(self) -> list[str]:
        folder, model = self._folder.value or "DIR", self._model.value or "MODEL_DIRECTORY"
        return ["quark-tui", "new", folder, "--workflow", "ptq", "--model", model]

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        more = self.query_one("#found", TextLines).more()
        if self._making:
            return [("reading the model and asking the interpreter…", "$running")], []
        if self._made:
            return [("the job was made; what blocks is said above", "$warning")], more
        if self._told:
            return [("✗ nothing was made" if not self.quark.ascii_only else "[XX] nothing was made", "$failed")], more
        return [("nothing is made before ↵ on the last line; relative paths start in your folder", "$muted")], []

    # Actions.

    def blocked(self, action: str) -> str:
        if self._making and action == "form.submit":
            return "it is being made: a moment"
        return ""

    def do_form_next(self) -> None:
        self.focus_next()

    def on_input_changed(self) -> None:
        self.paint()

    def on_input_submitted(self) -> None:
        self.act("form.submit")

    def do_form_submit(self) -> None:
        if self._made:
            self.dismiss(self._made)
            return
        empty = next((field for field in (self._folder, self._model) if not field.value), None)
        if self._folder.input.has_focus:
            self._model.input.focus()
            return
        if empty is not None:
            empty.input.focus()
            self.say("both lines are needed", "warning")
            return
        if problem := self._folder.problem or self._model.problem:
            self.say(problem, "warning")
            return
        folder, model = self._folder.value, self._model.value
        self._making, self._told = True, ()
        self._ask(lambda: self._services.new(folder, model), self._answered)

    def _answered(self, value: Answer | Problem) -> None:
        self._making, self._said = False, None
        if isinstance(value, Problem):
            self._told = ((str(value), "failed"), ("next: correct the line and press ↵ again", "strong"))
            return
        job = value.body["job"]
        if job is not None and not blocks(value.findings):
            self.dismiss(job)
            return
        self._told = tuple(part for one in value.findings for part in finding_detail(one))
        if job is not None:
            self._made = job
            for field in (self._folder, self._model):
                field.input.disabled = True
            self.query_one("#found", TextLines).focus()

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        message.stop()
        super().paint()
