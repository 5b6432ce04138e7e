"""Step 6: what is on disk against what was planned, and a person's word on it. Checkpoint 4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from quark_tui.core.answer import Answer
from quark_tui.core.finding import Finding
from quark_tui.core.text import elide_middle
from quark_tui.engine.hint import hint
from quark_tui.ui.actions import COMMON, STEPS, bindings
from quark_tui.ui.job import JobView
from quark_tui.ui.screens.base import Problem
from quark_tui.ui.screens.step import StepScreen
from quark_tui.ui.states import WAITS, look
from quark_tui.ui.text import Part, ends, safe
from quark_tui.ui.views import Row
from quark_tui.ui.views import result as view
from quark_tui.ui.views.follow_up import STEPS as STEP_OF
from quark_tui.ui.widgets.detail_list import DetailList

_IDS = ("result.accept", "step.detail", "result.back", "result.log", "step.look", *STEPS, *COMMON)
_OUTPUT_CELLS = 32


class ResultScreen(StepScreen):
    """Verifies when it is opened and when it is asked to. What is accepted is the digest that was shown."""

    STEP = 6
    IDS = _IDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(_IDS)

    def __init__(self, job: JobView) -> None:
        super().__init__(job)
        self._rows: list[Row] = []
        self._refused: tuple[Finding, ...] = ()
        self._refused_title = ""
        self._problem = ""
        self._begun = False
        self._looking = 0
        #: What is being changed now, in words: nothing else is begun meanwhile.
        self._changing = ""
        self._pointed = False

    def body(self) -> ComposeResult:
        yield Static(id="verdict")
        yield DetailList(view.layout, titles=False, id="result")

    @property
    def _list(self) -> DetailList:
        return self.query_one("#result", DetailList)

    def on_mount(self) -> None:
        # What was seen before may be of another run.
        self.job.verified = None
        self._list.list.focus()
        self.call_after_refresh(self._look)

    # Looks.

    def _look(self) -> None:
        services, path = self.quark.services, self.job.path
        self._problem, self._begun = "", True
        self._looking += 2

        def wrong(problem: Problem) -> None:
            self._looking -= 1
            self._problem = str(problem)
            self.job.verified = None

        def verified(answer: Answer) -> None:
            self._looking -= 1
            self.job.verified = None if self._problem else answer

        def status(answer: Answer) -> None:
            self._looking -= 1
            self.job.status = answer

        self.ask(lambda: services.status(path), status, wrong)
        self.ask(lambda: services.verify(path), verified, wrong)

    def _wrong(self, problem: Problem) -> None:
        self._changing = ""
        self.say(f"{problem}; r looks at how it stands", "failed")

    # Texts.

    def ready(self) -> bool:
        return self._begun and super().ready()

    def twin(self) -> str:
        return hint("verify", self.job.path)

    def about(self) -> str:
        return (
            "What the run left, judged by its files: configuration, safetensors headers, scales and tokenizer against "
            "the plan that was confirmed. No weight is read. The exit status is one witness of several. Accepting is "
            "Checkpoint 4; a follow-up goes back to an earlier one and keeps everything of this run."
        )

    def labels(self) -> dict[str, str]:
        return {"step.look": "verify again"}

    def copy_text(self) -> str:
        row = self._list.row
        return row.copy if row else ""

    def paint_body(self) -> None:
        status, verified, ascii_only = self.job.status, self.job.verified, self.quark.ascii_only
        width = self.size.width
        first = view.headline(status, verified, ascii_only)
        if self._looking or not self._begun:
            first = [("looking at headers…", "$muted")]
        elif self._problem:
            shown = look("unknown")
            first = [(f"{shown.mark(ascii_only)} {shown.word.upper()}", f"bold ${shown.tone}")]
            first.append((f"  {self._problem}", "$foreground"))
        lines = [ends([(" ", ""), *first], [*view.witnesses(status), (" ", "")], width)]
        lines.append(ends([("   ", ""), (view.summary(verified) if verified is not None else "", "$muted")], [], width))
        if done := view.accepted(status):
            lines.append(ends([("   ", ""), *self._accepted(done)], [], width))
        self.text("verdict", lines)
        self._rows = view.rows(status, verified, self._refused, ascii_only, self._refused_title)
        self._list.show(self._rows)
        if not (self._looking or self._pointed or verified is None):
            self._pointed = True
            self.call_after_refresh(self._point)

    def _point(self) -> None:
        """The first row that is wrong, else the first one, gets the cursor once; then it is the person's."""
        rows = self._list.list
        key = view.first(self._rows)
        at = next((index for index, entry in enumerate(rows.entries) if entry.key == key), 0)
        rows.move_to(at)
        # By force: whether it may scroll is known to the list only after its next layout.
        top = at - rows.size.height // 2 if at >= rows.size.height else 0
        rows.scroll_to(y=top, animate=False, immediate=True, force=True)

    def _accepted(self, done: str) -> list[Part]:
        mark = look("verified").mark(self.quark.ascii_only)
        if view.accepted_other(self.job.status, self.job.verified):
            return [(f"! {done}, but what is on disk now is not what was accepted", "$warning")]
        return [(f"{mark} {done}", "$ok")]

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        status, verified = self.job.status, self.job.verified
        folder = elide_middle(self.home_path(verified.body["path"]), _OUTPUT_CELLS) if verified is not None else ""
        right: list[Part] = [(folder, "$muted")]
        if self._changing:
            return [(f"{self._changing}…", "$running")], right
        left: list[Part] = []
        if view.accepted(status):
            left.append((f"{look('verified').mark(self.quark.ascii_only)} accepted", "$ok"))
        elif not self._looking and not view.unacceptable(status, verified):
            left.append((f"{WAITS.mark(self.quark.ascii_only)} {WAITS.word}", f"${WAITS.tone}"))
        text, style = ("", "") if self._looking else view.manifest(status, verified)
        if text:
            left += [(" · ", "$muted"), (text, style)] if left else [(text, style)]
        return left, right

    def problems(self) -> Iterator[Finding]:
        return iter(self._refused)

    # Actions.

    def blocked(self, action: str) -> str:
        if self._changing and (action in ("result.accept", "result.back") or action.startswith("step.")):
            return f"{self._changing}: a moment"
        if action == "result.accept":
            if self._looking:
                return "the output is being looked at"
            if self._problem:
                return f"the output could not be judged: {self._problem}"
            return view.unacceptable(self.job.status, self.job.verified)
        if action == "result.back":
            return self._no_follow_up()
        if action == "result.log":
            return super().blocked("step.5")
        if action == "step.look" and self._looking:
            return "it is being looked at"
        if action in ("step.detail", "app.copy") and self._list.row is None:
            return "no row is under the cursor"
        return super().blocked(action)

    def _no_follow_up(self) -> str:
        status = self.job.status
        if status is None:
            return "how the run ended is not known yet"
        if status.body["scope"] != "job":
            return "only a run folder is open here: follow-ups belong to its job"
        if status.body["liveness"] is None:
            return "no run was started: there is nothing to follow up"
        return "the run is still going" if status.body["liveness"] == "alive" else ""

    def do_step_look(self) -> None:
        self._refused = ()
        self._look()

    def do_step_detail(self) -> None:
        from quark_tui.ui.modals.whole import WholeModal

        if row := self._list.row:
            self.app.push_screen(WholeModal(_title(row), row.detail, row.copy))

    def on_detail_list_chosen(self) -> None:
        if self.on_top:
            self.act("step.detail")

    def do_result_log(self) -> None:
        self.go(5)

    def do_result_accept(self) -> None:
        from quark_tui.ui.modals.accept import AcceptModal

        verified = self.job.verified
        assert verified is not None
        digest = verified.body["digest"]
        output = self.home_path(verified.body["path"])
        detail = view.acceptance(self.job.status, verified, output, self.quark.ascii_only)

        def answered(yes: bool | None) -> None:
            if yes:
                self._accept(digest)
            else:
                self.say("nothing was accepted")

        self.app.push_screen(AcceptModal(detail, digest), answered)

    def _accept(self, digest: str) -> None:
        services, path = self.quark.services, self.job.path
        self._changing = "accepting"

        def accepted(answer: Answer) -> None:
            if answer.body["accepted_at"] is None:
                self._changing = ""
                self._refuse("not accepted", answer)
                return
            self._refused, self._refused_title = answer.findings, "at the acceptance"
            self.ask(lambda: services.status(path), stands)

        def stands(answer: Answer) -> None:
            self._changing = ""
            self.job.status = answer
            self.say(view.accepted(answer), "ok")

        self.ask(lambda: services.accept(path, digest), accepted, changes=True)

    def _refuse(self, what: str, answer: Answer) -> None:
        self._refused, self._refused_title = answer.findings, what
        self._pointed = False
        message = safe(answer.findings[0].message) if answer.findings else "no reason was given"
        self.say(f"{look('failed').mark(self.quark.ascii_only)} {what}: {message}", "failed")

    def do_result_back(self) -> None:
        from quark_tui.ui.modals.follow_up import FollowUpModal

        services, path = self.quark.services, self.job.path
        self._changing = "looking at what can follow"

        def listed(choices: object) -> None:
            self._changing = ""
            assert isinstance(choices, (list, tuple))
            if not choices:
                self.say("nothing can follow: no run was started")
            elif self.on_top:
                self.app.push_screen(FollowUpModal(choices), chosen)

        def chosen(code: str | None) -> None:
            if code is None:
                self.say("nothing was changed")
            else:
                self._begin(code)

        self.ask(lambda: services.follow_ups(path), listed)

    def _begin(self, code: str) -> None:
        services, path = self.quark.services, self.job.path
        self._changing = "going back"

        def begun(answer: Answer) -> None:
            checkpoint = answer.body["checkpoint"]
            if checkpoint is None:
                self._changing = ""
                self._refuse("not begun", answer)
                return
            self.job.review = self.job.verified = None
            self.ask(lambda: services.status(path), lambda status: gone(status, STEP_OF[checkpoint]))

        def gone(status: Answer, step: int) -> None:
            self._changing = ""
            self.job.status = status
            if self.on_top:
                self.quark.show_step(self.job, step)
            else:
                self.say(f"the job stands at step {step} again: press {step}")

        self.ask(lambda: services.begin(path, code), begun, changes=True)


def _title(row: Row) -> str:
    return " ".join(text.strip() for text, _ in row.entry.cells[:2] if text.strip())
