"""Real output folders and real sources, whole and damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quark_tui.core.answer import Answer
from quark_tui.core.model.inventory import Inventory, Module
from quark_tui.engine.verify import verify_against, verify_folder
from quark_tui.io.checkpoint import read_checkpoint

EXPORTS = {"llama_fp8_kv": ("fp8", "fp8"), "llama_mxfp4": ("mxfp4", None)}


def ok(answer: Answer, code: str) -> Any:
    return next(check["ok"] for check in answer.body["checks"] if check["code"] == code)


def source_inventory(folder: Path) -> Inventory:
    weights = {name: tensor for name, tensor in read_checkpoint(folder).tensors.items() if len(tensor.shape) == 2}
    modules = [
        Module(
            name.removesuffix(".weight"), "embedding" if "embed" in name else "linear", tensor.shape, tensor.elements
        )
        for name, tensor in weights.items()
    ]
    return Inventory(True, "the source's headers", tuple(modules))


@pytest.mark.parametrize("name", EXPORTS)
def test_real_exports_are_verified_alone_and_against_their_plan(name: str, shared: Path) -> None:
    """P-96: 14 of 14 modules, all codes answered, nothing assumed."""
    folder, source = shared / "data/exports" / name, shared / "data/models/llama"
    scheme, kv = EXPORTS[name]
    plan = {
        "global_scheme": scheme, "kv_cache_scheme": kv, "exclude_layers": ["lm_head"], "layer_quant_config": {},
        "layer_order": [], "evaluation_intent": "none",
    }  # fmt: skip
    alone = verify_folder(folder)
    planned = verify_against(plan, source_inventory(source), source, folder, None, None)
    for answer in (alone, planned):
        assert (answer.body["verdict"], answer.exit) == ("verified", 0)
        assert (answer.body["quantized_modules"], answer.body["expected_modules"]) == (14, 14)
        assert ok(answer, "kv_consistent") is (True if kv else None)
    assert ok(planned, "tokenizer_unchanged") is False
    evidence = next(c["evidence"] for c in planned.body["checks"] if c["code"] == "tokenizer_unchanged")
    assert "truncation" in evidence
    assert "padding" in evidence
    assert "pad_token" in evidence
    print(f"{name}: verified alone and against its plan")


def test_every_folder_of_the_corpus_gets_the_verdict_that_it_deserves(shared: Path) -> None:
    exports = sorted(path.parent for path in (shared / "data/exports").glob("*/config.json"))
    models = sorted(path.parent for path in (shared / "data/models").glob("*/config.json"))
    assert exports
    assert models
    for folder in exports:
        assert verify_folder(folder).body["verdict"] == "verified", folder.name
    for folder in models:
        answer = verify_folder(folder)
        body = answer.body
        assert (body["verdict"], body["quantized_modules"], body["expected_modules"]) == ("failed", 0, None), (
            folder.name
        )
        assert ok(answer, "count_matches") is False
    print(f"{len(exports)} exports, {len(models)} sources")


def test_every_configuration_of_the_corpus_gives_a_verdict(shared: Path) -> None:
    """A folder with a configuration and no weights has failed, whatever the configuration says."""
    folders = sorted({path.parent for path in (shared / "data").glob("configs*/*/*.json")})
    assert folders
    for folder in folders:
        answer = verify_folder(folder)
        assert (answer.body["verdict"], answer.exit) in (("failed", 1), ("unknown", 1)), folder.name
    print(f"{len(folders)} configurations without weights")


def _edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        change(config["quantization_config"])
        (folder / "config.json").write_text(json.dumps(config))

    return damage


def _bytes(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return damage


def _misspell(quantization: dict[str, Any]) -> None:
    quantization["export"]["kv_cache_group"] = ["*kproj"]
    quantization["kv_cache_quant_config"] = {"*kproj": {}}


WEIGHTS = "model.safetensors"
DAMAGE: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "truncated": (_bytes(WEIGHTS, lambda raw: raw[:-5000]), "failed", "headers_sound"),
    "garbage header": (_bytes(WEIGHTS, lambda raw: raw[:20] + b"\xff" * 40 + raw[60:]), "failed", "headers_sound"),
    "another type": (
        _bytes(WEIGHTS, lambda raw: raw.replace(b'"F8_E4M3"', b'"F8_E5M2"')), "failed", "scheme_matches",
    ),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "failed", "weights_present"),
    "no config": (lambda folder: (folder / "config.json").unlink(), "failed", "config_present"),
    "config cut": (_bytes("config.json", lambda raw: raw[:900]), "failed", "config_present"),
    "another scheme promised": (
        _edit(lambda q: q["global_quant_config"]["weight"].update(dtype="int8")), "failed", "scheme_matches",
    ),
    "exclude emptied": (_edit(lambda q: q.update(exclude=[])), "partial", "count_matches"),
    "exclude too wide": (_edit(lambda q: q["exclude"].append("*o_proj")), "partial", "excludes_respected"),
    "kv group emptied": (_edit(lambda q: q["export"].update(kv_cache_group=[])), "partial", "kv_consistent"),
    "kv pattern misspelt": (_edit(_misspell), "partial", "kv_consistent"),
    "override promised": (
        _edit(lambda q: q["layer_quant_config"].update({
            "*o_proj": {"weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"}},
        })),
        "partial", "overrides_consistent",
    ),
    "scale renamed": (
        _bytes(WEIGHTS, lambda raw: raw.replace(b"0.mlp.up_proj.weight_scale", b"0.mlp.up_proj.weight_scalf")),
        "partial", "scales_present",
    ),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "partial", "tokenizer_present"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_copies_of_a_real_export(kind: str, shared: Path, tmp_path: Path) -> None:
    """P-99: each kind of damage has its verdict and its check."""
    folder = tmp_path / "out"
    shutil.copytree(shared / "data/exports/llama_fp8_kv", folder, copy_function=shutil.copyfile)
    folder.chmod(0o755)
    damage, verdict, code = DAMAGE[kind]
    damage(folder)
    answer = verify_folder(folder)
    assert (answer.body["verdict"], answer.exit) == (verdict, 1)
    assert ok(answer, code) is False


def test_the_source_s_weights_under_a_quantized_configuration(shared: Path, tmp_path: Path) -> None:
    """P-99: nothing quantized is failed, whatever the configuration says."""
    folder = tmp_path / "out"
    shutil.copytree(shared / "data/exports/llama_mxfp4", folder, copy_function=shutil.copyfile)
    folder.chmod(0o755)
    shutil.copyfile(shared / "data/models/llama" / WEIGHTS, folder / WEIGHTS)
    answer = verify_folder(folder)
    assert (answer.body["verdict"], answer.body["quantized_modules"], answer.body["expected_modules"]) == (
        "failed",
        0,
        14,
    )
