"""Bounded reads of a log by pread: the end of it, or a range of bytes. Never mmap: a truncated file would kill us."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

#: The most that one call reads, in bytes.
MAX_READ = 16 * 1024 * 1024
_STEP = 256 * 1024


@dataclass(frozen=True, slots=True)
class Piece:
    """``data`` are the bytes of a log from ``start``; ``size`` is the file's size in bytes when it was read.

    ``problem`` says what was wrong with the file; then ``data`` is what could be read before, often nothing.
    """

    data: bytes
    start: int
    size: int
    problem: str = ""

    @property
    def end(self) -> int:
        """The offset behind the last byte: where the next read goes on."""
        return self.start + len(self.data)


def read_range(path: str | Path, start: int, length: int) -> Piece:
    """Up to ``length`` bytes from offset ``start``, at most :data:`MAX_READ`.

    Fewer come where the file ends; a start behind the end gives none. A file that cannot be read, or is not a regular
    one, gives a ``problem``; nothing is raised. Raises ValueError for a negative start or length.
    """
    if start < 0 or length < 0:
        raise ValueError("start and length are not negative")
    return _read(path, start, length, whole_lines=False)


def read_tail(path: str | Path, length: int, *, whole_lines: bool = True) -> Piece:
    """The last ``length`` bytes, at most :data:`MAX_READ`.

    With ``whole_lines`` a first line that the cut went through is left out, unless it is all that there is. Problems
    are told as in :func:`read_range`. Raises ValueError for a negative length.
    """
    if length < 0:
        raise ValueError("length is not negative")
    return _read(path, None, length, whole_lines=whole_lines)


def _read(path: str | Path, start: int | None, length: int, *, whole_lines: bool) -> Piece:
    length = min(length, MAX_READ)
    begin = start or 0
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        return Piece(b"", begin, 0, _words(error))
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            return Piece(b"", begin, 0, "not a regular file")
        size = info.st_size
        if start is None:
            begin = max(0, size - length)
        # A line that starts exactly at the cut is whole: one byte more tells.
        cut = whole_lines and begin > 0
        data, problem = _pread(descriptor, begin - 1 if cut else begin, length + 1 if cut else length)
    except OSError as error:
        return Piece(b"", begin, 0, _words(error))
    finally:
        os.close(descriptor)
    if cut:
        newline = data.find(b"\n")
        if newline < 0 or newline == len(data) - 1:
            data = data[1:]
        else:
            data = data[newline + 1 :]
            begin += newline
    return Piece(data, begin, size, problem)


def _pread(descriptor: int, start: int, length: int) -> tuple[bytes, str]:
    parts: list[bytes] = []
    while length > 0:
        try:
            part = os.pread(descriptor, min(length, _STEP), start)
        except (OSError, OverflowError) as error:
            return b"".join(parts), _words(error)
        if not part:
            break
        parts.append(part)
        start += len(part)
        length -= len(part)
    return b"".join(parts), ""


def _words(error: Exception) -> str:
    return f"cannot be read: {error.strerror if isinstance(error, OSError) and error.strerror else error}"
