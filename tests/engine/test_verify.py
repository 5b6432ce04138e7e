"""Folders on disk: whole ones, damaged ones, ones that may not be read."""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.model.inventory import Inventory, Module
from quark_tui.core.ptq.verify import CODES
from quark_tui.engine.verify import verify_against, verify_folder
from tests.support.exports import llama_linears, plain, recipe
from tests.support.safetensors import scalar, to_bytes, write_safetensors

PLAN: dict[str, Any] = {
    "global_scheme": "fp8", "kv_cache_scheme": None, "exclude_layers": ["lm_head"], "layer_quant_config": {},
    "layer_order": [], "evaluation_intent": "none",
}  # fmt: skip


def inventory() -> Inventory:
    modules = (Module(name, "linear", size, size[0] * size[1]) for name, size in llama_linears().items())
    return Inventory(True, "the source's modules", tuple(modules))


def answers(answer: Answer) -> dict[str, bool | None]:
    return {check["code"]: check["ok"] for check in answer.body["checks"]}


def sharded(folder: Path) -> Path:
    """The fp8 export in two files with an index."""
    made = recipe()
    made.write(folder)
    (folder / "model.safetensors").unlink()
    names = list(made.tensors)
    halves = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in halves.items():
        write_safetensors(folder / file, {name: made.tensors[name] for name in part})
    weight_map = {name: file for file, part in halves.items() for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def test_a_whole_folder_is_verified_and_its_answer_is_plain_json(tmp_path: Path) -> None:
    """P-96: shards, configuration and tokenizer files are reported with their sizes."""
    folder = recipe("nvfp4").write(tmp_path / "out")
    before = sorted((entry.name, entry.stat().st_mtime_ns) for entry in folder.iterdir())
    answer = verify_folder(folder)
    body = answer.to_json()
    assert (answer.exit, body["verdict"], body["against"], body["schema"]) == (
        0,
        "verified",
        "config",
        "quark-tui.verify.v1",
    )
    assert [check["code"] for check in body["checks"]] == list(CODES)
    assert all(set(check) == {"code", "ok", "message", "evidence"} for check in body["checks"])
    assert {(Path(file["path"]).name, file["size"]) for file in body["files"]} == {
        (entry.name, entry.stat().st_size) for entry in folder.iterdir()
    }
    assert json.loads(json.dumps(body)) == body
    assert body["digest"] == verify_folder(folder).body["digest"]
    assert before == sorted((entry.name, entry.stat().st_mtime_ns) for entry in folder.iterdir())


def test_shards_with_their_index_are_verified(tmp_path: Path) -> None:
    answer = verify_folder(sharded(tmp_path / "out"))
    assert (answer.exit, answers(answer)["index_matches"]) == (0, True)


def test_a_folder_against_its_plan_compares_the_tokenizer(tmp_path: Path) -> None:
    """P-98: what the person accepts names what quark-cli changed beside the weights."""
    source = plain().write(tmp_path / "source")
    made = recipe()
    made.tokenizer["tokenizer.json"]["padding"] = {
        "strategy": "BatchLongest",
        "direction": "Left",
        "pad_token": "<eos>",
    }
    made.tokenizer["tokenizer.json"]["truncation"] = {"max_length": 512}
    made.tokenizer["tokenizer_config.json"] |= {"pad_token": "<eos>", "padding_side": "left"}
    answer = verify_against(PLAN, inventory(), source, made.write(tmp_path / "out"), None, None)
    assert (answer.body["verdict"], answer.body["against"], answer.exit) == ("verified", "plan", 0)
    check = next(check for check in answer.body["checks"] if check["code"] == "tokenizer_unchanged")
    assert check["ok"] is False
    for text in (
        "padding: none →",
        "truncation: none → max_length=512",
        "pad_token: <pad> → <eos>",
        "padding_side: none → left",
    ):
        assert text in check["evidence"]
    same = verify_against(PLAN, inventory(), source, recipe().write(tmp_path / "same"), None, None)
    assert answers(same)["tokenizer_unchanged"] is True
    gone = verify_against(PLAN, inventory(), tmp_path / "hub-name", tmp_path / "same", None, None)
    assert answers(gone)["tokenizer_unchanged"] is None


def test_exit_zero_with_nothing_written_is_failed(tmp_path: Path) -> None:
    """P-99, P-122: missing expected files are a failed verdict, not a wrong question."""
    answer = verify_against(PLAN, inventory(), tmp_path, tmp_path / "nothing", None, None)
    assert (answer.body["verdict"], answer.exit, answer.body["expected_modules"]) == ("failed", 1, 14)


def test_only_a_path_that_does_not_exist_is_a_wrong_question(tmp_path: Path) -> None:
    with pytest.raises(WrongQuestion):
        verify_folder(tmp_path / "no\x1b[2Jwhere")
    file = tmp_path / "file"
    file.write_text("x")
    assert verify_folder(file).body["verdict"] == "failed"


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def _longer(folder: Path) -> None:
    with open(folder / "model.safetensors", "ab") as file:
        file.write(b"x" * 100)


def _lose_shard(folder: Path) -> None:
    shutil.rmtree(folder)
    sharded(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()


def _lose_shard_and_index(folder: Path) -> None:
    _lose_shard(folder)
    (folder / "model.safetensors.index.json").unlink()


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        entry.unlink()


def _config_only(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.name != "config.json":
            entry.unlink()


def _no_quantization(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    del config["quantization_config"]
    (folder / "config.json").write_text(json.dumps(config))


def _garbage(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 64) + b"\xff" * 200)


def _huge_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)


def _huge_shape(folder: Path) -> None:
    header = json.dumps({"a.weight": {"dtype": "BF16", "shape": [10**4000] * 3, "data_offsets": [0, 2]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"xx")


def _weights_are_a_folder(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()


def _weights_are_a_pipe(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


def _weights_link_to_themselves(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("model.safetensors")


def _no_tensors(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", {})


def _source_weights(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", plain().tensors)


def _other_scheme(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", recipe("mxfp4").tensors)


def _config(raw: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "config.json").write_bytes(raw)

    return write


def _config_is_a_folder(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()


def _config_is_a_pipe(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


FATAL: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut short": (_cut, "headers_sound"),
    "too long": (_longer, "headers_sound"),
    "a shard of the index is lost": (_lose_shard, "weights_present"),
    "a shard and the index are lost": (_lose_shard_and_index, "weights_present"),
    "empty": (_empty, "weights_present"),
    "configuration only": (_config_only, "weights_present"),
    "no quantization_config": (_no_quantization, "scheme_matches"),
    "garbage header": (_garbage, "headers_sound"),
    "endless header": (_huge_header, "headers_sound"),
    "a shape beyond numbers": (_huge_shape, "headers_sound"),
    "weights are a folder": (_weights_are_a_folder, "headers_sound"),
    "weights are a pipe": (_weights_are_a_pipe, "headers_sound"),
    "weights link to themselves": (_weights_link_to_themselves, "headers_sound"),
    "no tensors": (_no_tensors, "headers_sound"),
    "the source's weights": (_source_weights, "count_matches"),
    "another scheme's weights": (_other_scheme, "scheme_matches"),
    "configuration in another encoding": (_config(b"\xff\xfe{\x00}\x00"), "config_present"),
    "configuration of foreign bytes": (_config(b'{"model_type": "\x1b]52;c;x\x07\xe9"}'), "config_present"),
    "configuration cut": (_config(b'{"quantization_config": {'), "config_present"),
    "configuration nested without end": (_config(b"[" * 200_000), "config_present"),
    "configuration with an endless number": (_config(b'{"a": ' + b"9" * 10_000 + b"}"), "config_present"),
    "configuration is a list": (_config(b"[]"), "config_present"),
    "quantization_config is a list": (_config(b'{"quantization_config": []}'), "config_present"),
    "configuration is a folder": (_config_is_a_folder, "config_present"),
    "configuration is a pipe": (_config_is_a_pipe, "config_present"),
    "no configuration": (lambda folder: (folder / "config.json").unlink(), "config_present"),
}


@pytest.mark.parametrize("kind", FATAL)
def test_damage_fails_and_says_where(kind: str, tmp_path: Path) -> None:
    """P-99: what is missing or unsound is a failed verdict with its evidence."""
    damage, code = FATAL[kind]
    folder = recipe().write(tmp_path / "out")
    damage(folder)
    for answer in (verify_folder(folder), verify_against(PLAN, inventory(), tmp_path, folder, None, None)):
        assert (answer.body["verdict"], answer.exit) == ("failed", 1)
        assert answers(answer)[code] is False
        text = json.dumps(answer.to_json(), ensure_ascii=False)
        assert "\\u001b" not in text
        assert "Traceback" not in text
        assert all(finding.next_step for finding in answer.findings if finding.level == "high")


def _ones(folder: Path) -> None:
    made = recipe()
    for name, (dtype, shape, *_) in made.tensors.items():
        if name.endswith(".input_scale"):
            made.tensors[name] = (dtype, shape, scalar(dtype, 1.0))
    write_safetensors(folder / "model.safetensors", made.tensors)


def _one_left(folder: Path) -> None:
    made = recipe()
    made.tensors["model.layers.0.mlp.up_proj.weight"] = ("BF16", (256, 128))
    write_safetensors(folder / "model.safetensors", made.tensors)


def _head_quantized(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", recipe(exclude=()).tensors)


def _no_scale(folder: Path) -> None:
    made = recipe()
    del made.tensors["model.layers.0.mlp.up_proj.weight_scale"]
    write_safetensors(folder / "model.safetensors", made.tensors)


def _kv_scales_gone(folder: Path) -> None:
    made = recipe(kv=True).write(folder)
    write_safetensors(made / "model.safetensors", recipe().tensors)


def _overrides_ignored(folder: Path) -> None:
    recipe(overrides={"*down_proj": ("mxfp4", [])}).write(folder)


def _stale_index(folder: Path) -> None:
    index = {"metadata": {}, "weight_map": {"a.weight": "model-00001-of-00003.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _index_is_a_pipe(folder: Path) -> None:
    os.mkfifo(folder / "model.safetensors.index.json")


def _twice(folder: Path) -> None:
    shutil.copy(folder / "model.safetensors", folder / "other.safetensors")


def _unnumbered(folder: Path) -> None:
    shutil.rmtree(folder)
    sharded(folder)
    (folder / "model.safetensors.index.json").unlink()


PARTIAL: dict[str, tuple[Callable[[Path], None], str]] = {
    "all input scales 1.0": (_ones, "scales_calibrated"),
    "one module left": (_one_left, "count_matches"),
    "an excluded module quantized": (_head_quantized, "excludes_respected"),
    "a scale is missing": (_no_scale, "scales_present"),
    "KV scales are missing": (_kv_scales_gone, "kv_consistent"),
    "overrides ignored": (_overrides_ignored, "overrides_consistent"),
    "an index of an earlier run": (_stale_index, "index_matches"),
    "the index is a pipe": (_index_is_a_pipe, "index_matches"),
    "the same tensors twice": (_twice, "index_matches"),
    "shards without an index": (_unnumbered, "index_matches"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer_present"),
    "a tokenizer cut short": (lambda folder: (folder / "tokenizer.json").write_text('{"mod'), "tokenizer_present") ,
    "an empty tokenizer": (lambda folder: (folder / "tokenizer_config.json").write_text(""), "tokenizer_present"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PARTIAL)
def test_lesser_damage_is_partial_and_says_where(kind: str, tmp_path: Path) -> None:
    """P-99: a partial verdict names what is wrong."""
    damage, code = PARTIAL[kind]
    folder = recipe().write(tmp_path / "out")
    damage(folder)
    answer = verify_folder(folder)
    assert (answer.body["verdict"], answer.exit) == ("partial", 1)
    assert answers(answer)[code] is False
    assert code in [finding.code for finding in answer.findings]


@contextmanager
def unprivileged() -> Iterator[Path]:
    """A folder of our own and a process that may not read what its modes forbid, also when tests run as root."""
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        if root:
            os.seteuid(0)
        for entry in (folder, *folder.rglob("*")):
            entry.chmod(0o700)
        shutil.rmtree(folder)


def drop() -> None:
    if os.geteuid() == 0:
        os.seteuid(65534)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "."])
def test_what_may_not_be_read_is_unknown_and_not_failed(name: str) -> None:
    with unprivileged() as folder:
        recipe().write(folder / "out")
        (folder / "out").chmod(0o755)
        (folder / "out" / name).chmod(0)
        drop()
        answer = verify_folder(folder / "out")
    assert (answer.body["verdict"], answer.exit) == ("unknown", 1)
    assert False not in [
        answers(answer)[code] for code in ("weights_present", "headers_sound", "config_present", "scheme_matches")
    ]
    if name != "config.json":
        assert answer.body["quantized_modules"] is None
    assert any("ermission" in finding.evidence or "read" in finding.message for finding in answer.findings)


def test_names_that_try_the_terminal_stay_harmless(tmp_path: Path) -> None:
    made = recipe()
    name = "model.layers.0.mlp.\x1b]52;c;eA==\x07evil\ud800_proj"
    made.tensors[f"{name}.weight"] = ("BF16", (8, 8))
    made.quantization["exclude"].append("\x1b[2J*\u202e")
    folder = made.write(tmp_path / "out")
    (folder / "\x1b[31mtokenizer.tiktoken").write_text("x")
    answer = verify_folder(folder)
    spoken = [text for check in answer.body["checks"] for text in (check["message"], check["evidence"])]
    spoken += [text for finding in answer.findings for text in finding.to_json().values()]
    assert answers(answer)["count_matches"] is False
    for text in spoken:
        assert not set(text) & {"\x1b", "\x07", "\ud800", "\u202e"}
    json.dumps(answer.to_json())


def test_many_experts_are_judged_in_one_pass(tmp_path: Path) -> None:
    """Every expert's name in exclude, as real exports have it: still one look at each module."""
    linears = {f"model.layers.{n}.mlp.experts.{e}.up_proj": (8, 32) for n in range(20) for e in range(100)}
    kept = tuple(list(linears)[:1500])
    made = recipe("mxfp4", linears=linears, exclude=kept)
    answer = verify_folder(made.write(tmp_path / "out"))
    assert (answer.body["verdict"], answer.body["quantized_modules"], answer.body["expected_modules"]) == (
        "verified",
        500,
        500,
    )


def test_any_cut_of_a_weight_file_gives_a_verdict(tmp_path: Path) -> None:
    folder = recipe(linears={"model.layers.0.mlp.up_proj": (8, 8)}).write(tmp_path / "out")
    raw = to_bytes(recipe(linears={"model.layers.0.mlp.up_proj": (8, 8)}).tensors)
    for length in [0, 1, 7, 8, 9, *range(10, len(raw), 311)]:
        (folder / "model.safetensors").write_bytes(raw[:length])
        assert verify_folder(folder).body["verdict"] == "failed"
