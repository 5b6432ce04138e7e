"""The tokenizer: is it there, and what did the export change in it?"""

from __future__ import annotations

from typing import Any

from quark_tui.core.ptq.verify.case import Case
from quark_tui.core.ptq.verify.checks.check import Check, some_names
from quark_tui.core.text import clean

_VOCABULARY = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tekken.json",
    "sentencepiece.bpe.model",
)


def _is_vocabulary(name: str) -> bool:
    return name in _VOCABULARY or name.endswith(".tiktoken")


def tokenizer_present(case: Case) -> Check:
    code = "tokenizer_present"
    if case.export.refused:
        return Check(code, None, "The folder could not be looked into.", case.export.problem)
    files = {file.name: file for file in case.export.tokenizer}
    vocabulary = [name for name in files if _is_vocabulary(name)]
    bad = [f"{name}: {file.problem}" for name, file in files.items() if file.problem]
    empty = [name for name in (*vocabulary, "tokenizer_config.json") if name in files and files[name].size == 0]
    missing = [] if vocabulary else ["a vocabulary (tokenizer.json, tokenizer.model, …)"]
    if "tokenizer_config.json" not in files:
        missing.append("tokenizer_config.json")
    if missing or bad or empty:
        text = "; ".join([*(f"missing: {name}" for name in missing), *bad[:3], *(f"empty: {name}" for name in empty)])
        return Check(
            code,
            False,
            "The tokenizer is not whole.",
            clean(text)[:400],
            "Copy nothing by hand before you know why: the tokenizer is saved last, after the weights.",
        )
    return Check(code, True, f"{len(files)} tokenizer file(s).", some_names(files))


def tokenizer_unchanged(case: Case) -> Check:
    code, source = "tokenizer_unchanged", case.source.tokenizer
    if source is None:
        return Check(code, None, "There is no source to compare with.", weight="advisory")
    mine = {file.name: file for file in case.export.tokenizer}
    invented = sorted(name for name in mine if _is_vocabulary(name))
    if invented and not any(_is_vocabulary(file.name) for file in source):
        # Seen with transformers 5.2: a model without a vocabulary gets an empty one, and quark-cli ends with 0.
        return Check(
            code,
            False,
            "The source has no vocabulary; the one of the output was made up while loading.",
            some_names(invented),
            "Put the model's own tokenizer beside its weights and quantize again: calibration saw invented tokens.",
            weight="advisory",
        )
    changed: list[str] = []
    compared = 0
    for file in source:
        other = mine.get(file.name)
        if other is None:
            changed.append(f"{file.name} is not there")
            continue
        if file.problem or other.problem or file.sha256 is None or other.sha256 is None:
            continue
        compared += 1
        if file.sha256 == other.sha256:
            continue
        found = [
            f"{file.name} {key}: {_short(file.settings.get(key))} → {_short(other.settings.get(key))}"
            for key in dict.fromkeys([*file.settings, *other.settings])
            if file.settings.get(key) != other.settings.get(key)
        ]
        if file.rest_sha256 is None or file.rest_sha256 != other.rest_sha256:
            found.append(f"{file.name}: other content")
        changed += found or [f"{file.name}: written differently, the same content"]
    if not source or not compared:
        return Check(code, None, "The source has no tokenizer files that could be compared.", weight="advisory")
    if all(text.endswith("the same content") for text in changed):
        return Check(
            code, True, f"{compared} tokenizer file(s) are the source's.", some_names(changed), weight="advisory"
        )
    return Check(
        code,
        False,
        "The tokenizer differs from the source's.",
        clean("; ".join(changed[:12])),
        "quark-cli always rewrites padding, truncation and pad_token; set them back for serving.",
        "advisory",
    )


def _short(value: Any) -> str:
    if isinstance(value, dict):
        picked = [f"{key}={value[key]}" for key in ("max_length", "strategy", "direction", "pad_token") if key in value]
        return clean(" ".join(picked))[:80] or "set"
    return clean("none" if value is None else value)[:60]
