"""``verify`` and ``accept``: what is on disk against what was confirmed, and a person's word on it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding, block
from quark_tui.core.job import Confirmation, Job
from quark_tui.core.model.intake import examine
from quark_tui.core.model.inventory import Inventory
from quark_tui.core.ptq import manifest as manifests
from quark_tui.core.run import verdict as verdict_of
from quark_tui.core.text import clean
from quark_tui.engine.hint import hint
from quark_tui.engine.locate import Place, Unreadable, is_run, locate, open_job
from quark_tui.engine.progress import LogReader
from quark_tui.engine.situation import busy, held, living_run
from quark_tui.engine.verify import verify_against, verify_folder, verify_output
from quark_tui.io import artifacts, jobs
from quark_tui.io.intake import read_model
from quark_tui.io.paths import absolute, can_be_path
from quark_tui.io.runs.reading import RunState
from quark_tui.io.runs.supervisor import utc_now


def verify(path: str, environ: Mapping[str, str]) -> Answer:
    """A job or its run against the plan, a bare folder against its own configuration.

    For a job, what was observed is written into run_manifest.yaml. Raises WrongQuestion when there is no such path.
    """
    full = absolute(path)
    if not os.path.lexists(full):
        raise WrongQuestion(f"quark-tui: {clean(full)}: no such path")
    if not jobs.is_job(full) and not is_run(full):
        return verify_folder(Path(full))
    place = locate(full)
    answer = judge(place)
    if alive := _alive(place):
        return _unjudged(answer, alive)
    if place.newest is None and not answer.body["files"]:
        answer = replace(answer, findings=(_no_run(place), *answer.findings))
    if answer.body["verdict"] in ("verified", "partial") and place.job_path is not None:
        following = hint("accept", place.job_path, "--digest", answer.body["digest"])
        answer = replace(answer, body={**answer.body, "next": following})
    if place.scope == "job" and place.newest is not None and place.newest.exit is not None:
        problem = observe(place, answer)
        _remember(place, word_of(place.newest, answer))
        if problem is not None:
            answer = replace(answer, findings=(*answer.findings, problem))
    return answer


def _remember(place: Place, word: str) -> None:
    """For lists, which read no headers: what was found of the newest run. A job that is busy is left alone."""
    assert place.job_path is not None and place.newest is not None
    with contextlib.suppress(jobs.JobBusy, artifacts.ArtifactProblem, OSError), jobs.locked(place.job_path, 0):
        job = jobs.read_job(place.job_path)
        if job.accepted is None and job.state.get("run") != place.newest.id:
            state = {"word": word, "where": _next(word), "updated_at": utc_now(), "run": place.newest.id}
            jobs.write_job(place.job_path, replace(job, state=state))


def _next(word: str) -> str:
    return "accept the result" if word in ("succeeded", "partial") else "look at what went wrong"


def _alive(place: Place) -> Finding | None:
    state = place.newest
    if state is None or state.exit is not None or state.liveness != "alive":
        return None
    message = f"run {clean(state.id)} is still going: there is nothing to judge yet"
    return Finding("info", "still_running", message, state.liveness_evidence, hint("status", place.path, "--follow"))


def _no_run(place: Place) -> Finding:
    message = "no run was started: the checks are those of an output that is not there"
    return Finding("info", "no_run", message, clean(place.path), hint("status", place.path))


def _unjudged(answer: Answer, waiting: Finding) -> Answer:
    """``answer`` with every check left open and the verdict unknown."""
    checks = [{**check, "ok": None, "message": waiting.message, "evidence": ""} for check in answer.body["checks"]]
    body = {**answer.body, "verdict": "unknown", "checks": checks, "quantized_modules": None, "digest": None}
    return replace(answer, body=body, findings=(waiting,), exit=1)


def judge(place: Place, metric: float | None = None) -> Answer:
    """``verify`` of a job or run, writing nothing. ``metric``: the perplexity, where it is known already.

    Without a plan that can be read, the output is judged against its own configuration, and the answer says so.
    """
    plan, problem = _plan(place)
    state = place.newest
    if plan is None:
        answer = verify_output(Path(output_of({}, place)))
        return replace(answer, findings=(*answer.findings, problem)) if problem else answer
    if metric is None and state is not None and plan.get("evaluation_intent") not in (None, "none"):
        metric = LogReader(state.folder).read().perplexity
    model = _model(plan, place)
    return verify_against(
        plan,
        _inventory(model, plan.get("quark_version")),
        Path(model or "/nonexistent"),
        Path(output_of(plan, place)),
        metric,
        _estimate(state),
    )


def _plan(place: Place) -> tuple[dict[str, Any] | None, Finding | None]:
    """The plan that the run was started with; before any run the job's own. Else what keeps it from being read."""
    paths = [f"{place.newest.folder}/quant_plan.json"] if place.newest else []
    if place.job_path and (place.newest is None or place.scope == "job"):
        paths.append(f"{place.job_path}/quant_plan.json")
    wrong = "there is no quant_plan.json"
    for path in paths:
        try:
            return artifacts.read(path), None
        except FileNotFoundError:
            continue
        except artifacts.ArtifactProblem as problem:
            wrong = str(problem)
    advice = "look at the checks as those of a bare folder"
    return None, Finding("high", "plan_unreadable", "there is no plan to judge the output against", wrong, advice)


def output_of(plan: Mapping[str, Any], place: Place) -> str:
    """Where the output is: by the run's record, else by the plan, else by the job."""
    about = place.newest.run.get("about") if place.newest else None
    recorded = about.get("output_dir") if isinstance(about, Mapping) else None
    for named in (recorded, plan.get("output_dir"), place.job.output if place.job else None):
        if isinstance(named, str) and named.startswith("/") and can_be_path(named):
            return named
    return "/nonexistent"


