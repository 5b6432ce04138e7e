"""The static reading of an installed Quark's source texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.ptq.catalog import Scheme, parse_catalog
from tests.support.ptq import ALGO_PY, CLI_PY, TEMPLATE_PY, catalog


def test_schemes_are_read_in_order_with_group_sizes_and_aliases() -> None:
    """P-49: schemes are looked up in the installed Quark."""
    schemes = {scheme.name: scheme for scheme in catalog().schemes}
    assert list(schemes)[:3] == ["int4_wo_32", "int4_wo_128", "int8"]
    assert schemes["int4_wo_32"].group_size == 32  # a keyword
    assert schemes["int4_wo_128"].group_size == 128  # a positional argument
    assert schemes["amdfp4"].group_size == 16  # the initializer's default
    assert schemes["nvfp4"].group_size == 16  # a constant inside the class
    assert schemes["old_nvfp4"] == Scheme("old_nvfp4", "FP4Block16ScaleE4M3Scheme", 16)
    assert schemes["fp8"].group_size is None
    assert "scheme_name" not in schemes  # a method that registers what its caller names is no built-in


def test_templates_follow_module_level_names() -> None:
    """P-55: the excludes start from the selected template's own list."""
    templates = catalog().templates
    assert templates["llama"].kv_layers == ("*k_proj", "*v_proj")
    assert templates["qwen3_moe"].exclude == ("lm_head", "*.gate")
    assert templates["no_kv"].kv_layers == ()


def test_algorithms_count_only_where_a_configuration_is_built_in() -> None:
    """P-50: registration alone is no support."""
    algorithms = catalog().algorithms
    assert algorithms["awq"] == {"llama"}
    assert algorithms["twobitscalar"] == {"llama", "qwen3"}


def test_options_have_defaults_and_choices() -> None:
    """P-60: defaults are read from the installed command."""
    options = catalog().options
    assert options["--num_calib_data"].default == 512
    assert options["--multi_device"].default is False
    assert options["--device"].default is None  # computed when the command starts
    assert options["--kv_cache_dtype"].choices == ("fp8", "mxfp4", None)
    assert options["--kv_cache_dtype"].flags == ("--kv_cache_dtype", "--kv_cache_quant_scheme")
    assert catalog().problems == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('DEFAULT_TEMPLATES = {}\nDEFAULT_TEMPLATES["a"] = {"exclude_layers_name": ["x"]}', {"a": ("x",)}),
        (
            'B = {"a": {"exclude_layers_name": ["x"] + ["y"]}}\n'
            'DEFAULT_TEMPLATES = {**B, "b": {"exclude_layers_name": "z"}}',
            {"a": ("x", "y"), "b": ("z",)},
        ),
        ('DEFAULT_TEMPLATES: dict = dict(a={"exclude_layers_name": [*"xy".split()]})', {}),
        (
            'DEFAULT_TEMPLATES = {"a": {}}\nDEFAULT_TEMPLATES.update({"b": {"exclude_layers_name": ["q"]}})',
            {"a": (), "b": ("q",)},
        ),
        (
            'DEFAULT_TEMPLATES = {"a": {"exclude_layers_name": ["x"]}}\n'
            'DEFAULT_TEMPLATES["b"] = DEFAULT_TEMPLATES["a"]',
            {"a": ("x",), "b": ("x",)},
        ),
        ('X = {"a": {}}\nDEFAULT_TEMPLATES = X | {"b": {}}', {"a": (), "b": ()}),
        ("DEFAULT_TEMPLATES = load()", {}),
    ],
)
def test_other_ways_to_write_the_table(text: str, expected: dict[str, tuple[str, ...]]) -> None:
    found = parse_catalog("9.9", "x", text, ALGO_PY, CLI_PY)
    assert {name: template.exclude for name, template in found.templates.items()} == expected


def test_what_is_no_literal_is_a_problem_and_not_a_guess() -> None:
    found = parse_catalog(
        "9.9",
        "x",
        'class C:\n    def f(self):\n        for g in (1, 2):\n            self._schemes[f"s_{g}"] = S(g)\n',
        'M = build()\nALGORITHM_CONFIG_MAPS = {"new": M, "none": {"llama": None}}',
        "",
    )
    assert found.schemes == ()
    assert found.algorithms == {"new": frozenset(), "none": frozenset()}
    text = "\n".join(found.problems)
    for part in ("schemes", "KV", "DEFAULT_TEMPLATES", "new", "torch_llm_ptq.py"):
        assert part in text


def test_self_reference_ends() -> None:
    found = parse_catalog(
        "9", "x", "A = A\nDEFAULT_TEMPLATES = {**DEFAULT_TEMPLATES, 'a': {'exclude_layers_name': A}}", "", ""
    )
    assert found.templates == {}
    assert found.problems


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300))
def test_no_text_raises(one: str, two: str, three: str) -> None:
    found = parse_catalog("1", "x", one, two, three)
    assert found.problems


@given(st.integers(0, len(TEMPLATE_PY)), st.integers(0, len(CLI_PY)))
def test_cut_files_raise_nothing(cut: int, cut_cli: int) -> None:
    found = parse_catalog("1", "x", TEMPLATE_PY[:cut], ALGO_PY, CLI_PY[:cut_cli])
    assert found.algorithms["gptq"] == {"llama", "gpt_oss"}


def test_deep_nesting_ends_in_a_problem() -> None:
    deep = "DEFAULT_TEMPLATES = " + "[" * 5000 + "]" * 5000
    assert any("template.py" in problem for problem in parse_catalog("1", "x", deep, ALGO_PY, CLI_PY).problems)
