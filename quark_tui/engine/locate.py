"""What a path that a person names is: a job, one of its runs, or nothing that quark-tui knows."""

from __future__ import annotations

import os
from dataclasses import dataclass

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.finding import block
from quark_tui.core.job import Job
from quark_tui.core.text import clean
from quark_tui.io import artifacts, jobs
from quark_tui.io.paths import absolute
from quark_tui.io.runs.reading import RunState, read_run


class Unreadable(WrongQuestion):
    """What is asked about is there, but a file that it rests on cannot be read. ``finding`` says so where an answer is
    owed, the text where the question counts as wrong."""

    def __init__(self, code: str, message: str, next_step: str) -> None:
        super().__init__(f"quark-tui: {message}")
        self.finding = block(code, message, "", next_step)


@dataclass(frozen=True, slots=True)
class Place:
    """``newest`` is the run that is meant: the run itself, or a job's newest one (None before any)."""

    path: str
    scope: str
    job_path: str | None
    job: Job | None
    job_problem: str
    newest: RunState | None
    run_ids: tuple[str, ...]


def is_run(path: str) -> bool:
    """True for a run folder: by its record, or by its place in a job where the record is lost."""
    return os.path.lexists(f"{path}/run.json") or (
        os.path.isdir(path)
        and os.path.basename(os.path.dirname(path)) == "runs"
        and jobs.is_job(os.path.dirname(os.path.dirname(os.path.dirname(path))))
    )


def locate(path: str) -> Place:
    """Raises WrongQuestion when there is no such path or it is neither a job nor a run."""
    full = absolute(path)
    if not os.path.lexists(full):
        raise WrongQuestion(f"quark-tui: {clean(full)}: no such path")
    if jobs.is_job(full):
        folders = jobs.run_folders(full)
        job, problem = _job(full)
        return Place(
            full,
            "job",
            full,
            job,
            problem,
            read_run(folders[-1]) if folders else None,
            tuple(os.path.basename(folder) for folder in folders),
        )
    if is_run(full):
        owner = jobs.job_of(full)
        job, problem = _job(owner) if owner else (None, "the run stands alone: its job folder is not around it")
        return Place(full, "run", owner, job, problem, read_run(full), (os.path.basename(full),))
    raise WrongQuestion(f"quark-tui: {clean(full)}: neither a job nor a run folder")


def _job(path: str) -> tuple[Job | None, str]:
    try:
        return jobs.read_job(path), ""
    except (artifacts.ArtifactProblem, FileNotFoundError) as error:
        return None, clean(error)


def open_job(path: str) -> tuple[str, Job]:
    """(absolute path, job). Raises WrongQuestion when there is no job at ``path``, Unreadable when it is damaged."""
    full = absolute(path)
    if not os.path.lexists(full):
        raise WrongQuestion(f"quark-tui: {clean(full)}: no such path")
    if not jobs.is_job(full):
        raise WrongQuestion(f"quark-tui: {clean(full)}: no job is here (quark-tui new makes one)")
    try:
        return full, jobs.read_job(full)
    except (artifacts.ArtifactProblem, FileNotFoundError) as error:
        raise unreadable_job(clean(error)) from None


def unreadable_job(message: str) -> Unreadable:
    return Unreadable("job_unreadable", message, "restore .quark-tui/job.json, or make another job with quark-tui new")


def what_is(path: str) -> str:
    """``job``, ``run``, ``model`` (a model directory), ``folder`` or ``other``; nothing inside is read."""
    if jobs.is_job(path):
        return "job"
    if is_run(path):
        return "run"
    if os.path.isfile(f"{path}/config.json"):
        return "model"
    return "folder" if os.path.isdir(path) else "other"
