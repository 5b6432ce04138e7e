"""``new``: make a job. Nothing of a model is created, downloaded or loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding, block, blocks
from quark_tui.core.job import Job
from quark_tui.core.ptq import plan as planning
from quark_tui.core.ptq import wishes as wishing
from quark_tui.core.text import clean
from quark_tui.engine.environment import resolve_interpreter
from quark_tui.engine.model import model_path
from quark_tui.engine.situation import Situation, gather
from quark_tui.engine.standing import waiting
from quark_tui.io import artifacts, jobs
from quark_tui.io.paths import absolute
from quark_tui.io.runs.supervisor import utc_now
from quark_tui.io.target import TargetProblem, find_interpreter

_ARTIFACTS = ("model_analysis.json", "quant_plan.json", "run_manifest.yaml")


def new(
    directory: str,
    workflow: str,
    model: str | None,
    output: str | None,
    python: str | None,
    sets: Sequence[tuple[str, str]],
    environ: Mapping[str, str],
    reasons: Sequence[tuple[str, str]] = (),
) -> Answer:
    """A job in ``directory``; a refused wish makes nothing, a blocking finding about the model still makes the job.

    ``sets`` are rows of the plan with their values as text, ``reasons`` rows with why they have them. Raises
    WrongQuestion for a model directory that does not exist, an unknown row key or a value of the wrong type.
    """
    path = absolute(directory)
    if workflow != "ptq":
        return _refused(
            path,
            block(
                "workflow_unavailable",
                f"this version cannot make a job of the workflow {workflow}",
                "the workflow ptq is what it has",
                "quark-tui new DIR --workflow ptq --model M",
            ),
        )
    if model is None:
        raise WrongQuestion("quark-tui new: the workflow ptq needs --model, a local model directory")
    source = model_path(model)
    if taken := _taken(path):
        return _refused(path, taken)
    wishes = wishing.changed(wishing.Wishes(), sets, reasons=reasons)
    job = Job(
        workflow=workflow,
        created_at=utc_now(),
        model=source,
        output=absolute(output) if output is not None else f"{path}/out",
        python=_interpreter(python, environ),
    )
    bare = gather(path, job, environ)
    situation = bare.wishing(wishes, environ)
    touched = set(wishing.touched(sets)) | ({"output_dir"} if output is not None else set())
    before = bare.view if output is None else _without_output(bare)
    if refused := planning.refusals(before, situation.view, touched):
        return _refused(path, *refused)
    os.makedirs(f"{path}/.quark-tui/runs", mode=0o700, exist_ok=True)
    if situation.analysis is not None:
        artifacts.write(f"{path}/model_analysis.json", situation.analysis)
    jobs.write_job(path, _stated(situation.job))
    jobs.register(path)
    findings = [*situation.intake.findings]
    if situation.asked.problem:
        findings.append(situation.asked.problem)
    return Answer("new", {"job": path}, tuple(findings), 1 if blocks(findings) else 0)


def _stated(job: Job) -> Job:
    from dataclasses import replace

    return replace(job, state=waiting({}, "analysis", utc_now()))


def _interpreter(python: str | None, environ: Mapping[str, str]) -> str | None:
    """The interpreter is fixed when the job is made, so that a later shell does not change what runs."""
    if python is not None:
        return resolve_interpreter(python, environ)
    try:
        return find_interpreter(environ)[0]
    except TargetProblem:
        return None


def _without_output(situation: Situation) -> planning.PlanView:
    """The view as if the output folder were no question, so that a named one can be refused for itself."""
    from dataclasses import replace

    return replace(situation.view, issues=())


def _taken(path: str) -> Finding | None:
    if jobs.is_job(path):
        return block(
            "job_exists",
            "there is a job already",
            f"{clean(path)}/.quark-tui/job.json",
            "open it, or name another folder",
        )
    if os.path.lexists(path) and not os.path.isdir(path):
        raise WrongQuestion(f"quark-tui new: {clean(path)} is no folder")
    for name in _ARTIFACTS:
        if os.path.lexists(f"{path}/{name}"):
            return block(
                "job_exists",
                f"the folder already holds {name}, which would be overwritten",
                clean(f"{path}/{name}"),
                "name another folder",
            )
    return None


def _refused(path: str, *findings: Finding) -> Answer:
    return Answer("new", {"job": None, "path": path}, findings, 1)
