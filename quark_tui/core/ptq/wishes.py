"""What a person asked of the plan: values set by hand, overrides, added excludes, reasons. Kept as plain JSON in a job.

Only what was set by hand is here; defaults come from the installed Quark each time a plan is built, so that nothing
stale is remembered.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.text import clean, elide_end, has_credentials, redact

#: Keys of the plan's rows, in the order in which they are shown.
ROWS = (
    "global_scheme",
    "kv_cache_scheme",
    "layer_quant_config",
    "exclude_layers",
    "algorithm",
    "dataset",
    "num_calib_data",
    "seq_len",
    "batch_size",
    "device_strategy",
    "devices",
    "output_dir",
    "output_format",
    "evaluation_intent",
    "evaluation_dataset",
    "trust_remote_code",
    "template_file",
)

DEVICE_STRATEGIES = ("single", "multi_device", "cpu")
EVALUATION_INTENTS = ("none", "smoke", "full")
#: ``quark-cli torch-llm-ptq`` writes one format only (Hugging Face layout, safetensors).
OUTPUT_FORMATS = ("hf_format",)
_FORMAT_WORDS = frozenset({"hf_format", "safetensors", "hf_safetensors", "huggingface_format"})

#: The value of ``exclude_layers`` that stands for the template's own list.
TEMPLATE = "template"

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", "none"})
_INTEGERS = ("num_calib_data", "seq_len", "batch_size")
_PATHS = ("output_dir", "template_file")
#: Longer values are mistakes, and a pattern of this length is still matched in bounded time.
MAX_TEXT = 4096
MAX_PATTERN = 1000
MAX_ENTRIES = 20_000
_INTEGER = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class Wishes:
    """``values``: row key → parsed value (see :func:`parse_set`); ``overrides``: (pattern, scheme) in the given order;
    ``exclude_added``: patterns added to the effective list; ``reasons``: row key → text."""

    values: Mapping[str, Any] = field(default_factory=dict)
    overrides: tuple[tuple[str, str], ...] = ()
    exclude_added: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; overrides as a list of pairs, because their order decides."""
        return {
            "values": {key: list(value) if isinstance(value, tuple) else value for key, value in self.values.items()},
            "overrides": [list(pair) for pair in self.overrides],
            "exclude_added": list(self.exclude_added),
            "reasons": dict(self.reasons),
        }

    @classmethod
    def from_json(cls, data: Any) -> Wishes:
        """The wishes of :meth:`to_json`. Raises WrongQuestion where the data is anything else."""
        if data is None:
            return cls()
        if not isinstance(data, Mapping):
            raise WrongQuestion("the wishes of this job are no JSON object")
        values = _mapping(data.get("values", {}), "values")
        parsed: dict[str, Any] = {}
        for key, value in values.items():
            _row(key)
            parsed[key] = _stored(key, value)
        pairs = data.get("overrides", [])
        if not isinstance(pairs, (list, tuple)) or len(pairs) > MAX_ENTRIES:
            raise WrongQuestion("the overrides of this job are no list of pairs")
        overrides: list[tuple[str, str]] = []
        for pair in pairs:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise WrongQuestion("the overrides of this job are no list of pairs")
            overrides.append((_pattern(pair[0]), _word(pair[1], "a scheme")))
        added = data.get("exclude_added", [])
        if not isinstance(added, (list, tuple)):
            raise WrongQuestion("the added excludes of this job are no list")
        reasons = _mapping(data.get("reasons", {}), "reasons")
        if not all(isinstance(text, str) for text in reasons.values()):
            raise WrongQuestion("the reasons of this job are no texts")
        return cls(parsed, tuple(overrides), tuple(_pattern(item) for item in added), dict(reasons))


def to_json(wishes: Wishes) -> dict[str, Any]:
    """``wishes`` as plain JSON."""
    return wishes.to_json()


def from_json(data: Any) -> Wishes:
    """The inverse of :func:`to_json`. Raises WrongQuestion for foreign data."""
    return Wishes.from_json(data)


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise WrongQuestion(f"the {what} of this job are no map")
    return value


def _shown(value: object) -> str:
    return elide_end(clean(value if isinstance(value, str) else repr(value)[:200]), 80)


def _row(key: str) -> None:
    if key not in ROWS:
        raise WrongQuestion(f"{_shown(key)} is no row of the plan; rows are {' '.join(ROWS)}")


def _word(value: Any, what: str) -> str:
    """A text that may become an argv item: one line, not empty, not an option."""
    if not isinstance(value, str) or not value.strip():
        raise WrongQuestion(f"{_shown(value)} is not {what}")
    if len(value) > MAX_TEXT:
        raise WrongQuestion(f"{what} of {len(value)} characters is too long")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in value):
        raise WrongQuestion(f"{_shown(value)} has control characters or undecodable bytes and cannot be {what}")
    if value.startswith("-"):
        raise WrongQuestion(
            f"{_shown(value)} begins with a dash: the command would read it as an option, not as {what}"
        )
    return value


