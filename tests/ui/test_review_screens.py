"""What breaks if this is wrong: a checkpoint is passed that was not seen, or a command runs that was not approved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import block
from quark_tui.core.tasks import Task
from quark_tui.engine.review import Review
from quark_tui.ui.app import QuarkTui
from quark_tui.ui.job import JobView
from quark_tui.ui.modals.approve import ApproveModal
from quark_tui.ui.modals.edit_row import EditRowModal
from quark_tui.ui.modals.whole import WholeModal
from quark_tui.ui.screens.review import CommandScreen, ModelScreen, PlanScreen
from quark_tui.ui.screens.run import RunScreen
from quark_tui.ui.services import Sight
from quark_tui.ui.widgets.row_list import RowList
from tests.support import reviews
from tests.support.results import Fake, until
from tests.support.results import status as told
from tests.support.sights import sight

from .conftest import HOSTILE, frame, is_snapshot

SIZES = [(80, 24), (120, 40)]
STEPS = {"environment": 1, "model": 2, "plan": 3, "command": 4}
NO_MATCH = block(
    "pattern_matches_nothing", "*o_prj matches nothing", "did you mean *o_proj (30)?", "change the pattern"
)


def before(passed: int) -> Answer:
    """The status of a job before any run."""
    keys = ("analysis", "plan", "command", "approval", "load", "quantize", "export", "verify", "accept")
    tasks = [Task(key, key, "done" if number < passed else "pending").to_json() for number, key in enumerate(keys)]
    held = {"analysis": passed >= 1, "plan": passed >= 2}
    return told(
        "not_started", path=reviews.JOB, liveness=None, liveness_evidence="no run", tasks=tasks, checkpoints=held
    )


class Desk(Fake):
    """A job that passes its checkpoints as they are confirmed; ``started`` answers an approval."""

    def __init__(self, passed: int = 0, started: Answer | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.passed = passed
        self.started = started or Answer(
            "run", {"run_id": "r", "run_folder": f"{reviews.JOB}/.quark-tui/runs/r", "pid": 7, "via": "screen"}
        )

    def review(self, job: str) -> Review:
        given = self._answers.get("review")
        if isinstance(given, Exception):
            raise given
        return given or reviews.review(self.passed)

    def status(self, path: str) -> Answer:
        return before(self.passed)

    def confirm(self, job: str, checkpoint: str, digest: str, corrections: object) -> Answer:
        self.calls.append(("confirm", checkpoint, digest))
        refused = self._answers.get("refused")
        if refused:
            return Answer("confirm", {"confirmed_at": None}, (refused,), 1)
        self.passed += 1
        return Answer("confirm", {"confirmed_at": "now"})

    def change(self, job: str, sets: Any, reasons: Any) -> Answer:
        self.calls.append(("change", *sets, *reasons))
        refused = self._answers.get("refused")
        if isinstance(refused, Exception):
            raise refused
        return replace(reviews.plan(*([refused] if refused else [])), body={"refused": bool(refused)})

    def approve(self, job: str, digest: str) -> Answer:
        self.calls.append(("approve", digest))
        return self.started

    def watch(self, path: str) -> Any:
        class Watch:
            def look(self) -> Sight:
                return sight()

        return Watch()


def app_on(desk: Desk) -> QuarkTui:
    return QuarkTui(desk, "gpu-box-7")  # type: ignore[arg-type]


async def ready(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: frame(pilot.app).splitlines()[-1].endswith(" ready"), "ready")  # type: ignore[arg-type]


async def at(pilot: Pilot[None], step: int, passed: int = 0) -> None:
    """Open the job at ``step``."""
    app = pilot.app
    assert isinstance(app, QuarkTui)
    await ready(pilot)
    app.open(JobView(reviews.JOB, "smollm2-135m", "ptq", before(passed)), step)
    await pilot.pause()
    await ready(pilot)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", STEPS)
async def test_a_pane_looks_as_it_should(name: str, size: tuple[int, int]) -> None:
    passed = {"plan": 1, "command": 2}.get(name, 0)
    app = app_on(Desk(passed))
    async with app.run_test(size=size) as pilot:
        await at(pilot, STEPS[name], passed)
        is_snapshot(f"{name}-{size[0]}x{size[1]}", frame(app), app)


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_a_blocked_plan_looks_as_it_should(size: tuple[int, int]) -> None:
    app = app_on(Desk(1, review=reviews.review(1, [NO_MATCH])))
    async with app.run_test(size=size) as pilot:
        await at(pilot, 3, 1)
        is_snapshot(f"plan-blocked-{size[0]}x{size[1]}", frame(app), app)
        await pilot.press("c")
        assert "*o_prj matches nothing" in frame(app).splitlines()[-2]
        await pilot.press("4")
        await ready(pilot)
        await pilot.press("a")
        assert isinstance(app.screen, CommandScreen)


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_approval_looks_as_it_should_and_hides_nothing(size: tuple[int, int]) -> None:
    """P-91: the whole command, where output goes, resources, remote code, expected files; every argument is whole."""
    app = app_on(Desk(2))
    async with app.run_test(size=size) as pilot:
        await at(pilot, 4, 2)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApproveModal), "the approval")
        await pilot.pause()
        is_snapshot(f"approve-{size[0]}x{size[1]}", frame(app), app)
        entries = app.screen.query_one(RowList).entries
        text = "".join(cell for entry in entries for cell, _ in entry.cells).replace(" ", "")
        for argument in (*reviews.COMMAND.argv, *reviews.COMMAND.writes, reviews.DIGEST, "QUARK_LOG_LEVEL=info"):
            assert argument.replace(" ", "") in text
        for words in ("163MB,52GBfree", "1.3GB,22GBhere", "noneinthismodel", "config.json,model", "notknown"):
            assert words in text


async def test_checkpoints_are_passed_in_order_by_keys_and_the_run_starts_once() -> None:
    """P-04, P-92: each checkpoint is a screen that waits; only the approval's own key starts the command."""
    desk = Desk()
    app = app_on(desk)
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 2)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, PlanScreen), "the plan")
        await ready(pilot)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, CommandScreen), "the command")
        await ready(pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApproveModal), "the approval")
        await pilot.pause()
        # Enter is Cancel: it has the focus.
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CommandScreen), "back from the approval")
        await ready(pilot)
        assert [call[0] for call in desk.calls] == ["confirm", "confirm"]
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApproveModal), "the approval again")
        await pilot.pause()
        await pilot.press("r")
        assert "have not been on the screen yet" in frame(app)
        assert desk.calls[-1][0] == "confirm"
        # A jump to the end passes over lines: they are still to be seen.
        await pilot.press("G", "r")
        assert "have not been on the screen yet" in frame(app)
        assert desk.calls[-1][0] == "confirm"
        await pilot.press("g", *["ctrl+d"] * 4, "r", "r")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        assert desk.calls == [
            ("confirm", "analysis", reviews.ANALYSIS_DIGEST),
            ("confirm", "plan", reviews.PLAN_DIGEST),
            ("approve", reviews.DIGEST),
        ]


