"""Reading a checkpoint directory's weights without loading them: headers, the index, single scalars."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
from pathlib import Path

from quark_tui.core.model.headers import MAX_HEADER, Checkpoint, Shard, Tensor, parse_header

INDEX_NAME = "model.safetensors.index.json"
_OTHER = re.compile(r"(?i)\.(bin|pt|pth|gguf|h5|msgpack|npz|ckpt|onnx)$")
_NOT_WEIGHTS = frozenset({"training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth"})
_LFS = b"version https://git-lfs"


def read_shard(path: Path) -> Shard:
    """One safetensors file's header; whatever is wrong with the file is in ``problem``, nothing is raised."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                return Shard(path.name, 0, problem="not a regular file")
            size = info.st_size
            prefix = file.read(8)
            if len(prefix) < 8:
                return Shard(path.name, size, problem=f"{size} bytes are too few for a safetensors header")
            if size < 2000 and prefix == _LFS[:8]:
                return Shard(path.name, size, problem="a Git LFS pointer, not the weights (git lfs pull)")
            (length,) = struct.unpack("<Q", prefix)
            if length > MAX_HEADER:
                return Shard(path.name, size, problem=f"a header of {length} bytes is too long to be one")
            if 8 + length > size:
                return Shard(
                    path.name, size, problem=f"cut short: the header needs {length} bytes, {size - 8} are there"
                )
            raw = file.read(length)
    except OSError as error:
        return Shard(path.name, 0, problem=f"cannot be read: {error.strerror or error}")
    tensors, problem = parse_header(raw, size - 8 - length)
    return Shard(path.name, size, 8 + length, tensors, hashlib.sha256(prefix + raw).hexdigest(), problem)


def read_index(path: Path) -> tuple[dict[str, str] | None, str]:
    """(weight map, problem) of an index file; (None, "") when there is none."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError, RecursionError) as error:
        return None, f"{path.name} cannot be read: {error}"
    weight_map = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(weight_map, dict) or not all(isinstance(v, str) for v in weight_map.values()):
        return None, f"{path.name} has no weight_map of names"
    return weight_map, ""


def read_checkpoint(directory: Path) -> Checkpoint:
    """All weight files at the top of ``directory``. Raises OSError when the directory cannot be listed."""
    names = sorted(os.listdir(directory))
    shards = tuple(read_shard(directory / name) for name in names if name.endswith(".safetensors"))
    other = {}
    for name in names:
        if _OTHER.search(name) and name not in _NOT_WEIGHTS:
            try:
                other[name] = os.stat(directory / name).st_size
            except OSError:
                other[name] = 0
    index, problem = read_index(directory / INDEX_NAME)
    return Checkpoint(str(directory), shards, index, problem, other)


def read_scalars(directory: Path, checkpoint: Checkpoint, names: list[str], limit: int = 64) -> dict[str, list[float]]:
    """The values of small float tensors (scales), by name; tensors of more than ``limit`` elements are left out."""
    values: dict[str, list[float]] = {}
    wanted = set(names)
    for shard in checkpoint.shards:
        tensors = [t for name, t in shard.tensors.items() if name in wanted and t.elements <= limit]
        if not tensors or shard.problem:
            continue
        with open(directory / shard.name, "rb") as file:
            for tensor in tensors:
                file.seek(shard.data_start + tensor.start)
                decoded = decode(tensor, file.read(tensor.nbytes))
                if decoded is not None:
                    values[tensor.name] = decoded
    return values


def decode(tensor: Tensor, raw: bytes) -> list[float] | None:
    """``raw`` as floats for F32, F16, BF16, F64, F8_E4M3 and F8_E5M2; None for other types or too few bytes."""
    if len(raw) != tensor.nbytes:
        return None
    count = tensor.elements
    match tensor.dtype:
        case "F32":
            return list(struct.unpack(f"<{count}f", raw))
        case "F64":
            return list(struct.unpack(f"<{count}d", raw))
        case "F16":
            return list(struct.unpack(f"<{count}e", raw))
        case "BF16":
            padded = b"".join(b"\0\0" + raw[i : i + 2] for i in range(0, len(raw), 2))
            return list(struct.unpack(f"<{count}f", padded))
        case "F8_E4M3":
            return [_float8(byte, 4, 3) for byte in raw]
        case "F8_E5M2":
            return [_float8(byte, 5, 2) for byte in raw]
    return None


def _float8(byte: int, exponent_bits: int, mantissa_bits: int) -> float:
    sign = -1.0 if byte & 0x80 else 1.0
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = byte & ((1 << mantissa_bits) - 1)
    if exponent_bits == 5 and exponent == 31:
        return sign * (math.inf if mantissa == 0 else math.nan)
    if exponent_bits == 4 and exponent == 15 and mantissa == 7:
        return math.nan
    scale = 1 << mantissa_bits
    if exponent == 0:
        return float(sign * (mantissa / scale) * 2.0 ** (1 - bias))
    return float(sign * (1 + mantissa / scale) * 2.0 ** (exponent - bias))
