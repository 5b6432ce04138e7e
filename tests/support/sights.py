"""Looks at a run that was never started: the real task tree, from a log and an end that a test writes down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.command import Command
from quark_tui.core.finding import Finding
from quark_tui.core.logtext import Folder, Line
from quark_tui.core.ptq.phases import Phases
from quark_tui.core.ptq.tasks import PtqEvidence, PtqSpec, build
from quark_tui.ui.services import Sight

JOB = "/jobs/demo"
RUN = "20260102T030405.000001Z-abc123"
FOLDER = f"{JOB}/.quark-tui/runs/{RUN}"
COMMAND = Command(
    (
        "/venvs/quark/bin/quark-cli",
        "torch-llm-ptq",
        "--model_dir",
        "/models/smollm2",
        "--quant_scheme",
        "fp8",
        "--x=[/b]",
    ),
    JOB,
    {"QUARK_LOG_LEVEL": "info"},
    ("CUDA_VISIBLE_DEVICES",),
    writes=(f"{JOB}/out",),
)
LOADING = b"[QUARK-INFO]: Loading model ...\n[QUARK-INFO]: Initializing tokenizer from /models/smollm2\n"
CALIBRATING = (
    LOADING
    + b"[QUARK-INFO]: Loading dataset ...\n"
    + b"[QUARK-INFO]: Using weight quantization\n[QUARK-INFO]: Calibration start.\n"
    + b"[QUARK-WARNING]: a scale is [/odd]\n"
)
BAR = b"\rCalibrating activations:  24%|##  | 31/128 [00:02<00:06, 13.9it/s]"


def lines_of(data: bytes) -> tuple[tuple[Line, ...], str]:
    """The finished lines of ``data`` and the open last one."""
    folder = Folder()
    return tuple(folder.feed(data)), folder.pending


def sight(
    log: bytes = b"",
    *,
    liveness: str | None = "alive",
    verdict: str = "running",
    findings: Sequence[Finding] = (),
    numbers: dict[str, Any] | None = None,
    fresh: float | None = 4.0,
    scope: str = "job",
    folder: str = FOLDER,
    verify: Any = None,
    exit_status: int | None = None,
    signal: int | None = None,
    stopped_by: str | None = None,
    stops: tuple[str, ...] = (),
    **body: Any,
) -> Sight:
    """A look at a run that wrote ``log``; ``numbers`` are values by name."""
    lines, pending = lines_of(log)
    phases = Phases()
    phases.feed(lines, pending)
    evidence = PtqEvidence(
        analysis_confirmed=True, plan_confirmed=True, command_ready=True, approved=True,
        run=liveness or "none", exit_status=exit_status, signal=signal, stopped_by=stopped_by,
        phases=phases.report(), verify_verdict=verify, verify_summary="14 of 14 modules quantized" if verify else "",
        weights_seen=True if verify else None, output_files=6 if verify else 0,
    )  # type: ignore[arg-type]  # fmt: skip
    given = {"exit_status": exit_status, "signal": signal, **(numbers or {})}
    answer = Answer(
        "status",
        {
            "kind": "ptq",
            "scope": scope,
            "path": JOB if scope == "job" else folder,
            "liveness": liveness,
            "liveness_evidence": "alive.lock is held by the process itself"
            if liveness == "alive"
            else "exit.json, recorded by the supervisor",
            "verdict": verdict,
            "stage": None,
            "process": {"pid": 31842, "started": "2026-01-02T03:04:05.678Z", "host": "gpu-box-7", "boot_id": "b"},
            "runs": [RUN],
            "files": {"output_log": f"{folder}/output.log", "exit": None},
            "started_at": "2026-01-02T03:04:05.000Z",
            "updated_at": "2026-01-02T03:06:04.000Z",
            "fresh_seconds": fresh if liveness in ("alive", "unknown") else None,
            "numbers": {
                name: {"value": value, "from": "a test", "authoritative": True}
                for name, value in given.items()
                if value is not None
            },
            "tasks": [task.to_json() for task in build(PtqSpec(), evidence)],
            "advice": [],
            "failure": None,
            "accepted": None,
            "checkpoints": {"analysis": True, "plan": True},
            "next": None,
            **body,
        },
        tuple(findings),
    )
    return Sight(answer, lines, pending, folder, COMMAND, stops)


def again(seen: Sight) -> Sight:
    """The same look a moment later: an equal answer, and no line that is new."""
    return replace(seen, status=replace(seen.status), lines=(), begun=False, remark="")


ENDED = {"elapsed_seconds": 61.9, "peak_memory_bytes": 1_400_000_000}
FAILURE = Finding(
    "high",
    "failure_out_of_memory",
    "torch could not allocate 2.00 GiB",
    "RuntimeError: [/x] out of memory",
    "ask for fewer samples: quark-tui plan --set num_calib_data=64",
)


def verified() -> Sight:
    """A run that ended with 0 and whose output is as planned."""
    log = CALIBRATING + b"[QUARK-INFO]: Freeze model start.\n[QUARK-INFO]: Start exporting\n"
    return sight(log, liveness="finished", verdict="succeeded", verify="verified", exit_status=0, numbers=ENDED)


def failed() -> Sight:
    """A run that ended with 1 in the middle of calibration."""
    log = CALIBRATING + BAR + b"\n[QUARK-ERROR]: RuntimeError: out of memory\n"
    return sight(log, liveness="finished", verdict="failed", exit_status=1, numbers=ENDED, findings=(FAILURE,))
