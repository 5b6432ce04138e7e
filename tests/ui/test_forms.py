"""What breaks if this is wrong: a job is made that nobody asked for, or a row gets another value than was typed."""

from __future__ import annotations

import shlex
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import ModalScreen

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding, block
from quark_tui.ui.app import QuarkTui
from quark_tui.ui.modals.edit_row import EditRowModal
from quark_tui.ui.modals.new_job import NewJobModal
from tests.support.results import HOSTILE, Fake, box, refused, until

from .conftest import frame, is_snapshot

SIZES = [(80, 24), (120, 40)]
MADE = Answer("new", {"job": "/jobs/demo"})
ROW = {"key": "global_scheme", "value": "fp8", "default": None, "reason": "FP8 e4m3, per tensor", "changed": True}
SCHEMES = [
    {"name": name, "summary": f"{name} weights", "advice": "runs widely", "exportable": exportable}
    for name, exportable in (("int4_wo_64", True), ("fp8", True), ("mxfp4", True), ("mx6", False), ("int8", None))
]


@asynccontextmanager
async def shown(modal: ModalScreen[Any], fake: Fake, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Pilot[None]]:
    """``modal`` over Home; what it gave back is in ``pilot.given``."""
    app = QuarkTui(fake, "gpu-box-7")
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: frame(app).splitlines()[-1].endswith(" ready"), "Home is ready")
        pilot.given = []  # type: ignore[attr-defined]
        app.push_screen(modal, pilot.given.append)  # type: ignore[attr-defined]
        await until(pilot, lambda: app.screen is modal and modal.is_mounted, "the form is shown")
        await pilot.pause()
        yield pilot


def text(pilot: Pilot[None]) -> str:
    return frame(pilot.app)  # type: ignore[arg-type]


def given(pilot: Pilot[None]) -> list[Any]:
    return pilot.given  # type: ignore[attr-defined,no-any-return]


async def typed(pilot: Pilot[None], words: str) -> None:
    await pilot.press(
        *({"/": "slash", "_": "underscore", " ": "space", "~": "tilde"}.get(char, char) for char in words)
    )


async def test_a_job_is_made_of_the_two_lines_and_opened() -> None:
    fake = Fake(new=MADE)
    async with shown(form := NewJobModal(fake, "", ""), fake) as pilot:
        await typed(pilot, "~/q")
        await pilot.press("enter")
        assert fake.calls == []
        await typed(pilot, "m/x")
        assert shlex.join(["quark-tui", "new", "~/q", "--workflow", "ptq", "--model", "m/x"]) in text(pilot)
        await until(pilot, lambda: "/env/bin/python (by PATH)" in text(pilot), "the interpreter is named")
        await pilot.press("enter")
        await until(pilot, lambda: given(pilot), "the job is made")
        assert fake.calls == [("new", "~/q", "m/x")]
        assert given(pilot) == ["/jobs/demo"]
        assert not form.is_current


@pytest.mark.parametrize("keys", [("escape",), ("tab", "escape")])
async def test_closing_makes_nothing(keys: tuple[str, ...]) -> None:
    fake = Fake(new=MADE)
    async with shown(NewJobModal(fake, "/jobs/x", "/models/y"), fake) as pilot:
        await typed(pilot, "q")
        await pilot.press(*keys)
        await until(pilot, lambda: given(pilot), "the form is gone")
        assert given(pilot) == [None]
        assert fake.calls == []


async def test_an_empty_line_is_asked_for() -> None:
    fake = Fake(new=MADE)
    async with shown(NewJobModal(fake, "", "/models/y"), fake) as pilot:
        await pilot.press("tab", "enter")
        assert "both lines are needed" in text(pilot)
        assert fake.calls == []


async def test_two_presses_of_enter_make_one_job() -> None:
    gate = threading.Event()

    def slow(*_: str) -> Answer:
        gate.wait(30)
        return MADE

    fake = Fake(new=slow)
    async with shown(NewJobModal(fake, "/jobs/x", "/models/y"), fake) as pilot:
        await pilot.press("tab", "enter", "enter", "enter")
        assert "a moment" in text(pilot)
        gate.set()
        await until(pilot, lambda: given(pilot), "the job is made")
        assert fake.calls == [("new", "/jobs/x", "/models/y")]


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_a_refusal_stands_below_what_was_typed(size: tuple[int, int]) -> None:
    fake = Fake(new=[refused("new", "job_exists", job=None, path="/jobs/x"), MADE])
    async with shown(NewJobModal(fake, "/jobs/x", "/models/y"), fake, size) as pilot:
        await until(pilot, lambda: "/env/bin/python" in text(pilot), "the interpreter is named")
        await pilot.press("tab", "enter")
        await until(pilot, lambda: "nothing was made" in text(pilot), "the refusal is shown")
        is_snapshot(f"new-job-refused-{size[0]}x{size[1]}", box(pilot.app, text(pilot)))
        assert given(pilot) == []
        await pilot.press("enter")
        await until(pilot, lambda: given(pilot), "the second try is made")
        assert given(pilot) == ["/jobs/demo"]


