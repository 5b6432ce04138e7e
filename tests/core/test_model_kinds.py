"""Kinds of configurations that published models have, as hand-made twins: what each one says, and what it does not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from quark_tui.core.model.config import bounded
from quark_tui.core.model.facts import read_facts
from quark_tui.core.model.headers import Shard, as_loaded
from quark_tui.core.model.intake import Intake, corrected, examine, model_answer
from tests.support.models import LLAMA, checkpoint, llama, source


def look(config: dict[str, Any], **more: Any) -> Intake:
    return examine(source(config, **more), None, False, "5.2.0")


def codes(intake: Intake) -> set[str]:
    return {finding.code for finding in intake.findings}


def without(*keys: str) -> dict[str, Any]:
    return {key: value for key, value in LLAMA.items() if key not in keys}


@pytest.mark.parametrize(
    ("config", "layers", "key"),
    [
        ({"num_transformer_layers": 16}, 16, "num_transformer_layers"),
        ({"n_blocks": 5}, 5, "n_blocks"),
        ({"num_hidden_layers": None, "n_layer": 12}, 12, "n_layer"),
        ({"language_model": {"n_layers": 7}}, 7, "language_model.n_layers"),
        ({"num_hidden_layers": None, "text_config": {"num_layers": "9"}}, 9, "text_config.num_layers"),
        ({"hybrid_override_pattern": "M-M*-"}, 5, "hybrid_override_pattern"),
        ({"text_config": {"mlp_layer_types": ["dense"] + ["sparse"] * 3}}, 4, "text_config.mlp_layer_types"),
        ({"attn_type_list": [0, 0, 1]}, 3, "attn_type_list"),
    ],
)
def test_layers_are_counted_whatever_they_are_called(config: dict[str, Any], layers: int, key: str) -> None:
    """P-26, P-28: the count, the key, and what stands there."""
    fact = read_facts(config)[0]["num_hidden_layers"]
    assert (fact.value, fact.file, fact.key) == (layers, "config.json", key)
    assert fact.raw is not None


@pytest.mark.parametrize(
    "config",
    [
        {"block_types": ["recurrent", "recurrent", "attention"]},
        {"cross_attention_layers": [3, 8, 13]},
        {"full_attn_layers": [4, 8]},
        {"mlp_only_layers": [0, 1]},
        {"vision_config": {"num_hidden_layers": 24}},
        {"hybrid_override_pattern": ["M"]},
        {"layer_types": "full_attention"},
    ],
)
def test_what_does_not_describe_each_block_counts_nothing(config: dict[str, Any]) -> None:
    assert read_facts(config)[0]["num_hidden_layers"].value is None


def test_a_list_may_describe_the_layers_for_multi_token_prediction_too() -> None:
    config = {**LLAMA, "num_nextn_predict_layers": 1, "layer_types": ["full_attention"] * 3}
    assert "config_disagrees" not in codes(look(config))
    assert "config_disagrees" in codes(look({**config, "layer_types": ["full_attention"] * 4}))


def test_encoder_and_decoder_may_have_different_depths() -> None:
    """P-28: neither contradicts the other, and the model is told to be one of both."""
    config = {**LLAMA, "num_hidden_layers": 32, "encoder_layers": 32, "decoder_layers": 2}
    intake = look(config)
    assert intake.facts["num_hidden_layers"].value == 32
    assert "config_disagrees" not in codes(intake) and "encoder_decoder" in codes(intake)
    only = read_facts({"is_encoder_decoder": True, "decoder_layers": 6})[0]["num_hidden_layers"]
    assert (only.value, only.key) == (6, "decoder_layers")


def test_a_talker_beside_a_thinker_is_another_model() -> None:
    """P-26: what the speaking part states is neither taken nor compared."""
    config = {
        "model_type": "any_omni",
        "thinker_config": {"text_config": {"num_hidden_layers": 48, "num_experts": 128}, "audio_config": {"d": 1}},
        "talker_config": {"num_hidden_layers": 3, "text_config": {"num_hidden_layers": 20, "hidden_size": 64}},
    }
    intake = look(config)
    assert intake.facts["num_hidden_layers"].value == 48
    assert intake.facts["num_hidden_layers"].key == "thinker_config.text_config.num_hidden_layers"
    assert intake.facts["hidden_size"].value is None
    assert intake.facts["modalities"].value == ["thinker_config.audio_config"]
    assert "config_disagrees" not in codes(intake)


@pytest.mark.parametrize("name", ["visual", "vit_config", "speech_config", "acoustic_tokenizer_config", "video_config"])
def test_every_part_for_images_or_sound_makes_a_wrapper(name: str) -> None:
    """P-29: whatever the section is called."""
    intake = look({**LLAMA, name: {"layers": 2}})
    assert intake.facts["modalities"].value == [name]
    assert "multimodal" in codes(intake)


@pytest.mark.parametrize("name", ["provision", "revision_config", "envision"])
def test_a_name_that_only_contains_such_a_word_is_none(name: str) -> None:
    assert look({**LLAMA, name: {"layers": 2}}).facts["modalities"].value == []


@pytest.mark.parametrize(
    ("config", "experts", "each"),
    [
        ({"n_experts": 8, "num_selected_experts": 2}, 8, 2),
        ({"moe_num_experts": [64, 64], "moe_k": 6}, 64, 6),
        ({"num_experts": 16, "moe_topk": [8] * 4}, 16, 8),
        ({"text_config": {"num_experts": 896, "num_experts_per_token": 16, "num_shared_experts": 2}}, 896, 16),
        ({"num_local_experts": None, "n_routed_experts": 4, "n_shared_experts": 1, "n_activated_experts": 2}, 4, 2),
    ],
)
def test_experts_are_found_whatever_they_are_called(config: dict[str, Any], experts: int, each: int) -> None:
    """P-26, P-30: routed ones, and how many a token is sent to; shared ones are another fact."""
    facts = read_facts(config)[0]
    assert (facts["num_experts"].value, facts["num_experts_per_tok"].value) == (experts, each)


def test_experts_that_differ_from_layer_to_layer_are_not_counted_as_if_they_did_not() -> None:
    """P-33: the largest is shown and named as such; a count of modules cannot rest on it."""
    intake = look({**LLAMA, "model_type": "mixtral", "num_local_experts": [4, 8]})
    assert intake.facts["num_experts"].value == 8 and intake.facts["num_experts"].raw == [4, 8]
    assert any("differs from layer to layer, 4 to 8" in finding.message for finding in intake.findings)
    assert intake.linear_count is None
    same = look({**LLAMA, "model_type": "mixtral", "num_local_experts": [8, 8]})
    assert same.linear_count == 2 * (4 + 3 * 8) + 1


@pytest.mark.parametrize("experts", [8, "many", [4, "x"]])
def test_experts_in_a_dense_architecture_settle_no_count(experts: Any) -> None:
    """P-33: the arithmetic of dense blocks does not hold for what states experts, readable or not."""
    assert look({**LLAMA, "num_experts": experts}).linear_count is None
    assert look({**LLAMA, "num_experts": 0}).linear_count == 15


@pytest.mark.parametrize(
    ("spelling", "config"),
    [("n_mtp_layers", {"n_mtp_layers": 2}), ("mtp_config", {"mtp_config": {"num_hidden_layers": 2}})],
)
def test_layers_for_multi_token_prediction_are_found(spelling: str, config: dict[str, Any]) -> None:
    assert look({**LLAMA, **config}).facts["num_nextn_predict_layers"].value == 2, spelling


@pytest.mark.parametrize(
    ("description", "method"),
    [
        ({"config_groups": {"group_0": {}}}, "compressed-tensors"),
        ({"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "bitsandbytes"),
        ({"global_quant_config": {"weight": {}}}, "quark"),
        ({"bits": 4, "group_size": 64}, "unknown"),
        ({"quant_method": None, "quant_algo": "NVFP4"}, "NVFP4"),
        ({"quant_algo": None, "kv_cache_quant_algo": "FP8"}, "KV cache only, FP8"),
        ("gptq", "unknown"),
    ],
)
@pytest.mark.parametrize("place", ["", "text_config", "thinker_config.text_config", "vision_config"])
def test_a_description_without_a_method_is_a_quantization_all_the_same(
    description: Any, method: str, place: str
) -> None:
    """P-39: the method only where the description can be only one producer's."""
    config: dict[str, Any] = {"quantization_config": description}
    for part in reversed(place.split(".") if place else []):
        config = {part: config}
    found = look({**LLAMA, **config}).already_quantized
    assert found is not None and found["method"] == method
    assert f"config.json: {place + '.' if place else ''}quantization_config" in found["evidence"]


