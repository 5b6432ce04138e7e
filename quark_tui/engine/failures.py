"""What a run that did not succeed leaves to be said: its class with evidence, the whole record, the smallest change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from quark_tui.core.finding import Finding
from quark_tui.core.ptq.failure import Failure, FailureContext, classify
from quark_tui.core.text import clean, redact
from quark_tui.engine.progress import LogReader
from quark_tui.io.runs.reading import RunState


def _context(state: RunState, plan: Mapping[str, Any], output: list[dict[str, object]]) -> FailureContext:
    versions = state.run.get("inputs", {}).get("versions", {})
    subject = state.run.get("subject", {})
    end = state.exit
    devices = plan.get("devices")
    model = plan.get("model")
    given = state.run.get("about")
    about: dict[str, Any] = given if isinstance(given, dict) else {}
    return FailureContext(
        interpreter=str(subject.get("interpreter", "")),
        quark_version=versions.get("amd-quark"),
        torch_version=versions.get("torch"),
        transformers_version=versions.get("transformers"),
        requires_transformers=_word(about.get("requires_transformers")),
        model_transformers=_word(about.get("model_transformers")),
        gpu_available=None if about.get("gpus") is None else bool(about["gpus"]),
        max_map_count=_max_map_count(),
        device_strategy=plan.get("device_strategy"),
        devices=len(devices) if isinstance(devices, list) else None,
        model_dir=str(model.get("model_path", "")) if isinstance(model, Mapping) else "",
        output_dir=str(plan.get("output_dir") or ""),
        stopped_by=end.stopped_by if end else None,
        kernel_word="this cgroup's oom_kill count rose" if end and end.oom_kill else "",
        output_missing=not output,
    )


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _max_map_count() -> int | None:
    """vm.max_map_count: huge MoE runs on several devices can exhaust it and end in misleading memory errors."""
    try:
        with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def classified(state: RunState, reader: LogReader, plan: Mapping[str, Any], output: list[dict[str, object]]) -> Failure:
    """The failure of an ended run by its log, exit record and plan; ``output`` is what lies in its output folder."""
    end = state.exit
    return classify(
        reader.finished(), end.status if end else None, end.signal if end else None, _context(state, plan, output)
    )


def findings(state: RunState, failure: Failure, word: str, output: list[dict[str, object]]) -> list[Finding]:
    """The failure itself with the lines that prove it, and a partial output where there is one."""
    ended = state.exit.words if state.exit else state.liveness_evidence
    found: list[Finding] = []
    if state.exit is None or state.exit.status != 0:
        evidence = "\n".join(redact(clean(line)) for line in (ended, *failure.evidence))
        found.append(
            Finding(
                "high",
                f"failure_{failure.kind}",
                redact(clean(failure.message)) or ended,
                evidence,
                clean(failure.next_step),
            )
        )
    if output and word != "succeeded" and (state.exit is None or state.exit.status != 0):
        names = ", ".join(clean(os.path.basename(str(file["path"]))) for file in output[:10])
        found.append(
            Finding(
                "medium",
                "partial_output",
                f"{len(output)} files are in the output folder; whether they are whole is for verify to say",
                names,
                "nothing is deleted; another run needs another or an empty output folder",
            )
        )
    return found


def record(
    state: RunState | None, failure: Failure | None, plan: Mapping[str, Any], output: list[dict[str, object]]
) -> dict[str, Any] | None:
    """Command, status or signal, whole error, versions and resources, kept together."""
    if state is None or failure is None:
        return None
    commands = state.run.get("commands") or [{}]
    end = state.exit
    return {
        "kind": failure.kind,
        "code": failure.code,
        "message": redact(clean(failure.message)),
        "evidence": [redact(clean(line)) for line in failure.evidence],
        "whole_error": redact(failure.whole_error),
        "next_step": failure.next_step,
        "checkpoint": failure.checkpoint,
        "command": [redact(clean(item)) for item in commands[0].get("argv", [])],
        "status": end.status if end else None,
        "signal": end.signal if end else None,
        "versions": state.run.get("inputs", {}).get("versions", {}),
        "resources": {
            "peak_memory_bytes": end.peak_memory_bytes if end else None,
            "oom_kill": end.oom_kill if end else None,
            "left_at_the_end": end.resources if end else None,
            "limits": state.run.get("limits"),
            "preallocated_log_bytes": (state.run.get("log") or {}).get("preallocated_bytes"),
        },
        "left_behind": output,
    }


def advice(failure: Failure | None) -> list[dict[str, Any]]:
    """The smallest bounded change; never a retry by itself."""
    if failure is None or not failure.next_step:
        return []
    return [
        {"action": "smallest_change", "legal": True, "recommended": True, "why": clean(failure.next_step), "argv": None}
    ]
