"""``Finding``: the one way a check speaks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["info", "low", "medium", "high", "block"]
LEVELS: tuple[Level, ...] = ("info", "low", "medium", "high", "block")

#: Codes that refuse something; contracts.md lists them for callers.
REFUSALS = frozenset(
    [
        "path_not_absolute",
        "output_not_empty",
        "output_is_model",
        "output_in_prefix",
        "parent_not_writable",
        "no_space",
        "scheme_missing",
        "scheme_unknown",
        "scheme_not_exportable",
        "kv_unsupported",
        "algorithm_unsupported",
        "group_size_indivisible",
        "batch_exceeds_samples",
        "override_overlaps",
        "override_shadowed",
        "pattern_matches_nothing",
        "excludes_everything",
        "compute_undecided",
        "devices_missing",
        "quark_needs_gpu",
        "template_missing",
        "model_type_unknown",
        "digest_differs",
        "digest_used",
        "already_running",
        "job_exists",
        "plan_unconfirmed",
        "analysis_unconfirmed",
    ]
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: a fact with its evidence and the next step.

    ``code`` is stable and machine-readable; ``evidence`` says where the fact was seen; ``next_step`` what to do.
    """

    level: Level
    code: str
    message: str
    evidence: str = ""
    next_step: str = ""

    def to_json(self) -> dict[str, str]:
        return {
            "level": self.level,
            "code": self.code,
            "message": self.message,
            "evidence": self.evidence,
            "next_step": self.next_step,
        }


def block(code: str, message: str, evidence: str = "", next_step: str = "") -> Finding:
    """A finding that refuses."""
    return Finding("block", code, message, evidence, next_step)


def blocks(findings: Iterable[Finding]) -> bool:
    """True when any finding refuses."""
    return any(finding.level == "block" for finding in findings)


def artifact_severity(level: Level) -> Literal["low", "medium", "high"]:
    """The word that AMD's risk list has for ``level``: info becomes low, block becomes high."""
    return {"info": "low", "low": "low", "medium": "medium", "high": "high", "block": "high"}[level]  # type: ignore[return-value]
