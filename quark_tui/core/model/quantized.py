"""Whether a model is quantized already: every place that may say so, and what the tensors show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quark_tui.core.model.config import lookup, shown
from quark_tui.core.model.headers import Checkpoint
from quark_tui.core.text import clean

_KEYS = ("quant_method", "quant_algo", "quantization_type", "format")
#: Files of their own, and where in them the description is ("" is the whole file).
_FILES = (
    ("hf_quant_config.json", "quantization"),
    ("hf_quant_config.json", ""),
    ("quantize_config.json", ""),
    ("quantization_config.json", ""),
    ("quant_config.json", ""),
)
#: Keys in config.json, at the top or in a sub-configuration. MLX calls its own "quantization".
_DESCRIPTIONS = ("quantization_config", "compression_config", "quantization")
#: What only one producer writes, for descriptions that name no method.
_SIGNATURES = {
    "global_quant_config": "quark",
    "config_groups": "compressed-tensors",
    "load_in_4bit": "bitsandbytes",
    "load_in_8bit": "bitsandbytes",
}
#: Writers of several formats: naming one of them contradicts no format.
_CONTAINERS = ("modelopt", "compressed_tensors", "auto_round", "torchao")
#: Last parts of tensor names that only quantized checkpoints have.
_MARKS = (
    "qweight",
    "weight_packed",
    "weight_scale",
    "weight_scale_inv",
    "weight_scale_2",
    "absmax",
    "weight_scales",
    "qzeros",
    "SCB",
)
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
    """The method-like keys of a description, cleaned; the key "" holds what was concluded where it names no method."""
    if not isinstance(description, Mapping):
        return {"": shown(description)}
    named = {
        key: clean(value[:80]) for key in _KEYS if isinstance(value := description.get(key), str) and value.strip()
    }
    if named:
        return named
    kv = description.get("kv_cache_quant_algo")
    if "quant_algo" in description and description["quant_algo"] is None and isinstance(kv, str):
        return {"kv_cache_quant_algo": clean(kv[:80])}
    for key, method in _SIGNATURES.items():
        if description.get(key):
            return {"quant_method": method, "": f"concluded from {key}"}
    return {"": "keys " + ", ".join(clean(str(key)[:40]) for key in list(description)[:6])}


def _says_nothing(description: Any) -> bool:
    """True for what holds only nulls, empties and switches that are off, in its keys that could name a method."""
    if not isinstance(description, Mapping):
        return not description
    off = description.get("load_in_4bit") is False and description.get("load_in_8bit") is False
    told = {key: value for key, value in description.items() if key != "exclude_modules"}
    return off or not any(value not in (None, False, "", [], {}) for value in told.values())


def _descriptions(config: Any) -> list[tuple[str, Any]]:
    """(dotted key, description) of config.json, the top level first; at most three levels deep."""
    found: list[tuple[str, Any]] = []
    pending: list[tuple[str, Any, int]] = [("", config, 0)]
    seen = 0
    while pending and seen < 2_000:
        place, item, depth = pending.pop(0)
        seen += 1
        if not isinstance(item, Mapping):
            continue
        for key, value in item.items():
            dotted = f"{place}.{key}" if place else str(key)
            if key in _DESCRIPTIONS:
                if (key != "quantization" or isinstance(value, Mapping)) and not _says_nothing(value):
                    found.append((clean(dotted[:200]), value))
            elif depth < 3 and isinstance(value, Mapping):
                pending.append((dotted, value, depth + 1))
    return found


def find_quantized(files: Mapping[str, Any], checkpoint: Checkpoint) -> Quantized | None:
    """What parsed JSON ``files`` (name -> data) and tensor names say; None when nothing speaks of quantization.

    Looked at: quantization_config, compression_config and MLX's quantization at the top of config.json and in its
    sub-configurations, hf_quant_config.json (ModelOpt writes it, sometimes alone), quantize_config.json (GPTQ),
    quantization_config.json and quant_config.json (AWQ). A description of nulls says nothing.
    """
    said = [(f"config.json: {place}", _words(value)) for place, value in _descriptions(files.get("config.json"))]
    seen_file: set[str] = set()
    for name, key in _FILES:
        data = files.get(name)
        description = lookup(data, key) if key else data
        if name in seen_file or not isinstance(description, Mapping) or not description:
            continue
        if _says_nothing(description):
            seen_file.add(name)
            continue
        read = _words(description)
        if set(read) == {""} and name != "hf_quant_config.json" and not ({"bits", "w_bit"} & set(description)):
            continue
        seen_file.add(name)
        said.append((f"{name}: {key}" if key else name, read))
    tensors = _tensor_evidence(checkpoint)
    if not said:
        return Quantized("unknown", tensors, by_files=False) if tensors else None
    evidence = "; ".join(
        f"{place}{''.join(f', {key} {value!r}' if key else f', {value}' for key, value in read.items())}"
        for place, read in said
    )
    if tensors:
        evidence += f"; {tensors}"
    return Quantized(_method(said), evidence, _contradiction(said))


def _method(said: list[tuple[str, dict[str, str]]]) -> str:
    """The first word that names a method for weights, else what is known of the cache's, else "unknown"."""
    for _, read in said:
        for key, value in read.items():
            if key and key != "kv_cache_quant_algo":
                return value
    kv = next((read["kv_cache_quant_algo"] for _, read in said if "kv_cache_quant_algo" in read), None)
    return "unknown" if kv is None else f"KV cache only, {kv}"


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
    places = [
        (place, {v.lower().replace("-", "_") for k, v in read.items() if k not in ("", "kv_cache_quant_algo")})
        for place, read in said
    ]
    for index, (place, read) in enumerate(places):
        for other, theirs in places[index + 1 :]:
            if _opposed(read, theirs):
                return f"{place} says {', '.join(sorted(read))}, {other} says {', '.join(sorted(theirs))}"
    for place, entry in said:
        method, algorithm = entry.get("quant_method", "").lower(), entry.get("quant_algo", "").lower()
        if method in ("fp8", "gptq", "awq", "int8") and algorithm and method not in algorithm:
            return f"{place} says quant_method {entry['quant_method']} and quant_algo {entry['quant_algo']}"
    return ""


def _opposed(one: set[str], other: set[str]) -> bool:
    """Whether two sets of words cannot both be right; a writer of several formats opposes none of them."""
    if not one or not other or one & other:
        return False
    formats = [{word for word in words if not word.startswith(_CONTAINERS)} for words in (one, other)]
    return all(formats) or not any(formats)
