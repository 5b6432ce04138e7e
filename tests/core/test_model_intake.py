"""Findings, remote code, earlier quantization, corrections and the analysis artifact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.model.analysis import analysis_json
from quark_tui.core.model.intake import Intake, TemplateFacts, corrected, examine, model_answer
from tests.support.models import LLAMA, llama, source

TEMPLATE = TemplateFacts("llama", ("lm_head",), ("*k_proj", "*v_proj"), "templates of amd-quark")
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "model_analysis.schema.json").read_text())


def codes(intake: Intake) -> dict[str, str]:
    return {finding.code: finding.level for finding in intake.findings}


def analysis(intake: Intake) -> dict[str, Any]:
    result = analysis_json(intake)
    assert result is not None
    jsonschema.validate(result, SCHEMA)
    return result


def test_a_sound_model_with_a_template_is_complete() -> None:
    """P-40, P-41, P-42, P-43: required keys, and complete only when nothing material is missing."""
    intake = examine(source(LLAMA, llama()), TEMPLATE, True, None)
    result = analysis(intake)
    assert result["analysis_status"] == "complete"
    assert result["model"]["model_path"] == "/model"
    assert result["quantization_targets"]["linear_layer_count"] == 15
    assert result["quantization_targets"]["exclude_defaults"] == ["lm_head"]
    assert result["quantization_targets"]["has_non_linear_experts"] is False


def test_the_written_analysis_holds_what_was_found() -> None:
    """P-26, P-28: type, layers and their size, how it loads, and a count with its basis, each with where it stood."""
    result = analysis(examine(source(LLAMA, llama()), TEMPLATE, True, None))
    model, targets = result["model"], result["quantization_targets"]
    assert model["model_type"] == LLAMA["model_type"]
    for key in ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "architectures"):
        assert model[key] == LLAMA[key]
        assert result["sources"][key] == f"config.json: {key}"
    assert "headers" in targets["count_basis"] and targets["count_is_estimate"] is False
    assert result["risks"] == []
    assert "transformers_version" not in result["model"], "left out, not null"


def test_excludes_are_the_template_s_and_never_assumed() -> None:
    """P-32, P-35: without a template the list is empty, the analysis partial and the risk high."""
    intake = examine(source(LLAMA, llama()), None, True, None)
    result = analysis(intake)
    assert result["quantization_targets"]["exclude_defaults"] == []
    assert result["analysis_status"] == "partial"
    assert codes(intake)["template_missing"] == "high"


def test_a_template_of_another_type_is_no_template() -> None:
    intake = examine(source({**LLAMA, "model_type": "mistral"}), TEMPLATE, True, None)
    assert intake.template is None and "template_missing" in codes(intake)


def test_without_a_catalog_a_missing_template_is_not_claimed() -> None:
    intake = examine(source(LLAMA), None, False, None)
    assert "template_missing" not in codes(intake) and "template_unknown" in codes(intake)


@pytest.mark.parametrize(
    ("drop", "code"), [("model_type", "model_type_unknown"), ("num_hidden_layers", "layer_count_unknown")]
)
def test_no_analysis_is_written_while_type_or_layers_are_unknown(drop: str, code: str) -> None:
    """P-46, P-102: they are asked for instead."""
    intake = examine(source({k: v for k, v in LLAMA.items() if k != drop}), TEMPLATE, True, None)
    assert model_answer(intake)["analysis"] is None
    assert drop in intake.questions
    assert codes(intake)[code] == "block"


def test_a_count_that_cannot_be_defended_is_a_labelled_estimate() -> None:
    """P-33, P-45, P-102: a conservative estimate with its explanation, and a partial analysis."""
    template = TemplateFacts("never_heard", (), (), "x")
    intake = examine(source({**LLAMA, "model_type": "never_heard"}), template, True, None)
    targets = analysis(intake)["quantization_targets"]
    assert intake.linear_count is None
    assert model_answer(intake)["inventory"]["linear_count"] is None
    assert targets["count_is_estimate"] is True and "estimate" in targets["count_basis"]
    assert analysis(intake)["analysis_status"] == "partial"


def test_findings_become_risks_with_their_severity() -> None:
    """P-44: severity, message and recovery hint."""
    intake = examine(source(LLAMA, llama(), listing=()), TEMPLATE, True, None)
    risk = next(risk for risk in analysis(intake)["risks"] if risk["code"] == "tokenizer_missing")
    assert risk["severity"] == "high" and risk["recovery_hint"]


def test_corrections_keep_the_old_value_and_conclude_again() -> None:
    """P-46: a person corrects a fact at Checkpoint 1."""
    intake = examine(source({**LLAMA, "num_hidden_layers": True}), TEMPLATE, True, None)
    better = corrected(intake, {"num_hidden_layers": "3"})
    fact = better.facts["num_hidden_layers"]
    assert fact.value == 3 and "corrected by hand" in fact.source
    assert better.linear_count == 22 and better.questions == ()
    assert not {"config_value", "layer_count_unknown"} & set(codes(better))
    again = corrected(better, {"hidden_size": 16})
    assert again.facts["num_hidden_layers"].value == 3, "earlier corrections stay"
    assert "was 8 from config.json: hidden_size" in again.facts["hidden_size"].source


def test_a_corrected_type_wants_its_own_template() -> None:
    intake = examine(source(LLAMA), TEMPLATE, True, None)
    other = TemplateFacts("qwen3", ("lm_head",), (), "x")
    assert corrected(intake, {"model_type": "qwen3"}).template is None
    assert corrected(intake, {"model_type": "qwen3"}, other).template == other


@pytest.mark.parametrize(
    ("key", "value"),
    [("layers", 3), ("num_hidden_layers", "many"), ("num_hidden_layers", 0), ("tie_word_embeddings", "perhaps"),
     ("model_type", ""), ("architectures", "[" * 100_000), ("hidden_size", None), ("\x1b", 1)],
)  # fmt: skip
def test_a_wrong_correction_is_a_wrong_question(key: str, value: Any) -> None:
    with pytest.raises(WrongQuestion) as caught:
        corrected(examine(source(LLAMA), TEMPLATE, True, None), {key: value})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("value", "taken"), [("true", True), ("False", False), (True, True)])
def test_corrections_are_taken_as_text_too(value: Any, taken: bool) -> None:
    intake = corrected(examine(source(LLAMA), TEMPLATE, True, None), {"tie_word_embeddings": value})
    assert intake.facts["tie_word_embeddings"].value is taken


def test_remote_code_is_named_with_its_digest_and_what_stops_it() -> None:
    """P-27: config.json's code is stopped by the flag, the tokenizer's is not (measured)."""
    config = {
        **LLAMA,
        "auto_map": {"AutoModelForCausalLM": "modeling_x.X", "AutoConfig": "other/repo--configuration.C"},
    }
    files = {"tokenizer_config.json": {"auto_map": {"AutoTokenizer": ["tok.T", None]}},
             "processor_config.json": {"auto_map": {"AutoProcessor": "sub.proc.P"}}}  # fmt: skip
    intake = examine(
        source(config, files=files, python_files={"modeling_x.py": "aa", "sub/proc.py": "bb"}), TEMPLATE, True, None
    )
    told = {(c.file, c.key): (c.target, c.sha256, c.stopped_by_flag) for c in intake.remote_code}
    assert told == {
        ("config.json", "auto_map.AutoModelForCausalLM"): ("modeling_x.X", "aa", True),
        ("config.json", "auto_map.AutoConfig"): ("other/repo--configuration.C", None, True),
        ("tokenizer_config.json", "auto_map.AutoTokenizer"): ("tok.T", None, False),
        ("processor_config.json", "auto_map.AutoProcessor"): ("sub.proc.P", "bb", False),
    }
    assert codes(intake)["remote_code_tokenizer"] == "high"
    assert {"remote_code", "remote_code_missing"} <= set(codes(intake))


def test_a_tokenizer_named_in_config_json_is_not_stopped_either() -> None:
    """P-27: the tokenizer's loading reads that key as well."""
    intake = examine(source({**LLAMA, "auto_map": {"AutoTokenizer": "tok.T"}}), TEMPLATE, True, None)
    assert [code.stopped_by_flag for code in intake.remote_code] == [False]


