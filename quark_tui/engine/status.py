"""``status``: the true state of a job or a run, from its files. Reads only."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.digest import digest
from quark_tui.core.finding import Finding
from quark_tui.core.ptq import plan as planning
from quark_tui.core.ptq.phases import PhaseReport
from quark_tui.core.ptq.tasks import PtqEvidence, PtqSpec, build
from quark_tui.core.run import verdict
from quark_tui.core.tasks import Task
from quark_tui.core.text import clean, human_duration, redact
from quark_tui.engine import failures
from quark_tui.engine.hint import hint
from quark_tui.engine.locate import Place, locate
from quark_tui.engine.progress import LogReader
from quark_tui.engine.stop import left_behind
from quark_tui.engine.verdict import judge, output_of
from quark_tui.io import artifacts
from quark_tui.io.runs.reading import RunState

_GOOD = frozenset({"running", "succeeded", "verified"})
#: Checks that never decide a verdict.
ADVISORY = frozenset({"tokenizer_unchanged", "size_plausible"})
#: A stop that was not heeded for longer than this is said to be not heeded (an interrupted quark-cli took 1.4 s).
_HEED_SECONDS = 10.0
_POLL_SECONDS = 0.25


def status(path: str, now: float | None = None, log: LogReader | None = None) -> Answer:
    """``now`` is the present time (seconds since the epoch). Raises WrongQuestion when there is no job or run there."""
    place = locate(path)
    state = place.newest
    moment = time.time() if now is None else now
    findings: list[Finding] = []
    if place.job_problem:
        findings.append(
            Finding("high", "job_unreadable", place.job_problem, place.path, "the run folders are still read")
        )
    if state is not None and state.problem:
        return _unreadable(place, state, findings)
    plan = _plan_of(place)
    reader = log or (LogReader(state.folder) if state is not None else None)
    phases = reader.read() if reader is not None and state is not None and state.log_size is not None else None
    verified = _verified(place, state, phases)
    output = left_behind(output_of(plan, place), 1000) if state is not None else []
    liveness, word = (
        (None, "not_started")
        if state is None
        else verdict(state.exit, state.liveness, bool(output), verified.body["verdict"] if verified else None)
    )
    tasks = build(_spec(plan), _evidence(place, state, phases, verified, len(output)))
    failure = None
    if state is not None and reader is not None and liveness in ("finished", "dead") and word != "succeeded":
        failure = failures.classified(state, reader, plan, output)
        findings += failures.findings(state, failure, word, output)
    if state is not None:
        findings += _stop_findings(state, moment)
        if state.exit_problem:
            findings.append(
                Finding(
                    "high", "exit_unreadable", clean(state.exit_problem), state.folder, "liveness is told without it"
                )
            )
        if state.run.get("refused"):
            findings.append(_refusal(state.run["refused"]))
    if verified is not None and (output or (state and state.exit and state.exit.status == 0)):
        findings += [finding for finding in verified.findings if finding.level != "info"]
    body = {
        "kind": place.job.workflow if place.job else (state.run.get("workflow") if state else None) or "ptq",
        "scope": place.scope,
        "path": place.path,
        "liveness": liveness,
        "liveness_evidence": state.liveness_evidence if state else "no run was started",
        "verdict": word,
        "stage": _stage(tasks),
        "process": _process(state),
        "runs": list(place.run_ids),
        "files": _files(state),
        "started_at": (state.process or {}).get("started_at") if state else None,
        "updated_at": _iso(state.updated_at) if state and state.updated_at else None,
        "fresh_seconds": _fresh(state, liveness, moment),
        "numbers": _numbers(state, phases, verified),
        "tasks": [task.to_json() for task in tasks],
        "advice": failures.advice(failure),
        "failure": failures.record(state, failure, plan, output),
        "accepted": place.job.accepted.to_json() if place.job and place.job.accepted else None,
        "checkpoints": dict(zip(("analysis", "plan"), _confirmed(place), strict=True)),
        "next": _next(place, liveness, word),
    }
    return Answer("status", body, tuple(dict.fromkeys(findings)), 0 if word in _GOOD else 1)


def follow(path: str) -> Iterator[Answer]:
    """A status for every change, the last one final: the run is over, cannot be told, or there is none."""
    place = locate(path)
    reader = LogReader(place.newest.folder) if place.newest else None
    target = place.newest.folder if place.newest else path
    shown: Any = None
    while True:
        answer = status(target, log=reader)
        body = dict(answer.body)
        body["scope"], body["path"] = place.scope, place.path
        answer = Answer("status", body, answer.findings, answer.exit)
        steady = {key: value for key, value in body.items() if key not in ("fresh_seconds", "updated_at")}
        steady["findings"] = [(finding.level, finding.code) for finding in answer.findings]
        over = body["liveness"] != "alive"
        if steady != shown or over:
            yield answer
        if over:
            return
        shown = steady
        time.sleep(_POLL_SECONDS)


def _unreadable(place: Place, state: RunState, findings: list[Finding]) -> Answer:
    findings.append(
        Finding(
            "high",
            "run_unreadable",
            clean(state.problem),
            state.folder,
            "the log and the output are still there to look at",
        )
    )
    body = {
        "kind": place.job.workflow if place.job else "ptq",
        "scope": place.scope,
        "path": place.path,
        "liveness": state.liveness or "unknown",
        "liveness_evidence": state.liveness_evidence,
        "verdict": "unreadable",
        "stage": None,
        "process": None,
        "runs": list(place.run_ids),
        "files": _files(state),
        "started_at": None,
        "updated_at": _iso(state.updated_at) if state.updated_at else None,
        "fresh_seconds": None,
        "numbers": {},
        "tasks": [],
        "advice": [],
        "failure": None,
        "accepted": None,
        "checkpoints": dict(zip(("analysis", "plan"), _confirmed(place), strict=True)),
    }
    return Answer("status", body, tuple(findings), 1)


def _plan_of(place: Place) -> dict[str, Any]:
    folders = [place.newest.folder] if place.newest else []
    folders += [place.job_path] if place.job_path else []
    for folder in folders:
        try:
            return artifacts.read(f"{folder}/quant_plan.json")
        except (FileNotFoundError, artifacts.ArtifactProblem):
            continue
    return {}


def _spec(plan: Mapping[str, Any]) -> PtqSpec:
    algorithm = plan.get("algorithm")
    return PtqSpec(
        evaluation=plan.get("evaluation_intent") not in (None, "none"),
        algorithm=algorithm if isinstance(algorithm, str) else "",
    )


def _verified(place: Place, state: RunState | None, phases: PhaseReport | None) -> Answer | None:
    if state is None or state.exit is None:
        return None
    return judge(place, phases.perplexity if phases else None)


def _confirmed(place: Place) -> tuple[bool, bool]:
    """Whether Checkpoints 1 and 2 hold by the artifacts on disk."""
    job, path = place.job, place.job_path
    if job is None or path is None:
        return False, False
    held = {"analysis": False, "plan": False}
    for name, file in (("analysis", "model_analysis.json"), ("plan", "quant_plan.json")):
        given = job.confirmations.get(name)
        if given is None:
            continue
        try:
            value = artifacts.read(f"{path}/{file}")
        except (FileNotFoundError, artifacts.ArtifactProblem):
            continue
        now = digest("model_analysis", value) if name == "analysis" else planning.plan_digest(value)
        held[name] = now == given.digest
    return held["analysis"], held["analysis"] and held["plan"]


def _evidence(
    place: Place, state: RunState | None, phases: PhaseReport | None, verified: Answer | None, files: int
) -> PtqEvidence:
    analysis, plan = _confirmed(place)
    checks = {check["code"]: check["ok"] for check in verified.body["checks"]} if verified else {}
    end = state.exit if state else None
    run = "none" if state is None or state.liveness is None else state.liveness
    return PtqEvidence(
        analysis_confirmed=analysis,
        plan_confirmed=plan,
        command_ready=plan,
        approved=state is not None and state.process is not None,
        run=run,
        exit_status=end.status if end else None,
        signal=end.signal if end else None,
        stopped_by=end.stopped_by if end else None,
        phases=phases,
        verify_verdict=verified.body["verdict"] if verified else None,
        verify_summary=_summary(verified),
        weights_seen=checks.get("weights_present"),
        accepted=place.job is not None and place.job.accepted is not None,
        output_files=files if state is not None else None,
    )


def _summary(verified: Answer | None) -> str:
    if verified is None:
        return ""
    body = verified.body
    wrong = [check["code"] for check in body["checks"] if check["ok"] is False and check["code"] not in ADVISORY]
    count = f"{body['quantized_modules']} of {body['expected_modules']} modules quantized"
    return f"{count}; not as planned: {', '.join(wrong)}" if wrong else count


def _next(place: Place, liveness: str | None, word: str) -> str | None:
    """The command that comes next for a person; None where nothing is left, or only a decision of hers."""
    job = place.job_path
    if job is None:
        return None
    if liveness is None:
        return hint("command" if _confirmed(place)[1] else "plan", job)
    if liveness == "alive":
        return hint("status", job, "--follow")
    if word in ("succeeded", "partial"):
        return None if place.job is not None and place.job.accepted is not None else hint("verify", job)
    return hint("command", job) if liveness in ("finished", "dead") else None


def _stage(tasks: tuple[Task, ...]) -> str | None:
    for wanted in ("active", "failed", "interrupted", "pending"):
        for task in tasks:
            if task.state == wanted:
                return task.key
    return tasks[-1].key if tasks else None


def _process(state: RunState | None) -> dict[str, Any] | None:
    started = state.process if state else None
    if not started:
        return None
    named = started.get("host")
    host: dict[str, Any] = named if isinstance(named, dict) else {}
    return {
        "pid": started.get("pid"),
        "started": started.get("started_at"),
        "host": host.get("name"),
        "boot_id": host.get("boot_id"),
    }


def _files(state: RunState | None) -> dict[str, str | None]:
    def there(name: str) -> str | None:
        path = f"{state.folder}/{name}" if state else ""
        return path if path and os.path.exists(path) else None

    return {"output_log": there("output.log"), "exit": there("exit.json")}


def _iso(moment: float) -> str:
    text = datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _fresh(state: RunState | None, liveness: str | None, now: float) -> float | None:
    if state is None or state.updated_at is None or liveness not in ("alive", "unknown"):
        return None
    return round(max(0.0, now - state.updated_at), 3)


def _numbers(state: RunState | None, phases: PhaseReport | None, verified: Answer | None) -> dict[str, Any]:
    numbers: dict[str, Any] = {}

    def put(name: str, value: Any, source: str, authoritative: bool) -> None:
        if value is not None:
            numbers[name] = {"value": value, "from": source, "authoritative": authoritative}

    if phases is not None:
        put("perplexity", phases.perplexity, "the log's own line", False)
    end = state.exit if state else None
    if end is not None:
        put("exit_status", end.status, "exit.json", True)
        put("signal", end.signal, "exit.json", True)
        put("peak_memory_bytes", end.peak_memory_bytes, "the kernel's count at the end, exit.json", True)
        put("elapsed_seconds", _elapsed(end.started_at, end.ended_at), "exit.json", True)
    if verified is not None and verified.body["files"]:
        put(
            "output_bytes", sum(file["size"] for file in verified.body["files"]), "the files in the output folder", True
        )
        put("quantized_modules", verified.body["quantized_modules"], "the safetensors headers", True)
    return numbers


def _elapsed(started: str, ended: str) -> float | None:
    try:
        return round(
            (datetime.datetime.fromisoformat(ended) - datetime.datetime.fromisoformat(started)).total_seconds(), 3
        )
    except ValueError:
        return None


def _stop_findings(state: RunState, now: float) -> list[Finding]:
    if state.liveness != "alive" or not state.stops:
        return []
    last = state.stops[-1]
    try:
        sent = datetime.datetime.fromisoformat(str(last.get("sent_at"))).timestamp()
    except ValueError:
        return []
    waited = now - sent
    name = clean(last.get("signal"))
    if waited < _HEED_SECONDS:
        return [
            Finding("info", "stop_sent", f"{name} was sent {human_duration(waited)} ago", "stops.jsonl", "wait for it")
        ]
    following = {"INT": "TERM", "TERM": "KILL"}.get(name, "KILL")
    return [
        Finding(
            "medium",
            "stop_not_heeded",
            f"{name} was sent {human_duration(waited)} ago and is not heeded",
            "stops.jsonl; the process lives",
            hint("stop", state.folder, "--signal", following, "--yes"),
        )
    ]


def _refusal(refused: Mapping[str, Any]) -> Finding:
    lines = "\n".join(redact(clean(line)) for line in refused.get("differences") or [])
    return Finding(
        "block",
        clean(refused.get("code", "refused")),
        redact(clean(refused.get("message", "the command was not started"))),
        lines,
        "quark-tui command shows what it is now; the approval was not used",
    )
