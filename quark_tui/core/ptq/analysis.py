"""Reading facts out of a confirmed ``model_analysis.json``, whose optional parts may be absent or odd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Where a fact may stand: the artifact's schema fixes few places, the rest are additional properties.
_PLACES = ("model", "facts", "quantization_targets", "checkpoint", "source")

_DTYPE_BYTES = {
    "float64": 8.0, "float32": 4.0, "float": 4.0, "f32": 4.0, "float16": 2.0, "half": 2.0, "f16": 2.0, "bfloat16": 2.0,
    "bf16": 2.0, "float8_e4m3fn": 1.0, "float8_e5m2": 1.0,
}  # fmt: skip


def fact(analysis: Mapping[str, Any], *names: str) -> Any:
    """The first of ``names`` that the analysis states, at its top or in one of its parts; None when none is."""
    for name in names:
        for part in (analysis, *(analysis.get(place) for place in _PLACES)):
            if isinstance(part, Mapping) and name in part:
                value = part[name]
                value = value.get("value") if isinstance(value, Mapping) and "value" in value else value
                if value is not None:
                    return value
    return None


def integer(analysis: Mapping[str, Any], *names: str) -> int | None:
    """Like :func:`fact`, for positive integers of believable size."""
    value = fact(analysis, *names)
    return value if type(value) is int and 0 < value < 10**18 else None


def model_type(analysis: Mapping[str, Any]) -> str | None:
    """The confirmed model type."""
    model = analysis.get("model")
    value = model.get("model_type") if isinstance(model, Mapping) else None
    return value if isinstance(value, str) and value else None


def element_bytes(analysis: Mapping[str, Any]) -> float | None:
    """Bytes of one unquantized weight: by the stated dtype, else by the weight files' size per parameter."""
    dtype = fact(analysis, "dtype", "torch_dtype")
    if isinstance(dtype, str):
        known = _DTYPE_BYTES.get(dtype.lower().removeprefix("torch."))
        if known is not None:
            return known
    size, parameters = integer(analysis, "weight_bytes", "source_bytes"), integer(analysis, "parameters")
    if size is None or parameters is None:
        return None
    ratio = size / parameters
    return ratio if 0.2 <= ratio <= 8.5 else None


def quantized_already(analysis: Mapping[str, Any]) -> bool:
    """True when the analysis found that the source is quantized."""
    return fact(analysis, "already_quantized", "quantization_method") not in (None, False, {})
