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

# Python refuses to write integers of more digits than this as decimals (4300 by default); hexadecimals have no limit.
_DECIMAL_BITS = 8192
# Deeper maps are told apart as wholes, so that a foreign file's nesting cannot exhaust the stack.
_MAX_DEPTH = 50


def canonical(value: Any) -> bytes:
    """``value`` (None, bool, int, float, str, bytes, sequences and string-keyed maps) as canonical bytes.

    A list and a tuple of the same items are the same value; NaN is itself. Raises TypeError for anything else. Strings
    keep surrogate escapes, so undecodable file names are told apart. Any depth is taken.
    """
    parts: list[bytes] = []
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            parts.append(b"d%d:" % len(item))
            for key, held in reversed(list(item.items())):
                if not isinstance(key, str):
                    raise TypeError(f"map keys are strings, not {type(key).__name__}")
                waiting += [held, key]
        elif isinstance(item, Sequence) and not isinstance(item, str | bytes | bytearray | memoryview):
            parts.append(b"l%d:" % len(item))
            waiting += reversed(item)
        else:
            parts.append(_scalar(item))
    return b"".join(parts)


def _scalar(value: Any) -> bytes:
    if value is None:
        return b"n"
    if value is True:
        return b"t"
    if value is False:
        return b"f"
    if isinstance(value, int):
        text = int.__repr__(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)
        return _sized(b"i", text.encode())
    if isinstance(value, float):
        return _sized(b"r", float.__repr__(value).encode())
    if isinstance(value, str):
        return _sized(b"s", value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return _sized(b"b", value)
    raise TypeError(f"no canonical form for {type(value).__name__}")


def _sized(letter: bytes, body: bytes) -> bytes:
    return letter + str(len(body)).encode() + b":" + body


def digest(kind: str, value: Any) -> str:
    """sha256 (hex) over ``kind`` (what sort of thing is digested), the version tag and the canonical value."""
    return hashlib.sha256(canonical([VERSION, kind, value])).hexdigest()


def differences(was: Any, now: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """Each leaf at which two plain values differ, as (dotted name, was, now); empty when their canonical forms agree.

    A missing side is None, where a None that is there stands against nothing the name ends in "(there)"; another order
    of the keys that both have is one more entry, whose name ends in "(order)". Lists are leaves.
    """
    return _differences(was, now, name, 0)


def _differences(was: Any, now: Any, name: str, depth: int) -> list[tuple[str, Any, Any]]:
    if not (isinstance(was, Mapping) and isinstance(now, Mapping)) or depth == _MAX_DEPTH:
        return [] if canonical(was) == canonical(now) else [(name, was, now)]
    found: list[tuple[str, Any, Any]] = []
    for key in [*was, *(key for key in now if key not in was)]:
        inner = f"{name}.{key}" if name else str(key)
        if key in was and key in now:
            found += _differences(was[key], now[key], inner, depth + 1)
        else:
            left, right = was.get(key), now.get(key)
            there = (f"{inner} (there)", key in was, key in now)
            found.append(there if left is None and right is None else (inner, left, right))
    before, after = [key for key in was if key in now], [key for key in now if key in was]
    if before != after:
        found.append((f"{name} (order)".lstrip(), before, after))
    return found
