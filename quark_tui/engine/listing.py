"""One line a job or process, for lists: from plain JSON, run folders and locks alone, so that Home can afford it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quark_tui.core.run import Exit, verdict
from quark_tui.core.text import clean, redact
from quark_tui.io import jobs
from quark_tui.io.glance import Glance
from quark_tui.io.runs import process
from quark_tui.io.runs.reading import read_run

_DEPTH = 3
_PROGRAMS = {"quark-cli": "ptq", "quark-quant-perf": "quant-perf"}
#: Bytes at the end of a living run's log that a list looks at.
_TAIL = 64 << 10
#: Verdicts in the order in which they need a person.
ORDER = ("running", "not_started", "interrupted", "unknown", "failed", "unreadable", "partial", "succeeded")


def listed(roots: Sequence[str]) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """(rows, problems) of known jobs, of jobs up to three folders below each of ``roots`` (absolute), and of running
    quark processes that we may read; sorted by what needs a person. A problem is (path, why its record is unreadable).
    """
    rows: list[dict[str, Any]] = []
    problems: list[tuple[str, str]] = []
    own: set[int] = set()
    for path in dict.fromkeys([*sorted(jobs.known()), *(job for root in roots for job in _below(root, _DEPTH))]):
        try:
            row, pid = job_row(path)
        except (OSError, ValueError) as error:
            problems.append((path, clean(error)))
            row, pid = _row(path, "ptq", None, "unreadable", None, None, None, None), None
        rows.append(row)
        if pid is not None:
            own.add(pid)
    rows += [row for pid, row in _processes() if pid not in own]
    return in_order(rows), problems


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What needs a person first, then by path."""
    return sorted(rows, key=lambda row: (_rank(row["verdict"]), row["path"]))


def _rank(word: str) -> int:
    return ORDER.index(word) if word in ORDER else len(ORDER)


def _row(
    path: str, kind: str, model: str | None, word: str, liveness: str | None, stage: str | None,
    started: str | None, updated: str | None,
) -> dict[str, Any]:  # fmt: skip
    return {
        "path": path,
        "name": os.path.basename(path.rstrip("/")),
        "kind": kind,
        "model": model,
        "verdict": word,
        "liveness": liveness,
        "stage": stage,
        "started_at": started,
        "updated_at": updated,
    }


@dataclass(frozen=True, slots=True)
class _Stated:
    """What job.json says for lists; ``run`` is the run that ``word`` is about."""

    workflow: str
    model: str | None
    output: str | None
    word: str | None
    where: str | None
    updated_at: str | None
    run: str | None
    accepted: bool


