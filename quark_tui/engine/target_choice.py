"""Choosing the target interpreter: which there are, and giving a job another one."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.finding import block
from quark_tui.core.text import clean
from quark_tui.engine.environment import resolve_interpreter
from quark_tui.engine.hint import hint
from quark_tui.engine.locate import open_job
from quark_tui.engine.plan import answered, keep_plan
from quark_tui.engine.situation import Situation, busy, gather, held, living_run, remove
from quark_tui.engine.standing import earliest_open, waiting
from quark_tui.io import artifacts, jobs
from quark_tui.io.runs.supervisor import utc_now

#: Folders of a home that tools keep virtual environments in.
_HOMES = ("venvs", ".virtualenvs", ".venvs", "virtualenvs")
#: Folders of conda installations that are looked at below a home and in usual places; their own list names more.
_CONDA = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")
#: Entries of a folder that are looked at: a home can be anything.
_AT_MOST = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """An interpreter that may be meant. ``python`` is absolute, links kept; ``because`` says what makes it one.

    ``quark`` is the version of amd-quark by the name of its metadata folder there, None when none was seen. Nothing was
    started to find out.
    """

    python: str
    because: str
    quark: str | None

    def to_json(self) -> dict[str, Any]:
        return {"python": self.python, "because": self.because, "quark": self.quark}


def candidates(environ: Mapping[str, str]) -> tuple[Candidate, ...]:
    """Interpreters by how near they are: the active environment, PATH, then environments in their usual folders.

    Each prefix stands once, for its first reason. Only folders are listed: no interpreter is started, nothing raised.
    """
    found: dict[str, Candidate] = {}
    for python, because in _places(environ):
        if not os.access(python, os.X_OK) or os.path.isdir(python):
            continue
        prefix = os.path.dirname(os.path.dirname(python))
        key = os.path.realpath(prefix) + "/" + _family(python)
        if key not in found:
            found[key] = Candidate(python, because, _quark_in(prefix))
    return tuple(found.values())


def _family(python: str) -> str:
    """python and python3 of one folder are one candidate, python3.12 beside python3.11 are two."""
    target = os.path.basename(os.path.realpath(python))
    return target if re.fullmatch(r"python3\.\d+", target) else "python"


def _places(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := environ.get(variable):
            yield os.path.join(os.path.abspath(prefix), "bin", "python"), f"{variable} is set"
    for command in ("python3", "python"):
        if path := shutil.which(command, path=environ.get("PATH", os.defpath)):
            yield os.path.abspath(path), f"{command} on PATH"
    homes = [Path(environ["WORKON_HOME"])] if environ.get("WORKON_HOME") else []
    home = Path(environ["HOME"]) if environ.get("HOME") else None
    homes += [home / name for name in _HOMES] if home else []
    for folder in homes:
        yield from ((python, f"a virtual environment in {folder}") for python in _below(folder))
    roots = [home / name for name in _CONDA] if home else []
    roots += [Path("/opt") / name for name in ("conda", *_CONDA)]
    roots += [Path(environ["CONDA_EXE"]).parent.parent] if environ.get("CONDA_EXE") else []
    roots += [Path(environ["MAMBA_ROOT_PREFIX"])] if environ.get("MAMBA_ROOT_PREFIX") else []
    for root in roots:
        yield from ((python, f"a conda environment in {root / 'envs'}") for python in _below(root / "envs"))
    if home:
        for prefix in _listed(home / ".conda/environments.txt"):
            yield os.path.join(prefix, "bin", "python"), "named in ~/.conda/environments.txt"
    pyenv = Path(environ["PYENV_ROOT"]) if environ.get("PYENV_ROOT") else home / ".pyenv" if home else None
    if pyenv:
        yield from ((python, f"a version of pyenv in {pyenv / 'versions'}") for python in _below(pyenv / "versions"))


def _below(folder: Path) -> list[str]:
    """bin/python of each folder in ``folder``, by name."""
    try:
        with os.scandir(os.path.abspath(folder)) as entries:
            names = [entry.path for entry, _ in zip(entries, range(_AT_MOST), strict=False)]
    except OSError:
        return []
    return [os.path.join(path, "bin", "python") for path in sorted(names)]


def _listed(path: Path) -> list[str]:
    """Absolute prefixes of conda's own list of environments."""
    try:
        if not path.is_file():  # opening a pipe would wait for ever
            return []
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(65536).splitlines()[:_AT_MOST]
    except OSError:
        return []
    return [line.strip() for line in lines if line.startswith("/") and "\0" not in line]


def _quark_in(prefix: str) -> str | None:
    """The version in the name of amd-quark's metadata folder; site-packages of the prefix only."""
    for folder in sorted(Path(prefix).glob("lib/python3*/site-packages/amd_quark-*.dist-info")):
        return clean(folder.name.removesuffix(".dist-info").partition("-")[2])
    return None


def retarget(path: str, python: str, environ: Mapping[str, str]) -> Answer:
    """Give the job at ``path`` the interpreter ``python`` (a path, a prefix, or a name on PATH); answers as ``plan``.

    It voids the confirmation of the plan, and that of the analysis where the new Quark or transformers changes it.
    Refused while a run of the job lives, and when the interpreter does not answer; the same one changes nothing. Raises
    WrongQuestion for an interpreter or a job that is not there.
    """
    where, job = open_job(path)
    chosen = resolve_interpreter(python, environ)
    try:
        with jobs.locked(where):
            return _retargeted(where, chosen, environ)
    except jobs.JobBusy:
        return answered(gather(where, job, environ), (held(),))


def _retargeted(where: str, chosen: str, environ: Mapping[str, str]) -> Answer:
    """With the job's lock held: the job as it is now, changed as a whole or not at all."""
    _, job = open_job(where)
    situation = gather(where, job, environ)
    if alive := living_run(where):
        return answered(situation, (busy(alive),))
    if chosen == job.python:
        return answered(situation)
    after = gather(where, replace(job, python=chosen), environ)
    if problem := after.asked.problem:
        step = f"the job keeps its interpreter; name another one: {hint('plan', where, '--python')} PATH"
        return answered(situation, (block(problem.code, problem.message, problem.evidence, step),))
    dropped = {"plan"} if after.analysis_digest == situation.analysis_digest else {"plan", "analysis"}
    kept = {name: one for name, one in job.confirmations.items() if name not in dropped}
    confirmed = after.analysis_confirmed and "analysis" in kept
    state = waiting(job.state, earliest_open(confirmed, False), utc_now())
    after = replace(after, job=replace(after.job, confirmations=kept, state=state), analysis_confirmed=confirmed)
    # What would outlast a loss of power must not be more than what is confirmed: the manifest goes before the record.
    remove(after.file("run_manifest.yaml"))
    jobs.write_job(where, after.job)
    if "analysis" in dropped:
        _keep_analysis(after)
    keep_plan(after)
    return answered(after)


def _keep_analysis(situation: Situation) -> None:
    """model_analysis.json says what the installed packages make of the model now, where it can be said."""
    path = situation.file("model_analysis.json")
    if situation.analysis is None:
        remove(path)
    else:
        artifacts.write(path, situation.analysis)
