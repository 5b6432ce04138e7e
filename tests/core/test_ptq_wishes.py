"""What a person may set, and how it is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.ptq.wishes import ROWS, Wishes, changed, from_json, parse_set, to_json, touched, without
from quark_tui.core.text import clean


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("global_scheme", "fp8", "fp8"),
        ("global_scheme", "FP8", "FP8"),
        ("global_scheme", '"fp8"', "fp8"),
        ("kv_cache_scheme", "none", None),
        ("algorithm", "none", None),
        ("algorithm", "smoothquant, awq", "smoothquant,awq"),
        ("algorithm", '["smoothquant","awq"]', "smoothquant,awq"),
        ("num_calib_data", " 128 ", 128),
        ("devices", "0,3", (0, 3)),
        ("devices", "[1]", (1,)),
        ("devices", "none", None),
        ("exclude_layers", "template", "template"),
        ("exclude_layers", "[]", ()),
        ("exclude_layers", "lm_head,*gate", ("lm_head", "*gate")),
        ("exclude_layers", '["*.[01].*", "a,b"]', ("*.[01].*", "a,b")),
        ("layer_quant_config", '{"*b": "fp8", "*a": "int8"}', {"*b": "fp8", "*a": "int8"}),
        ("layer_quant_config", "none", {}),
        ("evaluation_intent", "none", "none"),
        ("trust_remote_code", "true", True),
        ("trust_remote_code", "off", False),
        ("output_dir", "./x", "./x"),
        ("template_file", "none", None),
        ("output_format", "safetensors", "hf_format"),
        ("device_strategy", "none", None),
    ],
)
def test_row_values(key: str, text: str, value: Any) -> None:
    """P-58: an algorithm is none, one name or a combination."""
    assert parse_set(key, text) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("group_size", "32"),
        ("num_calib_data", "many"),
        ("num_calib_data", "0"),
        ("num_calib_data", "-1"),
        ("num_calib_data", "1e3"),
        ("num_calib_data", "9" * 5000),
        ("batch_size", "true"),
        ("devices", "0,0"),
        ("devices", "[true]"),
        ("devices", "a"),
        ("devices", "GPU-8"),
        ("trust_remote_code", "perhaps"),
        ("layer_quant_config", "fp8"),
        ("layer_quant_config", '{"a": 1}'),
        ("layer_quant_config", '{"a": "x", "a": "y"}'),
        ("layer_quant_config", "[" * 100_000),
        ("exclude_layers", "none"),
        ("exclude_layers", "a,,b"),
        ("exclude_layers", "[1]"),
        ("exclude_layers", '["-x"]'),
        ("exclude_layers", '["a\\u0000"]'),
        ("exclude_layers", '["' + "*a" * 600 + '"]'),
        ("exclude_layers", "[NaN]"),
        ("global_scheme", ""),
        ("global_scheme", "--output_dir"),
        ("global_scheme", "fp8\x1b[2J"),
        ("global_scheme", "\udc80"),
        ("device_strategy", "gpu"),
        ("evaluation_intent", "some"),
        ("output_format", "gguf"),
        ("output_dir", ""),
        ("output_dir", "/a\0b"),
        ("algorithm", "awq,awq"),
        ("algorithm", "[]"),
    ],
)
def test_what_cannot_be_a_row_value_is_a_wrong_question(key: str, text: str) -> None:
    """P-59: counts are whole positive numbers."""
    with pytest.raises(WrongQuestion) as caught:
        parse_set(key, text)
    assert clean(caught.value) == str(caught.value)


@given(st.sampled_from(ROWS), st.text(max_size=30))
def test_any_text_gives_a_value_or_a_wrong_question(key: str, text: str) -> None:
    try:
        value = parse_set(key, text)
    except WrongQuestion as error:
        assert clean(error) == str(error)
        return
    json.dumps(value)
    if key != "layer_quant_config":
        wishes = changed(Wishes(), [(key, text)])
        assert from_json(json.loads(json.dumps(to_json(wishes)))) == wishes


def test_overrides_keep_order_replace_in_place_and_split_at_the_last_equals_sign() -> None:
    """P-56: one map from pattern to scheme."""
    wishes = changed(Wishes(), overrides=["*b=fp8", "*a=int8", "x=y=fp8"])
    assert wishes.overrides == (("*b", "fp8"), ("*a", "int8"), ("x=y", "fp8"))
    again = changed(wishes, overrides=["*b=int8"])
    assert again.overrides == (("*b", "int8"), ("*a", "int8"), ("x=y", "fp8"))
    assert changed(again, overrides=["*b="]).overrides == (("*a", "int8"), ("x=y", "fp8"))
    replaced = changed(again, sets=['layer_quant_config={"*c": "fp8"}'], overrides=["*d=int8"])
    assert replaced.overrides == (("*c", "fp8"), ("*d", "int8"))


@pytest.mark.parametrize("text", ["*a", "=fp8", "-x=fp8", "*a=", "*a=-fp8"])
def test_wrong_overrides(text: str) -> None:
    with pytest.raises(WrongQuestion):
        changed(Wishes(), overrides=[text])


def test_set_excludes_replace_the_added_ones() -> None:
    wishes = changed(Wishes(), excludes=["*a", "*a", "*b"])
    assert wishes.exclude_added == ("*a", "*b")
    assert changed(wishes, sets=["exclude_layers=template"]) == Wishes()
    assert changed(wishes, sets=["exclude_layers=[]"], excludes=["*c"]).exclude_added == ("*c",)


def test_reasons_are_for_rows_and_are_cleaned() -> None:
    """P-61: fewer samples want a written reason."""
    wishes = changed(Wishes(), reasons=["num_calib_data=a\x1b[31m look"])
    assert wishes.reasons == {"num_calib_data": "a\\x1b[31m look"}
    assert changed(wishes, reasons=["num_calib_data="]).reasons == {}
    with pytest.raises(WrongQuestion):
        changed(Wishes(), reasons=["nothing=x"])


def test_back_to_the_default() -> None:
    wishes = changed(Wishes(), ["seq_len=64"], ["*a=fp8"], ["*b"], ["seq_len=short"])
    assert without(wishes, "seq_len").values == {} and without(wishes, "seq_len").reasons == {}
    assert without(wishes, "layer_quant_config").overrides == ()
    assert without(wishes, "exclude_layers").exclude_added == ()


def test_touched_names_rows_and_single_patterns() -> None:
    assert touched(["seq_len=1"], ["a=b=fp8"], ["*x"]) == {"seq_len", "layer_quant_config:a=b", "exclude_layers:*x"}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    _JSON
    | st.fixed_dictionaries(
        {}, optional={"values": _JSON, "overrides": _JSON, "exclude_added": _JSON, "reasons": _JSON}
    )
    | st.fixed_dictionaries({"values": st.dictionaries(st.sampled_from(ROWS), _JSON, max_size=3)})
)
def test_foreign_json_is_wishes_or_a_wrong_question(data: Any) -> None:
    try:
        wishes = from_json(data)
    except WrongQuestion:
        return
    assert from_json(json.loads(json.dumps(to_json(wishes)))) == wishes
