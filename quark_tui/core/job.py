"""A job: one piece of work on one model, as ``.quark-tui/job.json`` keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

JOB_SCHEMA = "quark-tui.job.v1"
WORKFLOWS = ("ptq", "install", "quant-perf")
Checkpoint = Literal["analysis", "plan"]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Somebody confirmed ``digest`` at a checkpoint; ``via`` is screen or cli, ``confirmed_at`` ISO 8601 UTC."""

    digest: str
    confirmed_at: str
    via: str

    def to_json(self) -> dict[str, Any]:
        return {"digest": self.digest, "confirmed_at": self.confirmed_at, "via": self.via}


@dataclass(frozen=True, slots=True)
class Job:
    """``model``, ``output`` and ``python`` are absolute paths; ``wishes`` and ``corrections`` are what was asked for.

    ``state`` is for lists only: ``{"word", "where", "updated_at"}`` as of the last command; run folders tell the truth.
    """

    workflow: str
    created_at: str
    model: str | None
    output: str
    python: str | None
    wishes: Mapping[str, Any] = field(default_factory=dict)
    corrections: Mapping[str, Any] = field(default_factory=dict)
    confirmations: Mapping[str, Confirmation] = field(default_factory=dict)
    used: tuple[str, ...] = ()
    accepted: Confirmation | None = None
    state: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": JOB_SCHEMA,
            "workflow": self.workflow,
            "created_at": self.created_at,
            "target": {"python": self.python},
            "model": self.model,
            "output": self.output,
            "wishes": dict(self.wishes),
            "corrections": dict(self.corrections),
            "confirmations": {name: one.to_json() for name, one in self.confirmations.items()},
            "used_digests": list(self.used),
            "accepted": self.accepted.to_json() if self.accepted else None,
            "state": dict(self.state),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """The job of a ``job.json`` that its schema accepted."""
        accepted = data["accepted"]
        return cls(
            workflow=data["workflow"],
            created_at=data["created_at"],
            model=data["model"],
            output=data["output"],
            python=data["target"]["python"],
            wishes=data["wishes"],
            corrections=data["corrections"],
            confirmations={name: Confirmation(**one) for name, one in data["confirmations"].items()},
            used=tuple(data["used_digests"]),
            accepted=Confirmation(**accepted) if accepted else None,
            state=data["state"],
        )
