"""Which tensors a scheme leaves behind for one Linear module, and whether a module's tensors are those.

Sources: what quark-cli 0.12.post1 and 0.13 wrote for every scheme on a small model, and the ``quantization_config``
that they wrote beside it. The rules are written over tensor specifications (dtype, granularity, group size), not over
scheme names, so a configuration that no scheme name describes is judged by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from quark_tui.core.model.headers import Tensor
from quark_tui.core.text import clean

_FLOATS = frozenset({"F32", "BF16", "F16", "F64"})
#: Storage types of a weight that was quantized; anything else is a plain float weight or no weight at all.
LOW_BIT = frozenset(
    [
        "I32",
        "U32",
        "I16",
        "U16",
        "I8",
        "U8",
        "F8_E4M3",
        "F8_E5M2",
        "F8_E4M3FNUZ",
        "F8_E5M2FNUZ",
        "F4",
        "F6_E2M3",
        "F6_E3M2",
    ]
)
_STORED = {
    "int4": {"I32"}, "uint4": {"I32"}, "int8": {"I8"}, "uint8": {"U8"}, "fp4": {"U8", "F4"},
    "fp6_e3m2": {"U8", "F6_E3M2"}, "fp6_e2m3": {"U8", "F6_E2M3"}, "fp8_e4m3": {"F8_E4M3", "F8_E4M3FNUZ"},
    "fp8_e5m2": {"F8_E5M2", "F8_E5M2FNUZ"},
}  # fmt: skip
#: Integer groups are stored transposed: [in, out].
_TRANSPOSED = frozenset({"int2", "uint2", "int3", "int4", "uint4", "int8", "uint8"})
_INTEGERS = _TRANSPOSED


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """How one tensor (or, with ``of_scale``, the scale of the stage before) is quantized.

    ``dtype``, ``qscheme`` (per_tensor, per_channel, per_group, per_block) and ``scale_format`` are Quark's own words;
    ``group_size`` and ``block`` count elements.
    """

    dtype: str
    qscheme: str
    group_size: int | None = None
    dynamic: bool = False
    of_scale: bool = False
    scale_format: str | None = None
    symmetric: bool | None = None
    block: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """The stages of a Linear's weight, inputs and outputs; an empty tuple means: not quantized."""

    weight: tuple[TensorSpec, ...] = ()
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()


def _dynamic(*stages: TensorSpec) -> tuple[TensorSpec, ...]:
    return tuple(stage if stage.of_scale else replace(stage, dynamic=True) for stage in stages)


def _group(dtype: str, size: int, scale_format: str | None = None, symmetric: bool | None = None) -> TensorSpec:
    return TensorSpec(dtype, "per_group", size, scale_format=scale_format, symmetric=symmetric)


