"""One line a job or process, for lists: from plain JSON, run folders and locks alone, so that Home can afford it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from quark_tui.core.run import verdict
from quark_tui.core.text import clean, redact
from quark_tui.io import jobs
from quark_tui.io.runs import process
from quark_tui.io.runs.reading import read_run

_DEPTH = 3
_PROGRAMS = {"quark-cli": "ptq", "quark-quant-perf": "quant-perf"}
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
        "kind": kind,
        "model": model,
        "verdict": word,
        "liveness": liveness,
        "stage": stage,
        "started_at": started,
        "updated_at": updated,
    }


def job_row(path: str) -> tuple[dict[str, Any], int | None]:
    """One job for a list, from plain JSON and the newest run's lock, and the pid of its living process.

    Headers are not read: an ended run with status 0 is named by what the last ``verify`` or ``accept`` recorded, else
    ``unknown``. Raises OSError or ValueError when job.json cannot be read.
    """
    data = jobs.summary(path)
    stated = data.get("state")
    state: dict[str, Any] = stated if isinstance(stated, dict) else {}
    model = data.get("model")
    name = os.path.basename(model.rstrip("/")) if isinstance(model, str) else None
    folders = jobs.run_folders(path)
    liveness, word, started, pid = None, "not_started", None, None
    where = state.get("where")
    if folders:
        run = read_run(folders[-1])
        recorded = state.get("word") if state.get("run") == run.id else None
        verified = {"succeeded": "verified", "partial": "partial", "failed": "failed"}.get(str(recorded))
        liveness, word = verdict(run.exit, run.liveness, _has_output(data, run.run), verified)
        started = (run.process or {}).get("started_at")
        pid = (run.process or {}).get("pid") if liveness == "alive" else None
        if word != "not_started" and not recorded:
            where = "finished, to be verified" if word == "unknown" and run.exit else None
    updated = state.get("updated_at")
    return (
        _row(
            path,
            str(data.get("workflow", "ptq")),
            name,
            word,
            liveness,
            where if isinstance(where, str) else None,
            started,
            updated if isinstance(updated, str) else None,
        ),
        pid if isinstance(pid, int) else None,
    )


def _has_output(job: dict[str, Any], run: dict[str, Any]) -> bool:
    about = run.get("about")
    output = about.get("output_dir") if isinstance(about, dict) else job.get("output")
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
