"""Foreign text on its way to a widget, and lines of styled parts; nothing here is ever parsed as markup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from textual.content import Content

from quark_tui.core.text import cell_width, clean, elide_end, elide_middle, redact

#: (text, style); a style is a word of Textual's, such as ``bold $ok``.
Part: TypeAlias = tuple[str, str]
#: Lines of parts.
Lines: TypeAlias = list[list[Part]]

#: Characters of a foreign string that are looked at; a screen shows far fewer.
_LOOKED_AT: Final = 2000


#: More of them, so that no credential is cut in two before it is known for one.
_BEHIND: Final = 1000


def safe(value: Any, unknown: str = "unknown") -> str:
    """Foreign text on one line without control characters and credentials; ``unknown`` for None.

    A mark stands at the end of what is cut; see :func:`exact` for what is approved or copied.
    """
    if value is None:
        return unknown
    said = str(value)
    if len(said) <= _LOOKED_AT:
        return redact(clean(said))
    return redact(clean(said[: _LOOKED_AT + _BEHIND]))[: _LOOKED_AT - 1] + "…"


def exact(value: Any) -> str:
    """Like :func:`safe`, however long it is: for what a person decides on by reading it whole."""
    return redact(clean(value))


def value_text(value: Any) -> str:
    """A value of an answer in words: lists by commas, maps as ``key=value``, None as the word unknown."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{safe(key)}={safe(one)}" for key, one in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(safe(one) for one in value) or "none"
    if isinstance(value, int) and abs(value) >= 100_000:
        return f"{value:,}"
    return safe(value)


def content(lines: Lines) -> Content:
    """``lines`` as Textual shows them."""
    return Content("\n").join([Content.assemble(*line) for line in lines])


def ends(left: Sequence[Part], right: Sequence[Part], width: int) -> list[Part]:
    """One line of ``width`` cells with ``left`` at its start and ``right`` at its end; the left gives way."""
    behind = sum(cell_width(text) for text, _ in right)
    room = max(0, width - behind - 1)
    kept: list[Part] = []
    for text, style in left:
        piece = elide_end(text, room)
        kept.append((piece, style))
        room -= cell_width(piece)
        if piece != text:
            break
    used = sum(cell_width(text) for text, _ in kept)
    return [*kept, (" " * max(1, width - behind - used), ""), *right]


def home_relative(path: str, home: str) -> str:
    """``path`` with the user's folder as ``~``."""
    return f"~{path[len(home) :]}" if home and (path == home or path.startswith(home + "/")) else path


def wrapped(text: str, cells: int) -> list[str]:
    """``text`` in lines of at most ``cells`` cells, broken at spaces where there are any; nothing is lost."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            joined = f"{line} {word}" if line else word
            if cell_width(joined) <= cells:
                line = joined
                continue
            if line:
                lines.append(line)
            while cell_width(word) > cells > 0:
                head = _head(word, cells)
                lines.append(head)
                word = word[len(head) :]
            line = word
        lines.append(line)
    return lines


def _head(word: str, cells: int) -> str:
    taken = used = 0
    for char in word:
        used += cell_width(char)
        if used > cells:
            break
        taken += 1
    return word[: max(1, taken)]


__all__ = [
    "Lines", "Part", "content", "elide_end", "elide_middle", "ends", "exact", "home_relative", "safe", "value_text",
    "wrapped",
]  # fmt: skip
