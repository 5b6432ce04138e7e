"""torch's own word on what it reaches: asked in the target interpreter, after everything that needs no torch.

Build family and runtime stay two facts: a ROCm build that reaches no device is still a ROCm build.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.finding import Finding, blocks
from quark_tui.core.text import clean, elide_end
from quark_tui.engine.environment import Look, look, ready
from quark_tui.engine.environment_facts import compute, masks, torch_backend, torch_version
from quark_tui.io.host import device_files
from quark_tui.io.target import Target
from quark_tui.io.torch_runtime import TIMEOUT, TorchRuntime, ask_torch

_WHOLE = "the whole output: quark-tui env --torch --json, torch_runtime.stderr"


def torch_runtime(target: Target, environ: Mapping[str, str], timeout: float = TIMEOUT) -> TorchRuntime:
    """Import ``target``'s torch in a process of its own, with ``environ``, and try an operation on each device.

    It may take ``timeout`` seconds; nothing of Quark is imported, nothing is raised, no process is left behind.
    """
    return ask_torch(target.executable or target.asked, environ, timeout)


def environment_with_torch(python: str | None, environ: Mapping[str, str], timeout: float = TIMEOUT) -> Answer:
    """What ``env --torch`` says. Raises WrongQuestion as ``environment`` does."""
    found = look(python, environ)
    if found.target is None or torch_backend(found.target) is None:
        return found.answer()  # there is no torch to be asked, which is said already
    return with_runtime(found, torch_runtime(found.target, environ, timeout), environ)


def with_runtime(found: Look, runtime: TorchRuntime, environ: Mapping[str, str]) -> Answer:
    """The answer of ``found`` with what torch said: facts, findings, compute and readiness anew."""
    assert found.target is not None
    facts = {**found.body["torch"], **runtime_facts(runtime)}
    body: dict[str, Any] = {
        **found.body,
        "torch": facts,
        "torch_runtime": evidence_of(runtime),
        "compute": compute(found.target, found.seen, facts),
        "sources": {**found.body["sources"], "torch_runtime": f"torch in {clean(found.target.executable)}, imported"},
    }
    body["readiness"] = ready(body)
    findings = (*found.findings, *runtime_findings(found.target, found.seen, runtime, environ))
    return Answer("env", body, findings, 1 if blocks(findings) else 0)


def runtime_facts(runtime: TorchRuntime) -> dict[str, Any]:
    """The runtime part of ``torch`` in the answer ``env``.

    ``operation_ok`` is True when one succeeded on each device (on the CPU where there is none), False when one failed
    or torch ended over it, None when the time was over first. ``operation_error`` is the line that says why.
    """
    failed = any(one.error for one in runtime.operations)
    silent = runtime.status is None and not failed
    return {
        "gpu_available": runtime.available,
        "device_count": runtime.count,
        "device_names": None if runtime.count is None else _names(runtime),
        "operation_ok": None if silent else runtime.complete and not failed,
        "operation_error": runtime.error or None,
    }


def evidence_of(runtime: TorchRuntime) -> dict[str, Any]:
    """``torch_runtime`` in the answer ``env``: what the facts rest on.

    ``imported`` is None when the time was over before it was known; ``loaded`` is the version, CUDA and HIP of the
    module itself; ``devices`` carry bytes of memory and the architecture; ``ended`` is the exit in words.
    """
    return {
        "imported": True if runtime.imported else None if runtime.status is None else False,
        "loaded": {"version": runtime.version, "cuda": runtime.cuda, "hip": runtime.hip} if runtime.imported else None,
        "devices": [
            {"index": one.index, "name": one.name, "memory_total": one.memory, "arch": one.arch}
            for one in runtime.devices
        ],
        "operations": [{"index": one.index, "error": one.error or None} for one in runtime.operations],
        "exit_status": runtime.status,
        "ended": runtime.ended,
        "step": runtime.step,
        "stderr": runtime.stderr,
    }


def _names(runtime: TorchRuntime) -> list[str | None]:
    named = {one.index: one.name for one in runtime.devices}
    return [named.get(index) for index in range(runtime.count or 0)]


def runtime_findings(
    target: Target, seen: Mapping[str, Any], runtime: TorchRuntime, environ: Mapping[str, str]
) -> list[Finding]:
    """What torch's answer means: it cannot be imported, an operation fails, it reaches no device that is there."""
    evidence = elide_end(_last(runtime.stderr) or runtime.ended, 300)
    who = f"torch {clean(torch_version(target) or 'of unknown version')}"
    found: list[Finding] = []
    if runtime.status is None and not any(one.error for one in runtime.operations):
        step = "Try again: a first import reads much. If it stays so, look at the driver's log (dmesg) and at the disk."
        return [Finding("high", "torch_silent", f"{who} gave no whole answer: {runtime.error}.", evidence, step)]
    if not runtime.imported:
        message = f"{who} cannot be imported by {clean(target.executable)}: {runtime.error}."
        step = f"Install the build of torch that matches this Python and machine; {_WHOLE}."
        return [Finding("high", "torch_import_failed", message, evidence, step)]
    build = target.torch
    if build and build.version and runtime.version and build.version != runtime.version:
        found.append(
            Finding(
                "medium",
                "torch_shadowed",
                f"torch {clean(runtime.version)} is what is imported, its files say {clean(build.version)}.",
                clean(build.file),
                "Look for another torch on PYTHONPATH or in the user site.",
            )
        )
    if any(one.error for one in runtime.operations) or not runtime.complete:
        message = f"{who} is imported, but does not work: {runtime.error}."
        step = f"The build has to have kernels for this device and driver; {_WHOLE}."
        found.append(Finding("high", "torch_operation_failed", message, evidence, step))
    elif runtime.available is False and seen["gpu_verdict"] == "gpus" and torch_backend(target) in ("cuda", "rocm"):
        found.append(_unreached(who, target, seen, evidence, environ))
    return found


def _unreached(who: str, target: Target, seen: Mapping[str, Any], evidence: str, environ: Mapping[str, str]) -> Finding:
    """torch was built for GPUs, GPUs are here, and it reaches none: a mask, a device file, or driver and runtime."""
    message = (
        f"{who} is a {torch_backend(target)} build and reaches none of the {len(seen['gpus'])} GPUs that are here."
    )
    shown = masks(environ, seen)
    closed = [file["path"] for file in device_files() if not file["accessible"]]
    if shown["applied"] and shown["visible"] == []:
        names = " and ".join(shown["applied"])
        said = ", ".join(f"{name}={clean(environ[name])}" for name in shown["applied"])
        return Finding("high", "torch_sees_no_device", message, said, f"Unset or change {names}: it leaves no device.")
    if closed:
        said = f"this user may not read and write {', '.join(closed)}"
        step = "Have the user added to the group that owns these files (video, render), and log in again."
        return Finding("high", "torch_sees_no_device", message, said, step)
    step = (
        "The driver may be too old for this build or another GPU family than it has kernels for: compare "
        f"the driver {clean(seen['driver'] or 'of unknown version')} with what the build asks for."
    )
    return Finding("high", "torch_sees_no_device", message, evidence, step)


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