def test_mlx_weights_are_quantized_input() -> None:
    """P-39: their description is called quantization."""
    found = look({**LLAMA, "quantization": {"group_size": 64, "bits": 4}}).already_quantized
    assert found is not None and "quantization, keys group_size, bits" in found["evidence"]


@pytest.mark.parametrize(
    ("config", "files"),
    [
        ({"quantization_config": {"quant_method": None, "bits": None}}, {}),
        ({"quantization_config": {"load_in_4bit": False, "load_in_8bit": False, "bnb_4bit_quant_type": "fp4"}}, {}),
        (
            {},
            {
                "hf_quant_config.json": {
                    "producer": {"name": "m"},
                    "quantization": {"quant_algo": None, "kv_cache": None},
                }
            },
        ),
        ({"quantization": False}, {}),
        ({"quantization": "none"}, {}),
    ],
)
def test_what_is_switched_off_is_no_quantization(config: dict[str, Any], files: dict[str, Any]) -> None:
    assert look({**LLAMA, **config}, files=files).already_quantized is None


@pytest.mark.parametrize(
    ("method", "algorithm", "opposed"),
    [("modelopt", "NVFP4", False), ("modelopt_fp4", "NVFP4", False), ("compressed-tensors", "FP8", False),
     ("modelopt", "modelopt", False), ("gptq", "NVFP4", True), ("awq", "FP8", True)],
)  # fmt: skip
def test_a_writer_of_several_formats_contradicts_none(method: str, algorithm: str, opposed: bool) -> None:
    """P-39: only what cannot both be right is a contradiction."""
    files = {"hf_quant_config.json": {"quantization": {"quant_algo": algorithm}}}
    intake = look({**LLAMA, "quantization_config": {"quant_method": method}}, files=files)
    assert ("quantization_contradiction" in codes(intake)) is opposed


