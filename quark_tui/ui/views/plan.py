"""The plan as rows: what Checkpoint 2 confirms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.text import human_bytes
from quark_tui.ui.text import Part, safe, value_text
from quark_tui.ui.views import Row, section, title, weighed
from quark_tui.ui.widgets.row_list import Column, Entry


def layout(width: int) -> Sequence[Column]:
    """Decision, value, why, and a sign where it is not the default."""
    rest = max(0, width - 20 - 1 - 7)
    value = rest * 45 // 100
    return (
        Column("DECISION", 20), Column("VALUE", value, middle=True), Column("WHY", rest - value), Column("●", 1),
    )  # fmt: skip


def rows(answer: Answer, ascii_only: bool) -> list[Row]:
    """What blocks first, then each decision with its reason, the patterns and what they match, the estimate."""
    body = answer.body
    shown, notes = weighed((one for one in answer.findings if one.code != "analysis_unconfirmed"), ascii_only)
    if shown:
        shown.append(title("gap", ""))
    shown += [_decision(row) for row in body["rows"]]
    if body["patterns"]:
        shown += section("title-patterns", "patterns")
        shown += [_pattern(number, one) for number, one in enumerate(body["patterns"])]
    estimate = body["estimate"]
    text = (
        f"output {human_bytes(estimate['output_bytes'])} · "
        f"peak memory {human_bytes(estimate['peak_memory_bytes'])} · time unknown"
    )
    basis = safe(estimate["basis"])
    shown += [
        *section("title-estimate", "estimate"),
        Row(Entry("estimate", ((text, "text"),), span=True), ((text, "text"), (basis, "muted")), text),
    ]
    return shown + notes


def decision(row: Mapping[str, Any]) -> str:
    """A row's value in words."""
    return "none" if row["value"] is None else value_text(row["value"])


def _decision(row: Mapping[str, Any]) -> Row:
    key, value, reason = safe(row["key"]), decision(row), safe(row["reason"] or "")
    missing = row["key"] == "global_scheme" and row["value"] is None
    entry = Entry(
        f"row.{key}",
        ((key, "strong"), (value, "waiting" if missing else "text"), (reason, "muted"),
         ("●" if row["changed"] else "", "waiting")),
    )  # fmt: skip
    default = "none" if row["default"] is None else value_text(row["default"])
    detail: list[Part] = [(f"{key} = {value}", "text"), (f"default: {default}", "muted")]
    if reason:
        detail.append((f"why: {reason}", "muted"))
    return Row(entry, tuple(detail), f"{key}={value}")


def _pattern(number: int, one: Mapping[str, Any]) -> Row:
    pattern, scheme = safe(one["pattern"]), "" if one["scheme"] is None else safe(one["scheme"])
    counts = f"matches {value_text(one['matches'])} · decides {value_text(one['effective'])}"
    what = f"{safe(one['kind'])} {pattern}"
    tone = "failed" if one["matches"] == 0 else "text"
    entry = Entry(
        f"pattern.{number}",
        ((safe(one["kind"]), "strong"), (pattern, "text"), (f"{scheme}{' · ' if scheme else ''}{counts}", tone)),
    )
    detail: list[Part] = [(f"{what} {scheme}", "text"), (f"{counts} of the model's modules", tone)]
    if one["shadowed_by"]:
        detail.append((f"hidden by {safe(one['shadowed_by'])}", "warning"))
    return Row(entry, tuple(detail), pattern)
