"""What is known of Quark's quantization schemes: the tensors that they write, and what they need.

Names come from the installed Quark (``catalog``); the facts here hang on the class that implements a scheme and on its
group size, so a new name of a known class is known too. Measured with quark-cli 0.13 for 28 schemes on a small llama;
the weights-only and static split also with 0.12.post1. A class that is not here is unknown: nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quark_tui.core.model.headers import DTYPE_BITS


@dataclass(frozen=True, slots=True)
class Scheme:
    """A scheme as the installed Quark lists it; ``group_size`` is input features per scale, None when ungrouped."""

    name: str
    class_name: str
    group_size: int | None = None


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor that an export holds for a quantized module: ``NAME.suffix`` with safetensors dtype and shape."""

    suffix: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return (math.prod(self.shape) * DTYPE_BITS[self.dtype] + 7) // 8


_Layout = Callable[[int, int, int], tuple[TensorSpec, ...]]


@dataclass(frozen=True, slots=True)
class SchemeFacts:
    """Measured facts of a scheme.

    ``static_input`` is True when input scales come from a calibration forward pass; ``exportable`` is False when the
    export was seen to fail; ``summary`` names weight and activation formats; ``advice`` is where the scheme is usually
    deployed, which proves no kernel.
    """

    class_name: str
    group_size: int | None
    static_input: bool
    exportable: bool
    summary: str
    advice: str
    layout: _Layout | None

    @property
    def pads_groups(self) -> bool:
        """True when input features that fill no last group are padded and exported all the same; the integer schemes
        end with an error instead. Measured with the quantizer of 0.12.post1: 72 features become three groups of 32."""
        return self.group_size is not None and self.class_name not in _INTEGER_GROUPS

    def tensors(self, out_features: int, in_features: int, model_dtype: str = "BF16") -> tuple[TensorSpec, ...] | None:
        """The tensors of one Linear of ``out_features`` × ``in_features``; None when no export was seen.

        Scales that a scheme keeps in the model's own data type have ``model_dtype`` (measured: BF16 and F32).
        """
        if self.layout is None:
            return None
        return tuple(
            TensorSpec(spec.suffix, model_dtype, spec.shape) if spec.dtype == "BF16" else spec
            for spec in self.layout(out_features, in_features, self.group_size or 1)
        )

    def nbytes(self, out_features: int, in_features: int, model_dtype: str = "BF16") -> int | None:
        """Bytes of :meth:`tensors`."""
        tensors = self.tensors(out_features, in_features, model_dtype)
        return None if tensors is None else sum(tensor.nbytes for tensor in tensors)