@pytest.mark.parametrize(
    ("file", "key", "stopped"),
    [
        ("config.json", "AutoModelForCausalLM", True),
        ("config.json", "AutoProcessor", False),
        ("preprocessor_config.json", "AutoImageProcessor", False),
        ("video_preprocessor_config.json", "AutoVideoProcessor", False),
        ("tokenizer_config.json", "AutoTokenizer", False),
    ],
)
@pytest.mark.parametrize("target", ["org/repo--file.Class", "file.Class"])
def test_code_is_found_in_every_file_that_may_ask_for_it(file: str, key: str, stopped: bool, target: str) -> None:
    """P-27: also code of another repository, which no file of the folder can be the digest of."""
    asked = {"auto_map": {key: target}}
    config = {**LLAMA, **(asked if file == "config.json" else {})}
    files = {} if file == "config.json" else {file: asked}
    (code,) = look(config, files=files, python_files={"file.py": "aa"}).remote_code
    assert (code.file, code.target, code.stopped_by_flag) == (file, target, stopped)
    assert code.sha256 == (None if "--" in target else "aa")


def shards(*named: tuple[str, dict[str, tuple[int, ...]]]) -> Any:
    return replace(
        checkpoint({}),
        shards=tuple(replace(checkpoint(tensors).shards[0], name=name) for name, tensors in named),
    )


