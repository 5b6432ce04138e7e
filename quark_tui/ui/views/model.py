"""What the model's files say, as rows: what Checkpoint 1 confirms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.ui.text import Part, safe, value_text
from quark_tui.ui.views import Row, section, title, weighed
from quark_tui.ui.widgets.row_list import Column, Entry


def layout(width: int) -> Sequence[Column]:
    """Fact, value, and where it was read."""
    value = max(0, (width - 24 - 5) * 55 // 100)
    return Column("FACT", 24), Column("VALUE", value), Column("FROM", max(0, width - 24 - 5 - value))


def rows(answer: Answer, ascii_only: bool) -> list[Row]:
    """Findings that weigh first, then every fact with its source, code and modules."""
    body = answer.body
    shown, notes = weighed(answer.findings, ascii_only)
    for number, question in enumerate(body.get("questions") or ()):
        text = safe(question)
        shown.append(Row(Entry(f"question-{number}", ((f"? {text}", "waiting"),), span=True), ((text, "text"),), text))
    if shown:
        shown.append(title("gap", ""))
    shown += [_fact(name, fact) for name, fact in body["facts"].items()]
    shown += _code(body["remote_code"])
    shown += _quantized(body["already_quantized"])
    return shown + _inventory(body["inventory"]) + notes


def _fact(name: str, fact: Mapping[str, Any]) -> Row:
    value, source = value_text(fact["value"]), safe(fact["from"], "")
    # Where the key is called as the fact is, the file alone says it; the detail has the whole.
    short = source.removesuffix(f": {safe(name)}")
    tone = "muted" if fact["value"] is None else "text"
    entry = Entry(f"fact.{name}", ((safe(name), "strong"), (value, tone), (short, "muted")))
    return Row(entry, ((f"{safe(name)} = {value}", "text"), (f"from {source or 'nowhere'}", "muted")), value)


def _code(found: Sequence[Mapping[str, Any]]) -> list[Row]:
    shown = section("title-code", "code that the model's files name")
    if not found:
        text = "none in this model, its tokenizer or processor"
        return [*shown, Row(Entry("code.none", ((text, "text"),), span=True), ((text, "text"),), text)]
    for number, one in enumerate(found):
        stopped = "stopped" if one["stopped_by_flag"] else "NOT stopped"
        text = f"{safe(one['file'])} {safe(one['key'])} → {safe(one['target'])}"
        words = f"{stopped} by --no_trust_remote_code"
        tone = "text" if one["stopped_by_flag"] else "failed"
        entry = Entry(f"code.{number}", ((text, "strong"), (f"  {words}", tone)), span=True)
        detail: tuple[Part, ...] = ((text, "text"), (words, tone), (f"sha256 {safe(one['sha256'])}", "muted"))
        shown.append(Row(entry, detail, text))
    return shown


def _quantized(found: Mapping[str, Any] | None) -> list[Row]:
    if found is None:
        return []
    text = f"already quantized: {safe(found['method'])}"
    detail: tuple[Part, ...] = ((text, "text"), (safe(found["evidence"]), "muted"))
    return [Row(Entry("quantized", ((f"! {text}", "warning"),), span=True), detail, text)]


def _inventory(found: Mapping[str, Any]) -> list[Row]:
    source = safe(found["source"])
    shown = section("title-linear", f"Linear modules: {safe(found['linear_count'])}  ({source})")
    for group in found["groups"]:
        pattern = safe(group["pattern"])
        count = f"{safe(group['count'])} × {_parameters(group['parameters'])}"
        entry = Entry(f"linear.{pattern}", ((pattern, "text"), (count, "text"), ("", "muted")))
        shown.append(Row(entry, ((pattern, "text"), (count, "text"), (source, "muted")), pattern))
    return shown


def _parameters(count: Any) -> str:
    return f"{count:,} parameters" if isinstance(count, int) else "unknown parameters"
