"""What breaks if this is wrong: a result is accepted that nobody saw, or a failure looks like a success."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot

from quark_tui.core.answer import Answer
from quark_tui.core.finding import Finding
from quark_tui.ui.app import QuarkTui
from quark_tui.ui.job import JobView
from quark_tui.ui.modals.accept import AcceptModal
from quark_tui.ui.modals.follow_up import FollowUpModal
from quark_tui.ui.modals.whole import WholeModal
from quark_tui.ui.screens.result import ResultScreen
from tests.support.results import (
    DIGEST,
    HOSTILE,
    JOB,
    Fake,
    accepted,
    box,
    failed,
    failure,
    follow_ups,
    number,
    refused,
    status,
    until,
    verified,
)

from .conftest import frame, is_snapshot

SIZES = [(80, 24), (120, 40)]
TAKEN = Answer("accept", {"accepted_at": "2026-01-02T03:04:05Z", "via": "screen", "digest": DIGEST})
PARTIAL = ("tokenizer_present",)


@asynccontextmanager
async def opened(
    fake: Fake, size: tuple[int, int] = (80, 24), path: str = JOB, **options: Any
) -> AsyncIterator[Pilot[None]]:
    """The result of a job, looked at; the steps that are gone to are in ``pilot.steps``."""
    app = QuarkTui(fake, "gpu-box-7", **options)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        pilot.steps = []  # type: ignore[attr-defined]
        app.show_step = lambda job, step: pilot.steps.append(step)  # type: ignore[method-assign,attr-defined]
        app.open(JobView(path, "SmolLM2-135M", "ptq", status()), 6)
        await until(pilot, lambda: isinstance(app.screen, ResultScreen), "the result is shown")
        await ready(pilot)
        await pilot.pause()
        yield pilot


async def ready(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: frame(pilot.app).splitlines()[-1].endswith(" ready"), "the screen is ready")  # type: ignore[arg-type]


async def modal(pilot: Pilot[None], kind: type) -> Any:
    await until(pilot, lambda: isinstance(pilot.app.screen, kind), f"{kind.__name__} is shown")
    await pilot.pause()
    return pilot.app.screen


def screen(pilot: Pilot[None]) -> ResultScreen:
    found = pilot.app.screen_stack[-1] if isinstance(pilot.app.screen, ResultScreen) else pilot.app.screen_stack[-2]
    assert isinstance(found, ResultScreen)
    return found


def fake_of(name: str) -> Fake:
    if name == "partial":
        return Fake(status=status("partial"), verify=verified("partial", PARTIAL))
    if name == "failed":
        told, output = failed()
        return Fake(status=told, verify=output, follow_ups=follow_ups())
    if name == "accepted":
        return Fake(status=status(accepted=accepted()))
    return Fake(follow_ups=follow_ups())


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", ["verified", "partial", "failed", "accepted"])
async def test_a_result_looks_as_it_should(name: str, size: tuple[int, int]) -> None:
    """P-98, P-99: each verdict with its checks; a failed run begins with its class."""
    async with opened(fake_of(name), size) as pilot:
        is_snapshot(f"result-{name}-{size[0]}x{size[1]}", frame(pilot.app), pilot.app)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("key", "kind"), [("a", AcceptModal), ("b", FollowUpModal)])
async def test_its_questions_look_as_they_should(key: str, kind: type, size: tuple[int, int]) -> None:
    """P-98: accept, or choose a bounded follow-up."""
    fake = Fake(status=status("partial"), verify=verified("partial", PARTIAL), follow_ups=follow_ups())
    async with opened(fake, size) as pilot:
        await pilot.press(key)
        await modal(pilot, kind)
        name = "accept" if kind is AcceptModal else "follow-up"
        shown = box(pilot.app, frame(pilot.app))  # type: ignore[arg-type]
        is_snapshot(f"result-{name}-{size[0]}x{size[1]}", shown)


async def test_accepting_takes_exactly_the_digest_that_was_shown_and_only_once() -> None:
    """P-98: one acceptance, of what was seen."""
    fake = Fake(status=[status(), status(accepted=accepted())], accept=TAKEN)
    async with opened(fake) as pilot:
        await pilot.press("a", "a")
        shown = await modal(pilot, AcceptModal)
        assert fake.calls == []
        # Whatever is looked at meanwhile: the digest is that of the question.
        screen(pilot).job.verified = verified(digest="0" * 64)
        assert "6f2c 91d0" in frame(pilot.app)  # type: ignore[arg-type]
        shown.act("accept.yes")
        shown.act("accept.yes")
        await pilot.press("A", "A", "a")
        await until(pilot, lambda: fake.calls, "it is accepted")
        await ready(pilot)
        await pilot.press("a", "A")
        assert fake.calls == [("accept", JOB, DIGEST)]
        assert isinstance(pilot.app.screen, ResultScreen)
        text = frame(pilot.app)  # type: ignore[arg-type]
        assert "accepted 2026-01-02T03:04:05Z via screen" in text
        assert "already" in text, "why it cannot be accepted again"


@pytest.mark.parametrize("key", ["enter", "escape", "q"])
async def test_cancel_has_the_focus(key: str) -> None:
    """P-98: nothing is accepted by the key that is pressed by habit."""
    fake = Fake(accept=TAKEN)
    async with opened(fake) as pilot:
        await pilot.press("a")
        await modal(pilot, AcceptModal)
        await pilot.press(key)
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultScreen), "the question is gone")
        await pilot.pause()
        assert "nothing was accepted" in frame(pilot.app)  # type: ignore[arg-type]
        assert fake.calls == []


async def test_what_was_not_on_the_screen_cannot_be_accepted() -> None:
    """P-98: neither before the question is painted nor before all of it was in view."""
    wrong = [check["code"] for check in verified().body["checks"]]
    fake = Fake(status=status("partial"), verify=verified("partial", wrong), accept=TAKEN)
    async with opened(fake) as pilot:
        await pilot.press("a")
        question = await modal(pilot, AcceptModal)
        assert "have not been on the screen yet" in question.blocked("accept.yes")
        await pilot.press("A")
        assert isinstance(pilot.app.screen, AcceptModal)
        await pilot.press(*["ctrl+d"] * 4)
        await until(pilot, lambda: not question.blocked("accept.yes"), "all of it was in view")
        await pilot.press("g", "A")
        await until(pilot, lambda: fake.calls, "it is accepted")
    assert AcceptModal((("x", "text"),), DIGEST).blocked("accept.yes") == "it has not been on the screen yet"


async def test_while_something_is_changed_nothing_else_is_begun() -> None:
    """P-98: neither a second acceptance nor a second list of follow-ups."""
    gate = threading.Event()

    def slow(value: Any) -> Callable[..., Any]:
        return lambda *_: gate.wait(30) and value

    fake = Fake(accept=slow(TAKEN), follow_ups=slow(follow_ups()), status=[status(), status(accepted=accepted())])
    async with opened(fake) as pilot:
        await pilot.press("b", "b", "a")
        assert "looking at what can follow: a moment" in frame(pilot.app)  # type: ignore[arg-type]
        gate.set()
        await modal(pilot, FollowUpModal)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResultScreen), "there was one list")
        await ready(pilot)
        gate.clear()
        await pilot.press("a")
        await modal(pilot, AcceptModal)
        await pilot.press("A", "a", "b")
        assert isinstance(pilot.app.screen, ResultScreen)
        assert "accepting: a moment" in frame(pilot.app)  # type: ignore[arg-type]
        gate.set()
        await ready(pilot)
        assert fake.calls == [("accept", JOB, DIGEST)]


async def test_a_refused_acceptance_says_why_and_accepts_nothing() -> None:
    """P-98: a result that is not what the digest stands for is not accepted."""
    fake = Fake(accept=refused("accept", accepted_at=None, via=None))
    async with opened(fake) as pilot:
        await pilot.press("a")
        await modal(pilot, AcceptModal)
        await pilot.press("A")
        await until(pilot, lambda: "not accepted" in frame(pilot.app), "the refusal is shown")  # type: ignore[arg-type]
        text = frame(pilot.app)  # type: ignore[arg-type]
        assert "blocks: the result is not what this digest stands for" in text
        assert "a → b" in text
        assert "next: look" in text
        assert "accepted 20" not in text


@pytest.mark.parametrize(
    ("told", "output", "reason"),
    [
        (status("failed"), verified("failed"), "only a verified or partial one"),
        (status("unknown"), verified("unknown"), "only a verified or partial one"),
        (status(accepted=accepted()), verified(), "already"),
        (status(scope="run"), verified(), "a result is accepted on its job"),
        (status("running", liveness="alive"), verified("unknown", digest=None), "still going"),
    ],
)
async def test_what_cannot_be_accepted_stays_visible_with_its_reason(told: Answer, output: Answer, reason: str) -> None:
    """P-98, P-99: the key line says blocked, and the key says why."""
    async with opened(Fake(status=told, verify=output)) as pilot:
        assert "a accept (blocked)" in frame(pilot.app)  # type: ignore[arg-type]
        await pilot.press("a")
        assert reason in frame(pilot.app)  # type: ignore[arg-type]
        assert isinstance(pilot.app.screen, ResultScreen)


async def test_a_verified_output_of_a_run_that_failed_is_no_success() -> None:
    """P-99: the two are told apart in the first line."""
    told = status("failed", numbers={"exit_status": number(1)}, failure=failure())
    async with opened(Fake(status=told)) as pilot:
        first = frame(pilot.app).splitlines()[4]  # type: ignore[arg-type]
        assert first.startswith(" ✗ FAILED  the run; its output: verified against the plan")
        assert first.endswith("exit 1")


async def test_a_row_opens_its_evidence_whole() -> None:
    """P-96: what was observed, with where it was seen."""
    async with opened(fake_of("partial")) as pilot:
        await until(pilot, lambda: " ▸ ✗ false" in frame(pilot.app), "the row that is wrong is in view")  # type: ignore[arg-type]
        await pilot.press("enter")
        await modal(pilot, WholeModal)
        text = frame(pilot.app)  # type: ignore[arg-type]
        for part in ("false tokenizer present", "tokenizer_present is not so.", "seen: this", "next: export again"):
            assert part in text


async def test_looking_again_verifies_again_and_keeps_the_cursor() -> None:
    fake = Fake(verify=[verified(), verified("partial", PARTIAL)], status=[status(), status("partial")])
    async with opened(fake) as pilot:
        assert "VERIFIED" in frame(pilot.app)  # type: ignore[arg-type]
        await pilot.press("j", "j")
        before = screen(pilot)._list.list.current
        await pilot.press("r")
        await ready(pilot)
        assert "PARTIAL" in frame(pilot.app)  # type: ignore[arg-type]
        assert screen(pilot)._list.list.current == before == "check-headers_sound"


async def test_an_output_that_cannot_be_read_is_a_sentence_and_no_verdict() -> None:
    """P-99: unknown is a word; nothing that was seen before stands for it."""
    problem = PermissionError(13, "Permission denied", f"/jobs/{HOSTILE}")
    async with opened(Fake(verify=problem)) as pilot:
        text = frame(pilot.app)  # type: ignore[arg-type]
        assert "? UNKNOWN" in text
        assert "VERIFIED" not in text
        await pilot.press("a")
        assert "could not be judged" in frame(pilot.app)  # type: ignore[arg-type]
        assert isinstance(pilot.app.screen, ResultScreen)


async def test_a_look_that_fails_takes_back_what_was_seen_before() -> None:
    """P-99: an older verdict does not stand for what is there now."""
    fake = Fake(verify=[verified(), PermissionError(13, "Permission denied", "/jobs/demo/out")], accept=TAKEN)
    async with opened(fake) as pilot:
        await pilot.press("r")
        await ready(pilot)
        assert "? UNKNOWN  /jobs/demo/out: Permission denied" in frame(pilot.app)  # type: ignore[arg-type]
        assert "210 of 210" not in frame(pilot.app)  # type: ignore[arg-type]
        await pilot.press("a")
        assert isinstance(pilot.app.screen, ResultScreen)


async def test_a_follow_up_begins_once_and_leads_to_its_checkpoint() -> None:
    """P-98: the choice under the cursor, and the step that it goes back to."""
    begun = Answer("follow_up", {"checkpoint": "command", "code": "run_again"})
    fake = Fake(follow_ups=follow_ups(), begin=begun)
    async with opened(fake) as pilot:
        await pilot.press("b", "b")
        choices = await modal(pilot, FollowUpModal)
        await pilot.press("j")
        choices.act("modal.choose")
        choices.act("modal.choose")
        await until(pilot, lambda: pilot.steps, "the step is shown")  # type: ignore[attr-defined]
        assert fake.calls == [("begin", JOB, "run_again")]
        assert pilot.steps == [4]  # type: ignore[attr-defined]
        job = screen(pilot).job
        assert job.verified is None
        assert job.review is None


async def test_a_follow_up_that_may_not_begin_says_why() -> None:
    """P-98: every choice stays visible with its reason."""
    fake = Fake(follow_ups=follow_ups(False, f"the result was accepted {HOSTILE}"))
    async with opened(fake, (120, 40)) as pilot:
        await pilot.press("b")
        await modal(pilot, FollowUpModal)
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, FollowUpModal)
        assert frame(pilot.app).count("the result was accepted") == 2  # type: ignore[arg-type]
        assert fake.calls == []


async def test_a_refused_follow_up_says_why_and_stays() -> None:
    fake = Fake(follow_ups=follow_ups(), begin=refused("follow_up", "already_running", checkpoint=None))
    async with opened(fake) as pilot:
        await pilot.press("b")
        await modal(pilot, FollowUpModal)
        await pilot.press("enter")
        await until(pilot, lambda: "not begun" in frame(pilot.app), "the refusal is shown")  # type: ignore[arg-type]
        assert pilot.steps == []  # type: ignore[attr-defined]
        assert screen(pilot).job.verified is not None


@pytest.mark.parametrize("key", ["l", "5"])
async def test_the_log_is_one_key_away(key: str) -> None:
    async with opened(Fake()) as pilot:
        await pilot.press(key)
        assert pilot.steps == [5]  # type: ignore[attr-defined]


async def test_every_key_of_the_line_is_bound() -> None:
    """What the key line offers at 80×24 is done by that key."""
    async with opened(Fake(follow_ups=follow_ups())) as pilot:
        shown = frame(pilot.app).splitlines()[-1]  # type: ignore[arg-type]
        for words in ("a accept", "↵ whole", "b follow-up", "l log", "? help", "q quit"):
            assert words in shown
        bound = {key for key, _, _ in _bindings(screen(pilot))}
        assert {"a", "enter", "b", "l", "question_mark", "q", "r", "y", "escape"} <= bound


def _bindings(of: ResultScreen) -> list[tuple[str, str, str]]:
    return [(key, one.action, one.id or "") for key, found in of._bindings.key_to_bindings.items() for one in found]


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_hostile_words_draw_nothing(size: tuple[int, int]) -> None:
    bad = Finding("high", "x", HOSTILE, HOSTILE, HOSTILE)
    check = {"code": HOSTILE, "ok": False, "message": HOSTILE, "evidence": HOSTILE}
    files = [{"path": HOSTILE, "size": 1}]
    told = status(
        "failed", bad, failure=failure(kind=HOSTILE, message=HOSTILE, evidence=[HOSTILE], whole_error=HOSTILE),
        numbers={HOSTILE: number(HOSTILE, HOSTILE)},
    )  # fmt: skip
    output = verified("partial", (), bad, path=f"/{HOSTILE}", files=files, checks=[check])
    fake = Fake(status=told, verify=output, follow_ups=follow_ups(True), accept=refused("accept", accepted_at=None))
    async with opened(fake, size, path=f"/jobs/{HOSTILE}") as pilot:
        for keys in (
            (),
            ("enter",),
            ("escape", "a"),
            ("escape", "b"),
            ("escape", "j", "j", "j", "enter"),
            ("escape", "G"),
        ):
            await pilot.press(*keys)
            await pilot.pause()
            text = frame(pilot.app)  # type: ignore[arg-type]
            assert len(text.splitlines()) == size[1]
            assert text.replace("\n", "").isprintable()
        assert r"\x1b]52;c;AA\x07[bold]\x00" in text