def test_the_same_weights_in_a_second_layout_are_passed_by() -> None:
    """P-24, P-28: sizes, counts and the index are those of the files that are loaded."""
    both = shards(("consolidated.safetensors", {"layers.0.w1.weight": (8, 8)}), ("model-1.safetensors", llama()))
    both = replace(both, index=dict.fromkeys(llama(), "model-1.safetensors"))
    folder = replace(source(LLAMA), checkpoint=both)
    intake = examine(folder, None, False, None)
    assert intake.linear_count == 15 and intake.inventory.known
    assert "index_disagrees" not in codes(intake)
    assert {f.code: f.level for f in intake.findings}["weights_passed_by"] == "low"
    assert intake.facts["weight_bytes"].value == checkpoint(llama()).data_bytes
    assert "weights_passed_by" in codes(corrected(intake, {"hidden_size": 8})), "a correction forgets nothing"


def test_one_file_comes_before_an_index_and_a_damaged_index_settles_nothing() -> None:
    both = shards(("model.safetensors", llama()), ("model-1.safetensors", {"old": (1,)}))
    loaded, left = as_loaded(replace(both, index={"old": "model-1.safetensors"}))
    assert [shard.name for shard in loaded.shards] == ["model.safetensors"] and left == ("model-1.safetensors",)
    for odd in (replace(both, index={"a": "model-2.safetensors"}), replace(both, index_problem="no JSON")):
        assert as_loaded(odd) == (odd, ())


def test_an_adapter_s_weights_are_no_model() -> None:
    """P-39: its low-rank matrices are not counted as Linear modules."""
    alone = replace(
        source(LLAMA, listing=("adapter_config.json", "tokenizer.json")),
        checkpoint=shards(("adapter_model.safetensors", {"base.q_proj.lora_A.weight": (8, 8)})),
    )
    intake = examine(alone, None, False, None)
    assert "adapter_only" in codes(intake) and not intake.inventory.known
    beside = replace(alone, checkpoint=checkpoint(llama()))
    assert "adapter_beside" in codes(examine(beside, None, False, None))


@pytest.mark.parametrize("stored", ["F32", "BF16"])
def test_weights_stored_otherwise_than_stated_are_told(stored: str) -> None:
    intake = look(LLAMA, shapes=llama(), dtypes=dict.fromkeys(llama(), stored))
    assert ("stored_dtype" in codes(intake)) is (stored == "F32")


def test_weights_of_two_types_are_told_with_their_shares() -> None:
    intake = look(LLAMA, shapes=llama(), dtypes={"lm_head.weight": "F32"})
    (finding,) = [f for f in intake.findings if f.code == "stored_dtype"]
    assert "BF16" in finding.message and "F32" in finding.message


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"temperature": 0.7}, True),
        ({"temperature": 0.7, "do_sample": False}, True),
        ({"temperature": 0.7, "do_sample": True}, False),
        ({"temperature": 0.9, "top_p": 0.6}, False),
        ({"temperature": 1.0}, False),
        ({"min_p": 0.1}, True),
        ({"length_penalty": 2.0}, True),
        ({"length_penalty": 2.0, "num_beams": 4}, False),
        ({"pad_token_id": -1}, True),
        ({"pad_token_id": None, "eos_token_id": [1, 2]}, False),
        ([1], False),
        ({"temperature": {"a": [float("nan")]}}, True),
    ],
)
def test_generation_settings_that_cannot_be_saved_are_told_before_the_run(settings: Any, told: bool) -> None:
    """P-39: transformers 5.2 refuses them when the result is saved; top_p and its kin Quark sets right itself."""
    intake = look(LLAMA, files={"generation_config.json": settings})
    assert ("generation_config_refused" in codes(intake)) is told
    for finding in intake.findings:
        assert finding.message.isprintable()


@pytest.mark.parametrize(
    ("names", "auto_map", "told"),
    [
        (["LlamaForCausalLM"], {}, False),
        (["BertModel"], {}, True),
        (["Qwen2ForSequenceClassification"], {}, True),
        (["ChatGLMModel"], {"AutoModelForCausalLM": "modeling.X"}, False),
        (None, {}, False),
    ],
)
def test_what_is_no_language_model_is_told(names: list[str] | None, auto_map: dict[str, str], told: bool) -> None:
    """P-39: an ambiguous architecture."""
    intake = look({**LLAMA, "architectures": names, "auto_map": auto_map})
    assert ("architecture_not_causal" in codes(intake)) is told


