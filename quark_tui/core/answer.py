"""``Answer``: what a command or a screen gets from a use case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from quark_tui.core.finding import Finding


@dataclass(frozen=True, slots=True)
class Answer:
    """The envelope of contracts.md: ``schema`` is ``quark-tui.COMMAND.v1``; ``exit`` is 0 or 1."""

    command: str
    body: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    exit: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": f"quark-tui.{self.command}.v1",
            **self.body,
            "findings": [finding.to_json() for finding in self.findings],
        }


class WrongQuestion(Exception):
    """The question itself is wrong (usage, an unknown row key, no such path): one line on stderr, exit 2."""
