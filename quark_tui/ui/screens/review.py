"""The panes before a run: environment, model, plan and command, all from one look at model, target and machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from quark_tui.core.answer import Answer
from quark_tui.core.finding import Finding, blocks
from quark_tui.core.text import human_bytes
from quark_tui.ui.actions import COMMON, STEPS, bindings
from quark_tui.ui.screens.base import Problem
from quark_tui.ui.screens.step import StepScreen
from quark_tui.ui.states import look
from quark_tui.ui.text import Part, safe
from quark_tui.ui.views import Row, finding_detail
from quark_tui.ui.views import command as command_view
from quark_tui.ui.views import environment as environment_view
from quark_tui.ui.views import model as model_view
from quark_tui.ui.views import plan as plan_view
from quark_tui.ui.widgets.detail_list import DetailList
from quark_tui.ui.widgets.row_list import Entry

if TYPE_CHECKING:
    from quark_tui.engine.review import Review

_COMMON = ("step.detail", "step.look", *STEPS, *COMMON)


class ReviewScreen(StepScreen):
    """One pane; the four share one look, kept in ``job.review`` until it is made again."""

    VIEW: ClassVar[Any] = environment_view

    def body(self) -> ComposeResult:
        yield DetailList(self.VIEW.layout, titles=self.STEP in (2, 3), id="rows")

    def on_mount(self) -> None:
        self.rows.list.focus()
        if self.job.review is None:
            self.look()
        else:
            self.paint()

    @property
    def rows(self) -> DetailList:
        return self.query_one("#rows", DetailList)

    def look(self) -> None:
        """Read model, target and machine again."""
        path, services = self.job.path, self.quark.services

        def both() -> tuple[Review, Answer]:
            return services.review(path), services.status(path)

        self._looking = True
        self.ask(both, self._looked, self._unreadable)

    def _looked(self, answers: tuple[Review, Answer]) -> None:
        self.job.review, self.job.status = answers
        self._looking, self._trouble = False, ""
        self.paint()

    _looking, _trouble = False, ""

    def _unreadable(self, problem: Problem) -> None:
        # What was seen before is no longer known to hold.
        self.job.review = None
        self._looking, self._trouble = False, str(problem)
        self.paint()

    def paint_body(self) -> None:
        review = self.job.review
        if review is not None:
            self.rows.show(self.shown(review))
        elif self._trouble:
            self.rows.show(
                [Row(Entry("trouble", ((self._trouble, "failed"),), span=True), ((self._trouble, "failed"),))]
            )

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        if self.job.review is None and self._trouble:
            return [(f"{look('failed').mark(self.quark.ascii_only)} {self._trouble}", "$failed")], []
        return self.standing()

    def standing(self) -> tuple[list[Part], list[Part]]:
        """The status line's left and right end where the look succeeded or is still under way."""
        return [], []

    def shown(self, review: Review) -> list[Row]:
        """The pane's rows."""
        raise NotImplementedError

    def copy_text(self) -> str:
        return self.rows.row.copy if self.rows.row else ""

    def blocked(self, action: str) -> str:
        if action == "step.look" and self._looking:
            return "it is being looked at"
        if self.job.review is None and action in ("step.confirm", "step.detail", "plan.edit", "command.approve"):
            return self._trouble or "still looking at model, target and machine"
        return super().blocked(action)

    def do_step_look(self) -> None:
        self.look()

    def do_step_detail(self) -> None:
        from quark_tui.ui.modals.whole import WholeModal

        if row := self.rows.row:
            self.app.push_screen(WholeModal("the whole row", row.detail, row.copy))

    def on_detail_list_chosen(self) -> None:
        if self.on_top:
            self.act("step.detail")

    def on_detail_list_moved(self) -> None:
        self.paint()

    def refused(self, title: str, findings: Sequence[Finding]) -> None:
        """Show what refused, whole: what happened, the evidence, the next step."""
        from quark_tui.ui.modals.whole import WholeModal

        parts: list[Part] = []
        for one in findings:
            parts += [*finding_detail(one), ("", "text")]
        self.app.push_screen(WholeModal(title, parts[:-1] or [("no reason was given", "text")]))


