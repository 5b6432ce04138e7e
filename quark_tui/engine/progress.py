"""Following a run's log: what its phases are and which lines are new, reading only what is new."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import islice

from quark_tui.core.logtext import Folder, Line
from quark_tui.core.ptq.phases import PhaseReport, Phases
from quark_tui.core.text import clean, human_bytes, redact
from quark_tui.io.log.tail import read_range, read_tail

#: A log that is longer is read from its end: a later phase says that the earlier ones are done.
_TAIL = 16 << 20
#: A log that grew by more than this since the last look is read from its end again.
_BEHIND = 64 << 20
_STEP = 1 << 20
_GLANCE = 32 << 10
_KEPT_LINES = 20_000
_KEPT_CHARACTERS = 32 << 20
#: Lines that one take hands over: hiding credentials in them costs about a quarter of a second on a slow core.
HANDED = 5_000


class LogReader:
    """The phases and the lines of one run's ``output.log``; :meth:`read` continues where it left off.

    One thread at a time uses it. ``problem`` says what was wrong with the file at the last look, "" for nothing.
    """

    def __init__(self, folder: str) -> None:
        self._path = f"{folder}/output.log"
        self._folder = Folder()
        self._phases = Phases()
        self._offset: int | None = None
        self.lines: deque[Line] = deque()
        self.problem = ""
        self._characters = 0  # of the kept lines
        self._finished = 0  # lines that were finished so far
        self._taken = 0  # of these, lines that a take has passed
        self._skipped = 0  # bytes that were not read since the last take
        self._shown = ("", "")  # the last unfinished line: as it was, as it was handed over

    def glance(self) -> tuple[list[Line], str]:
        """The end of the log alone, as :meth:`take` tells it: for a first look, before :meth:`read` has read it all."""
        piece = read_tail(self._path, _GLANCE)
        self.problem = piece.problem
        folder = Folder()
        lines = [_shown(line) for line in folder.feed(piece.data)]
        if notice := _left_out(piece.start, 0):
            lines.insert(0, Line(notice, "", 0))
        return lines, clean(redact(folder.pending))

    def read(self) -> PhaseReport:
        """What the log tells by now; an unreadable or missing log tells nothing."""
        piece = read_range(self._path, self._offset or 0, 0)
        size, self.problem = piece.size, piece.problem
        if self._offset is None or size - self._offset > _BEHIND:
            self._from_the_end()
        # Up to the size that was seen: a log that grows faster than it can be read would hold us here for ever.
        while self._offset is not None and self._offset < size:
            piece = read_range(self._path, self._offset, min(_STEP, size - self._offset))
            if not piece.data:
                self.problem = piece.problem
                break
            self._feed(piece.data)
            self._offset = piece.end
        self._phases.feed([], self._folder.pending)
        return self._phases.report()

    def take(self, limit: int = HANDED) -> tuple[list[Line], str]:
        """Lines that were finished since the last take, oldest first, and the unfinished last one ("" for none).

        Credentials are hidden in both. At most ``limit`` lines come, the newest. What was left out before them is told
        by a first line of ours, whose ``number`` is 0: bytes that were not read, lines that were too many.
        """
        new = self._finished - self._taken
        kept = min(new, limit, len(self.lines))
        lines = [_shown(line) for line in islice(self.lines, len(self.lines) - kept, None)]
        if notice := _left_out(self._skipped, new - kept):
            lines.insert(0, Line(notice, "", 0))
        self._taken, self._skipped = self._finished, 0
        pending = self._folder.pending
        if pending != self._shown[0]:
            self._shown = (pending, clean(redact(pending)))
        return lines, self._shown[1]

    def finished(self) -> list[Line]:
        """All kept lines, the unfinished last one included: for a run that has ended."""
        self._keep(self._folder.finish())
        return list(self.lines)

    def _from_the_end(self) -> None:
        piece = read_tail(self._path, _TAIL)
        self.problem = piece.problem
        self._skipped += max(0, piece.start - (self._offset or 0))
        if self._offset is not None:
            self._keep(self._folder.finish())
        self._feed(piece.data)
        self._offset = piece.end

    def _feed(self, data: bytes) -> None:
        lines = self._folder.feed(data)
        self._keep(lines)
        self._phases.feed(lines, self._folder.pending)

    def _keep(self, lines: list[Line]) -> None:
        self.lines.extend(lines)
        self._finished += len(lines)
        self._characters += sum(len(line.text) for line in lines)
        while len(self.lines) > _KEPT_LINES or (self._characters > _KEPT_CHARACTERS and len(self.lines) > 1):
            self._characters -= len(self.lines.popleft().text)


def _shown(line: Line) -> Line:
    text = clean(redact(line.text))
    return line if text == line.text else replace(line, text=text)


def _left_out(size: int, lines: int) -> str:
    parts = []
    if size:
        parts.append(f"{human_bytes(size)} ({size:,} bytes)")
    if lines:
        parts.append(f"{lines:,} line{'s' if lines > 1 else ''}")
    return f"quark-tui: {' and '.join(parts)} before this are not shown here; output.log has them" if parts else ""
