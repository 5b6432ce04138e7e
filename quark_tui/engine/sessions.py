"""``sessions``: known jobs, jobs under given roots, and running quark processes that we may read. Reads only."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding
from quark_tui.core.run import verdict
from quark_tui.core.text import clean, redact
from quark_tui.io import jobs
from quark_tui.io.paths import absolute
from quark_tui.io.runs import process
from quark_tui.io.runs.reading import read_run

_DEPTH = 3
_PROGRAMS = {"quark-cli": "ptq", "quark-quant-perf": "quant-perf"}
#: Verdicts in the order in which they need a person.
ORDER = ("running", "not_started", "interrupted", "unknown", "failed", "unreadable", "partial", "succeeded")


def sessions(roots: Sequence[str]) -> Answer:
    """Known jobs come from the state folder; each root is searched three folders deep. Exit 0 whatever is found.

    Raises WrongQuestion for a root that does not exist.
    """
    from quark_tui.engine.status import status  # Home lists jobs with this module's job_row and pays for nothing else

    looked = [absolute(root) for root in roots]
    for root in looked:
        if not os.path.isdir(root):
            raise WrongQuestion(f"quark-tui: {clean(root)}: no such folder")
    paths = dict.fromkeys([*sorted(jobs.known()), *(job for root in looked for job in _below(root, _DEPTH))])
    rows: list[dict[str, Any]] = []
    findings: list[Finding] = []
    own: set[int] = set()
    for path in paths:
        try:
            row, pid = job_row(path)
            if row["verdict"] == "unknown" and row["liveness"] == "finished":
                told = status(path).body
                row = {**row, "verdict": told["verdict"], "stage": told["stage"]}
        except (OSError, ValueError) as error:
            findings.append(
                Finding(
                    "medium",
                    "job_unreadable",
                    f"{clean(path)}: job.json cannot be read",
                    clean(error),
                    "quark-tui status says more",
                )
            )
            row, pid = _row(path, "ptq", None, "unreadable", None, None, None, None), None
        rows.append(row)
        if pid is not None:
            own.add(pid)
    rows += [row for pid, row in _processes() if pid not in own]
    rows.sort(key=lambda row: (_rank(row["verdict"]), row["path"]))
    return Answer("sessions", {"roots": looked, "sessions": rows}, tuple(findings))


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
        path = redact(clean(named)) if named else f"pid {name}"
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


def _option(argv: Sequence[str], name: str) -> str | None:
    for position, item in enumerate(argv):
        if item == name and position + 1 < len(argv):
            return argv[position + 1]
        if item.startswith(f"{name}="):
            return item.partition("=")[2]
    return None
