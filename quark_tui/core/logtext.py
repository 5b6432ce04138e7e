"""Raw output bytes of a terminal program, folded into the lines that a person reads.

quark-cli writes its records as ``ESC[32m NL [QUARK-INFO]: text ESC[0m`` and its progress bars with carriage returns
(measured with quark-cli 0.12.post1 and 0.13, with and without a pseudo-terminal). :class:`Folder` turns such bytes into
:class:`Line` values; how the bytes were cut into chunks never changes the result.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Literal

from quark_tui.core.text import clean

Level = Literal["info", "warning", "error", "debug", ""]

#: Characters kept of one line; what is longer is counted, not kept.
MAX_LINE = 65_536

# One alternative for each kind of escape; a newline or carriage return never belongs to one.
_ESCAPE = re.compile(
    r"""\x1b(?:
          \[(?P<arguments>[0-?]*+)[\x20-/]*+(?P<final>[@-~])     # CSI
        | \][^\x07\x1b]*+(?:\x07|\x1b\\)                          # OSC
        | [PX^_][^\x07\x1b]*+\x1b\\                               # DCS, SOS, PM, APC
        | \[[0-?]*+[\x20-/]*+\Z                                   # a CSI that the end of the text cuts
        | [\x20-/]*+(?P<single>[0-~])                             # two characters, with intermediates
        | [\x20-/]*+                                              # nothing that is known
        )""",
    re.VERBOSE,
)
_COLOUR = re.compile(r"\x1b\[([0-9;]*+)m")
_RESET = re.compile(r"[0;]*")
_RECORD = re.compile(r"\[QUARK-([A-Z]{1,10})\]: ?")
_OTHER_LEVEL = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL):|\[?([IWEF])(?:\d{4}|\d{8}) \d\d:\d\d:\d\d")
_LEVEL_STARTS = frozenset("DIWECF[")
_LEVELS: dict[str, Level] = {
    "DEBUG": "debug",
    "INFO": "info",
    "WARNING": "warning",
    "ERROR": "error",
    "CRITICAL": "error",
    "I": "info",
    "W": "warning",
    "E": "error",
    "F": "error",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line, safe to show: ``text`` went through :func:`quark_tui.core.text.clean`.

    ``level`` comes from the record's own prefix, continuation lines of a coloured record share it, and it is empty
    where the line names none. ``number`` is the 1-based number of the physical line in the bytes (or counted from
    ``first_number``).
    """

    text: str
    level: Level
    number: int

    @property
    def message(self) -> str:
        """``text`` without a leading ``[QUARK-LEVEL]: ``."""
        match = _RECORD.match(self.text)
        return self.text[match.end() :] if match else self.text

    @property
    def starts_record(self) -> bool:
        """True for the first line of a record of Quark's logger."""
        return _RECORD.match(self.text) is not None


class Folder:
    """Folds bytes into lines. Memory is bounded by a few times :data:`MAX_LINE`, whatever comes.

    Of a line with carriage returns the last segment that shows something is kept. A cursor-up (``ESC[A``, nested tqdm
    bars) starts a segment too, and takes back the newline that follows it. Invalid UTF-8 becomes U+FFFD, NUL vanishes,
    any other control character becomes a visible escape. Lines that hold nothing but escapes are left out; empty lines
    stay.
    """

    __slots__ = ("_coloured", "_cut", "_decoder", "_escaped", "_kept", "_number", "_record", "_segment", "_size", "_up")

    def __init__(self, first_number: int = 1) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._number = first_number
        self._segment: list[str] = []  # the raw segment since the last carriage return, at most MAX_LINE characters
        self._size = 0
        self._cut = 0  # characters of this segment that were not kept
        self._kept = ""  # the rendered last segment of this line that showed something
        self._escaped = False  # this line held an escape
        self._coloured = False  # a colour is on
        self._record: Level = ""  # the level of the coloured record that is open
        self._up = 0  # newlines to take back

    @property
    def pending(self) -> str:
        """The unfinished last line, for example the live text of a progress bar; empty when there is none."""
        text, _ = self._render()
        return text if text.strip() else self._kept

    def feed(self, data: bytes) -> list[Line]:
        """The lines that ``data`` finishes."""
        return self._take(self._decoder.decode(data))

    def finish(self) -> list[Line]:
        """The rest as a last line, when the bytes end without a newline. The folder is empty afterwards."""
        lines = self._take(self._decoder.decode(b"", True))
        if self._segment or self._kept:
            self._up = 0
            lines += self._end_line()
        return lines

    def _take(self, text: str) -> list[Line]:
        lines: list[Line] = []
        *rows, rest = text.split("\n")
        for row in rows:
            if "\r" in row or "\x1b" in row or self._segment or self._kept or self._escaped or self._up:
                self._follow(row)
                lines += self._end_line()
            elif len(row) > MAX_LINE or not row.isprintable():
                self._append(row)
                lines += self._end_line()
            else:  # most lines: nothing to fold, nothing pending
                lines.append(Line(row.rstrip(), self._level(row), self._number))
                self._number += 1
        self._follow(rest)
        return lines

    def _follow(self, row: str) -> None:
        """Take ``row``, in which there is no newline."""
        first, *others = row.split("\r")
        self._append(first)
        for segment in others:
            self._end_segment()
            self._append(segment)

    def _append(self, piece: str) -> None:
        if not piece:
            return
        room = MAX_LINE - self._size
        if len(piece) > room:
            self._cut += len(piece) - room
            piece = piece[:room]
        if piece:
            self._segment.append(piece)
            self._size += len(piece)

    def _raw(self) -> str:
        if len(self._segment) > 1:
            self._segment = ["".join(self._segment)]
        return self._segment[0] if self._segment else ""

    def _render(self) -> tuple[str, int]:
        """The current segment as (text, cursor-ups after the last text)."""
        raw = self._raw()
        text, ups = (raw, 0) if "\x1b" not in raw else _strip(raw)
        text = text.replace("\0", "").replace("\t", "    ")
        if not (text.isascii() and text.isprintable()):
            text = clean(text)
        if self._cut:
            text += f" … {self._cut} more characters"
        return text, ups

    def _end_segment(self) -> None:
        if not self._segment:
            return
        text, ups = self._render()
        if text.strip():
            self._kept = text
            self._up = ups
        else:
            self._up += ups
        raw = self._raw()
        if "\x1b" in raw:
            self._escaped = True
            self._follow_colour(raw, text)
        self._segment.clear()
        self._size = self._cut = 0

    def _follow_colour(self, raw: str, text: str) -> None:
        colours = _COLOUR.findall(raw)
        if not colours:
            return
        self._coloured = not _RESET.fullmatch(colours[-1])
        # A colour that comes before the text opens a record; the reset behind the text ends it.
        if not self._coloured or not _RECORD.match(text):
            self._record = ""

    def _end_line(self) -> list[Line]:
        record = self._record
        self._end_segment()
        number = self._number
        self._number += 1
        if self._up:
            self._up -= 1
            return []
        text, escaped = self._kept, self._escaped
        self._kept, self._escaped = "", False
        if not text and escaped:
            return []
        return [Line(text.rstrip(), self._level(text, record), number)]

    def _level(self, text: str, record: Level | None = None) -> Level:
        """The level of a line; ``record`` is that of the record which was open before it (default: still is)."""
        if record is None:
            record = self._record
        if text.startswith("[QUARK-") and (match := _RECORD.match(text)):
            level = _LEVELS.get(match.group(1), "")
            self._record = level if self._coloured else ""
            return level
        if record:
            return record
        if text[:1] in _LEVEL_STARTS and (match := _OTHER_LEVEL.match(text)):
            return _LEVELS[match.group(1) or match.group(2)]
        return ""


def _strip(raw: str) -> tuple[str, int]:
    """``raw`` without escapes, as (the last piece between cursor-ups that shows something, cursor-ups behind it)."""
    shown = ""
    piece: list[str] = []
    ups = start = 0
    for match in _ESCAPE.finditer(raw):
        piece.append(raw[start : match.start()])
        start = match.end()
        final, single = match.group("final"), match.group("single")
        if final in ("A", "F") or (single == "M" and final is None):
            joined = "".join(piece)
            if joined.strip():
                shown, ups = joined, 0
            piece = []
            arguments = match.group("arguments") or "1"
            ups += (
                min(int(arguments), 1000) if arguments.isascii() and arguments.isdigit() and len(arguments) < 5 else 1
            )
        elif final == "G":
            joined = "".join(piece)
            if joined.strip():
                shown, ups = joined, 0
            piece = []
    piece.append(raw[start:])
    joined = "".join(piece)
    return (joined, 0) if joined.strip() else (shown, ups)
