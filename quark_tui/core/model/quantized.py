"""Whether a model is quantized already: every place that may say so, and what the tensors show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quark_tui.core.model.config import TEXT_SECTIONS, lookup, shown
from quark_tui.core.model.headers import Checkpoint
from quark_tui.core.text import clean

_KEYS = ("quant_method", "quant_algo", "quantization_type", "format")
#: Files of their own, and where in them the description is ("" is the whole file).
_FILES = (
    ("hf_quant_config.json", "quantization"),
    ("hf_quant_config.json", ""),
    ("quantize_config.json", ""),
    ("quant_config.json", ""),
)
#: Last parts of tensor names that only quantized checkpoints have.
_MARKS = ("qweight", "weight_packed", "weight_scale", "weight_scale_inv", "weight_scale_2", "absmax", "weight_scales")
_PACKED_DTYPES = frozenset({"U8", "I8", "U16", "I16", "I32", "U32", "F4", "F6_E2M3", "F6_E3M2"})
_FLOAT8 = frozenset({"F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"})


@dataclass(frozen=True, slots=True)
class Quantized:
    """``method`` is the first place's word ("unknown" when only tensors show it); ``evidence`` names every place.

    ``contradiction`` is a sentence when two places disagree, else "". ``by_files`` is False when only tensors speak.
    """

    method: str
    evidence: str
    contradiction: str = ""
    by_files: bool = True

    def to_json(self) -> dict[str, str]:
        return {"method": self.method, "evidence": self.evidence}


def _words(description: Any) -> dict[str, str]:
    """The method-like keys of a description, cleaned."""
    if not isinstance(description, Mapping):
        return {}
    return {key: clean(value[:80]) for key in _KEYS if isinstance(value := description.get(key), str) and value.strip()}


def find_quantized(files: Mapping[str, Any], checkpoint: Checkpoint) -> Quantized | None:
    """What parsed JSON ``files`` (name -> data) and tensor names say; None when nothing speaks of quantization.

    Looked at: quantization_config and compression_config at the top of config.json and in nested text configurations,
    hf_quant_config.json (ModelOpt writes it, sometimes alone), quantize_config.json (GPTQ) and quant_config.json (AWQ).
    """
    said: list[tuple[str, dict[str, str]]] = []
    config = files.get("config.json")
    for section in ("", *TEXT_SECTIONS):
        inside = lookup(config, section) if section else config
        if not isinstance(inside, Mapping):
            continue
        for key in ("quantization_config", "compression_config"):
            description = inside.get(key)
            if description:
                place = f"config.json: {section + '.' if section else ''}{key}"
                said.append((place, _words(description) or {"": shown(description)}))
    seen_file: set[str] = set()
    for name, key in _FILES:
        data = files.get(name)
        description = lookup(data, key) if key else data
        if name in seen_file or not isinstance(description, Mapping) or not description:
            continue
        read = _words(description)
        if not read and name != "hf_quant_config.json" and not ("bits" in description or "w_bit" in description):
            continue
        seen_file.add(name)
        said.append((f"{name}: {key}" if key else name, read or {"": shown(description)}))
    tensors = _tensor_evidence(checkpoint)
    if not said:
        return Quantized("unknown", tensors, by_files=False) if tensors else None
    place, read = said[0]
    method = next((value for key, value in read.items() if key), "unknown")
    evidence = "; ".join(
        f"{place}{''.join(f', {key} {value!r}' if key else f', {value}' for key, value in read.items())}"
        for place, read in said
    )
    if tensors:
        evidence += f"; {tensors}"
    return Quantized(method, evidence, _contradiction(said))


def _tensor_evidence(checkpoint: Checkpoint) -> str:
    marked: dict[str, int] = {}
    types: dict[str, int] = {}
    for shard in checkpoint.shards:
        for name, tensor in shard.tensors.items():
            last = name.rpartition(".")[2]
            if last in _MARKS or last.endswith(("_blocks", "_scales")):
                marked[last] = marked.get(last, 0) + 1
            if last == "weight" and len(tensor.shape) == 2 and tensor.dtype in _PACKED_DTYPES | _FLOAT8:
                types[tensor.dtype] = types.get(tensor.dtype, 0) + 1
    parts = [f"{count} tensors named …{clean(name[:40])}" for name, count in list(marked.items())[:4]]
    parts += [f"{count} two-dimensional weights of type {dtype}" for dtype, count in types.items()]
    return "weight headers: " + ", ".join(parts) if parts else ""


def _contradiction(said: list[tuple[str, dict[str, str]]]) -> str:
    """A sentence when the descriptions name different methods or algorithms.

    One description may name a container and an algorithm (``quant_method`` "modelopt", ``quant_algo`` "NVFP4"); two
    agree when they share a word. ``quant_method`` "fp8" beside ``quant_algo`` "MIXED_PRECISION" is a contradiction.
    """
    places = [(place, {value.lower().replace("-", "_") for key, value in read.items() if key}) for place, read in said]
    for index, (place, read) in enumerate(places):
        for other, theirs in places[index + 1 :]:
            if read and theirs and not read & theirs:
                return f"{place} says {', '.join(sorted(read))}, {other} says {', '.join(sorted(theirs))}"
    for place, entry in said:
        method, algorithm = entry.get("quant_method", "").lower(), entry.get("quant_algo", "").lower()
        if method in ("fp8", "gptq", "awq", "int8") and algorithm and method not in algorithm:
            return f"{place} says quant_method {entry['quant_method']} and quant_algo {entry['quant_algo']}"
    return ""
