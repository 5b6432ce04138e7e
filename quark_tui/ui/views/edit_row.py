"""What a row of the plan takes, in words, and its value as a person would type it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from quark_tui.ui.text import safe, value_text
from quark_tui.ui.widgets.row_list import Column, Entry

#: Lines that one fact may take.
FACT_LINES: Final = 3
_NAME: Final = 24
_NUMBER: Final = "a whole number above zero"
_TAKES: Final = {
    "global_scheme": "one of the schemes of the installed Quark, below",
    "kv_cache_scheme": "a scheme for the KV cache, such as fp8, or none",
    "layer_quant_config": 'a map of patterns to schemes as JSON, such as {"*down_proj": "int8"}; {} for none. Their '
    "order decides",
    "exclude_layers": "template (the list of the model's template), or names and patterns with commas between them or "
    "as JSON; [] excludes nothing",
    "algorithm": "an algorithm of the installed Quark, or none",
    "dataset": "the name of a calibration data set that quark-cli knows, or a path",
    "num_calib_data": f"{_NUMBER}: samples. Fewer than the default want a reason",
    "seq_len": f"{_NUMBER}: tokens of a sample",
    "batch_size": f"{_NUMBER}: samples at a time",
    "device_strategy": "single, multi_device or cpu",
    "devices": "physical indices of GPUs with commas between them; [] for none",
    "output_dir": "an absolute path of a folder that does not exist yet or is empty",
    "output_format": "hf_format",
    "evaluation_intent": "none, smoke or full",
    "evaluation_dataset": "the name of a data set that quark-cli evaluates with",
    "trust_remote_code": "yes or no: whether Python code of the model may run",
    "template_file": "the absolute path of a template file, or none",
}


def typed(row: Mapping[str, Any]) -> str:
    """The row's value as ``plan --set`` takes it; "" where one has to be chosen first."""
    value = row["value"]
    if value is None:
        return "" if row["key"] == "global_scheme" else "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def facts(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(label, text, style): present value with its reason, default, and what may be typed."""
    takes = _TAKES.get(row["key"], "text, none, a list with commas or as JSON, or a map as JSON")
    return [
        ("now", f"{_word(row['value'])}  ({safe(row['reason'])})", "$foreground"),
        ("default", _word(row["default"]), "$foreground"),
        ("takes", takes, "$muted"),
    ]


def _word(value: Any) -> str:
    return "none" if value is None else value_text(value)


def layout(width: int) -> Sequence[Column]:
    """Name and meaning of a scheme."""
    return Column("", _NAME), Column("", max(0, width - _NAME - 3))


def choices(guide: Sequence[Mapping[str, Any]], ascii_only: bool) -> list[Entry]:
    """One entry a scheme under its name; one that cannot be exported says so."""
    shown = []
    for one in guide:
        name, summary = safe(one["name"]), safe(one["summary"], "not known to this program")
        if one["exportable"] is False:
            summary = f"{'[XX]' if ascii_only else '✗'} cannot be exported · {summary}"
        elif one["advice"]:
            summary = f"{summary} · {safe(one['advice'])}"
        shown.append(Entry(name, ((name, "strong"), (summary, "text"))))
    return shown
