"""The target interpreter and this machine as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.text import human_bytes
from quark_tui.ui.text import safe, value_text
from quark_tui.ui.views import Row, findings, section
from quark_tui.ui.widgets.row_list import Column, Entry


def layout(width: int) -> Sequence[Column]:
    """Name and value."""
    return Column("FACT", 20), Column("VALUE", max(0, width - 20 - 3), middle=True)


def rows(answer: Answer | None, ascii_only: bool) -> list[Row]:
    """What a run would use; findings first. An answer that has not come is one row that says so."""
    if answer is None:
        return []
    body = answer.body
    found = findings(answer.findings, ascii_only)
    shown = [*found]
    for key in ("interpreter", "packages", "torch", "compute", "tools", "env_vars"):
        part = body.get(key)
        if isinstance(part, Mapping):
            named = section(f"title-{key}", _TITLES[key])
            shown += [*(named if shown else named[1:]), *_facts(key, part)]
    shown += _gpus(body)
    return shown


_TITLES = {
    "interpreter": "the target interpreter",
    "packages": "packages, by their metadata",
    "torch": "torch, read from its files",
    "compute": "compute",
    "tools": "tools",
    "env_vars": "variables that a run inherits",
}


def _facts(group: str, part: Mapping[str, Any]) -> list[Row]:
    shown = []
    for name, value in part.items():
        built = group == "torch" and part.get("backend") not in (None, "unknown")
        text = "none" if built and value is None else _value(group, value)
        tone = "muted" if text in ("unknown", "unset", "absent", "missing", "none") else "text"
        entry = Entry(f"{group}.{name}", ((safe(name), "strong"), (text, tone)))
        where = value.get("location") if group == "packages" and isinstance(value, Mapping) else None
        detail = [(f"{safe(name)}: {text}", "text")]
        if where:
            detail.append((f"from {safe(where)}", "muted"))
        shown.append(Row(entry, tuple(detail), text))
    return shown


def _value(group: str, value: Any) -> str:
    if group == "packages":
        return "missing" if value is None else safe(value.get("version"))
    if value is None and group in ("tools", "env_vars"):
        return "absent" if group == "tools" else "unset"
    return value_text(value)


def _gpus(body: Mapping[str, Any]) -> list[Row]:
    if "gpu_verdict" not in body:
        return []
    text = f"{safe(body['gpu_verdict']).replace('_', ' ')}"
    evidence = safe(body.get("gpu_evidence"), "")
    shown = [
        *section("title-gpus", "GPUs"),
        Row(Entry("gpus", (("found", "strong"), (text, "text"))), ((text, "text"), (evidence, "muted")), text),
    ]
    for gpu in body.get("gpus") or ():
        words = (
            f"{safe(gpu['name'])} · {safe(gpu['arch'])} · "
            f"{human_bytes(gpu['memory_used'])} of {human_bytes(gpu['memory_total'])} used"
        )
        entry = Entry(f"gpu.{safe(gpu['index'])}", ((f"GPU {safe(gpu['index'])}", "strong"), (words, "text")))
        shown.append(Row(entry, ((words, "text"), (f"from {safe(gpu['source'])}", "muted")), words))
    return shown
