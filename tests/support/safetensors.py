"""Writing safetensors files by hand: a map of names to (type, shape) or (type, shape, bytes)."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

BITS = {
    "F32": 32, "F64": 64, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "U8": 8, "I8": 8,
    "I16": 16, "I32": 32, "I64": 64, "BOOL": 8,
}  # fmt: skip

Entry = tuple[str, Sequence[int]] | tuple[str, Sequence[int], bytes]


def scalar(dtype: str, value: float) -> bytes:
    """One float as F32, BF16 or F16 bytes."""
    if dtype == "BF16":
        return struct.pack("<f", value)[2:]
    return struct.pack({"F32": "<f", "F16": "<e", "F64": "<d"}[dtype], value)


def to_bytes(tensors: Mapping[str, Entry], metadata: Mapping[str, str] | None = None) -> bytes:
    """The file's bytes. Without bytes of its own a one-element float is 0.5, everything else is zeros."""
    header: dict[str, object] = {"__metadata__": dict(metadata or {"format": "pt"})}
    data = b""
    for name, entry in tensors.items():
        dtype, shape = entry[0], list(entry[1])
        size = math.prod(shape) * BITS[dtype] // 8
        if len(entry) == 3:
            raw = entry[2]
        elif math.prod(shape) == 1 and dtype in ("F32", "BF16", "F16", "F64"):
            raw = scalar(dtype, 0.5)
        else:
            raw = bytes(size)
        assert len(raw) == size, f"{name}: {len(raw)} bytes given, {size} needed"
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write_safetensors(path: Path, tensors: Mapping[str, Entry], metadata: Mapping[str, str] | None = None) -> Path:
    path.write_bytes(to_bytes(tensors, metadata))
    return path
