"""Is this folder the quantized checkpoint that was asked for? A verdict from config, headers and scalar scales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from quark_tui.core.digest import digest
from quark_tui.core.finding import Finding
from quark_tui.core.model.inventory import Inventory
from quark_tui.core.ptq.verify.case import Case, Source, build
from quark_tui.core.ptq.verify.checks import CHECKS, CODES, Check, uncalibrated
from quark_tui.core.ptq.verify.evidence import Document, Export, TokenizerFile
from quark_tui.core.ptq.verify.expectation import from_config, from_plan, parse_config
from quark_tui.core.text import clean

__all__ = ["CODES", "Check", "Document", "Export", "Source", "TokenizerFile", "Verification", "verify"]

Verdict = Literal["verified", "partial", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Verification:
    """The verdict with everything that it rests on. ``quantized`` and ``expected`` count modules, None is unknown."""

    verdict: Verdict
    against: Literal["plan", "config"]
    checks: tuple[Check, ...]
    quantized: int | None
    expected: int | None
    digest: str
    findings: tuple[Finding, ...]


def verify(
    export: Export,
    *,
    plan: Mapping[str, Any] | None = None,
    inventory: Inventory | None = None,
    source: Source | None = None,
) -> Verification:
    """Judge ``export`` against ``plan``, or against its own configuration when there is no plan.

    ``inventory`` are the source model's modules by their run-time names, which the export uses as well. Nothing is
    raised, whatever the folder holds.
    """
    document = export.config.data if isinstance(export.config.data, dict) else {}
    config = parse_config(document, export.other_config.data)
    named = inventory is not None and inventory.known
    expectation = from_config(config) if plan is None else from_plan(plan, config, run_time_names=named)
    case = build(export, config, expectation, source or Source(), inventory)
    checks = tuple(check(case) for check in CHECKS)
    verdict = _verdict(checks)
    # A count is only said when all headers were seen and the method is one that is judged here.
    counted = not case.blind and not case.foreign and (case.seen or not export.checkpoint.shards)
    quantized = len(case.quantized) if counted else None
    expected = None if case.expected is None or not counted else len(case.expected)
    return Verification(
        verdict,
        expectation.against,
        checks,
        quantized,
        expected,
        _digest(case, verdict, checks),
        _findings(case, checks),
    )


def _verdict(checks: tuple[Check, ...]) -> Verdict:
    if any(check.ok is False and check.weight == "fatal" for check in checks):
        return "failed"
    if any(check.undecided and (check.weight == "fatal" or check.code == "scheme_matches") for check in checks):
        return "unknown"
    if any(check.ok is False and check.weight == "partial" for check in checks):
        return "partial"
    if any(check.undecided for check in checks):
        return "unknown"
    return "verified"


def _digest(case: Case, verdict: str, checks: tuple[Check, ...]) -> str:
    observed = {
        "files": [[name, size] for name, size in case.export.files],
        "headers": [[shard.name, shard.size, shard.header_sha256] for shard in case.export.checkpoint.shards],
        "config": case.export.config.sha256,
        "tokenizer": [[file.name, file.sha256] for file in case.export.tokenizer],
        "verdict": verdict,
        "checks": [[check.code, check.ok, check.message, check.evidence] for check in checks],
    }
    return digest("verify", observed)


def _findings(case: Case, checks: tuple[Check, ...]) -> tuple[Finding, ...]:
    levels: dict[str, Literal["high", "medium", "low"]] = {"fatal": "high", "partial": "medium", "advisory": "low"}
    found = [
        Finding(levels[check.weight], check.code, check.message, check.evidence, check.next_step)
        for check in checks
        if check.ok is False
    ]
    found += [
        Finding("medium", f"{check.code}_undecided", check.message, check.evidence, check.next_step)
        for check in checks
        if check.undecided
    ]
    if case.foreign:
        found.append(
            Finding(
                "medium",
                "other_method",
                f"The folder is quantized by {case.foreign}, which is not Quark's own format.",
                case.config.where,
                "Only exports with quant_method quark are verified here.",
            )
        )
    if ones := uncalibrated(case):
        found.append(
            Finding(
                "low",
                "scales_partly_uncalibrated",
                f"{len(ones)} input scales are exactly 1.0, others are not.",
                ", ".join(clean(name) for name in ones[:3]),
                "Experts or branches that calibration never reached; more or other samples may reach them.",
            )
        )
    found += _dead_patterns(case)
    if case.unsure:
        found.append(
            Finding(
                "info",
                "linear_unknown",
                f"Headers cannot tell whether {len(case.unsure)} float weights are Linear.",
                ", ".join(clean(name) for name in case.unsure[:3]),
                "They are not counted as expected.",
            )
        )
    if case.export.config.note:
        found.append(Finding("low", "config_note", case.export.config.note, "config.json"))
    return tuple(found)


def _dead_patterns(case: Case) -> list[Finding]:
    """Patterns that meet no module of the folder: kept silently by quark-cli, mostly a slip of the pen."""
    if not case.seen or case.blind or case.foreign:
        return []
    found = []
    expectation = case.expectation
    used: set[str] = set()
    for name in case.modules:
        used.update(expectation.overrides.all(name))
    kv = {*case.config.kv_patterns, *(case.config.kv_group or ())}
    dead = [pattern for pattern in expectation.overrides.items if pattern not in used and pattern not in kv]
    if dead:
        found.append(
            Finding(
                "medium",
                "override_matches_nothing",
                f"{len(dead)} override patterns match no module.",
                ", ".join(clean(item)[:120] for item in dead[:3]),
                "Check the spelling of the pattern.",
            )
        )
    unmatched = set(expectation.excludes.items)
    for name in case.modules:
        unmatched.difference_update(expectation.excludes.all(name))
    if case.document.get("tie_word_embeddings") is not False:
        unmatched.discard("lm_head")  # tied: not stored at all
    # A module that is wrapped while it runs (a router) is saved under its outer name.
    unmatched = {item for item in unmatched if item.rpartition(".")[0] not in case.modules}
    if unmatched and expectation.against == "config":
        names = [item for item in expectation.excludes.items if item in unmatched]
        found.append(
            Finding(
                "low",
                "exclude_matches_nothing",
                f"{len(names)} excluded names match no module of the folder.",
                ", ".join(clean(item)[:120] for item in names[:3]),
                "Loaders compare these names with their own module names.",
            )
        )
    return found