async def test_a_refused_start_is_told_in_place_and_cannot_be_tried_again() -> None:
    """P-92: what changed since it was shown is refused with each difference, and needs a new look."""
    refused = block("digest_differs", "quant_plan.json: was c3 → is e5", "", "look at the command as it is now")
    answer = Answer("run", {"run_id": None, "run_folder": None, "pid": None, "via": None}, (refused,), 1)
    desk = Desk(2, started=answer)
    app = app_on(desk)
    async with app.run_test(size=(120, 40)) as pilot:
        await at(pilot, 4, 2)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApproveModal), "the approval")
        await pilot.pause()
        await pilot.press(*["ctrl+d"] * 4, "r")
        await until(pilot, lambda: "quant_plan.json: was c3 → is e5" in frame(app), "the difference")
        assert "nothing was started" in frame(app)
        await pilot.press("r")
        assert len(desk.calls) == 1
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, CommandScreen), "the command")


async def test_a_refused_confirmation_shows_why_and_looks_again() -> None:
    refused = block("digest_differs", "the analysis is another one now [/x]", "config.json changed", "look at it")
    desk = Desk(refused=refused)
    app = app_on(desk)
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 2)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, WholeModal), "why not")
        await pilot.pause()
        text = frame(app)
        assert "the analysis is another one now [/x]" in text
        assert "config.json changed" in text
        assert "next: look at it" in text
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ModelScreen), "the model")


async def test_a_row_is_changed_and_a_refused_change_comes_back_with_what_was_typed() -> None:
    desk = Desk(1, refused=block("scheme_unknown", "fp9 is no scheme", "the installed Quark has 34", "take another"))
    app = app_on(desk)
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 3, 1)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, EditRowModal), "the form")
        await pilot.pause()
        await pilot.press("ctrl+u", *"fp9", "enter", "enter")
        await until(pilot, lambda: "fp9 is no scheme" in frame(app), "the refusal")
        assert desk.calls[-1][:2] == ("change", ("global_scheme", "fp9"))
        assert isinstance(app.screen, EditRowModal)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, PlanScreen), "the plan")


