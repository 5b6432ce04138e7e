"""safetensors headers: what a shard says about its tensors, and whether it can be believed.

Format source: the safetensors specification (8-byte little-endian header length, JSON header, then the data buffer).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

#: The reference implementation refuses larger headers.
MAX_HEADER = 100_000_000

#: Bits of one element. Sub-byte types are packed.
DTYPE_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a shard; ``start`` and ``end`` are byte offsets in the shard's data buffer."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Shard:
    """One weight file. ``problem`` is empty when the header is sound and the file as long as it says."""

    name: str
    size: int
    data_start: int = 0
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    header_sha256: str | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The weights of a checkpoint directory as its headers tell them; nothing was loaded.

    ``index`` maps tensor names to shard names as ``model.safetensors.index.json`` has it, None without one;
    ``index_problem`` says why an index that exists cannot be used. ``other_weights`` are weight files in formats that
    carry no readable header (.bin, .pt, .gguf), name to size.
    """

    directory: str
    shards: tuple[Shard, ...] = ()
    index: Mapping[str, str] | None = None
    index_problem: str = ""
    other_weights: Mapping[str, int] = field(default_factory=dict)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors of all shards by name; of a name in two shards the last."""
        return {name: tensor for shard in self.shards for name, tensor in shard.tensors.items()}

    @property
    def data_bytes(self) -> int:
        return sum(tensor.nbytes for shard in self.shards for tensor in shard.tensors.values())

    @property
    def sound(self) -> bool:
        return bool(self.shards) and not any(shard.problem for shard in self.shards)

    def index_disagreements(self) -> list[str]:
        """Where index and shards disagree, one sentence each; empty without an index or when they agree."""
        if self.index_problem:
            return [self.index_problem]
        if self.index is None:
            return []
        where = {tensor: shard.name for shard in self.shards for tensor in shard.tensors}
        present = {shard.name for shard in self.shards}
        found = [f"the index names {name}, which is not there" for name in sorted(set(self.index.values()) - present)]
        lost = [name for name, shard in self.index.items() if shard in present and where.get(name) != shard]
        extra = [name for name in where if name not in self.index]
        if lost:
            found.append(f"{len(lost)} tensors of the index are not in the shard that it names, first {lost[0]}")
        if extra:
            found.append(f"{len(extra)} tensors are not in the index, first {extra[0]}")
        return found


def parse_header(raw: bytes, data_size: int) -> tuple[dict[str, Tensor], str]:
    """Tensors of a header (``raw`` without its length prefix) and what is wrong with it ("" when sound).

    ``data_size`` is the number of bytes that follow the header in the file.
    """
    try:
        header = json.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        return {}, f"the header is no JSON: {error}"
    if not isinstance(header, dict):
        return {}, "the header is no JSON object"
    tensors: dict[str, Tensor] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            numbers = [*shape, start, end]
            if not isinstance(dtype, str) or not all(type(n) is int and n >= 0 for n in numbers):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            return tensors, f"the header entry of {name!r} is malformed"
        tensors[name] = tensor = Tensor(name, dtype, tuple(shape), start, end)
        bits = DTYPE_BITS.get(dtype)
        if end < start:
            return tensors, f"{name!r} ends before it starts"
        if bits is not None and tensor.nbytes * 8 != tensor.elements * bits:
            return tensors, f"{name!r} has {tensor.nbytes} bytes, its type and shape need {tensor.elements * bits // 8}"
    last = 0
    for tensor in sorted(tensors.values(), key=lambda t: (t.start, t.end)):
        if tensor.start != last:
            return tensors, f"the data of {tensor.name!r} overlaps or leaves a hole before it"
        last = tensor.end
    if last > data_size:
        return tensors, f"cut short: the header promises {last} data bytes, the file has {data_size}"
    if last < data_size:
        return tensors, f"{data_size - last} bytes after the last tensor"
    return tensors, ""
