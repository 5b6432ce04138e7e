"""What the screens ask of the engine: one object, so that a test can stand another one in its place.

Every call may take seconds and is made off the event loop. Use cases are imported when they are called: Home needs few.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from quark_tui.core.answer import Answer
from quark_tui.core.logtext import Line
from quark_tui.ui.listing import Listing

if TYPE_CHECKING:
    from quark_tui.core.command import Command
    from quark_tui.engine.follow_up import FollowUp
    from quark_tui.engine.progress import LogReader
    from quark_tui.engine.review import Review

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Sight:
    """One look at a run: the answer of ``status``, log lines that are new since the last look, the open last line.

    ``folder`` is the run's own, "" before any run. ``stops``: names of signals that were sent to it, oldest first.
    ``begun``: the lines are of another log than before; ``remark`` says why. ``log_problem``: what is wrong with it.
    """

    status: Answer
    lines: tuple[Line, ...] = ()
    pending: str = ""
    folder: str = ""
    command: Command | None = None
    stops: tuple[str, ...] = ()
    begun: bool = False
    remark: str = ""
    log_problem: str = ""


class RunWatch(Protocol):
    """Looks at one run again and again, reading only what is new of its log."""

    def look(self) -> Sight: ...


class Services(Protocol):
    """``path`` and ``job`` are absolute. What cannot be answered raises WrongQuestion, OSError or ArtifactProblem."""

    def listing(self) -> Listing: ...

    def what(self, path: str) -> str: ...

    def truths(self, path: str) -> Mapping[str, Any]: ...

    def status(self, path: str) -> Answer: ...

    def review(self, job: str) -> Review: ...

    def change(self, job: str, sets: Pairs, reasons: Pairs) -> Answer: ...

    def confirm(self, job: str, checkpoint: str, digest: str, corrections: Pairs) -> Answer: ...

    def approve(self, job: str, digest: str) -> Answer: ...

    def watch(self, path: str) -> RunWatch: ...

    def stop(self, path: str, signal: str, yes: bool) -> Answer: ...

    def verify(self, path: str) -> Answer: ...

    def accept(self, job: str, digest: str) -> Answer: ...

    def follow_ups(self, job: str) -> Sequence[FollowUp]: ...

    def begin(self, job: str, code: str) -> Answer: ...

    def new(self, directory: str, model: str) -> Answer: ...

    def interpreter(self) -> str: ...


class Engine:
    """The real thing. ``environ`` is the environment as it was before this program set any variable of its own: runs
    inherit it, and approvals cover it. ``path`` is what was named on the command line."""

    def __init__(self, path: str | None, environ: Mapping[str, str]) -> None:
        self._path, self._environ = path, environ

    def listing(self) -> Listing:
        from quark_tui.ui.listing import read_listing

        return read_listing(self._path)

    def what(self, path: str) -> str:
        from quark_tui.engine.locate import what_is

        return what_is(path)

    def truths(self, path: str) -> Mapping[str, Any]:
        from quark_tui.engine.truths import truths

        return truths(path)

    def status(self, path: str) -> Answer:
        from quark_tui.engine.status import status

        return status(path)

    def review(self, job: str) -> Review:
        from quark_tui.engine.review import review

        return review(job, self._environ)

    def change(self, job: str, sets: Pairs, reasons: Pairs) -> Answer:
        from quark_tui.engine.plan import plan

        return plan(job, sets, (), (), reasons, self._environ)

    def confirm(self, job: str, checkpoint: str, digest: str, corrections: Pairs) -> Answer:
        from quark_tui.engine.confirm import confirm

        return confirm(job, checkpoint, digest, corrections, "screen", self._environ)

    def approve(self, job: str, digest: str) -> Answer:
        from quark_tui.engine.run import run

        return run(job, digest, "screen", False, self._environ)

    def watch(self, path: str) -> RunWatch:
        return _Watch(path)

    def stop(self, path: str, signal: str, yes: bool) -> Answer:
        from quark_tui.engine.stop import stop

        return stop(path, signal, yes)

    def verify(self, path: str) -> Answer:
        from quark_tui.engine.verdict import verify

        return verify(path, self._environ)

    def accept(self, job: str, digest: str) -> Answer:
        from quark_tui.engine.verdict import accept

        return accept(job, digest, "screen", self._environ)

    def follow_ups(self, job: str) -> Sequence[FollowUp]:
        from quark_tui.engine.follow_up import follow_ups

        return follow_ups(job)

    def begin(self, job: str, code: str) -> Answer:
        from quark_tui.engine.follow_up import begin

        return begin(job, code, self._environ)

    def new(self, directory: str, model: str) -> Answer:
        from quark_tui.engine.new import new

        return new(directory, "ptq", model, None, None, (), self._environ)

    def interpreter(self) -> str:
        """The interpreter that a new job gets, and what says so; in words where there is none."""
        from quark_tui.io.target import TargetProblem, find_interpreter

        try:
            path, because = find_interpreter(self._environ)
        except TargetProblem as problem:
            return f"none: {problem.message}"
        return f"{path} (by {because})"


class _Watch:
    """The newest run of a job is found anew at each look: another one may have been started from elsewhere.

    While a run is over and its records are what they were, a look costs a few small reads and gives the same sight.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = ""
        self._reader: LogReader | None = None
        self._log: tuple[int, int, int] | None = None
        self._over: tuple[object, Sight] | None = None

    def look(self) -> Sight:
        from quark_tui.engine.locate import locate
        from quark_tui.engine.status import status

        place = locate(self._path)
        records = (place.newest, place.run_ids, place.job, place.job_problem, _times(place.job_path))
        if self._over is not None and self._over[0] == records:
            return self._over[1]
        newest = place.newest
        begun, remark = self._open(newest.folder if newest else "")
        answer = status(self._path, log=self._reader)
        if self._reader is not None and answer.body["verdict"] == "unreadable":
            self._reader.read()  # status did not, but the log is there to be shown
        lines, pending = self._reader.take() if self._reader is not None else ([], "")
        sight = Sight(
            answer,
            tuple(lines),
            pending,
            self._folder,
            _command(newest.run) if newest else None,
            tuple(str(record.get("signal")) for record in newest.stops) if newest else (),
            begun,
            remark,
            self._reader.problem if self._reader is not None else "",
        )
        over = answer.body["liveness"] != "alive"
        self._over = (records, replace(sight, lines=(), begun=False, remark="")) if over else None
        return sight

    def _open(self, folder: str) -> tuple[bool, str]:
        """Begin with another log where it is one: whether it is, and why in words when the run is the same."""
        from quark_tui.engine.progress import LogReader

        before, self._log = self._log, _identity(f"{folder}/output.log") if folder else None
        if folder != self._folder:
            self._folder, self._reader = folder, LogReader(folder) if folder else None
            return True, ""
        if before and self._log and (self._log[:2] != before[:2] or self._log[2] < before[2]):
            self._reader = LogReader(folder)
            what = "replaced" if self._log[:2] != before[:2] else "cut"
            return True, f"output.log was {what} while it was read: it is shown from its beginning again"
        self._log = self._log or before
        return False, ""


def _identity(path: str) -> tuple[int, int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino, info.st_size


def _times(job: str | None) -> tuple[tuple[int, int] | None, ...]:
    """What tells one state of a job's confirmed files from another."""
    found: list[tuple[int, int] | None] = []
    for name in ("model_analysis.json", "quant_plan.json") if job else ():
        try:
            info = os.stat(f"{job}/{name}")
        except OSError:
            found.append(None)
        else:
            found.append((info.st_ino, info.st_mtime_ns))
    return tuple(found)


def _command(run: Mapping[str, Any]) -> Command | None:
    from quark_tui.core.command import Command

    try:
        return Command.from_json(run["commands"][0])
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None
