"""The task tree of a PTQ job, as a pure function of evidence.

Reattaching to a run is the same call as watching it. Where only quark-cli's log can witness a state (load,
calibration_data, quantize, freeze, evaluate) the task says ``from: log``; ``export`` and ``verify`` rest on the exit
and on the files, never on the log. More evidence never takes a done task back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from quark_tui.core.ptq.phases import PHASES, Bar, PhaseKey, PhaseReport
from quark_tui.core.tasks import Progress, State, Task, skip_after_failure
from quark_tui.core.text import clean

Run = Literal["none", "alive", "finished", "dead", "unknown"]
Verdict = Literal["verified", "partial", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class PtqSpec:
    """What the plan asks for: ``evaluation`` whether a perplexity was asked for, ``algorithm`` the algorithms or ""."""

    evaluation: bool = False
    algorithm: str = ""


@dataclass(frozen=True, slots=True)
class PtqEvidence:
    """What is known of a job and of its newest run.

    ``blocked`` holds the codes of findings that keep the command from being approved. ``stopped_by`` is the signal that
    our own stop sent and that ended the run. ``weights_seen`` is verify's weights_present: None when it has not looked.
    ``output_files`` counts the files in the output folder, None when nobody looked.
    """

    analysis_confirmed: bool = False
    plan_confirmed: bool = False
    command_ready: bool = False
    blocked: tuple[str, ...] = ()
    approved: bool = False
    run: Run = "none"
    exit_status: int | None = None
    signal: int | None = None
    stopped_by: str | None = None
    phases: PhaseReport | None = None
    verify_verdict: Verdict | None = None
    verify_summary: str = ""
    weights_seen: bool | None = None
    accepted: bool = False
    output_files: int | None = None


_STEPS: tuple[tuple[str, str, tuple[tuple[PhaseKey, str], ...]], ...] = (
    (
        "load",
        "Load the model",
        (("import", "Import Quark"), ("model", "Load the weights"), ("tokenizer", "Load the tokenizer")),
    ),
    ("calibration_data", "Load the calibration data", (("calibration_data", ""),)),
    (
        "quantize",
        "Quantize",
        (
            ("replace", "Replace the modules"),
            ("algorithm", "Apply the algorithm"),
            ("calibrate", "Calibrate"),
        ),
    ),
    ("freeze", "Freeze the quantized model", (("freeze", ""),)),
    ("export", "Export", (("export", ""),)),
    ("evaluate", "Evaluate", (("evaluate", ""),)),
)
_TASK_OF: dict[PhaseKey, str] = {phase: key for key, _, phases in _STEPS for phase, _ in phases}
_ORDER = [key for key, _, _ in _STEPS]


@dataclass(frozen=True, slots=True)
class _Stop:
    """How the run stands at the task that it is in: the state that this task gets, why, and what that rests on."""

    state: State
    reason: str
    source: str


def build(spec: PtqSpec, evidence: PtqEvidence) -> tuple[Task, ...]:
    """The tree. Its keys follow from ``spec`` alone; at most one task is active, and only while the run is alive."""
    tasks = [*_before(evidence), *_running(spec, evidence), _verify(evidence), _accept(evidence)]
    return skip_after_failure(tasks)


def _before(evidence: PtqEvidence) -> list[Task]:
    launched = evidence.run != "none"
    changed = "changed since this run was started; to be confirmed again" if launched else ""
    analysis = _checkpoint(
        "analysis", "Confirm the analysis", evidence.analysis_confirmed, changed or "waiting for you (Checkpoint 1)"
    )
    plan_waits = "waiting for you (Checkpoint 2)" if evidence.analysis_confirmed else "the analysis comes first"
    plan = _checkpoint("plan", "Confirm the plan", evidence.plan_confirmed, changed or plan_waits)
    if evidence.blocked:
        waits = f"blocked: {', '.join(clean(code) for code in evidence.blocked)}"
    elif not evidence.plan_confirmed:
        waits = "the plan comes first"
    else:
        waits = "not made yet"
    ready = evidence.command_ready and evidence.plan_confirmed and not evidence.blocked
    command = _checkpoint("command", "Make the command", ready or launched, waits, "plan" if ready else "run record")
    approval_waits = "waiting for you (Checkpoint 3)" if ready else "the command comes first"
    approval = _checkpoint(
        "approval",
        "Approve the command",
        launched or (evidence.approved and ready),
        approval_waits,
        "run record" if launched else "approval",
    )
    return [analysis, plan, command, approval]


def _checkpoint(key: str, title: str, done: bool, waits: str, source: str = "artifacts") -> Task:
    return Task(key, title, "done", source=source) if done else Task(key, title, reason=waits)


def _stop(evidence: PtqEvidence) -> _Stop | None:
    """How the run stands in its present task; None when the process ended with 0."""
    match evidence.run:
        case "alive":
            return _Stop("active", "", "process")
        case "unknown":
            return _Stop("pending", "whether the process still lives cannot be told from here", "")
        case "finished" if evidence.signal is not None:
            if evidence.stopped_by:
                return _Stop("interrupted", f"stopped by you with {clean(evidence.stopped_by)}", "exit")
            return _Stop("failed", f"ended by signal {evidence.signal}", "exit")
        case "finished" if evidence.exit_status is not None:
            if evidence.exit_status == 0:
                return None
            return _Stop("failed", f"the process ended with exit status {evidence.exit_status}", "exit")
        case "finished":
            return _Stop("interrupted", "the process has ended; how is not recorded", "exit")
    return _Stop("interrupted", "the process is gone and left no record of its end", "process")


def _running(spec: PtqSpec, evidence: PtqEvidence) -> list[Task]:
    keys = [key for key in _ORDER if key != "evaluate" or spec.evaluation]
    if evidence.run == "none":
        reason = "not started" if evidence.approved else "not approved yet"
        return [_plain_step(spec, key, reason) for key in keys]
    report = evidence.phases or PhaseReport()
    stop = _stop(evidence)
    if stop is None:
        return [_after_zero(spec, key, report, evidence) for key in keys]
    present = _TASK_OF[report.current] if report.current else "load"
    if present not in keys:
        present = "export"
    tasks: list[Task] = []
    for key in keys:
        if _ORDER.index(key) < _ORDER.index(present):
            tasks.append(_export_behind(stop) if key == "export" else _passed(spec, key, report))
        elif key == present:
            tasks.append(_present(spec, key, report, stop, evidence))
        else:
            tasks.append(_plain_step(spec, key, _not_reached(stop)))
    return tasks


def _not_reached(stop: _Stop) -> str:
    return {"active": "not reached yet", "interrupted": f"not reached: {stop.reason}"}.get(stop.state, "not seen")


def _step(key: str) -> tuple[str, tuple[tuple[PhaseKey, str], ...]]:
    return next((title, phases) for name, title, phases in _STEPS if name == key)


def _plain_step(spec: PtqSpec, key: str, reason: str) -> Task:
    title, phases = _step(key)
    return Task(key, title, reason=reason, children=_children(spec, phases, lambda _: ("pending", reason)))


def _passed(spec: PtqSpec, key: str, report: PhaseReport) -> Task:
    """A task behind which the log has shown a later phase."""
    title, phases = _step(key)
    return Task(
        key,
        title,
        "done",
        detail=_detail(key, report),
        source="log",
        children=_children(spec, phases, lambda _: ("done", ""), report, "log"),
    )


def _after_zero(spec: PtqSpec, key: str, report: PhaseReport, evidence: PtqEvidence) -> Task:
    if key == "export":
        return _export(evidence)
    title, phases = _step(key)
    seen = any(report.has(phase) or report.passed(phase) for phase, _ in phases)
    detail = _detail(key, report)
    if key == "evaluate" and report.perplexity is None:
        detail = "perplexity unknown: not in the log"
    source = "log" if seen else "exit"
    return Task(
        key,
        title,
        "done",
        detail=detail,
        source=source,
        children=_children(spec, phases, lambda _: ("done", ""), report, source),
    )


def _export(evidence: PtqEvidence) -> Task:
    """The export after exit status 0: the files decide."""
    title, _ = _step("export")
    detail = "" if evidence.output_files is None else f"{evidence.output_files} files"
    if evidence.weights_seen:
        return Task("export", title, "done", detail=detail, source="files")
    if evidence.weights_seen is None:
        return Task("export", title, detail=detail, reason="the process ended with 0; the output was not looked at yet")
    reason = "the process ended with 0, but verify saw no weights in the output"
    return Task("export", title, "failed", detail=detail, reason=reason, source="files")


def _export_behind(stop: _Stop) -> Task:
    """The export while, or after, a later phase was seen, without an exit status 0."""
    title, _ = _step("export")
    if stop.state == "active":
        return Task("export", title, reason="judged from the files when the process has ended")
    return Task(
        "export", title, reason="not counted as done: the process did not end with 0; verify says what is there"
    )


def _present(spec: PtqSpec, key: str, report: PhaseReport, stop: _Stop, evidence: PtqEvidence) -> Task:
    title, phases = _step(key)
    current = report.current
    progress = _progress(report.progress) if stop.state in ("active", "failed", "interrupted") else None
    if key == "export":
        files = evidence.output_files is not None and evidence.output_files > 0
        source = "files" if files and stop.state == "active" else stop.source
        detail = f"{evidence.output_files} files so far" if files else ""
        return Task(key, title, stop.state, detail=detail, reason=stop.reason, source=source, progress=progress)
    at = PHASES.index(current) if current else -1

    def state(phase: PhaseKey) -> tuple[State, str]:
        if current is None:
            return "pending", "nothing was written yet" if stop.state == "active" else "not seen"
        if PHASES.index(phase) < at:
            return "done", ""
        if phase == current:
            return stop.state, stop.reason
        return ("skipped" if stop.state == "failed" else "pending"), _not_reached(stop)

    return Task(
        key,
        title,
        stop.state,
        detail=_detail(key, report),
        reason=stop.reason,
        source="log" if current else stop.source,
        progress=progress,
        children=_children(spec, phases, state, report, "log", progress),
    )


def _children(
    spec: PtqSpec,
    phases: tuple[tuple[PhaseKey, str], ...],
    state_of: Callable[[PhaseKey], tuple[State, str]],
    report: PhaseReport | None = None,
    source: str = "",
    progress: Progress | None = None,
) -> tuple[Task, ...]:
    """The children of a task with several phases. An algorithm that was not planned is skipped, not missing."""
    if len(phases) < 2:
        return ()
    children: list[Task] = []
    for phase, title in phases:
        seen = report is not None and report.has(phase)
        if phase == "algorithm" and not spec.algorithm and not seen:
            children.append(Task(phase, title, "skipped", reason="the plan names no algorithm"))
            continue
        state, reason = state_of(phase)
        detail = next((clean(item.detail) for item in report.seen if item.key == phase), "") if report else ""
        if state == "done" and not seen and phase == "algorithm":
            detail = "its own lines were not seen"
        at_it = report is not None and phase == report.current
        children.append(
            Task(
                phase,
                title,
                state,
                detail=detail,
                reason=reason,
                source="" if state in ("pending", "skipped") else source,
                progress=progress if at_it else None,
            )
        )
    return tuple(children)


def _progress(bar: Bar | None) -> Progress | None:
    if bar is None:
        return None
    total = bar.total if bar.total is None or bar.total >= bar.done else None
    return Progress(bar.done, total, clean(bar.unit))


def _detail(key: str, report: PhaseReport) -> str:
    if key == "evaluate" and report.perplexity is not None:
        return f"perplexity {report.perplexity:.6g}"
    if key == "quantize" and report.exclude_table:
        return f"{sum(count for _, count in report.exclude_table)} modules excluded"
    return ""


def _verify(evidence: PtqEvidence) -> Task:
    title = "Verify the output"
    detail = clean(evidence.verify_summary)
    verdict = evidence.verify_verdict
    ended_well = evidence.run == "finished" and evidence.exit_status == 0 and evidence.signal is None
    if evidence.run in ("none", "alive"):
        return Task("verify", title, reason="the run comes first" if evidence.run == "none" else "not reached yet")
    if verdict in ("verified", "partial"):
        return Task("verify", title, "done", detail=f"{verdict}: {detail}" if detail else verdict, source="files")
    if verdict == "failed" and ended_well:
        return Task("verify", title, "failed", detail=detail, reason="verify says: failed", source="files")
    if verdict == "failed":
        return Task("verify", title, detail=detail, reason="the run did not end with 0, and verify says: failed")
    if verdict == "unknown":
        return Task("verify", title, detail=detail, reason="verify cannot tell")
    return Task("verify", title, reason="not verified yet")


def _accept(evidence: PtqEvidence) -> Task:
    title = "Accept the result"
    if evidence.run in ("none", "alive") or evidence.verify_verdict not in ("verified", "partial"):
        return Task("accept", title, reason="a verified or partial result comes first")
    if evidence.accepted:
        return Task("accept", title, "done", source="job")
    return Task("accept", title, reason="waiting for you (Checkpoint 4)")