def _pattern(value: Any) -> str:
    text = _word(value, "a pattern")
    if len(text) > MAX_PATTERN:
        raise WrongQuestion(f"a pattern of {len(text)} characters is too long (at most {MAX_PATTERN})")
    if text != text.strip():
        raise WrongQuestion(f"the pattern {_shown(repr(text))} begins or ends with a space")
    return text


def _path(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT or "\0" in value:
        raise WrongQuestion(f"{_shown(value)} is no path for {key}")
    return value


def _json(text: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) != len(items):
            raise WrongQuestion(
                "the same key stands twice in the map; the order of overrides decides, so name each once"
            )
        return result

    def constant(name: str) -> Any:
        raise ValueError(name)

    if len(text) > 2_000_000:
        raise WrongQuestion("the value is too long")
    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise WrongQuestion(f"{_shown(text)} is no JSON: {clean(error)}") from None


def parse_set(key: str, text: str) -> Any:
    """The value of ``--set key=text``.

    Returns str or None for names and paths, int for counts, bool for trust_remote_code, a tuple of int for devices, the
    word ``template`` or a tuple of patterns for exclude_layers, a dict for layer_quant_config. Raises WrongQuestion for
    an unknown key and for text that cannot be that row's type.
    """
    _row(key)
    if not isinstance(text, str):
        raise WrongQuestion(f"{key} needs a text")
    if has_credentials(text):
        raise WrongQuestion(f"{key} holds what looks like a credential, which would be written to the job's files")
    if key not in _PATHS:
        text = text.strip()
        if not text:
            raise WrongQuestion(f"{key} needs a value (`none` where there is to be none)")
    if key in _PATHS:
        return None if key == "template_file" and text == "none" else _path(text, key)
    if key in _INTEGERS:
        return _stored(key, int(text) if _INTEGER.fullmatch(text) else text)
    if key == "trust_remote_code":
        word = text.lower()
        return _stored(key, True if word in _TRUE else False if word in _FALSE else text)
    if key == "layer_quant_config":
        return _stored(key, {} if text == "none" else _json(text))
    if key == "exclude_layers":
        if text == TEMPLATE:
            return TEMPLATE
        if text == "none":
            raise WrongQuestion(
                "write exclude_layers=[] to exclude nothing, exclude_layers=template for the template's list"
            )
        return _stored(key, _json(text) if text.startswith("[") else _split(text))
    if key == "devices":
        if text == "none":
            return None
        items: list[Any] = (
            _json(text)
            if text.startswith("[")
            else [int(item) if _INTEGER.fullmatch(item) else item for item in _split(text)]
        )
        return _stored(key, items)
    if key == "algorithm":
        if text == "none":
            return None
        return _stored(key, _json(text) if text.startswith("[") else text)
    if text.startswith('"'):
        text = _json(text)
    if text == "none" and key != "evaluation_intent":
        return _stored(key, None)
    return _stored(key, text)


def _split(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def _stored(key: str, value: Any) -> Any:
    """``value`` as row ``key`` keeps it, from JSON or from a parsed text. Raises WrongQuestion for a wrong type."""
    if key in _INTEGERS:
        if type(value) is not int or not 0 < value < 10**12:
            raise WrongQuestion(f"{key} is a positive integer, not {_shown(value)}")
        return value
    if key == "trust_remote_code":
        if type(value) is not bool:
            raise WrongQuestion(f"trust_remote_code is true or false, not {_shown(value)}")
        return value
    if key == "layer_quant_config":
        if not isinstance(value, Mapping) or len(value) > MAX_ENTRIES:
            raise WrongQuestion(f"layer_quant_config is a JSON map from pattern to scheme, not {_shown(value)}")
        return {_pattern(pattern): _word(scheme, "a scheme") for pattern, scheme in value.items()}
    if key == "exclude_layers":
        if value == TEMPLATE:
            return TEMPLATE
        if not isinstance(value, (list, tuple)) or len(value) > MAX_ENTRIES:
            raise WrongQuestion(f"exclude_layers is `template` or a list of patterns, not {_shown(value)}")
        return tuple(dict.fromkeys(_pattern(item) for item in value))
    if key == "devices":
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or not all(type(item) is int and 0 <= item < 4096 for item in value):
            raise WrongQuestion(f"devices is a list of GPU indices, not {_shown(value)}")
        if len(set(value)) != len(value):
            raise WrongQuestion("the same device stands twice in devices")
        return tuple(value)
    if key == "algorithm":
        if value is None:
            return None
        names = value if isinstance(value, (list, tuple)) else _split(value) if isinstance(value, str) else None
        if not names:
            raise WrongQuestion(f"algorithm is a name, several with commas, or none, not {_shown(value)}")
        words = [_word(name, "an algorithm") for name in names]
        if any("," in word or " " in word for word in words):
            raise WrongQuestion(f"{_shown(value)} is no list of algorithms")
        if len({word.lower() for word in words}) != len(words):
            raise WrongQuestion(f"the same algorithm stands twice in {_shown(value)}")
        return ",".join(words)
    if key == "device_strategy":
        if value is not None and value not in DEVICE_STRATEGIES:
            raise WrongQuestion(f"device_strategy is one of {' '.join(DEVICE_STRATEGIES)}, not {_shown(value)}")
        return value
    if key == "evaluation_intent":
        if value not in EVALUATION_INTENTS:
            raise WrongQuestion(f"evaluation_intent is one of {' '.join(EVALUATION_INTENTS)}, not {_shown(value)}")
        return value
    if key == "output_format":
        if not isinstance(value, str) or value.lower() not in _FORMAT_WORDS:
            raise WrongQuestion(f"output_format is {OUTPUT_FORMATS[0]} (Hugging Face safetensors), not {_shown(value)}")
        return OUTPUT_FORMATS[0]
    if key in _PATHS:
        return None if value is None and key == "template_file" else _path(value, key)
    if value is None and key in ("global_scheme", "kv_cache_scheme"):
        return None
    return _word(value, f"a value of {key}")


def _pair(entry: str | tuple[str, str], what: str) -> tuple[str, str]:
    if isinstance(entry, tuple):
        return entry
    key, mark, text = entry.partition("=")
    if not mark:
        raise WrongQuestion(f"{what} {_shown(entry)} has no `=`")
    return key, text


def split_override(text: str) -> tuple[str, str]:
    """(pattern, scheme) of ``--override PATTERN=SCHEME``, split at the last ``=``; an empty scheme means removal."""
    pattern, mark, scheme = text.rpartition("=")
    if not mark:
        raise WrongQuestion(f"the override {_shown(text)} has no `=`; write PATTERN=SCHEME")
    return _pattern(pattern), _word(scheme, "a scheme") if scheme else ""


def changed(
    wishes: Wishes,
    sets: Iterable[str | tuple[str, str]] = (),
    overrides: Iterable[str] = (),
    excludes: Iterable[str] = (),
    reasons: Iterable[str | tuple[str, str]] = (),
) -> Wishes:
    """``wishes`` after ``--set``, ``--override``, ``--exclude`` and ``--reason``, applied in this order.

    ``sets`` and ``reasons`` are ``KEY=VALUE`` texts or pairs. Raises WrongQuestion as :func:`parse_set` does, and for
    an override that is to be removed and is not there.
    """
    values = dict(wishes.values)
    pairs = dict(wishes.overrides)
    added = list(wishes.exclude_added)
    for entry in sets:
        key, text = _pair(entry, "--set")
        value = parse_set(key, text)
        if key == "layer_quant_config":
            pairs = value
            continue
        if key == "exclude_layers":
            added = []
        if key == "exclude_layers" and value == TEMPLATE:
            values.pop(key, None)
        else:
            values[key] = value
    for entry in overrides:
        pattern, scheme = split_override(entry)
        if scheme:
            pairs[pattern] = scheme
        elif pairs.pop(pattern, None) is None:
            raise WrongQuestion(f"there is no override {_shown(pattern)} to remove")
    for pattern in excludes:
        if _pattern(pattern) not in added:
            added.append(pattern)
    texts = dict(wishes.reasons)
    for entry in reasons:
        key, text = _pair(entry, "--reason")
        _row(key)
        if text.strip():
            texts[key] = elide_end(redact(clean(text.strip())), 2000)
        else:
            texts.pop(key, None)
    return replace(wishes, values=values, overrides=tuple(pairs.items()), exclude_added=tuple(added), reasons=texts)


def without(wishes: Wishes, key: str) -> Wishes:
    """``wishes`` with row ``key`` back at its default and its reason forgotten. Raises WrongQuestion."""
    _row(key)
    return Wishes(
        {name: value for name, value in wishes.values.items() if name != key},
        () if key == "layer_quant_config" else wishes.overrides,
        () if key == "exclude_layers" else wishes.exclude_added,
        {name: text for name, text in wishes.reasons.items() if name != key},
    )


def touched(
    sets: Iterable[str | tuple[str, str]] = (), overrides: Iterable[str] = (), excludes: Iterable[str] = ()
) -> frozenset[str]:
    """What a change is about: row keys, ``layer_quant_config:PATTERN`` and ``exclude_layers:PATTERN``."""
    keys = {_pair(entry, "--set")[0] for entry in sets}
    keys |= {f"layer_quant_config:{split_override(entry)[0]}" for entry in overrides}
    keys |= {f"exclude_layers:{pattern}" for pattern in excludes}
    return frozenset(keys)