def _schemes() -> dict[str, LayerSpec]:
    schemes: dict[str, LayerSpec] = {}
    for dtype, symmetric in (("int4", True), ("uint4", False)):
        for size in (32, 64, 128):
            schemes[f"{dtype}_wo_{size}"] = LayerSpec((_group(dtype, size, symmetric=symmetric),))
        schemes[f"{dtype}_wo_per_channel"] = LayerSpec((TensorSpec(dtype, "per_channel", symmetric=symmetric),))
    wa = _group("int4", 64, symmetric=True)
    schemes["int4_wa_64"] = LayerSpec((wa,), _dynamic(wa))
    int8 = TensorSpec("int8", "per_tensor", symmetric=True)
    schemes["int8"] = LayerSpec((int8,), (int8,))
    fp8 = TensorSpec("fp8_e4m3", "per_tensor", symmetric=True)
    schemes["fp8"] = LayerSpec((fp8,), (fp8,))
    channel = TensorSpec("fp8_e4m3", "per_channel", symmetric=True)
    schemes["ptpc_fp8"] = LayerSpec((channel,), _dynamic(channel))
    mxfp4 = _group("fp4", 32, "e8m0")
    e3m2, e2m3 = _group("fp6_e3m2", 32, "e8m0"), _group("fp6_e2m3", 32, "e8m0")
    schemes["mxfp4"] = LayerSpec((mxfp4,), _dynamic(mxfp4))
    schemes["mxfp4_weight_only"] = LayerSpec((mxfp4,))
    schemes["mxfp6_e3m2"] = LayerSpec((e3m2,), _dynamic(e3m2))
    schemes["mxfp6_e2m3"] = LayerSpec((e2m3,), _dynamic(e2m3))
    schemes["mxfp4_mxfp6_e2m3"] = LayerSpec((mxfp4,), _dynamic(e2m3))
    schemes["mxfp4_fp8"] = LayerSpec((mxfp4,), (fp8,))
    for name, size in (("amdfp4", 16), ("amdfp4_g32", 32)):
        schemes[name] = LayerSpec((_group("fp4", size, "e5m3"),), _dynamic(_group("fp4", size, "e5m3")))
    int4 = TensorSpec("int4", "per_channel", symmetric=True)
    schemes["int4_fp8"] = LayerSpec((fp8, int4), _dynamic(fp8))
    for name, size, of_scale in (
        ("nvfp4", 16, "fp8_e4m3"),
        ("fp4_block16_scale_e4m3", 16, "fp8_e4m3"),
        ("amdfp4_global16", 16, "fp8_e5m3"),
        ("amdfp4_global32", 32, "fp8_e5m3"),
    ):
        stages = (
            _group("fp4", size, "float32"),
            TensorSpec(of_scale, "per_tensor", of_scale=True, symmetric=True),
        )
        schemes[name] = LayerSpec(stages, _dynamic(*stages))
    return schemes


#: The schemes that quark-cli can export, by the names that its ``--quant_scheme`` takes.
SCHEMES: Mapping[str, LayerSpec] = _schemes()


def parse_layer(value: object) -> LayerSpec | None:
    """A layer's part of ``quantization_config`` as a LayerSpec; None when it is none that can be understood."""
    if not isinstance(value, Mapping):
        return None
    parts = [_stages(value.get(key)) for key in ("weight", "input_tensors", "output_tensors")]
    if any(part is None for part in parts):
        return None
    weight, inputs, outputs = (part or () for part in parts)
    return LayerSpec(weight, inputs, outputs)


def _stages(value: object) -> tuple[TensorSpec, ...] | None:
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    if len(items) > 4:
        return None
    stages = [_stage(item) for item in items]
    return None if any(stage is None for stage in stages) else tuple(stage for stage in stages if stage)


def _stage(value: object) -> TensorSpec | None:
    if not isinstance(value, Mapping):
        return None
    dtype, qscheme = value.get("dtype"), value.get("qscheme")
    if dtype == "mx":  # the older spelling: the element's type stands beside it
        dtype, qscheme = value.get("mx_element_dtype"), qscheme or "per_group"
    if not isinstance(dtype, str) or not isinstance(qscheme, str):
        return None
    block = value.get("block_size")
    pair = (block[0], block[1]) if isinstance(block, list) and len(block) == 2 and all(map(_size, block)) else None
    group, scale_format, symmetric = value.get("group_size"), value.get("scale_format"), value.get("symmetric")
    return TensorSpec(
        dtype,
        qscheme,
        group if _size(group) else None,
        value.get("is_dynamic") is True,
        value.get("is_scale_quant") is True,
        scale_format if isinstance(scale_format, str) else None,
        symmetric if isinstance(symmetric, bool) else None,
        pair,
    )


def _size(value: Any) -> bool:
    return type(value) is int and 0 < value < 1 << 31


