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

    def mark(self, ascii_only: bool) -> str:
        """The glyph, or what stands for it in a terminal without one."""
        return self.ascii if ascii_only else self.glyph


_VERDICTS: Final[dict[str, Look]] = {
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
    "verified": Look("✓", "[ok]", "verified", "ok"),
}
_TASKS: Final[dict[str, Look]] = {
    "pending": Look("·", "[..]", "pending", "muted"),
    "active": Look("▸", "[>>]", "active", "running"),
    "done": Look("✓", "[ok]", "done", "ok"),
    "failed": Look("✗", "[XX]", "failed", "failed"),
    "skipped": Look("–", "[--]", "skipped", "muted"),
    "interrupted": Look("!", "[!!]", "interrupted", "warning"),
}
_CHECKS: Final[dict[bool | None, Look]] = {
    True: Look("✓", "[ok]", "true", "ok"),
    False: Look("✗", "[XX]", "false", "failed"),
    None: Look("–", "[--]", "does not apply", "muted"),
}
_LEVELS: Final[dict[str, Look]] = {
    "info": Look("i", "[..]", "info", "muted"),
    "low": Look("·", "[..]", "low", "text"),
    "medium": Look("!", "[!!]", "medium", "warning"),
    "high": Look("!", "[!!]", "high", "failed"),
    "block": Look("✗", "[XX]", "blocks", "failed"),
}
#: Somebody has to decide something here.
WAITS: Final = Look("◆", "[..]", "waits for you", "waiting")
#: A check that is false and decides nothing.
ADVICE: Final = Look("!", "[!!]", "advice", "warning")


def look(verdict: str) -> Look:
    """The look of a verdict of contracts.md; a word that this version does not know is shown as it is."""
    return _VERDICTS.get(verdict) or Look("?", "[??]", verdict.replace("_", " "), "warning")


def task_look(state: str) -> Look:
    """The look of a task's state; an unknown one is shown as it is."""
    return _TASKS.get(state) or Look("?", "[??]", state, "warning")


def check_look(ok: bool | None, advisory: bool = False) -> Look:
    """The look of one check of ``verify``; a false one that decides no verdict is advice."""
    return ADVICE if advisory and ok is False else _CHECKS[ok]


def level_look(level: str) -> Look:
    """The look of a finding's level."""
    return _LEVELS.get(level) or Look("?", "[??]", level, "warning")
