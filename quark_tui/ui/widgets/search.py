"""Searching the lines of a log, in bounded time whatever pattern a person types."""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from types import FrameType

#: Processor seconds that a new search, or looking through the lines of one batch, may take.
FIRST, MORE = 0.5, 0.25
#: Characters of a query, and matches of one line that are told apart.
LONGEST, MOST = 500, 1_000
#: Characters of a line that are searched.
SEARCHED = 65_536


class _TooLong(Exception):
    pass


_armed = False


def _late(number: int, frame: FrameType | None) -> None:
    if _armed:
        raise _TooLong


def within(seconds: float, work: Callable[[], None]) -> bool:
    """Run ``work`` in the main thread; False when it was ended, for it took more than ``seconds`` of processor time.

    The regular expression engine looks for signals while it works, so that this ends even a pattern that would run for
    years. The handler stays: it does nothing afterwards, while the signal's default would end the process.
    """
    global _armed
    signal.signal(signal.SIGVTALRM, _late)
    try:
        try:
            _armed = True
            # Again and again: an exception that is raised inside a finaliser is swallowed by Python.
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.05)
            work()
        finally:
            _armed = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except _TooLong:
        _armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return False
    return True


class Search:
    """What was searched for, and how many matches each line has, by the line's id (ids only grow).

    ``problem`` is a sentence when the search could not be made, or was given up; then there are no matches. ``pattern``
    is None when nothing is searched for.
    """

    def __init__(self) -> None:
        self.query = ""
        self.problem = ""
        self.found: dict[int, int] = {}
        self.total = 0
        self.pattern: re.Pattern[str] | None = None
        self._plain: str | None = None  # what to count where that is the same and quicker
        self._case = False

    def start(self, query: str, *, regex: bool, case: bool, lines: Iterable[tuple[int, str]]) -> None:
        """Search ``lines``; an empty query ends the search. Raises nothing."""
        self.query, self.problem = query, ""
        self._clear()
        if not query:
            return
        if len(query) > LONGEST:
            self.problem = f"more than {LONGEST} characters to search for"
        elif regex and threading.current_thread() is not threading.main_thread():
            self.problem = "regular expressions cannot be searched for here; plain text can"
        else:
            self._bounded(FIRST, lambda: self._first(query if regex else re.escape(query), case, lines))

    def extend(self, lines: Iterable[tuple[int, str]]) -> None:
        """Search ``lines`` too, which came after the ones before."""
        if self.pattern is not None:
            self._bounded(MORE, lambda: self._look(lines))

    def forget(self, ident: int) -> None:
        """The line ``ident`` is no longer there."""
        self.total -= self.found.pop(ident, 0)

    def spans(self, text: str) -> tuple[tuple[int, int], ...]:
        """Where the matches in ``text``, one of the lines that were searched, begin and end: in characters."""
        return _spans(self.pattern, text) if self.pattern is not None else ()

    def after(self, ident: int, index: int) -> tuple[int, int] | None:
        """The first match behind match ``index`` of line ``ident``, as (line, index)."""
        if index + 1 < self.found.get(ident, 0):
            return ident, index + 1
        line = next((one for one in self.found if one > ident), None)
        return None if line is None else (line, 0)

    def before(self, ident: int, index: int) -> tuple[int, int] | None:
        """The last match ahead of match ``index`` of line ``ident``, as (line, index)."""
        if index > 0 and ident in self.found:
            return ident, min(index, self.found[ident]) - 1
        line = next((one for one in reversed(self.found) if one < ident), None)
        return None if line is None else (line, self.found[line] - 1)

    def place(self, ident: int, index: int) -> int:
        """The 1-based number of a match among all of them."""
        return sum(count for line, count in self.found.items() if line < ident) + index + 1

    def _first(self, source: str, case: bool, lines: Iterable[tuple[int, str]]) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.pattern = re.compile(source, 0 if case else re.IGNORECASE)
        except (re.error, RecursionError, OverflowError, ValueError) as error:
            self.problem = f"no regular expression: {error}"
            return
        self._case = case
        self._plain = None if source != re.escape(self.query) else self.query if case else self.query.lower()
        self._look(lines)

    def _look(self, lines: Iterable[tuple[int, str]]) -> None:
        pattern = self.pattern
        if pattern is None:
            return
        for ident, text in lines:
            if count := self._count(pattern, text):
                self.found[ident] = count
                self.total += count

    def _count(self, pattern: re.Pattern[str], text: str) -> int:
        plain = self._plain
        if plain is not None and len(text) <= SEARCHED and (self._case or (text.isascii() and plain.isascii())):
            return min(MOST, (text if self._case else text.lower()).count(plain))
        return sum(1 for _ in _matches(pattern, text)) if pattern.search(text, 0, SEARCHED) else 0

    def _bounded(self, seconds: float, work: Callable[[], None]) -> None:
        if threading.current_thread() is not threading.main_thread():
            work()  # plain text only, see start
        elif not within(seconds, work):
            self._clear()
            self.problem = "this takes too long to search for: it was given up"

    def _clear(self) -> None:
        self.pattern = None
        self.found = {}
        self.total = 0


def _matches(pattern: re.Pattern[str], text: str) -> Iterable[tuple[int, int]]:
    """The first matches that hold a character."""
    spans = (match.span() for match in pattern.finditer(text, 0, SEARCHED))
    return islice((span for span in spans if span[0] < span[1]), MOST)


@lru_cache(maxsize=64)
def _spans(pattern: re.Pattern[str], text: str) -> tuple[tuple[int, int], ...]:
    return tuple(_matches(pattern, text))
