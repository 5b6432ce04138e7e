"""After a run has ended: the bounded follow-ups, and going back to the checkpoint that one of them affects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding, block
from quark_tui.core.job import Job
from quark_tui.core.ptq import plan as planning
from quark_tui.core.ptq import wishes as wishing
from quark_tui.core.ptq.follow_up import CHECKPOINTS, Checkpoint, Ended, FollowUp, offers
from quark_tui.core.text import clean
from quark_tui.engine.hint import hint
from quark_tui.engine.locate import Unreadable, locate, open_job, unreadable_job
from quark_tui.engine.plan import keep_plan
from quark_tui.engine.situation import Situation, busy, gather, held, living_run, remove
from quark_tui.engine.standing import earliest_open, waiting
from quark_tui.engine.status import status
from quark_tui.io import artifacts, jobs
from quark_tui.io.runs.reading import RunState
from quark_tui.io.runs.supervisor import utc_now
from quark_tui.io.surroundings import output_state

__all__ = ["FollowUp", "begin", "follow_ups"]

_ACCEPTED = "the result was accepted: another piece of work is a new job"


def follow_ups(path: str) -> tuple[FollowUp, ...]:
    """The choices of a job whose newest run has ended, the recommended one first; none before a run was started.

    Reads only. While a run lives, and after the result was accepted, each says why it may not begin. Raises
    WrongQuestion when there is no job at ``path``, Unreadable when it is damaged.
    """
    where, job = open_job(path)
    ended = _ended(where, job)
    return offers(ended) if ended is not None else ()


def _ended(where: str, job: Job) -> Ended | None:
    """None while nothing was started."""
    run = locate(where).newest
    if run is None or (run.liveness is None and not run.problem):
        return None
    told = status(where).body
    obstacle = ""
    if alive := living_run(where):
        obstacle = busy(alive).message
    elif job.accepted is not None:
        obstacle = _ACCEPTED
    return Ended(
        run=run.id,
        verdict=told["verdict"],
        stage=told["stage"],
        failure=told["failure"],
        plan=_plan_of(where, run),
        gpus=_gpus(run),
        output=_free_output(job),
        obstacle=obstacle,
    )


def _plan_of(where: str, run: RunState) -> Mapping[str, Any]:
    """The plan that the run was started with; the job's own where that copy is lost."""
    for folder in (run.folder, where):
        try:
            return artifacts.read(f"{folder}/quant_plan.json")
        except (FileNotFoundError, artifacts.ArtifactProblem):
            continue
    return {}


def _gpus(run: RunState) -> int | None:
    about = run.run.get("about")
    seen = about.get("gpus") if isinstance(about, dict) else None
    return seen if type(seen) is int else None


def _free_output(job: Job) -> str | None:
    """A folder that does not exist yet, where something is in the planned one; None where that one is free."""
    try:
        output = planning.output_dir(wishing.from_json(job.wishes), job.output)
    except WrongQuestion as problem:
        raise unreadable_job(clean(problem)) from None
    state = output_state(output)
    if not state.exists or (state.is_dir and state.empty):
        return None
    number = output.removeprefix(f"{job.output}-")
    stem = job.output if number != output and number.isascii() and number.isdigit() else output
    return next(name for name in (f"{stem}-{index}" for index in count(2)) if not output_state(name).exists)


def begin(path: str, code: str, environ: Mapping[str, str]) -> Answer:
    """Go back to the checkpoint that the follow-up ``code`` affects.

    Its rows are set, the confirmation that it affects is taken back with what rests on it, and nothing of the run
    before is touched: its folder, log, manifest and output stay. Raises WrongQuestion for a code that is none of
    :func:`follow_ups`, and when there is no job at ``path``.
    """
    try:
        where, _ = open_job(path)
        with jobs.locked(where):
            _, job = open_job(where)  # as it is now that nobody else changes it
            if alive := living_run(where):
                return _refused(code, busy(alive))
            if job.accepted is not None:
                advice = f"{hint('new', 'DIR', '--workflow', job.workflow, '--model', job.model or 'M')} makes one"
                return _refused(code, block("result_accepted", _ACCEPTED, job.accepted.confirmed_at, advice))
            ended = _ended(where, job)
            if ended is None:
                message = "no run of this job was started: there is nothing to follow up"
                return _refused(code, block("no_run", message, "", hint("command", where)))
            choice = {one.code: one for one in offers(ended)}.get(code)
            if choice is None:
                known = " ".join(one.code for one in offers(ended))
                raise WrongQuestion(f"quark-tui: {clean(code)[:80]} is no follow-up of this job; they are {known}")
            return _begin(where, job, choice, ended, environ)
    except Unreadable as problem:
        return _refused(code, problem.finding)
    except jobs.JobBusy:
        return _refused(code, held())


def _begin(where: str, job: Job, choice: FollowUp, ended: Ended, environ: Mapping[str, str]) -> Answer:
    situation = gather(where, job, environ)
    after = situation.wishing(wishing.changed(situation.wishes, choice.changes, reasons=choice.reasons), environ)
    if refused := planning.refusals(situation.view, after.view, wishing.touched(choice.changes)):
        return _refused(choice.code, *refused)
    after = _taken_back(after, choice.checkpoint)
    checkpoint = earliest_open(after.analysis_confirmed, after.plan_confirmed)
    record = {"word": ended.verdict, "run": ended.run, "follow_up": choice.code}
    after = replace(after, job=replace(after.job, state=waiting(record, checkpoint, utc_now())))
    jobs.write_job(where, after.job)
    keep_plan(after)
    if not after.plan_confirmed:
        # It records the command of the run before, which keeps a copy in its folder.
        remove(after.file("run_manifest.yaml"))
    body = {
        "path": where,
        "code": choice.code,
        "checkpoint": checkpoint,
        "changes": [{"key": key, "value": value} for key, value in choice.changes],
        "voided": [name for name in situation.job.confirmations if name not in after.job.confirmations],
        "output_dir": planning.output_dir(after.wishes, job.output),
        "after_run": ended.run,
        "next": hint("command" if checkpoint == "command" else "plan", where),
    }
    return Answer("follow_up", body)


def _taken_back(situation: Situation, checkpoint: Checkpoint) -> Situation:
    """Without the confirmation of ``checkpoint`` and those that rest on it."""
    void = CHECKPOINTS[CHECKPOINTS.index(checkpoint) :]
    kept = {name: one for name, one in situation.job.confirmations.items() if name not in void}
    return replace(
        situation,
        job=replace(situation.job, confirmations=kept),
        analysis_confirmed=situation.analysis_confirmed and "analysis" in kept,
    )


def _refused(code: str, *findings: Finding) -> Answer:
    names = ("path", "checkpoint", "changes", "voided", "output_dir", "after_run", "next")
    return Answer("follow_up", {**dict.fromkeys(names), "code": clean(code)[:80]}, findings, 1)
