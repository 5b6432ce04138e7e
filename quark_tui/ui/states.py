"""How a state is shown: a glyph and a word, each with an ASCII twin, and the colour's name. Never colour alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Look:
    """``word`` is what a person reads; ``tone`` names a colour of the theme."""

    glyph: str
    ascii: str
    word: str
    tone: str


_LOOKS: Final[dict[str, Look]] = {
    "running": Look("»", "[>>]", "running", "running"),
    "not_started": Look("◆", "[..]", "not started", "waiting"),
    "interrupted": Look("!", "[!!]", "interrupted", "warning"),
    "unknown": Look("?", "[??]", "unknown", "warning"),
    "failed": Look("✗", "[XX]", "failed", "failed"),
    "unreadable": Look("✗", "[XX]", "unreadable", "failed"),
    "unhealthy_baseline": Look("✗", "[XX]", "bad baseline", "failed"),
    "below_target": Look("▾", "[--]", "below target", "warning"),
    "partial": Look("◐", "[!!]", "partial", "warning"),
    "succeeded": Look("✓", "[ok]", "succeeded", "ok"),
}


def look(verdict: str) -> Look:
    """The look of a verdict of contracts.md; a word that this version does not know is shown as it is."""
    return _LOOKS.get(verdict) or Look("?", "[??]", verdict.replace("_", " "), "warning")
