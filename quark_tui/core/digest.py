"""One canonical, length-safe form of plain data, and its sha256.

Each value is written as a type letter, its length and its bytes, so no two different values share a form. Maps keep
their order, because the order of overrides decides what a run does; callers that want order-free maps sort them first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

#: Changes whenever the form or what callers put into it changes, so that old approvals never fit new content.
VERSION = "quark-tui/1"


def canonical(value: Any) -> bytes:
    """``value`` (None, bool, int, float, str, bytes, sequences and string-keyed maps) as canonical bytes.

    Raises TypeError for anything else. Strings keep surrogate escapes, so undecodable file names are told apart.
    """
    if value is None:
        return b"n"
    if value is True:
        return b"t"
    if value is False:
        return b"f"
    if isinstance(value, int):
        return _sized(b"i", str(value).encode())
    if isinstance(value, float):
        return _sized(b"r", repr(value).encode())
    if isinstance(value, str):
        return _sized(b"s", value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return _sized(b"b", value)
    if isinstance(value, Mapping):
        parts = [b"d%d:" % len(value)]
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"map keys are strings, not {type(key).__name__}")
            parts += [canonical(key), canonical(item)]
        return b"".join(parts)
    if isinstance(value, Sequence):
        return b"".join([b"l%d:" % len(value), *(canonical(item) for item in value)])
    raise TypeError(f"no canonical form for {type(value).__name__}")


def _sized(letter: bytes, body: bytes) -> bytes:
    return letter + str(len(body)).encode() + b":" + body


def digest(kind: str, value: Any) -> str:
    """sha256 (hex) over ``kind`` (what sort of thing is digested), the version tag and the canonical value."""
    return hashlib.sha256(canonical([VERSION, kind, value])).hexdigest()


def differences(was: Any, now: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """Each leaf at which two plain values differ, as (dotted name, was, now); a missing side is None."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        found: list[tuple[str, Any, Any]] = []
        for key in [*was, *(key for key in now if key not in was)]:
            found += differences(was.get(key), now.get(key), f"{name}.{key}" if name else str(key))
        if not found and list(was) != list(now):
            found.append((f"{name} (order)", list(was), list(now)))
        return found
    if type(was) is type(now) and was == now:
        return []
    return [(name, was, now)]
