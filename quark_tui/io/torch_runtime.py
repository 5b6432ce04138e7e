"""The target's torch, asked in a process of its own: what it reaches, and whether an operation succeeds there."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quark_tui.core.text import clean, clean_lines, redact
from quark_tui.io.capture import Captured, capture

_PROBE = str(Path(__file__).with_name("probes") / "torch_runtime.py")
#: Seconds for everything: a first import from a cold network filesystem takes tens of them.
TIMEOUT = 60.0
_DEVICES_AT_MOST = 1024


@dataclass(frozen=True, slots=True)
class Operation:
    """One tensor operation; ``index`` counts as torch does (None: the CPU), ``error`` is "" when it succeeded."""

    index: int | None
    error: str


@dataclass(frozen=True, slots=True)
class Device:
    """A device as torch reports it; ``memory`` in bytes, ``arch`` the gfx name or the compute capability."""

    index: int
    name: str | None
    memory: int | None
    arch: str | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TorchRuntime:
    """What one start of torch showed. What was not reached is None, or missing from ``devices`` and ``operations``.

    ``version``, ``cuda`` and ``hip`` are the loaded module's own. ``status`` is the exit status, negative for a signal,
    None when the time was over; ``ended`` says it in words. ``stderr`` is all that was printed there, made safe, up to
    4 MiB. ``step`` is the last step that began; ``complete`` is True when all of them were done. ``error`` is the one
    line that says what went wrong, "" when nothing did.
    """

    version: str | None = None
    cuda: str | None = None
    hip: str | None = None
    available: bool | None = None
    count: int | None = None
    devices: tuple[Device, ...] = ()
    operations: tuple[Operation, ...] = ()
    complete: bool = False
    step: str = "start"
    status: int | None = None
    ended: str = ""
    error: str = ""
    stderr: str = field(default="", compare=False)
    imported: bool = False


def ask_torch(python: str, env: Mapping[str, str], timeout: float = TIMEOUT) -> TorchRuntime:
    """Start ``python`` (a path) with exactly ``env``, import torch there and try one operation on each device.

    It gets ``timeout`` seconds, no terminal and an empty folder; nothing of it is left behind. Nothing is raised: what
    went wrong is in the answer.
    """
    with tempfile.TemporaryDirectory(prefix="quark-tui-") as empty:
        try:
            answer = capture([python, "-P", "-B", _PROBE], env, timeout=timeout, cwd=empty)
            if answer.status and b"nknown option: -P" in answer.stderr:
                answer = capture([python, "-B", _PROBE], env, timeout=timeout, cwd=empty)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            said = f"{clean(python)} cannot be started: {clean(reason)}"
            return TorchRuntime(ended=said, error=said)
    return read_answer(answer, timeout)


def read_answer(answer: Captured, timeout: float) -> TorchRuntime:
    """What the steps on ``answer``'s stdout say; what is printed between them, or is odd in them, is passed over."""
    imported = complete = False
    version = cuda = hip = None
    available: bool | None = None
    count: int | None = None
    devices: dict[int, Device] = {}
    operations: dict[int | None, Operation] = {}
    step, failed = "start", ""
    for said in _steps(answer.stdout):
        name, index = said.get("step"), _count(said.get("index"))
        if name == "import":
            step = "importing torch"
        elif name == "imported":
            imported, step = True, "asking for devices"
            version, cuda, hip = (_text(said.get(key)) for key in ("version", "cuda", "hip"))
        elif name == "devices" and isinstance(said.get("available"), bool):
            available, count, step = said["available"], _count(said.get("count")), "asking the first device"
        elif name == "device" and index is not None:
            step = f"an operation on device {index}"
            memory = said.get("memory")
            devices[index] = Device(
                index,
                _text(said.get("name")),
                memory if isinstance(memory, int) and not isinstance(memory, bool) and memory >= 0 else None,
                _text(said.get("arch")),
                _text(said.get("problem")) or "",
            )
        elif name == "operation" and isinstance(said.get("error"), str) and said.get("index") in (None, index):
            operations[index] = Operation(index, _text(said["error"]) or "")
            step = "after the operation on " + ("the CPU" if index is None else f"device {index}")
        elif name == "failed":
            failed = _text(said.get("error")) or "an error without words"
        elif name == "end":
            complete, step = True, "all steps were done"
    ended = _ended(answer, timeout)
    complete = complete and answer.status == 0
    wrong = next((f"{_where(one.index)}: {one.error}" for one in operations.values() if one.error), "")
    return TorchRuntime(
        version=version,
        cuda=cuda,
        hip=hip,
        available=available,
        count=count,
        devices=tuple(devices.values()),
        operations=tuple(operations.values()),
        complete=complete,
        step=step,
        status=answer.status,
        ended=ended,
        error=failed or wrong or ("" if complete else f"{ended}; the last step was: {step}"),
        stderr=redact(clean_lines(answer.stderr.decode("utf-8", "replace"))),
        imported=imported,
    )


def _steps(stdout: bytes) -> list[dict[str, Any]]:
    found = []
    for line in stdout.splitlines():
        if b"quark_tui_torch" not in line:
            continue
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(said, dict):
            found.append(said)
    return found


def _text(value: object) -> str | None:
    return redact(clean(value)) if isinstance(value, str) else None


def _count(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if isinstance(value, int) and whole and 0 <= value <= _DEVICES_AT_MOST else None


def _where(index: int | None) -> str:
    return "CPU" if index is None else f"device {index}"


def _ended(answer: Captured, timeout: float) -> str:
    if answer.stuck is not None:
        return f"no answer within {timeout:g} s, and process {answer.stuck} does not end although it was killed"
    if answer.overflowed:
        return "killed for printing without end"
    if answer.status is None:
        return f"no answer within {timeout:g} s, so it was killed"
    if answer.status < 0:
        try:
            return f"killed by {signal.Signals(-answer.status).name}"
        except ValueError:
            return f"killed by signal {-answer.status}"
    return f"exit status {answer.status}"
