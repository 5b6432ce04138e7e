"""What a plan expects a scheme to write and what verify accepts as that scheme are the same tensors."""

from __future__ import annotations

import pytest

from quark_tui.core.model.headers import Tensor
from quark_tui.core.ptq import schemes
from quark_tui.core.ptq.schemes import Scheme, facts_for
from quark_tui.core.ptq.verify.layout import SCHEMES, Judgement, judge

# Names as quark-cli 0.13 lists them, with the class and group size behind each.
LISTED = {
    **{
        f"{dtype}_wo_{size}": (f"{dtype.capitalize()}WeightOnlyScheme", size)
        for dtype in ("int4", "uint4")
        for size in (32, 64, 128)
    },
    "int4_wo_per_channel": ("Int4WeightOnlyPerChannelScheme", None),
    "uint4_wo_per_channel": ("Uint4WeightOnlyPerChannelScheme", None),
    "int4_wa_64": ("Int4WeightAndActivationScheme", 64),
    "int8": ("Int8Scheme", None),
    "fp8": ("FP8Scheme", None),
    "ptpc_fp8": ("PTPCFP8Scheme", None),
    "mxfp4": ("MXFP4Scheme", None),
    "mxfp4_weight_only": ("MXFP4WeightOnlyScheme", None),
    "mxfp6_e3m2": ("MXFP6E3M2Scheme", None),
    "mxfp6_e2m3": ("MXFP6E2M3Scheme", None),
    "mxfp4_mxfp6_e2m3": ("MXFP4_MXFP6E2M3Scheme", None),
    "mxfp4_fp8": ("MXFP4_FP8Scheme", None),
    "amdfp4": ("AmdFP4Scheme", 16),
    "amdfp4_g32": ("AmdFP4Scheme", 32),
    "int4_fp8": ("INT4_FP8Scheme", None),
    "nvfp4": ("FP4Block16ScaleE4M3Scheme", None),
    "fp4_block16_scale_e4m3": ("FP4Block16ScaleE4M3Scheme", None),
    "amdfp4_global16": ("AmdFP4GlobalScaleScheme", 16),
    "amdfp4_global32": ("AmdFP4GlobalScaleScheme", 32),
}

# (out, in): square and not; grouped integers want the group to divide the input, the others pad.
EVEN = [(64, 128), (128, 128), (256, 384), (72, 128), (100, 256)]
PADDED = [(144, 72), (64, 200), (48, 40)]


def parts_of(name: str, out: int, inp: int, dtype: str = "BF16") -> dict[str, Tensor]:
    """The tensors that the plan expects, as a header would hold them."""
    class_name, group = LISTED[name]
    facts = facts_for(Scheme(name, class_name, group))
    assert facts is not None
    specs = facts.tensors(out, inp, dtype)
    assert specs is not None
    return {spec.suffix: Tensor(f"m.{spec.suffix}", spec.dtype, spec.shape, 0, spec.nbytes) for spec in specs}


def test_every_scheme_that_either_side_knows_is_here() -> None:
    exportable = {name for name, facts in schemes._CLASSES.items() if facts[2]}
    assert {class_name for class_name, _ in LISTED.values()} == exportable
    assert set(LISTED) == set(SCHEMES)


@pytest.mark.parametrize("name", LISTED)
@pytest.mark.parametrize("size", EVEN)
@pytest.mark.parametrize("dtype", ["BF16", "F32", "F16"])
def test_what_the_plan_expects_is_judged_as_that_scheme(name: str, size: tuple[int, int], dtype: str) -> None:
    parts = parts_of(name, *size, dtype)
    assert judge(SCHEMES[name], parts, size) == Judgement()
    assert judge(SCHEMES[name], parts, None) == Judgement()


@pytest.mark.parametrize("name", [name for name in LISTED if "int4" not in name])
@pytest.mark.parametrize("size", PADDED)
def test_padded_groups_are_judged_as_their_scheme(name: str, size: tuple[int, int]) -> None:
    assert judge(SCHEMES[name], parts_of(name, *size), size) == Judgement()


@pytest.mark.parametrize("name", LISTED)
def test_a_missing_tensor_is_told_as_missing_or_is_optional(name: str) -> None:
    parts = parts_of(name, 64, 128)
    for suffix in parts:
        told = judge(SCHEMES[name], {key: value for key, value in parts.items() if key != suffix}, (64, 128))
        # Symmetric integers may leave their zero points out.
        assert told.missing == (suffix,) or ("zero_point" in suffix and told == Judgement())


@pytest.mark.parametrize("name", LISTED)
def test_static_inputs_are_expected_by_both_or_by_none(name: str) -> None:
    class_name, group = LISTED[name]
    facts = facts_for(Scheme(name, class_name, group))
    assert facts is not None
    static = any(not stage.dynamic for stage in SCHEMES[name].inputs)
    assert facts.static_input == static
    assert static == any(suffix.startswith("input_scale") for suffix in parts_of(name, 64, 128))


@pytest.mark.parametrize("name", LISTED)
def test_group_sizes_are_the_same(name: str) -> None:
    class_name, group = LISTED[name]
    assert schemes.group_size(Scheme(name, class_name, group)) == SCHEMES[name].weight[0].group_size


@pytest.mark.parametrize("name", LISTED)
def test_tensors_of_another_storage_are_never_judged_as_this_scheme(name: str) -> None:
    own = parts_of(name, 64, 128)
    for other in LISTED:
        parts = parts_of(other, 64, 128)
        if {(s, t.dtype, t.shape) for s, t in parts.items()} == {(s, t.dtype, t.shape) for s, t in own.items()}:
            continue
        told = judge(SCHEMES[name], parts, (64, 128))
        zero_points_apart = {s: (t.dtype, t.shape) for s, t in parts.items() if "zero_point" not in s} == {
            s: (t.dtype, t.shape) for s, t in own.items() if "zero_point" not in s
        }
        assert told != Judgement() or zero_points_apart, other
