"""Reading a checkpoint directory's weights without loading them: headers, the index, single scalars."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import stat
import struct
from pathlib import Path
from typing import BinaryIO

from quark_tui.core.model.headers import DTYPE_BITS, MAX_HEADER, Checkpoint, Shard, Tensor, parse_header

INDEX_NAME = "model.safetensors.index.json"
#: The index of a model of 45,000 tensors is about 4 MB.
MAX_INDEX = 256_000_000
_OTHER = re.compile(r"(?i)\.(bin|pt|pth|gguf|h5|msgpack|npz|ckpt|onnx)$")
_NOT_WEIGHTS = frozenset({"training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth"})
_LFS = b"version https://git-lfs"
# What is wrong with a path itself; every other error means that we were not allowed, or not able, to look.
_DAMAGE = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENAMETOOLONG, errno.EINVAL}
)


class _NotRegular(OSError):
    """A pipe, a device, a directory: nothing that holds bytes to read."""


def _open_regular(path: Path) -> BinaryIO:
    """Open a regular file; a pipe or device is neither waited for nor read. Raises OSError."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _NotRegular(errno.EINVAL, "not a regular file")
    return file


def _refused(error: OSError) -> bool:
    return error.errno not in _DAMAGE


def _said(error: OSError) -> str:
    return error.strerror or type(error).__name__


def read_shard(path: Path) -> Shard:
    """One safetensors file's header; whatever is wrong with the file is in ``problem``, nothing is raised.

    ``unreadable`` tells "we may not look" (permission, input/output errors) from damage. At most ``MAX_HEADER`` bytes
    are read, and never more than the file has, whatever its header claims.
    """
    try:
        with _open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
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
    except _NotRegular as error:
        return Shard(path.name, 0, problem=_said(error))
    except OSError as error:
        return Shard(path.name, 0, problem=f"cannot be read: {_said(error)}", unreadable=_refused(error))
    tensors, problem = parse_header(raw, size - 8 - length)
    return Shard(path.name, size, 8 + length, tensors, hashlib.sha256(prefix + raw).hexdigest(), problem)


def read_index(path: Path) -> tuple[dict[str, str] | None, str]:
    """(weight map, problem) of an index file; (None, "") when there is none. At most ``MAX_INDEX`` bytes are read."""
    try:
        with _open_regular(path) as file:
            raw = file.read(MAX_INDEX + 1)
    except FileNotFoundError:
        return (None, f"{path.name} is a link that leads nowhere") if os.path.islink(path) else (None, "")
    except _NotRegular:
        return None, f"{path.name} is not a regular file"
    except OSError as error:
        return None, f"{path.name} cannot be read: {_said(error)}"
    if len(raw) > MAX_INDEX:
        return None, f"{path.name} is too large to be an index: more than {MAX_INDEX} bytes"
    try:
        data = json.loads(raw.decode("utf-8"))
    except RecursionError:
        return None, f"{path.name} cannot be read: nested too deeply"
    except ValueError as error:
        return None, f"{path.name} cannot be read: no JSON: {error}"
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
    """The values of small float tensors (scales), by name; tensors of more than ``limit`` elements are left out.

    Raises OSError when a shard that was read before cannot be read any more.
    """
    values: dict[str, list[float]] = {}
    wanted = set(names)
    for shard in checkpoint.shards:
        tensors = [t for name, t in shard.tensors.items() if name in wanted and t.elements <= limit and _sized(t)]
        if not tensors or shard.problem:
            continue
        with _open_regular(directory / shard.name) as file:
            for tensor in tensors:
                file.seek(shard.data_start + tensor.start)
                decoded = decode(tensor, file.read(tensor.nbytes))
                if decoded is not None:
                    values[tensor.name] = decoded
    return values


def _sized(tensor: Tensor) -> bool:
    """True when the tensor's bytes are as many as its type and shape need; a type that is not known is not read."""
    bits = DTYPE_BITS.get(tensor.dtype)
    return bits is not None and tensor.elements * bits == tensor.nbytes * 8


def decode(tensor: Tensor, raw: bytes) -> list[float] | None:
    """``raw`` as floats for F32, F16, BF16, F64, F8_E4M3 and F8_E5M2; None for other types or a wrong size."""
    if len(raw) != tensor.nbytes or not _sized(tensor):
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
