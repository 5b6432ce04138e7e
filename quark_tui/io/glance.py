"""Small JSON records for lists: a second look reads a file again only where it is not the file of the first look.

For lists only: the content is not validated, and what is remembered is what ``pick`` took of it.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
#: Our records are replaced by renaming, so that another content comes with another inode and time of change.
_Identity = tuple[int, int, int, int]
#: Records that are remembered before all of them are forgotten: a bound, not a tuning.
_MOST = 100_000


class Glance(Generic[T]):
    """``pick`` takes what is wanted from a record; it may raise ValueError. ``limit`` is in bytes."""

    def __init__(self, pick: Callable[[dict[str, Any]], T], limit: int = 1 << 20) -> None:
        self._pick, self._limit = pick, limit
        self._seen: dict[str, tuple[_Identity, T]] = {}

    def __call__(self, path: str) -> T:
        """What ``path`` holds now. Raises OSError; ValueError when it is no JSON object, too large or no file."""
        before = self._seen.get(path)
        if before is not None and _identity(os.stat(path)) == before[0]:
            return before[1]
        identity, data = _read(path, self._limit)
        try:
            value = json.loads(data)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(value, dict):
            raise ValueError("not a JSON object")
        picked = self._pick(value)
        if len(self._seen) >= _MOST:
            self._seen.clear()
        self._seen[path] = identity, picked
        return picked


def _identity(info: os.stat_result) -> _Identity:
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _read(path: str, limit: int) -> tuple[_Identity, bytes]:
    """A regular file's identity and content; nothing is waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a regular file", path)
        if info.st_size > limit:
            raise ValueError(f"more than {limit} bytes")
        parts = []
        left = info.st_size
        while left > 0 and (part := os.read(descriptor, left)):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(descriptor)
    return _identity(info), b"".join(parts)
