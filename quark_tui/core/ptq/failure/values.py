"""What a classed failure is, and what a rule may look at."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from quark_tui.core.logtext import Line
from quark_tui.core.ptq.phases import PhaseKey, PhaseReport

Kind = Literal[
    "environment",
    "load",
    "compatibility",
    "memory",
    "configuration",
    "quantization",
    "export",
    "interrupted",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class FailureContext:
    """Facts about the run that the log does not hold; None or empty is unknown.

    ``stopped_by`` is the signal that our own stop sent. ``kernel_word`` is what the kernel or the scheduler says of a
    kill (dmesg, memory.events, slurmstepd). ``requires_transformers`` is the installed Quark's own requirement,
    ``model_transformers`` the version that the model's config.json names.
    """

    interpreter: str = ""
    quark_version: str | None = None
    torch_version: str | None = None
    transformers_version: str | None = None
    requires_transformers: str | None = None
    model_transformers: str | None = None
    gpu_available: bool | None = None
    device_strategy: str | None = None
    devices: int | None = None
    model_dir: str = ""
    output_dir: str = ""
    stopped_by: str | None = None
    kernel_word: str = ""
    max_map_count: int | None = None
    output_missing: bool = False
    phase: PhaseKey | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A classed failure.

    ``message`` is the last exception (all its lines) or the sentence that ended the run; ``evidence`` the lines that
    prove the class, each beginning with ``line N: `` where it comes from the log; ``checkpoint`` the one that
    ``next_step`` leads back to (1 analysis, 2 plan, 3 approval), None when nothing is to change; ``whole_error`` the
    text of the whole traceback with its chain, or the tail of the log where there is none.
    """

    kind: Kind
    message: str
    evidence: tuple[str, ...]
    next_step: str
    whole_error: str
    checkpoint: int | None = None
    code: str = ""
    phase: PhaseKey | None = None


@dataclass(frozen=True, slots=True)
class RaisedError:
    """One exception of a traceback: its frames and its message lines."""

    start: int  # index of the first line of its traceback
    end: int  # index behind its last message line
    type: str
    text: str  # type and message
    lines: tuple[Line, ...] = ()
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that a rule may look at."""

    context: FailureContext
    report: PhaseReport
    phase: PhaseKey | None
    frames: str
    chain: tuple[RaisedError, ...] = field(default=())

    @property
    def cpu_only(self) -> bool:
        """No GPU was there: the caller knows, or the log of a started load lists none while weights were offloaded."""
        if self.context.gpu_available is not None:
            return not self.context.gpu_available
        return self.report.offloaded_to_disk and not self.report.gpus_listed and self.report.has("model")

    @property
    def quark(self) -> tuple[int, ...] | None:
        return _version(self.context.quark_version or self.report.quark_version)


Advice = tuple[str, int | None]
Step = Callable[[Case, str], Advice]


def _version(text: str | None) -> tuple[int, ...] | None:
    match = re.match(r"(\d{1,6})\.(\d{1,6})", text or "")
    return (int(match.group(1)), int(match.group(2))) if match else None
