"""Measured facts of schemes."""

from __future__ import annotations

from quark_tui.core.ptq.schemes import Scheme, facts_for, group_size

# Bytes of one Linear with 64 outputs and 128 inputs, worked out by hand from the tensors that exports hold.
SIZES = {
    ("Int4WeightOnlyScheme", 32): 128 * 8 * 4 + 4 * 64 * 2 + 4 * 8 * 4,
    ("Uint4WeightOnlyScheme", 64): 128 * 8 * 4 + 2 * 64 * 2 + 2 * 8 * 4,
    ("Int4WeightOnlyPerChannelScheme", None): 64 * 16 * 4 + 64 * 2 + 8 * 4,
    ("Int8Scheme", None): 64 * 128 + 4 + 1 + 4 + 1,
    ("FP8Scheme", None): 64 * 128 + 2 + 2,
    ("PTPCFP8Scheme", None): 64 * 128 + 64 * 2,
    ("MXFP4Scheme", None): 64 * 64 + 64 * 4,
    ("MXFP6E3M2Scheme", None): 64 * 96 + 64 * 4,
    ("MXFP4_FP8Scheme", None): 64 * 64 + 64 * 4 + 2,
    ("AmdFP4Scheme", 16): 64 * 64 + 64 * 8,
    ("INT4_FP8Scheme", None): 64 * 16 * 4 + 4 + 64 * 4 + 8 * 4,
    ("FP4Block16ScaleE4M3Scheme", 16): 64 * 64 + 64 * 8 + 4 + 4,
    ("AmdFP4GlobalScaleScheme", 32): 64 * 64 + 64 * 4 + 4 + 4,
}


def test_bytes_of_each_layout() -> None:
    for (class_name, group), size in SIZES.items():
        facts = facts_for(Scheme("x", class_name, group))
        assert facts is not None
        assert facts.nbytes(64, 128) == size, class_name


def test_scales_follow_the_models_data_type() -> None:
    facts = facts_for(Scheme("x", "Int4WeightOnlyScheme", 32))
    fixed = facts_for(Scheme("x", "Int8Scheme"))
    assert facts is not None and fixed is not None
    assert facts.nbytes(64, 128, "F32") == 128 * 8 * 4 + 4 * 64 * 4 + 4 * 8 * 4
    assert fixed.nbytes(64, 128, "F16") == fixed.nbytes(64, 128)


def test_integer_groups_must_divide_and_others_are_padded() -> None:
    padded, strict = facts_for(Scheme("x", "MXFP4Scheme")), facts_for(Scheme("x", "Int4WeightOnlyScheme", 32))
    assert padded is not None and strict is not None
    assert padded.pads_groups and not strict.pads_groups
    tensors = padded.tensors(144, 72)
    assert tensors is not None and [spec.shape for spec in tensors] == [(144, 36), (144, 3)]


def test_a_new_name_of_a_known_class_is_known() -> None:
    facts = facts_for(Scheme("int4_wo_256", "Int4WeightOnlyScheme", 256))
    assert facts is not None
    assert (facts.group_size, facts.static_input) == (256, False)


def test_an_unknown_class_is_unknown() -> None:
    assert facts_for(Scheme("brand_new", "BrandNewScheme", None)) is None
    assert group_size(Scheme("brand_new", "BrandNewScheme", 48)) == 48


def test_a_grouped_class_without_a_group_size_has_no_size() -> None:
    facts = facts_for(Scheme("odd", "Int4WeightOnlyScheme", None))
    assert facts is not None
    assert facts.nbytes(64, 128) is None


def test_schemes_that_cannot_be_exported() -> None:
    for class_name in ("MX6Scheme", "MX9Scheme", "BFP16Scheme"):
        facts = facts_for(Scheme("x", class_name))
        assert facts is not None and not facts.exportable and facts.nbytes(1, 1) is None


def test_every_scheme_has_help_that_promises_no_kernel() -> None:
    """P-52, P-53: families are explained, hardware is advice."""
    for class_name, group in SIZES:
        facts = facts_for(Scheme("x", class_name, group))
        assert facts is not None and facts.summary and facts.advice
        assert "guarantee" not in facts.advice
