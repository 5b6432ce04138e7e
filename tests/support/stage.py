"""The app with hand-made answers behind its screens, for tests in a terminal: ``python -m tests.support.stage SCENE``.

Every text that comes from elsewhere is hostile. SCENE is ``fresh`` (Checkpoint 3 waits), ``alive``, ``ended``, or
``real`` for the engine itself; what follows are the words of ``quark-tui``. SIGUSR1 makes it meet a defect of ours.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.command import Command
from quark_tui.core.finding import Finding, block
from quark_tui.core.ptq.follow_up import FollowUp
from quark_tui.engine.review import Review
from quark_tui.ui.services import Engine, Sight
from tests.support import results, reviews, sights

#: What would act on a terminal, would be taken for markup, or would vanish.
ESCAPES = "[/x][bold]\x1b]52;c;QUJD\x07\x1b]0;title\x1b\\\x1b[2J\x00\x9b2J\u202eאב\udcff"
#: A name that no screen has room for; each of its places can be told from the others.
LONG = "-".join(f"{number:03}" for number in range(75))
HOSTILE = f"{ESCAPES}{LONG}"
LOG = (
    sights.CALIBRATING
    + ESCAPES.encode("utf-8", "surrogateescape")
    + b"\n"
    + LONG.encode()
    + b"\r\x1b[3A\x1b[?1049l\x1b]52;c;QUJD\x07[/x]\n\xff\xfe\x00 no text\n"
)
FOUND = Finding("medium", "hostile", f"m {HOSTILE}", f"e {HOSTILE}", f"n {HOSTILE}")
COMMAND = Command(
    ("/env/bin/quark-cli", "torch-llm-ptq", "--model_dir", f"/models/{HOSTILE}", "--dataset", LONG, "--last", "[/x]"),
    f"/jobs/{ESCAPES}",
    {f"SET_{ESCAPES}": HOSTILE},
    (f"UNSET_{ESCAPES}",),
    purpose=ESCAPES,
    writes=(f"/out/{HOSTILE}",),
)


def hostile(value: Any) -> Any:
    """``value`` with what is text in it made hostile; keys, numbers and what decides how it is shown stay."""
    if isinstance(value, Mapping):
        return {key: one if key in _WORDS else hostile(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [hostile(one) for one in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) and value else value


#: Keys whose values are words of our own, not foreign text.
_WORDS = frozenset(
    (
        "kind", "state", "verdict", "liveness", "signal", "analysis_status", "digest", "analysis_digest", "code",
        "scope", "key", "confirmed_at", "via", "gpu_verdict", "mode", "against", "updated_at", "started_at",
    )
)  # fmt: skip


def answer(made: Answer, **more: Any) -> Answer:
    return Answer(made.command, {**hostile(made.body), **more}, (*made.findings, FOUND), made.exit)


def watched(scene: str) -> Sight:
    """A look at a run whose log, names and command are hostile."""
    seen = sights.sight(LOG, findings=(FOUND,)) if scene == "alive" else sights.verified()
    log = sights.sight(LOG)
    body = {
        **seen.status.body,
        "liveness_evidence": HOSTILE,
        "process": {**seen.status.body["process"], "host": HOSTILE},
    }
    told = Answer("status", {**body, "tasks": [_task(one) for one in body["tasks"]]}, (FOUND,), seen.status.exit)
    return replace(seen, status=told, command=COMMAND, lines=log.lines, folder=f"/runs/{HOSTILE}")


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    more = {name: f"{task[name] or ''}{ESCAPES}" for name in ("title", "detail", "reason")}
    return {**task, **more, "children": [_task(one) for one in task["children"]]}


class _Once:
    def __init__(self, scene: str) -> None:
        self._seen = watched(scene)

    def look(self) -> Sight:
        seen, self._seen = self._seen, replace(self._seen, lines=(), remark="", begun=False)
        return seen


class Stage(Engine):
    """Answers of the scene; Home lists what is really there."""

    scene = "fresh"

    def truths(self, path: str) -> Mapping[str, Any]:
        return {
            "verdict": ESCAPES, "liveness": HOSTILE, "liveness_evidence": HOSTILE, "fresh_seconds": 3.0,
            "stage": HOSTILE, "pid": 7,
        }  # fmt: skip

    def status(self, path: str) -> Answer:
        more: dict[str, Any] = {"model": HOSTILE}
        if self.scene == "ended":
            return answer(results.status(), **more, tasks=watched("ended").status.body["tasks"])
        if self.scene == "alive":
            return Answer("status", {**watched("alive").status.body, **more}, (FOUND,))
        tasks = [_task(one) for one in sights.sight(liveness=None, verdict="not_started").status.body["tasks"]]
        return answer(results.status("not_started"), **more, liveness=None, tasks=tasks)

    def review(self, job: str) -> Review:
        shown = reviews.review(2)
        command = reviews.command(FOUND, shown=COMMAND)
        body = {**hostile(command.body), "commands": command.body["commands"], "estimate": command.body["estimate"]}
        environment = hostile(shown.environment.body)
        plan = answer(shown.plan)
        return Review(
            answer(shown.analysis),
            plan,
            Answer("command", body, (FOUND,)),
            Answer("environment", environment, (FOUND,)),
        )

    def change(self, job: str, sets: Any, reasons: Any) -> Answer:
        return answer(reviews.plan(), refused=True)

    def approve(self, job: str, digest: str) -> Answer:
        return Answer(
            "run", {"pid": None, "run_folder": None}, (block("digest_differs", HOSTILE, HOSTILE, HOSTILE),), 1
        )

    def watch(self, path: str) -> Any:
        return _Once(self.scene)

    def stop(self, path: str, signal: str, yes: bool) -> Answer:
        body = {
            "signal": signal, "targets": [{"pid": 7, "command": HOSTILE}], "sent": False, "next": HOSTILE,
            "remains": [{"path": HOSTILE, "size": 7}],
        }  # fmt: skip
        return Answer("stop", body, (FOUND,))

    def verify(self, path: str) -> Answer:
        return answer(results.verified("partial", ("count_matches",), FOUND))

    def accept(self, job: str, digest: str) -> Answer:
        return Answer("accept", {"accepted_at": None}, (block("digest_differs", HOSTILE, HOSTILE, HOSTILE),), 1)

    def follow_ups(self, job: str) -> tuple[FollowUp, ...]:
        text = HOSTILE
        return (
            FollowUp("a", text, "plan", text, ((text, text),)),
            FollowUp("b", text, "command", text, (), False, text),
        )

    def new(self, directory: str, model: str) -> Answer:
        return Answer("new", {"job": None}, (block("job_exists", HOSTILE, HOSTILE, HOSTILE),), 1)

    def interpreter(self) -> str:
        return HOSTILE


def _defect() -> None:
    raise ZeroDivisionError(HOSTILE)


def main() -> int:
    from quark_tui import cli
    from quark_tui.ui import app

    Stage.scene = sys.argv[1]
    if Stage.scene != "real":
        app.Engine = Stage  # type: ignore[misc]
    run = app._run

    async def staged(own: app.QuarkTui, mouse: bool) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, own.call_later, _defect)
        await run(own, mouse)

    app._run = staged
    return cli.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
