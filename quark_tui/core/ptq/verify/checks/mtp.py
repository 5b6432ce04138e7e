"""Multi-token prediction layers, which Quark does not quantize."""

from __future__ import annotations

import re
from typing import Any

from quark_tui.core.ptq.verify.case import Case
from quark_tui.core.ptq.verify.checks.check import Check, module_count, some_names, untestable
from quark_tui.core.ptq.verify.patterns import Patterns, canonical

_MTP_KEYS = (
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_layers",
    "mtp_num_layers",
    "num_mtp_modules",
    "num_nextn_layers",
    "mtp_layers",
    "n_mtp_layers",
    "num_mtp_hidden_layers",
    "mtp_transformer_layers",
)


_MTP_PART = re.compile(r"(?i)(?:mtp|nextn|next_n)(?:[_.]?[a-z]+)*_?\d*\Z")


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= 100_000 else None


def _configs(case: Case) -> list[Any]:
    document = case.document
    return [
        document,
        *(
            document[key]
            for key in ("text_config", "llm_config", "language_config")
            if isinstance(document.get(key), dict)
        ),
    ]


def mtp_excluded(case: Case) -> Check:
    code = "mtp_excluded"
    promised, depth = 0, None
    for config in _configs(case):
        promised = max([promised, *(_count(config.get(key)) or 0 for key in _MTP_KEYS)])
        depth = _count(config.get("num_hidden_layers")) if depth is None else depth
    if (standing := untestable(case, code)) is not None:
        return standing
    names = []
    tables = set(case.embeddings)
    for name, module in case.modules.items():
        parts = canonical(name).split(".")
        behind = (
            promised > 0
            and depth is not None
            and len(parts) > 1
            and parts[0] == "layers"
            and parts[1].isdigit()
            and len(parts[1]) < 7
            and int(parts[1]) >= depth
        )
        named = any(_MTP_PART.match(part) for part in parts[:3])
        if (behind or named) and module.weight is not None and name not in tables:
            names.append(name)
    if not promised and not names:
        return Check(code, None, "The model has no layers that predict further tokens.")
    if not names:
        return Check(
            code,
            None,
            "config.json counts layers that predict further tokens; the weights hold none.",
            f"{promised} promised",
        )
    said = Patterns(case.config.excludes, loose=True)
    plain = [
        name
        for name in names
        if not case.modules[name].quantized
        and len(case.modules[name].parts["weight"].shape) == 2
        and not said.matches(name)
    ]
    if plain:
        return Check(
            code,
            False,
            f"Layers for further tokens (MTP) neither quantized nor excluded: {module_count(len(plain))}.",
            some_names(plain),
            "Add their pattern to exclude_layers and export again: loaders take them for quantized.",
        )
    return Check(code, True, "The layers that predict further tokens are quantized or excluded.", some_names(names))