def differences(wanted: LayerSpec, found: LayerSpec) -> list[str]:
    """Where two specifications differ in what decides the numbers, one phrase each; outputs (KV cache) apart."""
    phrases: list[str] = []
    for name, left, right in (("weight", wanted.weight, found.weight), ("input", wanted.inputs, found.inputs)):
        if len(left) != len(right):
            phrases.append(f"{name}: {_words(left)} wanted, {_words(right)} found")
            continue
        for one, other in zip(left, right, strict=True):
            same = (one.dtype, one.qscheme, one.group_size, one.dynamic, one.of_scale) == (
                other.dtype, other.qscheme, other.group_size, other.dynamic, other.of_scale
            )  # fmt: skip
            formats = one.scale_format in (other.scale_format, None) or other.scale_format is None
            if not (same and formats):
                phrases.append(f"{name}: {_words((one,))} wanted, {_words((other,))} found")
    return phrases


def _words(stages: tuple[TensorSpec, ...]) -> str:
    def one(spec: TensorSpec) -> str:
        group = f" {spec.group_size}" if spec.group_size else ""
        scale = f" {spec.scale_format}" if spec.scale_format else ""
        return clean(f"{spec.dtype} {spec.qscheme}{group}{scale}{' dynamic' if spec.dynamic else ''}")

    return " + ".join(one(spec) for spec in stages) or "nothing"


@dataclass(frozen=True, slots=True)
class Judgement:
    """``contradictions``: what speaks against the scheme; ``missing``: tensors that it needs and that are not there."""

    contradictions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def judge(spec: LayerSpec, parts: Mapping[str, Tensor], features: tuple[int, int] | None) -> Judgement:
    """Hold a module's tensors (by their suffix: weight, weight_scale, …) against ``spec``.

    ``features`` is (out_features, in_features) of the source's module, None when it is not known: then they are taken
    from the packed weight itself and the scales' shapes have to agree with it.
    """
    weight = parts.get("weight")
    if weight is None:
        return Judgement(missing=("weight",))
    if not spec.weight:
        return Judgement(
            (f"the weight is {clean(weight.dtype)}, none is to be quantized",) if weight.dtype in LOW_BIT else ()
        )
    packing = [stage for stage in spec.weight if not stage.of_scale][-1:]
    if not packing:
        return Judgement()
    contradictions: list[str] = []
    missing: list[str] = []
    stage = packing[0]
    stored = _STORED.get(stage.dtype)
    if stored is not None and weight.dtype not in stored:
        wanted = " or ".join(sorted(stored))
        return Judgement((f"the weight is {clean(weight.dtype)}, {clean(stage.dtype)} is stored as {wanted}",))
    if stored is None or len(weight.shape) != 2:
        size = features
    else:
        size = features or _features(stage, parts)
        if size is None:
            contradictions.append(f"a weight of shape {list(weight.shape)} cannot be packed {clean(stage.dtype)}")
        elif features is not None and weight.shape not in _packed(stage, features):
            contradictions.append(
                f"the weight's shape is {list(weight.shape)}, {list(features)} packed as {_words((stage,))} "
                f"is {list(_packed(stage, features)[0])}"
            )
            size = None
    bias = parts.get("bias")
    if size and bias is not None and bias.dtype in _FLOATS and len(bias.shape) == 1 and bias.shape[0] != size[0]:
        contradictions.append(f"the bias has {bias.shape[0]} elements, the weight {size[0]} rows")
    for number, stage in enumerate(spec.weight):
        suffix = "" if number == 0 else f"_{number + 1}"
        following = spec.weight[number + 1] if number + 1 < len(spec.weight) else None
        scale = parts.get(f"weight_scale{suffix}")
        if scale is None:
            missing.append(f"weight_scale{suffix}")
        else:
            contradictions += _scale_against(stage, following, scale, size if len(weight.shape) == 2 else None)
        if stage.dtype in _INTEGERS and stage.symmetric is False and f"weight_zero_point{suffix}" not in parts:
            missing.append(f"weight_zero_point{suffix}")
    for number in range(len(spec.weight), 3):
        if f"weight_scale_{number + 1}" in parts:
            contradictions.append(f"there is a weight_scale_{number + 1}, this scheme has none")
    static = [number for number, stage in enumerate(spec.inputs) if not stage.dynamic]
    for number in static:
        suffix = "input_scale" if number == 0 else f"input_scale_{number + 1}"
        if suffix not in parts:
            missing.append(suffix)
    if not static and ("input_scale" in parts or "input_scale_2" in parts):
        contradictions.append("there is an input scale, this scheme has no static inputs")
    return Judgement(tuple(contradictions), tuple(missing))