def _up(value: int, unit: int) -> int:
    return -(-value // unit)


def _int4_group(out: int, inp: int, group: int) -> tuple[TensorSpec, ...]:
    groups = _up(inp, group)
    return (
        TensorSpec("weight", "I32", (inp, _up(out, 8))),
        TensorSpec("weight_scale", "BF16", (groups, out)),
        TensorSpec("weight_zero_point", "I32", (groups, _up(out, 8))),
    )


def _int4_channel(out: int, inp: int, group: int) -> tuple[TensorSpec, ...]:
    return (
        TensorSpec("weight", "I32", (out, _up(inp, 8))),
        TensorSpec("weight_scale", "BF16", (out,)),
        TensorSpec("weight_zero_point", "I32", (_up(out, 8),)),
    )


def _int8(out: int, inp: int, group: int) -> tuple[TensorSpec, ...]:
    return (
        TensorSpec("weight", "I8", (out, inp)),
        TensorSpec("weight_scale", "F32", ()),
        TensorSpec("weight_zero_point", "I8", ()),
        TensorSpec("input_scale", "F32", ()),
        TensorSpec("input_zero_point", "I8", ()),
    )


def _fp8(out: int, inp: int, group: int) -> tuple[TensorSpec, ...]:
    return (
        TensorSpec("weight", "F8_E4M3", (out, inp)),
        TensorSpec("weight_scale", "BF16", ()),
        TensorSpec("input_scale", "BF16", ()),
    )


def _ptpc_fp8(out: int, inp: int, group: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec("weight", "F8_E4M3", (out, inp)), TensorSpec("weight_scale", "BF16", (out,)))


def _fp4_group(out: int, inp: int, group: int) -> tuple[TensorSpec, ...]:
    return (
        TensorSpec("weight", "U8", (out, _up(inp, 2))),
        TensorSpec("weight_scale", "U8", (out, _up(inp, group))),
    )


def _fp4_fp8(out: int, inp: int, group: int) -> tuple[TensorSpec, ...]:
    return (*_fp4_group(out, inp, group), TensorSpec("input_scale", "BF16", ()))


def _fp6_group(out: int, inp: int, group: int) -> tuple[TensorSpec, ...]:
    return (
        TensorSpec("weight", "U8", (out, _up(inp * 3, 4))),
        TensorSpec("weight_scale", "U8", (out, _up(inp, group))),
    )


def _int4_fp8(out: int, inp: int, group: int) -> tuple[TensorSpec, ...]:
    return (
        TensorSpec("weight", "I32", (out, _up(inp, 8))),
        TensorSpec("weight_scale", "F32", ()),
        TensorSpec("weight_scale_2", "F32", (out,)),
        TensorSpec("weight_zero_point_2", "I32", (_up(out, 8),)),
    )


def _fp4_two_stage(scale_dtype: str) -> _Layout:
    def layout(out: int, inp: int, group: int) -> tuple[TensorSpec, ...]:
        return (
            TensorSpec("weight", "U8", (out, _up(inp, 2))),
            TensorSpec("weight_scale", scale_dtype, (out, _up(inp, group))),
            TensorSpec("weight_scale_2", "F32", ()),
            TensorSpec("input_scale_2", "F32", ()),
        )

    return layout


_ANY = "runs wherever the inference stack has a 4-bit weight-only kernel"
_CDNA3 = "usually deployed on GPUs with FP8 matrix units (AMD CDNA3 and newer, NVIDIA Ada and newer)"
_CDNA4 = "usually deployed on GPUs with FP4/FP6 matrix units (AMD CDNA4)"

# class: (group size when the class fixes it, static input, exportable, summary, advice, layout)
_CLASSES: Mapping[str, tuple[int | None, bool, bool, str, str, _Layout | None]] = {
    "Int4WeightOnlyScheme": (None, False, True, "INT4 weights in groups; activations untouched", _ANY, _int4_group),
    "Uint4WeightOnlyScheme": (None, False, True, "UINT4 weights in groups; activations untouched", _ANY, _int4_group),
    "Int4WeightAndActivationScheme": (
        None, False, True, "INT4 weights in groups; INT4 dynamic activations", "no common kernel known", _int4_group,
    ),
    "Int4WeightOnlyPerChannelScheme": (
        None, False, True, "INT4 weights per channel; activations untouched", _ANY, _int4_channel,
    ),
    "Uint4WeightOnlyPerChannelScheme": (
        None, False, True, "UINT4 weights per channel; activations untouched", _ANY, _int4_channel,
    ),
    "Int8Scheme": (
        None, True, True, "INT8 weights and static activations, per tensor", "widely supported integer kernels", _int8,
    ),
    "FP8Scheme": (None, True, True, "FP8 e4m3 weights and static activations, per tensor", _CDNA3, _fp8),
    "PTPCFP8Scheme": (
        None, False, True, "FP8 e4m3 weights per channel; dynamic activations per token", _CDNA3, _ptpc_fp8,
    ),
    "MXFP4Scheme": (32, False, True, "MXFP4 weights and dynamic activations", _CDNA4, _fp4_group),
    "MXFP4WeightOnlyScheme": (32, False, True, "MXFP4 weights; activations untouched", _CDNA4, _fp4_group),
    "MXFP6E3M2Scheme": (32, False, True, "MXFP6 e3m2 weights and dynamic activations", _CDNA4, _fp6_group),
    "MXFP6E2M3Scheme": (32, False, True, "MXFP6 e2m3 weights and dynamic activations", _CDNA4, _fp6_group),
    "MXFP4_MXFP6E2M3Scheme": (32, False, True, "MXFP4 weights; MXFP6 dynamic activations", _CDNA4, _fp4_group),
    "MXFP4_FP8Scheme": (32, True, True, "MXFP4 weights; FP8 static activations", _CDNA4, _fp4_fp8),
    "AmdFP4Scheme": (None, False, True, "AMD FP4 weights and dynamic activations, e5m3 scales", _CDNA4, _fp4_group),
    "INT4_FP8Scheme": (None, False, True, "INT4 weights over FP8; FP8 dynamic activations", _CDNA3, _int4_fp8),
    "FP4Block16ScaleE4M3Scheme": (
        16, True, True, "NVFP4: FP4 in blocks of 16 with FP8 scales and a static global scale",
        "usually deployed on NVIDIA Blackwell", _fp4_two_stage("F8_E4M3"),
    ),
    "AmdFP4GlobalScaleScheme": (
        None, True, True, "AMD FP4 in blocks with e5m3 scales and a static global scale", _CDNA4, _fp4_two_stage("U8"),
    ),
    "MX6Scheme": (None, True, False, "MX6 microexponents", "for experiments; the export fails", None),
    "MX9Scheme": (None, True, False, "MX9 microexponents", "for experiments; the export fails", None),
    "BFP16Scheme": (None, True, False, "BFP16 block floating point", "for experiments; the export fails", None),
}  # fmt: skip


# Grouped integer weights: the group size has to divide the input features.
_INTEGER_GROUPS = frozenset({"Int4WeightOnlyScheme", "Uint4WeightOnlyScheme", "Int4WeightAndActivationScheme"})

# Classes whose tensors depend on a group size.
_GROUPED = frozenset(
    {
        "Int4WeightOnlyScheme",
        "Uint4WeightOnlyScheme",
        "Int4WeightAndActivationScheme",
        "MXFP4Scheme",
        "MXFP4WeightOnlyScheme",
        "MXFP6E3M2Scheme",
        "MXFP6E2M3Scheme",
        "MXFP4_MXFP6E2M3Scheme",
        "MXFP4_FP8Scheme",
        "AmdFP4Scheme",
        "FP4Block16ScaleE4M3Scheme",
        "AmdFP4GlobalScaleScheme",
    }
)


def facts_for(scheme: Scheme) -> SchemeFacts | None:
    """The measured facts of ``scheme``, or None for a class that was never measured."""
    known = _CLASSES.get(scheme.class_name)
    if known is None:
        return None
    fixed, static, exportable, summary, advice, layout = known
    group = scheme.group_size if scheme.group_size is not None else fixed
    grouped = scheme.class_name in _GROUPED
    if grouped and not (isinstance(group, int) and group > 0):
        layout = None  # a grouped scheme whose group size cannot be told: its tensors cannot either
    return SchemeFacts(scheme.class_name, group if grouped else None, static, exportable, summary, advice, layout)


def group_size(scheme: Scheme) -> int | None:
    """Input features per scale: what the source says, else what was measured of the class, else None."""
    facts = facts_for(scheme)
    if facts is not None:
        return facts.group_size
    return scheme.group_size
