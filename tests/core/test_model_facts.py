"""Facts from config.json: which spelling wins, what is refused, and where each value came from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.model.config import holds_nonfinite, whole
from quark_tui.core.model.facts import LAYER_LISTS, LAYER_SPELLINGS, read_facts
from quark_tui.core.model.intake import analysis_json, examine, model_answer
from quark_tui.core.text import clean
from tests.support.models import LLAMA, source


@pytest.mark.parametrize("spelling", ["num_hidden_layers", "n_layer", "num_layers", "n_layers"])
def test_a_layer_count_is_found_under_each_spelling_and_says_which(spelling: str) -> None:
    """P-26: the count and the key that it was read from."""
    facts, findings = read_facts({spelling: 7})
    assert facts["num_hidden_layers"].value == 7
    assert facts["num_hidden_layers"].source == f"config.json: {spelling}"
    assert not findings["num_hidden_layers"]


@pytest.mark.parametrize("spelling", LAYER_LISTS)
def test_a_list_that_describes_each_block_counts_when_no_number_is_stated(spelling: str) -> None:
    """P-28: the layer count of models that only list their blocks."""
    facts, _ = read_facts({spelling: [{"kind": "x"}] * 5})
    assert facts["num_hidden_layers"].value == 5
    assert spelling in facts["num_hidden_layers"].source


def test_a_block_list_of_another_length_is_a_disagreement() -> None:
    facts, findings = read_facts({"num_hidden_layers": 4, "layer_types": ["full"] * 5})
    assert facts["num_hidden_layers"].value == 4
    assert [f.code for f in findings["num_hidden_layers"]] == ["config_disagrees"]


@pytest.mark.parametrize(
    "config",
    [
        {"num_experts": 8},
        {"num_local_experts": 8},
        {"n_routed_experts": 8},
        {"moe_num_experts": 8},
        {"ffn_config": {"moe_num_experts": 8}},
        {"text_config": {"n_routed_experts": 8}},
        {"thinker_config": {"text_config": {"num_experts": 8}}},
    ],
)
def test_an_expert_count_is_found_under_each_spelling(config: dict[str, Any]) -> None:
    """P-26, P-30: experts by all published spellings, nested ones too."""
    assert read_facts(config)[0]["num_experts"].value == 8


@pytest.mark.parametrize("section", ["text_config", "llm_config", "language_config"])
def test_the_top_level_wins_over_a_nested_section_and_the_difference_is_told(section: str) -> None:
    facts, findings = read_facts({"hidden_size": 64, section: {"hidden_size": 32, "num_hidden_layers": 3}})
    assert facts["hidden_size"].value == 64
    assert facts["num_hidden_layers"].source == f"config.json: {section}.num_hidden_layers"
    assert [f.code for f in findings["hidden_size"]] == ["config_disagrees"]
    assert "32" in findings["hidden_size"][0].message


def test_a_nested_model_type_is_not_the_model_s() -> None:
    assert read_facts({"text_config": {"model_type": "llama"}})[0]["model_type"].value is None


@pytest.mark.parametrize("bad", [True, 3.0, -1, 0, 10**9, 10**400, "3.5", "٣", "", [], {}, "9" * 40])
def test_a_layer_count_that_cannot_be_one_is_unknown_with_a_finding(bad: Any) -> None:
    """P-40: what is unusable is unknown, and the analysis is not written on it."""
    intake = examine(source({**LLAMA, "num_hidden_layers": bad}), None, True, None)
    assert intake.facts["num_hidden_layers"].value is None
    assert "config_value" in {f.code for f in intake.findings}
    assert "num_hidden_layers" in intake.questions
    assert analysis_json(intake) is None


def test_a_string_of_digits_is_taken_and_told() -> None:
    facts, findings = read_facts({"num_hidden_layers": "32"})
    assert facts["num_hidden_layers"].value == 32
    assert [f.level for f in findings["num_hidden_layers"]] == ["low"]


def test_absent_is_none_and_says_so() -> None:
    """P-26: each fact is null when it is absent."""
    facts, _ = read_facts({})
    for name in ("model_type", "architectures", "num_hidden_layers", "num_experts", "hidden_size", "dtype",
                 "tie_word_embeddings", "max_position_embeddings"):  # fmt: skip
        assert facts[name].value is None
        assert facts[name].source == "not stated"


def test_modality_sections_are_recorded_only_where_they_hold_something() -> None:
    """P-29: vision and audio sub-configurations."""
    facts, _ = read_facts({"vision_config": {"depth": 1}, "audio_config": None, "video_config": {}})
    assert facts["modalities"].value == ["vision_config"]


def test_control_characters_never_stay_in_a_fact() -> None:
    facts, findings = read_facts({"model_type": "ll\x1b]52;c;x\x07ama", "architectures": ["\ud800A"]})
    assert facts["model_type"].value == "ll\\x1b]52;c;x\\x07ama"
    assert facts["architectures"].value == ["\\ud800A"]
    assert findings["model_type"] and findings["architectures"]


@given(st.integers(), st.integers(min_value=0, max_value=100), st.integers(min_value=0, max_value=100))
def test_a_reader_of_whole_numbers_gives_only_numbers_in_its_range(value: int, least: int, span: int) -> None:
    read, remark = whole(least, least + span)(value)
    assert (read == value) == (least <= value <= least + span)
    assert (read is None) == bool(remark)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
_NAMES = """model_type architectures hidden_size dtype torch_dtype text_config vision_config auto_map
quantization_config compression_config tie_word_embeddings ffn_config num_experts n_routed_experts
mlp_only_layers decoder_sparse_step first_k_dense_replace transformers_version
num_nextn_predict_layers thinker_config word_embed_proj_dim vocab_size"""
_KEYS = st.sampled_from([*LAYER_SPELLINGS, *LAYER_LISTS, *_NAMES.split()])
_TYPES = st.sampled_from(["llama", "qwen3_moe", "deepseek_v3", "gpt_oss", "opt", "gpt2", "never_heard"])


@given(st.dictionaries(_KEYS, _JSON, max_size=12), _JSON, _TYPES | _JSON)
def test_no_json_breaks_intake_and_what_it_says_is_plain_json(config: dict[str, Any], other: Any, kind: Any) -> None:
    """P-40: whatever the files hold, the answer is strict JSON without NaN and without control characters."""
    config["model_type"] = kind
    files = dict.fromkeys(("tokenizer_config.json", "hf_quant_config.json", "quantize_config.json"), other)
    intake = examine(source(config, files=files), None, True, "5.2.0")
    text = json.dumps(model_answer(intake), allow_nan=False, ensure_ascii=False)
    text.encode("utf-8")
    for finding in intake.findings:
        for said in (finding.message, finding.evidence, finding.next_step):
            assert clean(said) == said


def test_nan_is_found_at_any_depth() -> None:
    deep: Any = float("nan")
    for _ in range(50_000):
        deep = [deep]
    assert holds_nonfinite(deep)
    assert not holds_nonfinite({"a": [1.5, {"b": 2}]})