@pytest.mark.parametrize("value", ["\x1b[2Jx.Y", 5, {"a": 1}, ["a.B"] * 1000, "../../etc/passwd.X"])
def test_hostile_auto_maps_are_shown_safely_and_bounded(value: Any) -> None:
    intake = examine(source({**LLAMA, "auto_map": {f"K{i}": value for i in range(500)}}), TEMPLATE, True, None)
    assert 0 < len(intake.remote_code) <= 200
    assert all(code.target.isprintable() and code.sha256 is None for code in intake.remote_code)


@pytest.mark.parametrize(
    ("config", "files", "method", "place"),
    [
        ({"quantization_config": {"quant_method": "gptq"}}, {}, "gptq", "config.json: quantization_config"),
        (
            {"compression_config": {"quant_method": "compressed-tensors"}},
            {},
            "compressed-tensors",
            "compression_config",
        ),
        (
            {"text_config": {"quantization_config": {"quant_method": "awq"}}},
            {},
            "awq",
            "text_config.quantization_config",
        ),
        ({}, {"hf_quant_config.json": {"quantization": {"quant_algo": "FP8"}}}, "FP8", "hf_quant_config.json"),
        ({}, {"quantize_config.json": {"bits": 4, "quant_method": "gptq"}}, "gptq", "quantize_config.json"),
        ({"quantization_config": [1]}, {}, "unknown", "quantization_config"),
    ],
)
def test_an_earlier_quantization_is_found_wherever_it_is_stated(
    config: dict[str, Any], files: dict[str, Any], method: str, place: str
) -> None:
    """P-39: pre-quantized input, with the place."""
    intake = examine(source({**LLAMA, **config}, files=files), TEMPLATE, True, None)
    assert intake.already_quantized is not None
    assert intake.already_quantized["method"] == method
    assert place in intake.already_quantized["evidence"]
    assert "prequantized" in codes(intake)


