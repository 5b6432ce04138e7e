"""Files that are whole or absent: atomic replacement, fsync, and strict reading of plain JSON."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any


def write_bytes(path: str, data: bytes, mode: int = 0o600) -> None:
    """Replace ``path`` with ``data``; a reader sees the old file or the new one. Raises OSError, keeping the old."""
    temporary = f"{path}.{os.getpid()}.tmp"
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


def read_json(path: str, limit: int = 64 << 20) -> dict[str, Any]:
    """The JSON object in ``path``. Raises OSError, or ValueError when it is too large, no JSON or no object."""
    with open(path, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"more than {limit} bytes")
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value