async def test_a_wrong_question_is_a_sentence_and_the_form_stays() -> None:
    fake = Fake(new=WrongQuestion(f"quark-tui: {HOSTILE}: no such model directory"), interpreter=f"/x/{HOSTILE}")
    async with shown(NewJobModal(fake, "/jobs/x", "/models/y"), fake) as pilot:
        await pilot.press("tab", "enter")
        await until(pilot, lambda: "nothing was made" in text(pilot), "the sentence is shown")
        assert r"[/x]\x1b]52;c;AA\x07[bold]\x00" in text(pilot)
        assert text(pilot).replace("\n", "").isprintable()
        assert given(pilot) == []


async def test_a_job_that_something_blocks_is_made_said_and_opened() -> None:
    finding = block("model_unreadable", "config.json names no architecture", "config.json", "see to the model")
    fake = Fake(new=Answer("new", {"job": "/jobs/demo"}, (finding,), 1))
    async with shown(NewJobModal(fake, "/jobs/x", "/models/y"), fake) as pilot:
        await pilot.press("tab", "enter")
        await until(pilot, lambda: "the job was made" in text(pilot), "what blocks is shown")
        for part in ("config.json names no architecture", "next: see to the model", "open it"):
            assert part in text(pilot)
        assert given(pilot) == []
        await pilot.press("enter")
        await until(pilot, lambda: given(pilot), "the job is opened")
        assert given(pilot) == ["/jobs/demo"]
        assert len(fake.calls) == 1


async def test_what_was_given_is_shown_safe_and_taken_as_it_is() -> None:
    """A path that cannot be shown as it is still means that path, until somebody changes what is shown."""
    fake = Fake(new=MADE)
    path = f"/jobs/{HOSTILE}"
    async with shown(form := NewJobModal(fake, path, HOSTILE), fake) as pilot:
        assert text(pilot).replace("\n", "").isprintable()
        await pilot.press("tab", "enter")
        await until(pilot, lambda: fake.calls, "the job is made")
        assert fake.calls == [("new", path, HOSTILE)]
        form._model.input.value = "a\x1b]52;c;AA\x07b"
        assert form._model.value == r"a\x1b]52;c;AA\x07b"


# A row of the plan.


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_schemes_of_the_installed_quark_can_be_chosen(size: tuple[int, int]) -> None:
    fake = Fake()
    async with shown(EditRowModal(ROW, SCHEMES), fake, size) as pilot:
        is_snapshot(f"edit-row-schemes-{size[0]}x{size[1]}", box(pilot.app, text(pilot)))
        await pilot.press("down", "j")
        assert "take this scheme" in text(pilot)
        await pilot.press("enter")
        assert given(pilot) == []
        await pilot.press("tab", "tab")
        await typed(pilot, "smaller")
        await pilot.press("enter")
        await until(pilot, lambda: given(pilot), "the pair is given back")
        assert given(pilot) == [("mxfp4", "smaller")]


async def test_what_is_typed_takes_the_place_of_the_value() -> None:
    fake = Fake()
    row = {**ROW, "key": "exclude_layers", "value": ["lm_head"]}
    async with shown(EditRowModal(row, SCHEMES), fake) as pilot:
        assert '["lm_head"]' in text(pilot)
        assert "mxfp4" not in text(pilot)
        await typed(pilot, "template")
        await pilot.press("enter", "enter")
        await until(pilot, lambda: given(pilot), "the pair is given back")
        assert given(pilot) == [("template", "")]


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_a_refused_value_stands_there_again_with_the_reason(size: tuple[int, int]) -> None:
    evidence = "amd-quark 0.12: 27 schemes, names are exact; " * 8
    why = block("scheme_unknown", "the scheme is not one of the installed Quark: nope", evidence, "choose one of: fp8")
    fake = Fake()
    async with shown(EditRowModal(ROW, SCHEMES, "nope", "because", (why,)), fake, size) as pilot:
        is_snapshot(f"edit-row-refused-{size[0]}x{size[1]}", box(pilot.app, text(pilot)))
        for part in ("nope", "because", "the scheme is not one of", "refused: nothing was changed", "esc close"):
            assert part in text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: given(pilot), "the pair is given back")
        assert given(pilot) == [("nope", "because")]


async def test_closing_changes_nothing() -> None:
    fake = Fake()
    async with shown(EditRowModal(ROW, SCHEMES), fake) as pilot:
        await pilot.press("x", "escape")
        await until(pilot, lambda: given(pilot), "the form is gone")
        assert given(pilot) == [None]


async def test_hostile_words_of_a_plan_draw_nothing() -> None:
    row = {"key": HOSTILE, "value": [HOSTILE], "default": HOSTILE, "reason": HOSTILE, "changed": True}
    bad = Finding("block", "x", HOSTILE, HOSTILE, HOSTILE)
    fake = Fake()
    for decision in (row, {**ROW, "value": HOSTILE, "reason": HOSTILE}):
        scheme = {"name": HOSTILE, "summary": HOSTILE, "advice": HOSTILE, "exportable": True}
        async with shown(EditRowModal(decision, [scheme], HOSTILE, HOSTILE, (bad,)), fake) as pilot:
            await pilot.press("down")
            assert text(pilot).replace("\n", "").isprintable()
            assert len(text(pilot).splitlines()) == 24
