"""Finding values in a model's configuration: spellings, nested text configurations, types that cannot be believed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from quark_tui.core.finding import Finding
from quark_tui.core.text import clean

#: Where wrappers keep the configuration of their language model, in the order in which they are asked.
TEXT_SECTIONS = (
    "text_config",
    "llm_config",
    "language_config",
    "language_model_config",
    "language_model",
    "lm_config",
    "thinker_config.text_config",
    "thinker_config",
    "talker_config.text_config",
    "decoder_config",
    "decoder",
)

#: Sub-configurations that make a model more than a language model.
_MODALITY = re.compile(r"(?:^|_)(?:vision|visual|audio|image|video|speech|acoustic|vit)(?:_|$)")

#: Layers, experts, heads: no configuration has more of them.
MOST_LAYERS = 100_000
MOST_EXPERTS = 1_000_000
#: Widths, vocabularies, positions.
MOST_SIZE = 2**40
#: Items of a list or object that are shown of a raw value.
_SHOWN_ITEMS = 8


@dataclass(frozen=True, slots=True)
class Stated:
    """One place that states a value: ``place`` is the dotted key below the file's top, ``spelling`` its last part."""

    place: str
    spelling: str
    value: Any


@dataclass(frozen=True, slots=True)
class Taken:
    """What a reading came to. ``value`` None: nothing usable was stated; ``place`` then is the refused one or "".

    ``raw`` is what stands at ``place``.
    """

    value: Any
    place: str
    findings: tuple[Finding, ...] = ()
    raw: Any = None


def lookup(data: Any, dotted: str) -> Any:
    """The value at a dotted key, None when a step is absent or no object."""
    for part in dotted.split("."):
        if not isinstance(data, Mapping):
            return None
        data = data.get(part)
    return data


def sections(config: Mapping[str, Any], names: Sequence[str] = TEXT_SECTIONS) -> list[tuple[str, Mapping[str, Any]]]:
    """The named sub-configurations that are there and hold something, as (dotted name, object)."""
    found = []
    for name in names:
        section = lookup(config, name)
        if isinstance(section, Mapping) and section:
            found.append((name, section))
    return found


def modalities(config: Mapping[str, Any]) -> list[str]:
    """Dotted names of the sub-configurations for images, video or sound that hold something."""
    found = []
    for above in ("", "thinker_config"):
        section = lookup(config, above) if above else config
        for key, value in section.items() if isinstance(section, Mapping) else ():
            if isinstance(value, Mapping) and value and len(key) <= 64 and _MODALITY.search(key):
                found.append(clean(f"{above}.{key}" if above else key))
    return found


