"""Lines of a log as evidence: clean, redacted, numbered and bounded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quark_tui.core.logtext import Line
from quark_tui.core.ptq.failure.values import RaisedError
from quark_tui.core.text import clean, clean_lines, redact

_MAX_ERROR = 200_000
MAX_MATCH = 20_000


def whole_error(lines: Sequence[Line], chain: Sequence[RaisedError]) -> str:
    """The text of the chained tracebacks, or of the last 40 lines where there are none; at most 200,000 characters."""
    part = lines[chain[0].start : chain[-1].end] if chain else lines[-40:]
    text = redact(clean_lines("\n".join(line.text for line in part)))
    return text if len(text) <= _MAX_ERROR else "… earlier text left out\n" + text[-_MAX_ERROR:]


def message_of(error: RaisedError) -> str:
    """Type and message of an exception, all lines."""
    return redact(clean_lines(error.text)).strip()


def quote(line: Line) -> str:
    """One line with its number."""
    return redact(f"line {line.number}: {clean(line.text.strip())}")


def quoted(error: RaisedError) -> tuple[str, ...]:
    """The first 20 lines of an exception's message."""
    return tuple(quote(line) for line in error.lines[:20] if line.text.strip())


def matching_lines(lines: Sequence[Line], pattern: re.Pattern[str], limit: int = 3) -> tuple[str, ...]:
    """The last ``limit`` lines that ``pattern`` is found in, in their order."""
    found: list[str] = []
    for line in reversed(lines):
        if pattern.search(line.text[:MAX_MATCH]):
            found.append(quote(line))
            if len(found) == limit:
                break
    return tuple(reversed(found))