class EnvironmentScreen(ReviewScreen):
    """Step 1: what would run, and where."""

    STEP = 1
    VIEW: ClassVar[Any] = environment_view
    IDS = _COMMON
    BINDINGS: ClassVar[list[BindingType]] = bindings(_COMMON)

    def shown(self, review: Review) -> list[Row]:
        return environment_view.rows(review.environment, self.quark.ascii_only)

    def twin(self) -> str:
        return "quark-tui env"

    def about(self) -> str:
        return (
            "What the target interpreter holds and what this machine has. It is asked by a small script in that "
            "interpreter; torch, transformers and Quark are read from their files and not imported."
        )

    def standing(self) -> tuple[list[Part], list[Part]]:
        review = self.job.review
        if review is None or review.environment is None:
            return [("asking the target interpreter", "$muted")], []
        found = review.environment.findings
        if blocks(found):
            return [("✗ a run cannot start with this", "$failed")], []
        return [("nothing here keeps a run from starting", "$muted")], []


class ModelScreen(ReviewScreen):
    """Step 2: Checkpoint 1."""

    STEP = 2
    VIEW: ClassVar[Any] = model_view
    IDS = ("step.confirm", *_COMMON)
    BINDINGS: ClassVar[list[BindingType]] = bindings(("step.confirm", *_COMMON))

    def shown(self, review: Review) -> list[Row]:
        return model_view.rows(review.analysis, self.quark.ascii_only)

    def labels(self) -> dict[str, str]:
        return {"step.confirm": "confirm the analysis"}

    def twin(self) -> str:
        return f"quark-tui plan {self.job.path}"

    def about(self) -> str:
        return (
            "What the model's configuration and weight headers say, each fact with the file and key that it came from; "
            "no weight is read and no code of the model runs. Confirming it is Checkpoint 1: the plan rests on it."
        )

    def standing(self) -> tuple[list[Part], list[Part]]:
        review = self.job.review
        if review is None:
            return [("reading configuration and headers", "$muted")], []
        if review.analysis.body["confirmed"]:
            return [("✓ confirmed", "$ok"), (f" {_when(review.analysis)}", "$muted")], []
        return [("◆ Checkpoint 1 waits for you: is this the model that you mean?", "$waiting")], []

    def blocked(self, action: str) -> str:
        reason = super().blocked(action)
        review = self.job.review
        if not reason and action == "step.confirm" and review is not None:
            if review.analysis.body["confirmed"]:
                return "the analysis is confirmed; 3 goes to the plan"
            if review.analysis.body["analysis"] is None:
                return "a material fact is unknown: correct it first, with quark-tui confirm --set"
        return reason

    def do_step_confirm(self) -> None:
        review, services, path = self.job.review, self.quark.services, self.job.path
        assert review is not None
        digest = review.analysis.body["digest"]
        self.ask(lambda: services.confirm(path, "analysis", digest, ()), self._confirmed, changes=True)

    def _confirmed(self, answer: Answer) -> None:
        self.job.review = None
        if answer.exit:
            self.refused("the analysis is not confirmed", answer.findings)
            self.look()
            return
        self.go(3)


