"""safetensors headers: what a shard says about its tensors, and whether it can be believed.

Format source: the safetensors specification (8-byte little-endian header length, JSON header, then the data buffer).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from quark_tui.core.text import clean, elide_middle

#: The reference implementation refuses larger headers.
MAX_HEADER = 100_000_000

#: Weights that are one file have this name.
SINGLE = "model.safetensors"

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
    """One weight file. ``problem`` is empty when the header is sound and the file as long as it says.

    ``unreadable`` is True when we were not allowed, or not able, to look: nothing is known of the file then, least of
    all that it is damaged.
    """

    name: str
    size: int
    data_start: int = 0
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    header_sha256: str | None = None
    problem: str = ""
    unreadable: bool = False


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


def as_loaded(checkpoint: Checkpoint) -> tuple[Checkpoint, tuple[str, ...]]:
    """(the weights that transformers loads, names of the safetensors files that it passes by).

    It takes model.safetensors, else the files that the index names; adapters are no part of a model. A folder whose
    index names files that are absent, or that has neither, is left as it is but for adapters: what is meant is open.
    """
    names = {shard.name for shard in checkpoint.shards}
    wanted = {name for name in names if not name.startswith("adapter_")}
    indexed = set(checkpoint.index.values()) if checkpoint.index else set()
    index = checkpoint.index
    settled = not checkpoint.index_problem and indexed <= names
    if SINGLE in names and SINGLE not in indexed and settled:
        wanted, index = {SINGLE}, None
    elif indexed and settled:
        wanted = indexed
    if wanted == names:
        return checkpoint, ()
    kept = tuple(shard for shard in checkpoint.shards if shard.name in wanted)
    return replace(checkpoint, shards=kept, index=index), tuple(sorted(names - wanted))


# Sizes and offsets are 64-bit in every reader. A tensor library has at most 64 dimensions (torch).
_MAX_NUMBER = (1 << 63) - 1
_MAX_DIMENSIONS = 64
_MAX_DTYPE = 64


class _Refused(ValueError):
    """JSON that the format does not allow although a JSON parser would take it."""


def parse_header(raw: bytes, data_size: int) -> tuple[dict[str, Tensor], str]:
    """Tensors of a header (``raw`` without its length prefix) and what is wrong with it ("" when sound).

    ``data_size`` is the number of bytes that follow the header in the file. Raises nothing for any bytes; the work is
    linear in them. What the reference implementation refuses (measured with safetensors 0.8: numbers that are no
    unsigned integers, metadata that is no text, half a surrogate pair) is refused here, and so are duplicate names,
    which the format forbids.
    """
    try:
        header = _load(raw)
    except RecursionError:
        return {}, "the header is no JSON that can be read: nested too deeply"
    except ValueError as error:
        return {}, f"the header is no JSON that can be read: {clean(error)[:200]}"
    if not isinstance(header, dict):
        return {}, "the header is no JSON object"
    tensors: dict[str, Tensor] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            texts = entry is None or (isinstance(entry, dict) and all(isinstance(text, str) for text in entry.values()))
            if not texts:
                return tensors, "the header's __metadata__ is no map of texts"
            continue
        tensor = _tensor(name, entry)
        if tensor is None:
            return tensors, f"the header entry of {_quoted(name)} is malformed"
        tensors[name] = tensor
        if problem := _contradiction(tensor):
            return tensors, problem
    return tensors, _gaps(tensors, data_size)


def _load(raw: bytes) -> Any:
    return json.loads(
        raw.decode("utf-8"),
        object_pairs_hook=_unique,
        parse_constant=_no_constant,
        # The hook costs a call a number, and only "-0" would pass as an unsigned integer otherwise.
        parse_int=_unsigned if b"-0" in raw else None,
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Refused(f"{_quoted(name)} is there twice")
            seen.add(name)
    return result


def _no_constant(word: str) -> NoReturn:
    raise _Refused(f"{word} is no number of JSON")


def _unsigned(digits: str) -> int:
    if digits.startswith("-"):
        raise _Refused(f"{digits[:20]} is no unsigned integer")
    return int(digits)


def _tensor(name: str, entry: Any) -> Tensor | None:
    """One entry as a Tensor; None when it is none."""
    if not isinstance(entry, dict):
        return None
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or len(dtype) > _MAX_DTYPE or not isinstance(shape, list):
        return None
    if not isinstance(offsets, list) or len(offsets) != 2 or len(shape) > _MAX_DIMENSIONS:
        return None
    if not all(type(number) is int and 0 <= number <= _MAX_NUMBER for number in (*shape, *offsets)):
        return None
    return Tensor(name, dtype, tuple(shape), offsets[0], offsets[1])


def _is_unicode(text: str) -> bool:
    """False with half a surrogate pair in it, which no file can hold as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _contradiction(tensor: Tensor) -> str:
    if not _is_unicode(tensor.name):
        return f"the name {_quoted(tensor.name)} is no Unicode text"
    if tensor.end < tensor.start:
        return f"{_quoted(tensor.name)} ends before it starts"
    bits = DTYPE_BITS.get(tensor.dtype)
    if bits is None:
        return ""
    needed = tensor.elements * bits
    if needed > _MAX_NUMBER:
        return f"{_quoted(tensor.name)} has a shape that no file can hold"
    if needed % 8:
        return f"{_quoted(tensor.name)} does not fill whole bytes"
    if tensor.nbytes * 8 != needed:
        return f"{_quoted(tensor.name)} has {tensor.nbytes} bytes, its type and shape need {needed // 8}"
    return ""


def _gaps(tensors: Mapping[str, Tensor], data_size: int) -> str:
    last = 0
    for tensor in sorted(tensors.values(), key=lambda t: (t.start, t.end)):
        if tensor.start != last:
            return f"the data of {_quoted(tensor.name)} overlaps or leaves a hole before it"
        last = tensor.end
    if last > data_size:
        return f"cut short: the header promises {last} data bytes, the file has {data_size}"
    if last < data_size:
        return f"{data_size - last} bytes after the last tensor"
    return ""


def _quoted(name: str) -> str:
    return f"'{elide_middle(clean(name if len(name) <= 400 else f'{name[:200]}{name[-200:]}'), 100)}'"
