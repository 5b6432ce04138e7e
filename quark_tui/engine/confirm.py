"""``confirm``: pass Checkpoint 1 or 2 by the digest of exactly what was shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding, block, blocks
from quark_tui.core.job import Confirmation
from quark_tui.core.model.facts import CORRECTABLE
from quark_tui.core.model.intake import corrected
from quark_tui.engine.command import build, checkpoints
from quark_tui.engine.hint import hint
from quark_tui.engine.locate import Unreadable, open_job
from quark_tui.engine.situation import Situation, busy, gather, held, living_run, remove
from quark_tui.engine.standing import waiting
from quark_tui.io import artifacts, jobs
from quark_tui.io.runs.supervisor import utc_now


def confirm(
    path: str, checkpoint: str, digest: str, sets: Sequence[tuple[str, str]], via: str, environ: Mapping[str, str]
) -> Answer:
    """Raises WrongQuestion for a correction of an unknown fact, or ``sets`` at Checkpoint 2."""
    if checkpoint == "plan" and sets:
        raise WrongQuestion(
            "quark-tui confirm: --set corrects a fact of the analysis; quark-tui plan --set changes the plan"
        )
    try:
        where, _ = open_job(path)
        with jobs.locked(where):
            _, job = open_job(where)  # as it is now that nobody else changes it
            situation = gather(where, job, environ)
            if alive := living_run(where):
                return _refused(checkpoint, busy(alive))
            if checkpoint == "analysis":
                return _analysis(situation, digest, dict(sets), via, environ)
            return _plan(situation, digest, via, environ)
    except Unreadable as problem:
        return _refused(checkpoint, problem.finding)
    except jobs.JobBusy:
        return _refused(checkpoint, held())


def _analysis(
    situation: Situation, digest: str, corrections: dict[str, str], via: str, environ: Mapping[str, str]
) -> Answer:
    if digest != situation.analysis_digest:
        return _refused("analysis", _other("the analysis", digest, situation.analysis_digest))
    job = situation.job
    if corrections:
        checked = corrected(situation.intake, corrections)  # refuses unknown facts before anything is kept
        typed = {key: checked.corrections[key] for key in corrections if key in CORRECTABLE}
        job = replace(job, corrections={**job.corrections, **typed})
        situation = gather(situation.path, job, environ)
    if situation.analysis is None:
        questions = ", ".join(situation.intake.questions) or "a material fact"
        finding = block(
            "model_type_unknown" if "model_type" in situation.intake.questions else "analysis_unconfirmed",
            f"the analysis cannot be written: {questions} unknown",
            "an artifact without these would have to invent them",
            "state them: quark-tui confirm JOB analysis --digest D --set KEY=VALUE",
        )
        return _refused("analysis", finding, *situation.intake.findings)
    before = situation.job.confirmations.get("analysis")
    confirmations = dict(job.confirmations)
    confirmations["analysis"] = now = Confirmation(situation.analysis_digest, utc_now(), via)
    if before is None or before.digest != now.digest:
        confirmations.pop("plan", None)
    artifacts.write(situation.file("model_analysis.json"), situation.analysis)
    job = replace(
        job,
        confirmations=confirmations,
        state=waiting(job.state, "plan", now.confirmed_at),
    )
    jobs.write_job(situation.path, job)
    after = replace(situation, job=job, analysis_confirmed=True)
    plan_file = situation.file("quant_plan.json")
    if after.view.plan is not None:
        artifacts.write(plan_file, {**after.view.plan, "requires_confirmation": not after.plan_confirmed})
    else:
        remove(plan_file)
    following = hint("plan", situation.path)
    return _confirmed("analysis", now, following, situation.intake.findings)


def _plan(situation: Situation, digest: str, via: str, environ: Mapping[str, str]) -> Answer:
    if not situation.analysis_confirmed:
        return _refused(
            "plan",
            block(
                "analysis_unconfirmed",
                "Checkpoint 1 (the analysis) has not been passed, or the model changed since",
                f"the analysis is now {situation.analysis_digest}",
                hint("confirm", situation.path, "analysis", "--digest", situation.analysis_digest),
            ),
        )
    findings = situation.view.findings
    if situation.view.plan is None or blocks(findings):
        return _refused("plan", *findings)
    if digest != situation.plan_digest:
        return _refused("plan", _other("the plan", digest, situation.plan_digest or "unknown"))
    now = Confirmation(digest, utc_now(), via)
    plan = {**situation.view.plan, "requires_confirmation": False}
    job = replace(
        situation.job,
        confirmations={**situation.job.confirmations, "plan": now},
        state=waiting(situation.job.state, "command", now.confirmed_at),
    )
    artifacts.write(situation.file("quant_plan.json"), plan)
    jobs.write_job(situation.path, job)
    after = replace(situation, job=job)
    built = build(after, environ)
    if built.command is not None:
        built.write_manifest(checkpoints(job))
    return _confirmed("plan", now, hint("command", situation.path), findings)


def _other(what: str, given: str, present: str) -> Finding:
    return block(
        "digest_differs",
        f"{what} is not what this digest stands for",
        f"{given} → {present}",
        "look at it again and confirm what it is now",
    )


def _confirmed(checkpoint: str, now: Confirmation, following: str, findings: Sequence[Finding]) -> Answer:
    body: dict[str, Any] = {"checkpoint": checkpoint, **now.to_json(), "next": following}
    return Answer("confirm", body, tuple(findings))


def _refused(checkpoint: str, *findings: Finding) -> Answer:
    body = {"checkpoint": checkpoint, "digest": None, "confirmed_at": None, "via": None, "next": None}
    return Answer("confirm", body, findings, 1)