class PlanScreen(ReviewScreen):
    """Step 3: Checkpoint 2."""

    STEP = 3
    VIEW: ClassVar[Any] = plan_view
    _OWN = ("step.confirm", "plan.edit", "step.look", *STEPS, *COMMON)
    IDS = _OWN
    BINDINGS: ClassVar[list[BindingType]] = bindings(_OWN)

    def shown(self, review: Review) -> list[Row]:
        return plan_view.rows(review.plan, self.quark.ascii_only)

    def labels(self) -> dict[str, str]:
        row = self.rows.row
        decision = row is not None and row.entry.key.startswith("row.")
        return {"step.confirm": "confirm the plan", "plan.edit": "change" if decision else "whole"}

    def twin(self) -> str:
        return f"quark-tui plan {self.job.path}"

    def about(self) -> str:
        return (
            "Every decision with its reason, what the patterns match in this model, and what it will take. Enter "
            "changes the row under the cursor; a change that cannot work is refused. Confirming is Checkpoint 2; "
            "nothing runs."
        )

    def standing(self) -> tuple[list[Part], list[Part]]:
        review = self.job.review
        if review is None:
            return [("making the plan", "$muted")], []
        body = review.plan.body
        size: list[Part] = [(f"output about {human_bytes(body['estimate']['output_bytes'])}", "$muted")]
        blocking = [one for one in review.plan.findings if one.level == "block"]
        if blocking:
            word = "reason" if len(blocking) == 1 else "reasons"
            return [(f"✗ blocked for {len(blocking)} {word}: see the first rows", "$failed")], size
        if not body["analysis_confirmed"]:
            return [("the analysis comes first: 2", "$waiting")], size
        if body["plan_confirmed"]:
            return [("✓ confirmed", "$ok"), (f" {_when(review.plan)}", "$muted")], size
        return [("◆ Checkpoint 2 waits for you", "$waiting")], size

    def blocked(self, action: str) -> str:
        reason = super().blocked(action)
        review = self.job.review
        if reason or review is None or action != "step.confirm":
            return reason
        body = review.plan.body
        if not body["analysis_confirmed"]:
            return "the analysis comes first: 2 goes there"
        if body["plan_confirmed"]:
            return "the plan is confirmed; 4 goes to the command"
        blocking = next((one for one in review.plan.findings if one.level == "block"), None)
        if blocking is not None:
            return safe(blocking.message)
        return "" if body["digest"] else "there is no whole plan yet"

    def do_step_confirm(self) -> None:
        review, services, path = self.job.review, self.quark.services, self.job.path
        assert review is not None
        digest = review.plan.body["digest"]
        self.ask(lambda: services.confirm(path, "plan", digest, ()), self._confirmed, changes=True)

    def _confirmed(self, answer: Answer) -> None:
        self.job.review = None
        if answer.exit:
            self.refused("the plan is not confirmed", answer.findings)
            self.look()
            return
        self.go(4)

    def do_plan_edit(self) -> None:
        row = self.rows.row
        if row is None or not row.entry.key.startswith("row."):
            self.do_step_detail()
            return
        self._edit(row.entry.key.removeprefix("row."))

    def on_detail_list_chosen(self) -> None:
        if self.on_top:
            self.act("plan.edit")

    def _edit(self, key: str, typed: str | None = None, reason: str = "", refused: tuple[Finding, ...] = ()) -> None:
        from quark_tui.ui.modals.edit_row import EditRowModal

        review = self.job.review
        assert review is not None
        decision = next(one for one in review.plan.body["rows"] if one["key"] == key)

        def then(pair: tuple[str, str] | None) -> None:
            if pair is not None:
                self._change(key, *pair)

        self.app.push_screen(EditRowModal(decision, review.plan.body["schemes"], typed, reason, refused), then)

    def _change(self, key: str, value: str, reason: str) -> None:
        services, path = self.quark.services, self.job.path
        reasons = ((key, reason),) if reason else ()

        def changed(answer: Answer) -> None:
            if answer.body["refused"]:
                self._edit(key, value, reason, answer.findings)
                return
            self.look()

        def wrong(problem: Problem) -> None:
            finding = Finding("block", "wrong_value", str(problem), "", "type another value, or esc")
            self._edit(key, value, reason, (finding,))

        self.ask(lambda: services.change(path, ((key, value),), reasons), changed, wrong, changes=True)


class CommandScreen(ReviewScreen):
    """Step 4: Checkpoint 3."""

    STEP = 4
    VIEW: ClassVar[Any] = command_view
    IDS = ("command.approve", *_COMMON)
    BINDINGS: ClassVar[list[BindingType]] = bindings(("command.approve", *_COMMON))

    def shown(self, review: Review) -> list[Row]:
        return command_view.whole(
            command_view.rows(review.command, self.quark.ascii_only), self.rows.list.size.width - 4
        )

    def twin(self) -> str:
        return f"quark-tui command {self.job.path}"

    def about(self) -> str:
        return (
            "The exact command that follows from the plan, with everything that its digest covers. Nothing was "
            "created, downloaded or started. Approving is Checkpoint 3: it stands for these bytes, once."
        )

    def standing(self) -> tuple[list[Part], list[Part]]:
        review = self.job.review
        if review is None:
            return [("computing the digest", "$muted")], []
        blocking = review.command.body["blocked"]
        if blocking:
            word = "reason" if len(blocking) == 1 else "reasons"
            return [(f"✗ blocked for {len(blocking)} {word}: see the first rows", "$failed")], []
        return [("◆ Checkpoint 3 waits for you", "$waiting"), (" · nothing was started", "$muted")], []

    def blocked(self, action: str) -> str:
        reason = super().blocked(action)
        review = self.job.review
        if reason or review is None or action != "command.approve":
            return reason
        blocking = next((one for one in review.command.findings if one.level == "block"), None)
        return safe(blocking.message) if blocking is not None else ""

    def do_command_approve(self) -> None:
        from quark_tui.ui.modals.approve import ApproveModal

        review = self.job.review
        assert review is not None
        self.app.push_screen(ApproveModal(self.job, review.command), self._answered)

    def _answered(self, started: str | None) -> None:
        self.job.review = None
        if started is None:
            self.look()
            return
        self.go(5)


def _when(answer: Answer) -> str:
    given, via = answer.body.get("confirmed_at"), answer.body.get("via")
    return f"at {safe(given)} via {safe(via)}" if given else ""