def _model(plan: Mapping[str, Any], place: Place) -> str | None:
    model = plan.get("model")
    path = model.get("model_path") if isinstance(model, Mapping) else None
    if isinstance(path, str) and path.startswith("/") and can_be_path(path):
        return path
    return place.job.model if place.job else None


def _inventory(model: str | None, quark_version: Any) -> Inventory | None:
    """The source model's modules, None when it cannot be read any more."""
    if model is None:
        return None
    try:
        source = read_model(Path(model))
    except WrongQuestion:
        return None
    return examine(source, None, False, None, quark_version if isinstance(quark_version, str) else None).inventory


def _estimate(state: RunState | None) -> int | None:
    about = state.run.get("about") if state else None
    estimate = about.get("estimate") if isinstance(about, dict) else None
    value = estimate.get("output_bytes") if isinstance(estimate, dict) else None
    return value if type(value) is int else None


def word_of(state: RunState, answer: Answer) -> str:
    """The verdict of a run whose output ``verify`` answered about."""
    return verdict_of(state.exit, state.liveness, bool(answer.body["files"]), answer.body["verdict"])[1]


def observe(place: Place, answer: Answer, extra: Mapping[str, Mapping[str, Any]] | None = None) -> Finding | None:
    """Update the manifest with the observed status and outputs; the recorded command stays as it is.

    The run's own copy is always updated, the job's run_manifest.yaml while it records this run. Returns what kept them
    from being updated: one that is missing or damaged is left to the next command, nothing is invented.
    """
    state = place.newest
    assert state is not None and place.job_path is not None
    run = {"id": state.id, **(state.exit.to_json() if state.exit else {})}
    run.pop("schema", None)
    verification = {
        "status": answer.body["verdict"],
        "digest": answer.body["digest"],
        "checks": [{key: check[key] for key in ("code", "ok", "message")} for check in answer.body["checks"]],
    }
    own, top = f"{state.folder}/run_manifest.yaml", f"{place.job_path}/run_manifest.yaml"
    trouble = None
    for path in (own, top):
        try:
            manifest = artifacts.read(path)
            if path == top and _run_of(manifest) not in (None, state.id):
                continue
            value = manifests.observed(manifest, word_of(state, answer), answer.body["files"], run, verification, extra)
            if value != manifest:
                artifacts.write(path, value)
        except FileNotFoundError:
            if path == top and not os.path.lexists(own):
                trouble = _not_written(path, "it is not there")
        except (OSError, artifacts.ArtifactProblem) as error:
            trouble = _not_written(path, str(error))
    return trouble


def _run_of(manifest: Mapping[str, Any]) -> str | None:
    """The run that a manifest records as approved; None before there is one."""
    for entry in manifest.get("checkpoints", []):
        if entry.get("id") == "execution" and isinstance(entry.get("run"), str):
            return str(entry["run"])
    return None


def _not_written(path: str, reason: str) -> Finding:
    return Finding(
        "high",
        "manifest_not_written",
        "what was found could not be recorded in run_manifest.yaml; the answer itself is whole",
        clean(reason),
        f"see to {clean(path)}, then verify again",
    )


def accept(path: str, digest: str, via: str, environ: Mapping[str, str]) -> Answer:
    """Checkpoint 4: accept the result whose ``verify`` answered ``digest``. Raises WrongQuestion without a job."""
    try:
        where, _ = open_job(path)
        with jobs.locked(where):
            _, job = open_job(where)  # as it is now that nobody else changes it
            return _accept(where, job, digest, via)
    except Unreadable as problem:
        return _refused(problem.finding)
    except jobs.JobBusy:
        return _refused(held())


def _accept(where: str, job: Job, digest: str, via: str) -> Answer:
    if alive := living_run(where):
        return _refused(busy(alive))
    place = locate(where)
    answer = judge(place)
    verdict = answer.body["verdict"]
    if verdict not in ("verified", "partial"):
        return _refused(
            block(
                "not_acceptable",
                f"the result is {verdict}; only a verified or partial one can be accepted",
                ", ".join(check["code"] for check in answer.body["checks"] if check["ok"] is False),
                f"{hint('verify', where)} says what is wrong",
            ),
            *answer.findings,
        )
    if answer.body["digest"] != digest:
        return _refused(
            block(
                "digest_differs",
                "the result is not what this digest stands for",
                f"{clean(digest)[:80]} → {answer.body['digest']}",
                f"{hint('verify', where)} shows what it is now",
            )
        )
    now = Confirmation(digest, utc_now(), via)
    state = {"word": verdict, "where": "accepted", "updated_at": now.confirmed_at}
    run = place.newest if place.newest is not None and place.newest.exit is not None else None
    if run is not None:
        state |= {"word": word_of(run, answer), "run": run.id}
    jobs.write_job(where, replace(job, accepted=now, state=state))
    findings: list[Finding] = list(answer.findings)
    if run is not None and (problem := observe(place, answer, {"result": now.to_json()})):
        findings.append(problem)
    if run is not None and run.exit is not None and run.exit.status != 0:
        findings.append(
            Finding(
                "medium",
                "run_failed",
                "the output was accepted although its run failed",
                run.exit.words,
                "quark-tui status tells why it failed",
            )
        )
    body = {
        "accepted_at": now.confirmed_at,
        "via": via,
        "digest": digest,
        "verdict": verdict,
        "run_id": run.id if run is not None else None,
        "output_dir": answer.body["path"],
    }
    return Answer("accept", body, tuple(findings))


def _refused(*findings: Finding) -> Answer:
    nothing = dict.fromkeys(("accepted_at", "via", "digest", "verdict", "run_id", "output_dir"))
    return Answer("accept", nothing, findings, 1)