async def test_a_model_that_cannot_be_read_is_said_and_nothing_is_confirmed() -> None:
    desk = Desk(review=WrongQuestion("quark-tui: /m [/x]: config.json is no JSON"))
    app = app_on(desk)
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 2)
        assert "/m [/x]: config.json is no JSON" in frame(app)
        await pilot.press("c", "enter", "y")
        assert desk.calls == []
        assert isinstance(app.screen, ModelScreen)


async def test_hostile_text_is_shown_literally_in_every_pane() -> None:
    """Every place that shows text of others: facts, sources, findings, rows, patterns, arguments, variables, files."""
    long = "n" * 300
    fact = {f"f{HOSTILE}": {"value": HOSTILE, "from": HOSTILE}, "long": {"value": long, "from": long}}
    code = [{"file": HOSTILE, "key": HOSTILE, "target": HOSTILE, "sha256": HOSTILE, "stopped_by_flag": False}]
    found = block("x", HOSTILE, HOSTILE, HOSTILE)
    shown = replace(reviews.COMMAND, argv=(f"/bin/{HOSTILE}", "ptq", "--x", HOSTILE, "--y", long), cwd=f"/{HOSTILE}")
    row = {"key": "output_dir", "value": HOSTILE, "default": HOSTILE, "reason": HOSTILE, "changed": True}
    pattern = {
        "kind": "exclude", "pattern": HOSTILE, "scheme": HOSTILE, "matches": 0, "effective": 0, "shadowed_by": HOSTILE,
    }  # fmt: skip
    group = {"pattern": HOSTILE, "count": HOSTILE, "parameters": None}
    inventory = {"known": True, "source": HOSTILE, "linear_count": HOSTILE, "groups": [group]}
    answers = Review(
        reviews.analysis(
            found, facts=fact, remote_code=code, already_quantized={"method": HOSTILE, "evidence": HOSTILE},
            inventory=inventory, questions=[HOSTILE],
        ),
        reviews.plan(found, rows=[row], patterns=[pattern]),
        reviews.command(
            shown=shown, remote_code=code, expected_files=[f"/{HOSTILE}"], holders=[{"gpu": HOSTILE, "pid": 1}]
        ),
        reviews.environment(found, interpreter={HOSTILE: HOSTILE}, env_vars={HOSTILE: HOSTILE}),
    )  # fmt: skip
    app = app_on(Desk(2, review=answers))
    async with app.run_test(size=(120, 40)) as pilot:
        await at(pilot, 1, 2)
        for key in ("1", "2", "3", "4"):
            await pilot.press(key)
            await ready(pilot)
            seen = ""
            for press in ("g", "enter", "escape", *["ctrl+d"] * 4, "enter", "escape", "G"):
                await pilot.press(press)
                seen += frame(app)
            assert r"[/x]\x1b]52;c;AA\x07[bold]" in seen, key
            assert not {char for char in seen if ord(char) < 32 or 127 <= ord(char) < 160} - {"\n"}
            assert "\u202e" not in seen
        await pilot.press("a")
        await pilot.pause()
        await pilot.press("G")
        assert r"[/x]\x1b]52;c;AA\x07[bold]" in frame(app)


async def test_help_says_what_this_is_and_names_every_key_of_the_screen() -> None:
    app = app_on(Desk(2))
    async with app.run_test(size=(120, 60)) as pilot:
        await at(pilot, 4, 2)
        screen = app.screen
        assert isinstance(screen, CommandScreen)
        await pilot.press("question_mark")
        await pilot.pause()
        text = frame(app)
        for action in screen.offered():
            assert action.label in text
            assert action.shown_key in text
        assert f"quark-tui command {reviews.JOB}" in text
        await pilot.press("escape")
        assert app.screen is screen


async def test_the_palette_finds_an_action_and_does_it() -> None:
    app = app_on(Desk(0))
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 2)
        await pilot.press("colon")
        await until(pilot, lambda: len(app.screen_stack) == 3, "the palette")
        await pilot.press(*"confirm")
        await until(pilot, lambda: "confirm the analysis  (c)" in frame(app), "the action")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, PlanScreen), "what the action does")


@pytest.mark.parametrize("step", STEPS.values())
async def test_ascii_mode_draws_nothing_but_ascii(step: int) -> None:
    """Asserted on what is written, after the filter, by tests/terminal; here the words that stand for glyphs."""
    from quark_tui.ui.appearance import plain

    app = QuarkTui(Desk(1), "box", None, replace(plain(), ascii_only=True))  # type: ignore[arg-type]
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, step, 1)
        rail = frame(app).splitlines()[2]
        assert "[ok] Environment" in rail or step == 1
        assert "[>>]" in rail
        assert len(rail) <= 80
