"""Everything that is drawn, as ASCII: the last stop before a terminal that can show nothing else.

States are spelled out by the widgets (``[ok] running``, see :mod:`quark_tui.ui.states`); this is the net below them and
below what Textual itself draws. Each glyph becomes as many characters as it had cells, so that nothing shifts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len, get_character_cell_size, split_graphemes
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_GLYPHS: Final = {
    # Eighths of a cell: heights tell values apart, widths are mostly the edges of boxes.
    **dict(zip("▁▂▃▄▅▆▇█", "_.-=+*%#", strict=True)),
    **dict.fromkeys("▏▎▍▌▋▊▐▕", "|"),
    **dict.fromkeys("▉▙▛▜▟▚▞▓", "#"),
    **dict(zip("▀▔▒░▖▗▘▝", "\"-:..,'`", strict=True)),
    # Marks and arrows.
    **dict.fromkeys("▸▶▹▷►→⇒↦⇥›»⮞", ">"),
    **dict.fromkeys("◂◀◃◁◄←⇐⇤‹«↵⏎↩", "<"),
    **dict.fromkeys("▾▼▿▽↓⇓", "v"),
    **dict.fromkeys("▴▲▵△↑⇑", "^"),
    **dict.fromkeys("✓✔", "+"),
    **dict.fromkeys("✗✘✕✖×", "x"),
    **dict.fromkeys("◆◇●◉•▪■★⭑☆∙⋅", "*"),
    **dict.fromkeys("○◯◦◌▫□⭘", "o"),
    **dict.fromkeys("◐◑◒◓", "%"),
    **dict.fromkeys("↔↕", "-"),
    # Punctuation.
    "·": ".",
    **dict.fromkeys("…⋯", "~"),
    "⋮": ":",
    **dict.fromkeys("–—‐‑‒―−", "-"),
    **dict.fromkeys("‘’‚′", "'"),
    **dict.fromkeys("“”„″", '"'),
    **dict(zip("≤≥≠≈±÷°", "<>!~+/o", strict=True)),
    **dict(zip("µμ⁰¹²³", "uu0123", strict=True)),
    "\N{NO-BREAK SPACE}": " ",
    "\N{BRAILLE PATTERN BLANK}": " ",
}


def _box_drawing() -> Iterator[tuple[str, str]]:
    """Lines by their names: what runs both ways is a corner or a crossing."""
    for code in range(0x2500, 0x2580):
        name = unicodedata.name(chr(code))
        across = any(word in name for word in ("HORIZONTAL", "LEFT", "RIGHT"))
        along = any(word in name for word in ("VERTICAL", "UP", "DOWN"))
        if "DIAGONAL" in name:
            drawn = "X" if "CROSS" in name else "/" if "UPPER RIGHT TO LOWER LEFT" in name else "\\"
        elif across and along:
            drawn = "+"
        elif across:
            drawn = "=" if "DOUBLE" in name and "DASH" not in name else "-"
        else:
            drawn = "|"
        yield chr(code), drawn


class _Table(dict[int, str]):
    """For ``str.translate``: the known glyphs, and question marks for every other character that is not ASCII."""

    def __missing__(self, code: int) -> str:
        return chr(code) if code < 0x80 else "?" * get_character_cell_size(chr(code))


_TABLE: Final = _Table((ord(glyph), drawn) for glyph, drawn in [*_box_drawing(), *_GLYPHS.items()])


def to_ascii(text: str) -> str:
    """``text`` in ASCII, in as many cells: known glyphs by what resembles them, everything else as ``?``."""
    if text.isascii():
        return text
    if "\u200d" not in text and "\ufe0f" not in text:
        return text.translate(_TABLE)
    # Joiners and selectors change the width of what is around them: such a cluster is only as wide as it is shown.
    spans, cells = split_graphemes(text)
    drawn = "".join(_cluster(text[start:end], width) for start, end, width in spans)
    excess = cell_len(drawn) - cells
    return drawn if not excess else drawn[:cells].ljust(cells)


def _cluster(text: str, width: int) -> str:
    if text.isascii():
        return text
    drawn = text.translate(_TABLE)
    return drawn if len(text) == 1 and len(drawn) == width else "?" * width


class AsciiFilter(LineFilter):
    """Sends no byte above 0x7f. All instances are equal: strips keep what a filter made of them, by the filter."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments with ASCII texts of the same cell lengths, and without links that are not ASCII."""
        return [self._segment(segment) for segment in segments]

    @staticmethod
    def _segment(segment: Segment) -> Segment:
        text, style, control = segment
        if style is not None and style.link and not style.link.isascii():
            style = style.update_link(None)
        elif text.isascii():
            return segment
        return Segment(to_ascii(text), style, control)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsciiFilter) and other.enabled == self.enabled

    def __hash__(self) -> int:
        return hash(AsciiFilter)