@pytest.mark.parametrize("empty", [None, {}, False])
def test_an_empty_description_is_no_quantization(empty: Any) -> None:
    assert examine(source({**LLAMA, "quantization_config": empty}), TEMPLATE, True, None).already_quantized is None


def test_files_that_contradict_each_other_are_both_shown() -> None:
    """P-39: neither is believed silently."""
    files = {"hf_quant_config.json": {"quantization": {"quant_algo": "MIXED_PRECISION"}}}
    intake = examine(
        source({**LLAMA, "quantization_config": {"quant_method": "fp8"}}, files=files), TEMPLATE, True, None
    )
    assert intake.already_quantized is not None
    assert "fp8" in intake.already_quantized["evidence"] and "MIXED_PRECISION" in intake.already_quantized["evidence"]
    assert "quantization_contradiction" in codes(intake)


def test_the_same_word_in_two_files_is_no_contradiction() -> None:
    files = {"hf_quant_config.json": {"quantization": {"quant_algo": "FP8"}}}
    intake = examine(
        source({**LLAMA, "quantization_config": {"quant_method": "fp8"}}, files=files), TEMPLATE, True, None
    )
    assert "quantization_contradiction" not in codes(intake)


@pytest.mark.parametrize("kept", [True, False])
def test_gpt_oss_without_its_field_is_a_trap(kept: bool) -> None:
    config: dict[str, Any] = {**LLAMA, "model_type": "gpt_oss"}
    if kept:
        config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    assert ("gpt_oss_dequantized" in codes(examine(source(config), None, True, None))) is not kept


@pytest.mark.parametrize(
    ("kind", "wrote", "installed", "code", "level"),
    [
        ("llama", "4.51.0", "5.2.0", "transformers_mismatch", "low"),
        ("llama", "5.13.1", "5.2.0", "transformers_mismatch", "medium"),
        ("qwen3_5", "5.2.0", "5.1.0", "loading", "high"),
        ("llama4", "4.51.0", "5.2.0", "loading", "info"),
        ("gpt_oss", None, None, "loading", "info"),
    ],
)
def test_transformers_is_judged_by_architecture(
    kind: str, wrote: str | None, installed: str | None, code: str, level: str
) -> None:
    """P-36, P-37, P-38: what this architecture's loading needs, never one minimum for all."""
    config = {**LLAMA, "model_type": kind, "transformers_version": wrote}
    assert codes(examine(source(config), None, True, installed))[code] == level


@pytest.mark.parametrize("installed", ["5.2.0", "5.2.1", "5.2.2", "5.3.0"])
def test_another_patch_or_a_later_minor_version_is_no_risk(installed: str) -> None:
    config = {**LLAMA, "transformers_version": "5.2.1"}
    assert not codes(examine(source(config, llama()), TEMPLATE, True, installed))


def test_huge_models_are_told() -> None:
    """P-39: memory pressure, huge MoE, likely several devices."""
    config = {**LLAMA, "model_type": "qwen3_moe", "num_experts": 128, "num_hidden_layers": 94}
    assert "huge_model" in codes(examine(source(config), None, True, None))
    assert "huge_model" not in codes(examine(source(LLAMA), None, True, None))


def test_the_answer_has_every_promised_fact_with_its_source() -> None:
    """P-26, P-38: each fact with where it was read."""
    facts = model_answer(examine(source(LLAMA), TEMPLATE, True, None))["facts"]
    for name in ("model_type", "architectures", "num_hidden_layers", "num_experts", "hidden_size", "dtype",
                 "tie_word_embeddings", "max_position_embeddings"):  # fmt: skip
        assert set(facts[name]) == {"value", "from", "file", "key", "raw"}
    absent = {"value": None, "from": "not stated", "file": None, "key": None, "raw": None}
    assert facts["num_experts"] == absent
    opened = {"file": "config.json", "key": "torch_dtype", "raw": "bfloat16"}
    assert facts["dtype"] == {"value": "bfloat16", "from": "config.json: torch_dtype", **opened}