def language_sections(config: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The text configuration that describes the language model, then those it lies in.

    Others are models of their own (a talker beside a thinker): what they state is neither taken nor compared.
    """
    found = sections(config)
    if not found:
        return []
    first = found[0][0]
    return [found[0], *(section for section in found[1:] if first.startswith(f"{section[0]}."))]


def stated(config: Mapping[str, Any], spellings: Sequence[str], *, nested: bool = True) -> Iterator[Stated]:
    """Every place that states a value other than null: the top level first, then the language model's section."""
    for place, section in [("", config), *(language_sections(config) if nested else ())]:
        for spelling in spellings:
            value = lookup(section, spelling)
            if value is not None:
                yield Stated(f"{place}.{spelling}" if place else spelling, spelling, value)


def shown(value: Any, most: int = 80) -> str:
    """A foreign value for a message: one clean line of bounded length."""
    if isinstance(value, str):
        text = repr(value[:most])
    elif isinstance(value, Mapping | list | tuple):
        text = f"{'an object' if isinstance(value, Mapping) else 'a list'} of {len(value)}"
    elif isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        text = f"a whole number of {value.bit_length()} bits"
    else:
        text = repr(value)
    return clean(text if len(text) <= most else text[: most - 1] + "…")


def bounded(value: Any, depth: int = 0) -> Any:
    """A foreign value as plain JSON of bounded size: what is left out of it is told in its place."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(value if len(value) <= 200 else f"{value[:200]}… {len(value) - 200} characters more")
    if isinstance(value, int):
        return value if value.bit_length() <= 63 else shown(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else shown(value)
    if not isinstance(value, Mapping | list | tuple):
        return shown(value)
    if depth == 2:
        return shown(value)
    more = len(value) - _SHOWN_ITEMS
    if isinstance(value, Mapping):
        kept = {clean(str(key)[:80]): bounded(item, depth + 1) for key, item in islice(value.items(), _SHOWN_ITEMS)}
        return {**kept, "…": f"{more} more"} if more > 0 else kept
    items = [bounded(item, depth + 1) for item in value[:_SHOWN_ITEMS]]
    return [*items, f"… {more} more"] if more > 0 else items


Reader = Callable[[Any], tuple[Any, str]]


def whole(least: int, most: int) -> Reader:
    """A reader of whole numbers in ``least..most``. It gives (value, remark), the value None when refused.

    A string of digits is taken with a remark, since that is what its writer meant; true, 3.0 and "3.5" are not.
    """

    def read(value: Any) -> tuple[Any, str]:
        remark = ""
        if isinstance(value, str):
            digits = value.strip()
            if not digits.isascii() or not digits.isdigit() or len(digits) > 15:
                return None, "is no whole number"
            remark, value = "is a string of digits", int(digits)
        if isinstance(value, bool) or not isinstance(value, int):
            return None, "is no whole number"
        if not least <= value <= most:
            return None, f"is outside of {least} to {most}"
        return value, remark

    return read


def by_layer(read: Reader) -> Reader:
    """A reader that also takes a list with a value for each layer: their common value, or else the largest."""

    def read_all(value: Any) -> tuple[Any, str]:
        if not isinstance(value, list) or not 0 < len(value) <= MOST_LAYERS:
            return read(value)
        each = [item for item in (read(one)[0] for one in value) if item is not None]
        if len(each) < len(value):
            return None, "is a list with what is no whole number in it"
        least, most = min(each), max(each)
        return most, "" if least == most else f"differs from layer to layer, {least} to {most}; the largest is shown"

    return read_all


def differs(value: Any) -> bool:
    """Whether a raw value is a list by layer whose items are not all the same."""
    return isinstance(value, list) and any(item != value[0] for item in value)


def flag(value: Any) -> tuple[Any, str]:
    """A reader of true and false."""
    return (value, "") if isinstance(value, bool) else (None, "is neither true nor false")


def word(value: Any) -> tuple[Any, str]:
    """A reader of short names; what could disturb a terminal is kept as visible escapes."""
    if not isinstance(value, str):
        return None, "is no text"
    if not value.strip():
        return None, "is empty"
    if len(value) > 200:
        return None, f"has {len(value)} characters"
    safe = clean(value)
    return safe, "" if safe == value else "holds control characters, shown as escapes"


def words(value: Any) -> tuple[Any, str]:
    """A reader of lists of names (a single name is a list of one)."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not value or len(value) > 64:
        return None, "is no list of names"
    read = [word(item) for item in value]
    if any(item is None for item, _ in read):
        return None, "is no list of names"
    return [item for item, _ in read], next((remark for _, remark in read if remark), "")


def take(
    config: Mapping[str, Any],
    name: str,
    spellings: Sequence[str],
    read: Reader,
    *,
    nested: bool = True,
    synonyms: bool = False,
) -> Taken:
    """The value of one fact. The first place that states a usable value wins, so the top level before nested ones.

    Findings name a refused value (``config_value``), a taken string of digits (``config_value``) and two usable values
    that differ (``config_disagrees``): of two sections, and with ``synonyms`` also of two spellings in one section.
    """
    answered: set[str] = set()
    winner: tuple[Any, Stated] | None = None
    refused: Stated | None = None
    findings: list[Finding] = []
    for place in stated(config, spellings, nested=nested):
        section = place.place.removesuffix(place.spelling)
        if section in answered and not synonyms:
            continue
        value, remark = read(place.value)
        if value is not None:
            answered.add(section)
        if remark:
            findings.append(
                Finding(
                    "low" if value is not None else "medium",
                    "config_value",
                    f"{place.place} {remark}: {shown(place.value)}" + ("" if value is not None else "; it is not used"),
                    f"config.json: {place.place}",
                    ""
                    if value is not None
                    else f"Correct the file, or set {name} by hand when the analysis is confirmed.",
                )
            )
        if value is None:
            refused = refused or place
        elif winner is None:
            winner = value, place
        elif value != winner[0]:
            findings.append(
                Finding(
                    "medium",
                    "config_disagrees",
                    f"{name} is {shown(winner[0])} by {winner[1].place} and {shown(value)} by {place.place};"
                    " the first is used",
                    f"config.json: {winner[1].place}, {place.place}",
                    f"Check which is right; set {name} by hand when the analysis is confirmed.",
                )
            )
    if winner is not None:
        return Taken(winner[0], winner[1].place, tuple(findings), winner[1].value)
    if refused is not None:
        return Taken(None, refused.place, tuple(findings), refused.value)
    return Taken(None, "", tuple(findings))


def holds_nonfinite(value: Any) -> bool:
    """True when NaN or an infinity is anywhere in parsed JSON. Iterative, so depth does not matter."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return True
        if isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False
