"""A run as its folder tells it: ``run.json``, ``exit.json``, liveness, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Liveness = Literal["alive", "dead", "finished", "unknown"]
Verdict = Literal[
    "not_started",
    "running",
    "succeeded",
    "partial",
    "failed",
    "interrupted",
    "unknown",
    "unreadable",
    "below_target",
    "unhealthy_baseline",
]

RUN_SCHEMA = "quark-tui.run.v1"
EXIT_SCHEMA = "quark-tui.exit.v1"


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """Where a process lives. ``boot_id`` and ``pid_namespace`` are None where the kernel does not tell."""

    name: str
    machine_id: str | None
    boot_id: str | None
    pid_namespace: str | None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "machine_id": self.machine_id,
            "boot_id": self.boot_id,
            "pid_namespace": self.pid_namespace,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> HostIdentity:
        return cls(data["name"], data.get("machine_id"), data.get("boot_id"), data.get("pid_namespace"))


@dataclass(frozen=True, slots=True)
class Exit:
    """How the child ended. Exactly one of ``status`` and ``signal`` is a number; times are ISO 8601 UTC.

    ``oom_kill``: whether the kernel killed for memory, None when it cannot be told. ``resources``: what the machine had
    left at that moment, in bytes.
    """

    status: int | None
    signal: int | None
    started_at: str
    ended_at: str
    peak_memory_bytes: int | None
    recorded_by: str
    stopped_by: str | None
    oom_kill: bool | None = None
    resources: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": EXIT_SCHEMA,
            "status": self.status,
            "signal": self.signal,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "peak_memory_bytes": self.peak_memory_bytes,
            "recorded_by": self.recorded_by,
            "stopped_by": self.stopped_by,
            "oom_kill": self.oom_kill,
            "resources": None if self.resources is None else dict(self.resources),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Exit:
        """Raises ValueError when the record is not one."""
        status, signal = data.get("status"), data.get("signal")
        told, other = (status, signal) if signal is None else (signal, status)
        if type(told) is not int or not 0 <= told < 1 << 31 or other is not None:
            raise ValueError("exactly one of status and signal is a number, the other null")
        peak = data.get("peak_memory_bytes")
        return cls(
            status,
            signal,
            str(data.get("started_at", "")),
            str(data.get("ended_at", "")),
            peak if type(peak) is int else None,
            str(data.get("recorded_by", "")),
            data["stopped_by"] if isinstance(data.get("stopped_by"), str) else None,
            data["oom_kill"] if isinstance(data.get("oom_kill"), bool) else None,
            data["resources"] if isinstance(data.get("resources"), dict) else None,
        )

    @property
    def words(self) -> str:
        if self.signal is not None:
            return f"ended by signal {self.signal} ({SIGNAL_NAMES.get(self.signal, 'unnamed')})"
        return f"exit status {self.status}"


SIGNAL_NAMES = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
    11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ",
}  # fmt: skip
#: Where the signals that stop sends are put on record; the second where the first cannot be appended to.
STOP_FILES = ("stops.jsonl", "stops.2.jsonl")
MAX_STOPS = 1 << 19
STOP_SIGNALS = {"INT": 2, "TERM": 15, "KILL": 9}


def ended_by_stop(status: int | None, signal: int | None, sent: set[str]) -> str | None:
    """The name of the sent signal that ended the child, None when none did.

    Python turns SIGINT into exit status 130 or into the signal itself; shells and handlers use 128 + N for the others.
    """
    for name in ("KILL", "TERM", "INT"):
        number = STOP_SIGNALS[name]
        if name in sent and (signal == number or (signal is None and status == 128 + number)):
            return name
    return None


def verdict(
    exit: Exit | None, liveness: Liveness | None, output_written: bool, verified: str | None
) -> tuple[Liveness | None, Verdict]:
    """The table of contracts.md, "Words": (liveness, verdict) of a run.

    ``liveness`` is what lock and identity say while there is no exit record; ``verified`` the verdict of ``verify``.
    """
    if exit is not None:
        if exit.stopped_by is not None and exit.status != 0:  # with 0 the signal was not heeded, whatever is recorded
            return "finished", "interrupted"
        if exit.status != 0:
            return "finished", "failed"
        words: dict[str | None, Verdict] = {"verified": "succeeded", "partial": "partial", "failed": "failed"}
        return "finished", words.get(verified, "unknown")
    if liveness == "alive":
        return "alive", "running"
    if liveness == "dead":
        return "dead", "unknown" if output_written else "interrupted"
    if liveness is None:
        return None, "not_started"
    return "unknown", "unknown"
