"""Files that are whole or absent: atomic replacement, fsync, and strict reading of plain JSON."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import threading
from collections.abc import Mapping
from typing import Any

#: Records of ours are about six levels deep; deeper ones exhaust the stack of whoever writes them out again.
_MAX_DEPTH = 64


def write_bytes(path: str, data: bytes, mode: int = 0o600) -> None:
    """Replace ``path`` with ``data``; a reader sees the old file or the new one. Raises OSError, keeping the old."""
    # Two threads of one process may write the same record.
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_directory(os.path.dirname(path))


def sync_directory(path: str) -> None:
    """Make renames in ``path`` durable, where the filesystem can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def to_json_bytes(value: Mapping[str, Any]) -> bytes:
    """``value`` as indented JSON: ASCII, no NaN. Raises ValueError for what JSON cannot hold."""
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def write_json(path: str, value: Mapping[str, Any], mode: int = 0o600) -> None:
    """Replace ``path`` with ``value`` as JSON. Raises OSError or ValueError, leaving the old file."""
    write_bytes(path, to_json_bytes(value), mode)


def read_bytes(path: str, limit: int) -> bytes:
    """A regular file of at most ``limit`` bytes. Raises OSError, or ValueError for anything else; waits for nothing."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise ValueError(f"more than {limit} bytes")
    return data


def read_lines(path: str, limit: int = 1 << 20) -> list[dict[str, Any]]:
    """The JSON objects in ``path``, one a line; what is no object is passed over, and so is a file that is none."""
    try:
        data = read_bytes(path, limit)
    except (OSError, ValueError):
        return []
    found = []
    for line in data.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(line, parse_constant=_no_number)
            if isinstance(value, dict):
                found.append(value)
    return found


def read_json(path: str, limit: int = 64 << 20) -> dict[str, Any]:
    """The JSON object in ``path``, which JSON can hold again.

    Raises OSError, or ValueError when it is no regular file, too large, no JSON (NaN is none), no object, or nested
    deeper than anything of ours.
    """
    data = read_bytes(path, limit)
    try:
        value = json.loads(data, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    if _deeper(value, _MAX_DEPTH):
        raise ValueError("nested too deeply")
    return value


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _deeper(value: Any, levels: int) -> bool:
    """True when containers are nested more than ``levels`` deep; level by level, so that no stack can overflow."""
    layer = [value]
    while layer:
        if levels == 0:
            return True
        levels -= 1
        inner = (item for one in layer for item in (one.values() if isinstance(one, dict) else one))
        layer = [item for item in inner if isinstance(item, dict | list) and item]
    return False
