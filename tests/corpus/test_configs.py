"""Every real configuration of the corpus gives an answer; the odd ones give the answer that is right for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.model.config import lookup
from quark_tui.core.model.intake import Intake, TemplateFacts, examine, model_answer
from quark_tui.core.text import clean
from quark_tui.io.catalog import read_catalog
from quark_tui.io.intake import read_model
from quark_tui.io.paths import cache_folder

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "model_analysis.schema.json").read_text())

#: name: facts as [value, key in config.json], read from the files by hand; template: of amd-quark 0.12.post1.
EXPECTED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "expected_facts.json").read_text())

#: name: (layers, experts, Linear modules or None where configuration alone does not settle them)
KNOWN: dict[str, tuple[int | None, int | None, int | None]] = {
    "Qwen--Qwen3-8B": (36, None, 253),
    "Qwen--Qwen3-235B-A22B-FP8": (94, 128, 36_473),
    "deepseek-ai--DeepSeek-V3": (61, 256, 45_033),
    "mistralai--Mixtral-8x7B-v0.1": (32, 8, 897),
    "openai--gpt-oss-20b": (24, 32, 1_633),
    "nvidia--Llama-3.1-70B-Instruct-FP8": (80, None, 561),
    "THUDM--chatglm2-6b": (28, None, None),
    "hfdefault--t5": (6, None, None),
    "ome--dbrx_132b": (48, 16, None),
    "ome--llava_1.5_7b_hf": (None, None, None),
    "ome--deepseek_vl2_tiny": (12, 64, None),
    "tiiuae--falcon-7b": (32, None, None),
    "ome--phi3": (32, None, 129),
    "google--gemma-4-26B-A4B": (30, 128, None),
}
QUANTIZED = {
    "Qwen--Qwen3-235B-A22B-FP8": "fp8", "gh--Qwen2.5-32B-GPTQ": "gptq", "moonshotai--Kimi-K3": "compressed-tensors",
    "nvidia--Llama-3.1-70B-Instruct-FP8": "FP8", "nvidia--Qwen3-235B-A22B-NVFP4": "NVFP4",
    "openai--gpt-oss-20b": "mxfp4",
    "quark013--tiny-llama-fp8": "quark",
}  # fmt: skip
NO_JSON_OBJECT = {"array_root", "empty", "truncated"}
#: odd folder: finding that it must give
ODD = {
    "bin_only": "bin_only",
    "bom": "file_note",
    "hf_quant_only": "prequantized",
    "index_missing_shard": "index_disagrees",
    "layers_string": "config_value",
    "markup_injection": "config_value",
    "nan": "file_note",
    "nested_only": "multimodal",
    "no_model_type": "model_type_unknown",
    "quant_nested": "prequantized",
    "safetensors_truncated": "weights_unsound",
    "tokenizer_auto_map": "remote_code_tokenizer",
}


def look(folder: Path) -> Intake:
    return examine(read_model(folder), None, True, "5.2.0")


def check(intake: Intake) -> None:
    answer = model_answer(intake)
    json.dumps(answer, allow_nan=False, ensure_ascii=False).encode("utf-8")
    for finding in intake.findings:
        said = finding.message + finding.evidence + finding.next_step
        assert clean(said) == said
    if answer["analysis"] is None:
        assert set(intake.questions) & {"model_type", "num_hidden_layers"}
    else:
        jsonschema.validate(answer["analysis"], SCHEMA)


def test_every_real_configuration_is_answered(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """P-24, P-26, P-41: a valid analysis, or the question for what is missing."""
    folders = sorted(path for path in (shared / "data" / "configs").iterdir() if path.is_dir())
    assert len(folders) >= 40
    for folder in folders:
        intake = look(folder)
        check(intake)
        layers, experts, linears = KNOWN.get(folder.name, (intake.facts["num_hidden_layers"].value, None, None))
        assert intake.facts["num_hidden_layers"].value == layers, folder.name
        if folder.name in KNOWN:
            assert intake.facts["num_experts"].value == experts, folder.name
            assert intake.linear_count == linears, folder.name
        if folder.name in QUANTIZED:
            assert intake.already_quantized is not None and intake.already_quantized["method"] == QUANTIZED[folder.name]
        stated = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        assert bool(intake.remote_code) == ("auto_map" in json.dumps(stated)), folder.name
    with capsys.disabled():
        print(f"\n{len(folders)} configurations answered, {len(KNOWN)} with known counts")


def facts_of(intake: Intake) -> dict[str, Any]:
    """What the table of expected facts holds of a model, as intake has it; facts are [value, key]."""

    def opened(name: str) -> list[Any] | None:
        fact = intake.facts[name]
        return None if fact.value is None else [fact.value, fact.key]

    quantized = intake.already_quantized
    return {
        "model_type": intake.facts["model_type"].value,
        "layers": opened("num_hidden_layers"),
        "experts": opened("num_experts"),
        "per_token": opened("num_experts_per_tok"),
        "mtp": opened("num_nextn_predict_layers"),
        "hidden_size": opened("hidden_size"),
        "dtype": opened("dtype"),
        "tied": opened("tie_word_embeddings"),
        "quantized": quantized and [quantized["method"], quantized["evidence"].split(",")[0]],
        "code": sorted({code.target.rpartition(".")[0] for code in intake.remote_code}),
    }


def test_intake_agrees_with_every_row_that_was_read_by_hand(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """P-26, P-27, P-30, P-38, P-39: type, counts with their keys, earlier quantization and code of real models."""
    for name, row in EXPECTED.items():
        found = facts_of(look(shared / "data" / "configs" / name))
        assert found == {key: value for key, value in row.items() if key != "template"}, name
    with capsys.disabled():
        print(f"\n{len(EXPECTED)} configurations agree with what was read by hand")


def test_every_raw_value_is_what_stands_in_its_file(shared: Path) -> None:
    """P-38: file, key and raw value open each fact of every real configuration."""
    opened = 0
    for name in EXPECTED:
        folder = shared / "data" / "configs" / name
        for fact in look(folder).facts.values():
            if fact.file is None or fact.key is None or not isinstance(fact.raw, int | str):
                continue
            stated = lookup(json.loads((folder / fact.file).read_text(encoding="utf-8")), fact.key)
            assert fact.raw == stated, (name, fact)
            opened += 1
    assert opened > 5 * len(EXPECTED)


def test_templates_of_the_installed_quark_are_found_for_these_types(capsys: pytest.CaptureFixture[str]) -> None:
    """P-32, P-34, P-35: which of these types the installed Quark has a template for, against a table read by hand."""
    pattern = "targets/*/lib/python3.*/site-packages/amd_quark-0.12.post1.dist-info"
    installed = next(iter(sorted(cache_folder().glob(pattern))), None)
    if installed is None:
        pytest.skip(f"no target environment with amd-quark 0.12.post1 below {cache_folder()}")
    catalog = read_catalog(installed.parent, "0.12.post1")
    assert catalog is not None
    for name, row in EXPECTED.items():
        assert (row["model_type"] in catalog.templates) is row["template"], name
    with capsys.disabled():
        print(f"\n{len(EXPECTED)} model types looked up among {len(catalog.templates)} templates")


def test_both_sides_of_a_real_contradiction_are_shown(shared: Path) -> None:
    """P-39: config.json and hf_quant_config.json disagree about this one."""
    intake = look(shared / "data" / "configs" / "nvidia--DeepSeek-V4-Flash-NVFP4")
    assert "quantization_contradiction" in {f.code for f in intake.findings}


def test_every_odd_folder_gets_its_own_answer(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """P-39, P-40: what is damaged or odd is named as such."""
    folders = sorted(path for path in (shared / "data" / "configs_edge").iterdir() if path.is_dir())
    for folder in folders:
        if folder.name in NO_JSON_OBJECT:
            with pytest.raises(WrongQuestion, match=r"config\.json"):
                read_model(folder)
            continue
        intake = look(folder)
        check(intake)
        if folder.name in ODD:
            assert ODD[folder.name] in {f.code for f in intake.findings}, folder.name
    with capsys.disabled():
        print(f"\n{len(folders)} odd folders answered")


def test_the_real_tiny_models_are_complete(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """P-40: headers, tokenizer and template are all there."""
    template = TemplateFacts("llama", ("lm_head",), ("*k_proj", "*v_proj"), "test")
    folders = sorted((shared / "data" / "models").iterdir())
    for folder in folders:
        intake = examine(read_model(folder), template, True, None)
        check(intake)
        assert intake.linear_count == 15 and intake.inventory.known
        assert not [f for f in intake.findings if f.level not in ("info", "low")], folder.name
        assert model_answer(intake)["analysis"]["analysis_status"] == "complete"
    with capsys.disabled():
        print(f"\n{len(folders)} real models complete")


def test_real_exports_are_seen_to_be_quantized(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """P-39: an export is refused as input for what it is."""
    folders = [path for path in sorted((shared / "data" / "exports").iterdir()) if (path / "config.json").is_file()]
    for folder in folders:
        intake = look(folder)
        check(intake)
        assert intake.already_quantized is not None and intake.already_quantized["method"] == "quark"
        assert {f.code: f.level for f in intake.findings}["prequantized"] == "high"
    with capsys.disabled():
        print(f"\n{len(folders)} exports recognised")
