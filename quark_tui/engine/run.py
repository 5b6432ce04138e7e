"""``run``: approve one exact command by its digest and start it; everything is checked again, by the supervisor too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.approval import approval_digest, what_differs
from quark_tui.core.finding import Finding, block
from quark_tui.core.job import Job
from quark_tui.core.text import clean, redact
from quark_tui.engine.command import Built, build, checkpoints, remembered, remembered_subject
from quark_tui.engine.hint import hint
from quark_tui.engine.locate import Unreadable, open_job
from quark_tui.engine.situation import busy, gather, held, living_run
from quark_tui.io import artifacts, jobs
from quark_tui.io.runs import evidence, launcher
from quark_tui.io.runs.launcher import Started
from quark_tui.io.runs.reading import read_run
from quark_tui.io.runs.supervisor import utc_now


def run(path: str, approved: str, via: str, unattended: bool, environ: Mapping[str, str]) -> Answer:
    """Returns when the child's exec was recorded or refused. Raises WrongQuestion when there is no job at ``path``."""
    try:
        where, _ = open_job(path)
        with jobs.locked(where) as lock:
            _, job = open_job(where)  # as it is now that nobody else changes it
            return _run(where, job, approved, via, unattended, environ, lock)
    except Unreadable as problem:
        return _refused(problem.finding)
    except jobs.JobBusy:
        return _refused(held())


def used_digests(path: str, job: Job) -> dict[str, str]:
    """Digest → the run that used it, from the run folders themselves and from job.json."""
    used = dict.fromkeys(job.used, "an earlier run")
    for folder in jobs.run_folders(path):
        state = read_run(folder)
        if state.process and isinstance(state.run.get("digest"), str):
            used[state.run["digest"]] = f"run {state.id}"
    return used


def _run(
    where: str, job: Job, approved: str, via: str, unattended: bool, environ: Mapping[str, str], lock: int
) -> Answer:
    if alive := living_run(where):
        return _refused(busy(alive))
    if earlier := used_digests(where, job).get(approved):
        return _refused(
            block(
                "digest_used",
                f"this approval was used by {clean(earlier)}",
                approved,
                f"{hint('status', where)} says how it ended; {hint('command', where)} gives a new digest to approve",
            )
        )
    try:
        built = build(gather(where, job, environ), environ)
    except Unreadable as problem:
        return _refused(*_changed_files(where, approved, environ), problem.finding)
    inputs = evidence.collect(built.subject, environ) if built.subject else None
    blocking = [finding for finding in built.findings if finding.level == "block"]
    if built.command is None or inputs is None or blocking:
        return _refused(*_differences(where, approved, built, inputs), *blocking)
    digest = approval_digest([built.command], inputs)
    if digest != approved:
        return _refused(*_differences(where, approved, built, inputs))
    about = {
        "model": job.model,
        "output_dir": (built.plan or {}).get("output_dir"),
        "estimate": built.situation.view.estimate.to_json(),
        "requires_transformers": _requires_transformers(built),
        "model_transformers": built.situation.intake.facts["transformers_version"].value,
        "gpus": len(built.situation.seen["gpus"])
        if built.situation.seen["gpu_verdict"] in ("gpus", "no_gpu")
        else None,
    }
    subject = built.subject
    assert subject is not None
    try:
        started = launcher.launch(
            where,
            job.workflow,
            [built.command],
            digest,
            subject,
            inputs,
            via,
            unattended,
            lock,
            about,
            [f"{where}/{name}" for name in ("model_analysis.json", "quant_plan.json")],
        )
    except OSError as error:
        return _refused(
            block(
                "launch_failed",
                f"the run folder could not be made: {error.strerror or error}",
                clean(error.filename or where),
                "nothing was started and the approval was not used",
            )
        )
    if started.pid is None:
        return _not_started(started)
    findings = list(built.findings)
    try:
        state = {"word": "running", "where": "started", "updated_at": utc_now()}
        jobs.write_job(where, replace(job, used=(*job.used, digest), state=state, accepted=None))
        execution = {"digest": digest, "confirmed_at": utc_now(), "via": via, "run": started.run_id}
        built.write_manifest({**checkpoints(job), "execution": execution}, started.folder)
    except (OSError, artifacts.ArtifactProblem) as error:
        message = "the run was started, but job.json or run_manifest.yaml could not be written"
        findings.append(Finding("high", "not_recorded", message, clean(error), "the run folder has the whole record"))
    if unprotected := _log_problem(started.folder):
        findings.append(unprotected)
    body = {"run_id": started.run_id, "run_folder": started.folder, "pid": started.pid, "via": via}
    return Answer("run", body, tuple(findings))


def _requires_transformers(built: Built) -> str | None:
    """The installed amd-quark's own requirement line on transformers, as its metadata states it."""
    target = built.situation.asked.target
    lines = [line for line in (target.quark_requires if target else ()) if line.startswith("transformers")]
    return lines[0] if lines else None


def _log_problem(folder: str) -> Finding | None:
    log = read_run(folder).run.get("log")
    if not isinstance(log, dict) or not log.get("problem"):
        return None
    return Finding(
        "medium",
        "log_not_preallocated",
        "the log has no space of its own: a full disk can end the run at its next line of output",
        clean(log["problem"]),
        "keep space free where the job is",
    )


def _differences(where: str, approved: str, built: Built, inputs: Mapping[str, Any] | None) -> list[Finding]:
    """One finding a difference between what was approved and what would run now."""
    shown = remembered(where, approved)
    if shown is None:
        return _unknown_digest(where, approved)
    if built.command is None or inputs is None:
        return []
    lines = what_differs(([shown[0]], shown[1]), ([built.command], inputs))
    return [block("digest_differs", redact(clean(line)), "", _advice(where)) for line in lines]


def _advice(where: str) -> str:
    return f"{hint('command', where)} shows what it is now, with its digest"


def _unknown_digest(where: str, approved: str) -> list[Finding]:
    message = "this digest was not shown for this job"
    return [block("digest_differs", message, clean(approved[:80]), _advice(where))]


def _changed_files(where: str, approved: str, environ: Mapping[str, str]) -> list[Finding]:
    """What differs where no command can be made any more: the files and variables that the digest stood for."""
    shown, subject = remembered(where, approved), remembered_subject(where, approved)
    if shown is None or subject is None:
        return _unknown_digest(where, approved)
    lines = what_differs(([shown[0]], shown[1]), ([shown[0]], evidence.collect(subject, environ)))
    return [block("digest_differs", redact(clean(line)), "", _advice(where)) for line in lines]


def _not_started(started: Started) -> Answer:
    refused = started.refused or {}
    lines: Sequence[Any] = refused.get("differences") or []
    code, message = clean(refused.get("code", "launch_failed")), redact(clean(refused.get("message", "")))
    advice = "nothing was started and the approval was not used"
    findings = [block(code, redact(clean(line)), message, advice) for line in lines] or [
        block(code, message, "", advice)
    ]
    return Answer(
        "run", {"run_id": started.run_id, "run_folder": started.folder, "pid": None, "via": None}, tuple(findings), 1
    )


def _refused(*findings: Finding) -> Answer:
    return Answer("run", {"run_id": None, "run_folder": None, "pid": None, "via": None}, findings, 1)
