"""Following a run's log: what its phases are, reading only what is new."""

from __future__ import annotations

from collections import deque

from quark_tui.core.logtext import Folder, Line
from quark_tui.core.ptq.phases import PhaseReport, Phases
from quark_tui.io.log.tail import read_range, read_tail

#: A log that is longer is read from its end: a later phase says that the earlier ones are done.
_TAIL = 16 << 20
_KEPT_LINES = 20_000


class LogReader:
    """The phases of one run's ``output.log``; :meth:`read` continues where it left off."""

    def __init__(self, folder: str) -> None:
        self._path = f"{folder}/output.log"
        self._folder = Folder()
        self._phases = Phases()
        self._offset: int | None = None
        self.lines: deque[Line] = deque(maxlen=_KEPT_LINES)

    def read(self) -> PhaseReport:
        """What the log tells by now; an unreadable or missing log tells nothing."""
        if self._offset is None:
            piece = read_tail(self._path, _TAIL)
            self._take(piece.data)
            self._offset = piece.start + len(piece.data)
        while True:
            piece = read_range(self._path, self._offset, 1 << 20)
            if not piece.data:
                break
            self._take(piece.data)
            self._offset += len(piece.data)
        self._phases.feed([], self._folder.pending)
        return self._phases.report()

    def _take(self, data: bytes) -> None:
        lines = self._folder.feed(data)
        self.lines.extend(lines)
        self._phases.feed(lines, self._folder.pending)

    def finished(self) -> list[Line]:
        """All kept lines, the unfinished last one included: for a run that has ended."""
        return [*self.lines, *self._folder.finish()]