def _up(value: int, by: int) -> int:
    return -(-value // by)


def _packed(stage: TensorSpec, features: tuple[int, int]) -> list[tuple[int, ...]]:
    """The shapes that a weight of (out, in) may be stored with."""
    rows, columns = features
    if stage.qscheme == "per_group" and stage.dtype in _TRANSPOSED:
        rows, columns = columns, rows
    if stage.dtype in ("int4", "uint4"):
        return [(rows, _up(columns, 8))]
    if stage.dtype == "fp4":
        return [(rows, columns // 2), (rows, columns)]
    if stage.dtype.startswith("fp6_"):
        return [(rows, columns // 4 * 3), (rows, columns)]
    return [(rows, columns)]


def _features(stage: TensorSpec, parts: Mapping[str, Tensor]) -> tuple[int, int] | None:
    """(out, in) from the packed weight; None when no such weight can be packed so."""
    weight = parts["weight"]
    rows, columns = weight.shape
    if stage.dtype in ("int4", "uint4"):
        if stage.qscheme != "per_group":
            return rows, columns * 8
        scale = parts.get("weight_scale")
        out = scale.shape[1] if scale is not None and len(scale.shape) == 2 else columns * 8
        return (out, rows) if _up(out, 8) == columns else None
    if stage.dtype == "fp4":
        return rows, columns * (1 if weight.dtype == "F4" else 2)
    if stage.dtype.startswith("fp6_"):
        if weight.dtype != "U8":
            return rows, columns
        return (rows, columns * 4 // 3) if columns % 3 == 0 else None
    if stage.qscheme == "per_group" and stage.dtype in _TRANSPOSED:
        return columns, rows
    return rows, columns


def _scale_against(
    stage: TensorSpec, following: TensorSpec | None, scale: Tensor, features: tuple[int, int] | None
) -> list[str]:
    name = scale.name.rpartition(".")[2]
    if following is not None and following.of_scale:
        types = {"fp8_e4m3": {"F8_E4M3", "F8_E4M3FNUZ"}, "fp8_e5m3": {"U8"}}.get(following.dtype)
    elif stage.scale_format == "e8m0":
        types = {"U8", "F8_E8M0"}
    elif stage.scale_format == "e5m3":
        types = {"U8"}
    else:
        types = set(_FLOATS)
    found: list[str] = []
    if types is not None and scale.dtype not in types:
        found.append(f"{clean(name)} is {clean(scale.dtype)}, wanted {' or '.join(sorted(types))}")
    shapes = _scale_shapes(stage, features)
    if shapes is not None and scale.shape not in shapes:
        wanted = list(shapes[0]) if shapes else f"impossible: {stage.group_size} does not divide {list(features or ())}"
        found.append(f"{clean(name)} has shape {list(scale.shape)}, wanted {wanted}")
    return found


def _scale_shapes(stage: TensorSpec, features: tuple[int, int] | None) -> list[tuple[int, ...]] | None:
    """The shapes that the stage's scale may have; None when that is not known, empty when none can be."""
    if stage.qscheme == "per_tensor":
        return [(), (1,)]
    if features is None:
        return None
    out, inner = features
    if stage.qscheme == "per_channel":
        return [(out,), (out, 1)]
    if stage.qscheme == "per_group" and stage.group_size:
        if stage.dtype not in _TRANSPOSED:
            # A last group that is not full is padded (exports of 0.12.post1: 72 features are three groups of 32).
            return [(out, _up(inner, stage.group_size))]
        return [] if inner % stage.group_size else [(inner // stage.group_size, out)]
    if stage.qscheme == "per_block" and stage.block:
        return [(_up(out, stage.block[0]), _up(inner, stage.block[1]))]
    return None
