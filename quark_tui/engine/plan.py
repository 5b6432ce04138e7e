"""``plan``: show a job's plan, or change it; a refused change changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.finding import Finding, blocks
from quark_tui.core.job import Job
from quark_tui.core.ptq import plan as planning
from quark_tui.core.ptq import wishes as wishing
from quark_tui.core.ptq.catalog import Catalog
from quark_tui.core.ptq.schemes import facts_for
from quark_tui.engine.hint import hint
from quark_tui.engine.locate import open_job
from quark_tui.engine.situation import Situation, busy, gather, held, living_run, remove
from quark_tui.engine.standing import earliest_open, waiting
from quark_tui.io import artifacts, jobs
from quark_tui.io.runs.supervisor import utc_now

Pairs = Sequence[tuple[str, str]]


def plan(
    path: str,
    sets: Pairs,
    overrides: Pairs,
    excludes: Sequence[str],
    reasons: Pairs,
    environ: Mapping[str, str],
) -> Answer:
    """Raises WrongQuestion for an unknown row key, a value of the wrong type, or a job without a readable model."""
    where, job = open_job(path)
    if sets or overrides or excludes or reasons:
        try:
            with jobs.locked(where):
                return _changed(where, sets, overrides, excludes, reasons, environ)
        except jobs.JobBusy:
            return answered(gather(where, job, environ), (held(),))
    return answered(looked_at(where, job, environ))


def looked_at(where: str, job: Job, environ: Mapping[str, str]) -> Situation:
    """The job at ``where`` as it is now. Looking regenerates what is missing or no longer holds, where it can; it needs
    no right to write, and ``job`` is what is known of a job that another quark-tui holds. Raises as ``gather`` does."""
    situation = None
    with contextlib.suppress(jobs.JobBusy, OSError), jobs.locked(where, 0):
        situation = gather(where, open_job(where)[1], environ)
        if living_run(where) is None:
            keep_plan(situation)
    return situation or gather(where, job, environ)


def _changed(
    where: str, sets: Pairs, overrides: Pairs, excludes: Sequence[str], reasons: Pairs, environ: Mapping[str, str]
) -> Answer:
    """With the job's lock held: the job as it is now, changed as a whole or not at all."""
    situation = gather(where, open_job(where)[1], environ)
    if alive := living_run(where):
        return answered(situation, (busy(alive),))
    texts = [f"{pattern}={scheme}" for pattern, scheme in overrides]
    wishes = wishing.changed(situation.wishes, sets, texts, excludes, reasons)
    after = situation.wishing(wishes, environ)
    refused = planning.refusals(situation.view, after.view, wishing.touched(sets, texts, excludes))
    if refused:
        return answered(situation, refused)
    if after.plan_digest != situation.plan_digest:
        # What was confirmed is not what the plan says now.
        kept = {name: one for name, one in after.job.confirmations.items() if name != "plan"}
        after = replace(after, job=replace(after.job, confirmations=kept))
    checkpoint = earliest_open(after.analysis_confirmed, after.plan_confirmed)
    after = replace(after, job=replace(after.job, state=waiting(after.job.state, checkpoint, utc_now())))
    jobs.write_job(where, after.job)
    keep_plan(after)
    if not after.plan_confirmed:
        # It records another command; what was run by it keeps a copy in its run folder.
        remove(after.file("run_manifest.yaml"))
    return answered(after, ())


def keep_plan(situation: Situation) -> None:
    """quant_plan.json says what the wishes mean now, once Checkpoint 1 was passed; before that there is none."""
    path = situation.file("quant_plan.json")
    plan_now = situation.view.plan
    if not situation.analysis_confirmed or plan_now is None:
        remove(path)
        return
    plan_now = {**plan_now, "requires_confirmation": not situation.plan_confirmed}
    try:
        if artifacts.read(path) == plan_now:
            return
    except (FileNotFoundError, artifacts.ArtifactProblem):
        pass
    artifacts.write(path, plan_now)


def scheme_guide(catalog: Catalog | None) -> list[dict[str, Any]]:
    """Every scheme of the installed Quark with what it means; a scheme that is not known here says so by null.

    ``advice`` names hardware that a scheme is usually meant for: advice, no promise of a kernel.
    """
    guide = []
    for scheme in catalog.schemes if catalog else ():
        facts = facts_for(scheme)
        guide.append(
            {
                "name": scheme.name,
                "summary": facts.summary if facts else None,
                "advice": facts.advice if facts else None,
                "exportable": facts.exportable if facts else None,
            }
        )
    return guide


def _next(situation: Situation, blocked: bool) -> str | None:
    """The command that comes next; None while something blocks."""
    if not situation.analysis_confirmed:
        return hint("confirm", situation.path, "analysis", "--digest", situation.analysis_digest)
    if blocked or situation.plan_digest is None:
        return None
    if not situation.plan_confirmed:
        return hint("confirm", situation.path, "plan", "--digest", situation.plan_digest)
    return hint("command", situation.path)


def answered(situation: Situation, refused: Sequence[Finding] = ()) -> Answer:
    """What ``plan`` says of a job; of a change that was ``refused`` only that is said."""
    findings: list[Finding] = list(refused)
    if not situation.analysis_confirmed and not refused:
        findings.append(
            Finding(
                "info",
                "analysis_unconfirmed",
                "the analysis comes first (Checkpoint 1): wishes are kept, no plan is written yet",
                f"analysis digest {situation.analysis_digest}",
                hint("confirm", situation.path, "analysis", "--digest", situation.analysis_digest),
            )
        )
    if not refused:
        # Of a refused change only the refusal is said: the rest is about a plan that stays as it was.
        findings += situation.view.findings
    if situation.asked.problem:
        findings.append(situation.asked.problem)
    plan_now = situation.view.plan
    if plan_now is not None:
        plan_now = {**plan_now, "requires_confirmation": not situation.plan_confirmed}
    body = {
        "path": situation.path,
        "plan": plan_now,
        "rows": [row.to_json() for row in situation.view.rows],
        "patterns": [pattern.to_json() for pattern in situation.view.patterns],
        "estimate": situation.view.estimate.to_json(),
        "schemes": scheme_guide(situation.asked.catalog),
        "analysis_digest": situation.analysis_digest,
        "analysis_confirmed": situation.analysis_confirmed,
        "plan_confirmed": situation.plan_confirmed,
        "digest": situation.plan_digest,
        "refused": bool(refused),
        "next": None if refused else _next(situation, blocks(findings)),
    }
    return Answer("plan", body, tuple(findings), 1 if blocks(findings) else 0)