@pytest.mark.parametrize("name", ["sentencepiece.bpe.model", "tokenizer.model.v3", "source.spm", "qwen.tiktoken"])
def test_every_known_tokenizer_file_is_one(name: str) -> None:
    assert "tokenizer_missing" not in codes(look(LLAMA, listing=(name,)))


def test_pointers_instead_of_files_are_told() -> None:
    """P-39: a clone without its large files."""
    folder = replace(source(LLAMA, llama()), pointers=("tokenizer.json", "model.safetensors"))
    (finding,) = [f for f in examine(folder, None, False, None).findings if f.code == "file_lfs_pointer"]
    assert "tokenizer.json" in finding.evidence and "safetensors" not in finding.evidence


def test_a_fact_opens_its_file_key_and_raw_value() -> None:
    """P-38: also where the value was refused, and where it was corrected by hand."""
    config = {**without("num_hidden_layers"), "num_layers": "2", "hidden_size": True, "layer_types": ["a"] * 99}
    facts = model_answer(look(config))["facts"]
    assert {**facts["num_hidden_layers"], "from": ""} == {
        "value": 2, "from": "", "file": "config.json", "key": "num_layers", "raw": "2"
    }  # fmt: skip
    assert (facts["hidden_size"]["value"], facts["hidden_size"]["raw"]) == (None, True)
    assert facts["hidden_size"]["key"] == "hidden_size"
    better = model_answer(corrected(look(config), {"num_hidden_layers": "3", "linear_count": "7"}))["facts"]
    told = better["num_hidden_layers"]
    assert (told["value"], told["corrected"], told["was"], told["raw"]) == (3, True, 2, "2")
    assert told["from"] == "corrected by hand, was 2 from config.json: num_layers"
    assert (better["linear_count"]["value"], better["linear_count"]["corrected"]) == (7, True)
    assert "corrected" not in better["vocab_size"]


def test_a_fact_from_an_index_or_one_shard_opens_that_file() -> None:
    """P-38: not everything is read from config.json."""
    index = {"metadata": {"total_size": 1234}, "weight_map": {}}
    facts = look(LLAMA, files={"model.safetensors.index.json": index}).facts
    size = facts["weight_bytes"]
    assert (size.value, size.file, size.key, size.raw) == (
        1234, "model.safetensors.index.json", "metadata.total_size", 1234
    )  # fmt: skip
    layers = look(without("num_hidden_layers"), shapes=llama(3)).facts["num_hidden_layers"]
    assert (layers.value, layers.file, layers.key) == (3, "model.safetensors", "model.layers.2")


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10**6, "\x1b[2J\ud800", 10**400, float("nan"), float("inf"), list(range(10**6)), {"k" * 10**5: 1},
        {str(i): [[[i] * 100] * 100] * 100 for i in range(100)}, None, True, [None, {"a": [1, [2, [3, [4]]]]}],
    ],
)  # fmt: skip
def test_a_raw_value_is_bounded_plain_json(value: Any) -> None:
    """P-38, P-40: whatever stands in the file."""
    text = json.dumps(bounded(value), allow_nan=False, ensure_ascii=False)
    text.encode("utf-8")
    assert text.isprintable() and len(text) < 30_000


@pytest.mark.parametrize("layers", [10**9, "1" * 12, -(10**30), [1] * 200_000, {"a": 1}])
def test_absurd_layer_counts_are_unknown_and_asked_for(layers: Any) -> None:
    """P-40: nothing is allocated or counted by them."""
    intake = look({**LLAMA, "num_hidden_layers": layers})
    assert intake.facts["num_hidden_layers"].value is None
    assert "num_hidden_layers" in intake.questions


def test_an_unread_shard_name_is_no_reason_to_fail() -> None:
    only = Shard("pytorch_model.safetensors", 0, problem="cut short")
    assert as_loaded(replace(checkpoint({}), shards=(only,)))[1] == ()