def _stated(data: dict[str, Any]) -> _Stated:
    held = data.get("state")
    state: dict[str, Any] = held if isinstance(held, dict) else {}
    return _Stated(
        workflow=str(data.get("workflow", "ptq")),
        model=_text(data.get("model")),
        output=_text(data.get("output")),
        word=_text(state.get("word")),
        where=_text(state.get("where")),
        updated_at=_text(state.get("updated_at")),
        run=_text(state.get("run")),
        accepted=isinstance(data.get("accepted"), dict),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _started(run: dict[str, Any]) -> str | None:
    held = run.get("process")
    return _text(held.get("started_at")) if isinstance(held, dict) else None


_job_of = Glance(_stated, 64 << 20)
_start_of = Glance(_started, 64 << 20)
_exit_of = Glance(Exit.from_json)


def job_row(path: str) -> tuple[dict[str, Any], int | None]:
    """One job for a list, from plain JSON and the newest run's lock, and the pid of its living process.

    Headers are not read: an ended run with status 0 is named by what the last ``verify`` or ``accept`` recorded, else
    ``unknown``. Raises OSError or ValueError when job.json cannot be read.
    """
    job = _job_of(jobs.job_file(path))
    name = os.path.basename(job.model.rstrip("/")) if job.model is not None else None
    folder = newest_run(path)
    liveness, word, started, pid = None, "not_started", None, None
    where = "accepted" if job.accepted else job.where
    if folder is not None:
        run = os.path.basename(folder)
        recorded = job.word if job.run == run else None
        verified = {"succeeded": "verified", "partial": "partial", "failed": "failed"}.get(str(recorded))
        ended = _ended(folder)
        if ended is not None:
            liveness, word = verdict(ended, None, True, verified)
            with contextlib.suppress(OSError, ValueError):
                started = _start_of(f"{folder}/run.json")
        else:
            state = read_run(folder)
            ended = state.exit  # damaged a moment ago, or written since
            liveness, word = verdict(ended, state.liveness, _has_output(job, state.run), verified)
            started = (state.process or {}).get("started_at")
            pid = (state.process or {}).get("pid") if liveness == "alive" else None
        if word == "running":
            where = _progress(folder)
        elif word != "not_started":
            where = _after(job, recorded, word, ended)
    row = _row(path, job.workflow, name, word, liveness, where, _text(started), job.updated_at)
    return row, pid if isinstance(pid, int) else None


def newest_run(path: str) -> str | None:
    """The last of the job's run folders: their names sort by time."""
    with contextlib.suppress(OSError), os.scandir(f"{path}/.quark-tui/runs") as entries:
        name = max((entry.name for entry in entries if entry.is_dir()), default=None)
        return None if name is None else f"{path}/.quark-tui/runs/{name}"
    return None


def _ended(folder: str) -> Exit | None:
    """How the run ended, None where no sound record says so: then it has to be looked at closely."""
    with contextlib.suppress(OSError, ValueError):
        return _exit_of(f"{folder}/exit.json")
    return None


def _after(job: _Stated, recorded: str | None, word: str, ended: Exit | None) -> str | None:
    """Where a job stands whose run is over."""
    if recorded:
        return job.where
    if job.accepted:
        return "accepted"
    if job.word == "waits" and ended is not None and (job.updated_at or "") > ended.ended_at:
        return job.where  # its plan was changed since
    return "finished, to be verified" if word == "unknown" and ended is not None else None


def _progress(folder: str) -> str:
    """The step that the end of a living run's log tells, in words."""
    from quark_tui.core.logtext import Folder
    from quark_tui.core.ptq.phases import PhaseKey, Phases
    from quark_tui.io.log.tail import read_tail

    words: dict[PhaseKey | None, str] = {
        None: "started",
        "import": "importing Quark",
        "model": "loading the weights",
        "tokenizer": "loading the tokenizer",
        "calibration_data": "loading the calibration data",
        "replace": "replacing modules",
        "algorithm": "algorithm",
        "calibrate": "calibration",
        "freeze": "freezing",
        "export": "export",
        "evaluate": "evaluation",
    }
    folder_of_lines, phases = Folder(), Phases()
    lines = folder_of_lines.feed(read_tail(f"{folder}/output.log", _TAIL).data)
    phases.feed(lines, folder_of_lines.pending)
    told = phases.report()
    bar = told.progress
    counted = told.current is not None and bar is not None and bar.total is not None and bar.total >= bar.done
    return words[told.current] + (f" {bar.done} of {bar.total}" if bar is not None and counted else "")


def _has_output(job: _Stated, run: dict[str, Any]) -> bool:
    about = run.get("about")
    output = about.get("output_dir") if isinstance(about, dict) else job.output
    try:
        return isinstance(output, str) and bool(os.listdir(output))
    except OSError:
        return False


def _below(root: str, depth: int) -> Iterator[str]:
    if jobs.is_job(root):
        yield root
    if depth == 0:
        return
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            yield from _below(entry.path, depth - 1)


def _processes() -> Iterator[tuple[int, dict[str, Any]]]:
    """Running quark-cli and quark-quant-perf processes of this host whose command line we may read."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        argv = process.command_line(int(name))
        if not argv:
            continue
        program = next((os.path.basename(item) for item in argv[:3] if os.path.basename(item) in _PROGRAMS), None)
        if program is None or (program == "quark-cli" and "torch-llm-ptq" not in argv):
            continue
        option = "--output_dir" if program == "quark-cli" else "--session-dir"
        named = _option(argv, option)
        model = _option(argv, "--model_dir") or _option(argv, "--model")
        path = redact(clean(_absolute(named, int(name)))) if named else f"/proc/{name}"
        row = _row(
            path,
            _PROGRAMS[program],
            redact(clean(os.path.basename(model.rstrip("/")))) if model else None,
            "running",
            "alive",
            None,
            None,
            None,
        )
        yield int(name), {**row, "pid": int(name)}


def _absolute(path: str, pid: int) -> str:
    """``path`` as the process ``pid`` understands it; /proc's own name of its folder where that cannot be read."""
    try:
        return os.path.normpath(os.path.join(os.readlink(f"/proc/{pid}/cwd"), path))
    except OSError:
        return os.path.normpath(os.path.join(f"/proc/{pid}/cwd", path))


def _option(argv: Sequence[str], name: str) -> str | None:
    for position, item in enumerate(argv):
        if item == name and position + 1 < len(argv):
            return argv[position + 1]
        if item.startswith(f"{name}="):
            return item.partition("=")[2]
    return None
