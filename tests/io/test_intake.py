"""Reading a model's folder: what is refused, what is accepted with a note, and what is bounded."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.model.intake import examine, model_answer
from quark_tui.io import intake as reading
from quark_tui.io.intake import parse_json, read_json, read_model
from tests.support.models import LLAMA, llama, write_safetensors


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    (folder / "tokenizer.json").write_text("{}")
    write_safetensors(folder / "model.safetensors", llama())
    return folder


def test_a_sound_folder_is_read_whole_without_its_weights(model: Path) -> None:
    """P-23, P-24: names, sizes and headers of a local model."""
    source = read_model(model)
    assert source.directory == str(model)
    assert source.listing["model.safetensors"] == (model / "model.safetensors").stat().st_size
    assert source.checkpoint.sound and source.listing_complete
    assert source.files["config.json"].sha256 == hashlib.sha256((model / "config.json").read_bytes()).hexdigest()
    assert "tokenizer.json" not in source.files, "listed, not parsed"
    assert examine(source, None, False, None).linear_count == 15


def test_what_is_no_model_folder_is_a_wrong_question(tmp_path: Path) -> None:
    """P-23: directory and config.json must exist."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for path, said in [("none", "no such directory"), ("file", "not a directory"), ("empty", "no config.json")]:
        with pytest.raises(WrongQuestion, match=said):
            read_model(tmp_path / path)
    with pytest.raises(WrongQuestion):
        read_model(Path("a\0b"))


def test_onnx_is_refused_with_the_reason(tmp_path: Path) -> None:
    """P-03: .onnx input, as a file, alone in a folder, and beside a config.json."""
    (tmp_path / "model.onnx").write_bytes(b"x")
    for path in (tmp_path / "model.onnx", tmp_path):
        with pytest.raises(WrongQuestion, match="ONNX models are not its input"):
            read_model(path)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    with pytest.raises(WrongQuestion, match="ONNX"):
        read_model(tmp_path)


def test_an_onnx_file_beside_real_weights_does_no_harm(model: Path) -> None:
    (model / "extra.onnx").write_bytes(b"x")
    assert read_model(model).checkpoint.sound


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "is empty"),
        (b" \n", "white space"),
        (b"[1, 2]", "a list, not an object"),
        (b"null", "null, not an object"),
        (b'{"a": ', "no JSON"),
        ('{"a": 1}'.encode("utf-16"), r"offset 0.*UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), r"zero byte at offset 1"),
        ('{"a": "é"}'.encode("latin-1"), r"byte 0xe9 at offset 7"),
        (b"\xef\xbb\xbf" + '{"a": "é"}'.encode("latin-1"), r"byte 0xe9 at offset 10"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "too many digits"),
        (b'{"\x1b[2J": }', "no JSON"),
    ],
)
def test_a_config_that_is_no_json_object_is_a_wrong_question(model: Path, raw: bytes, said: str) -> None:
    (model / "config.json").write_bytes(raw)
    with pytest.raises(WrongQuestion, match=said) as caught:
        read_model(model)
    assert str(caught.value).isprintable()
    assert "config.json" in str(caught.value)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"


def test_a_config_that_is_only_a_pointer_says_so(model: Path) -> None:
    """P-23, P-39: a clone without its large files."""
    (model / "config.json").write_bytes(POINTER)
    with pytest.raises(WrongQuestion, match="Git LFS pointer"):
        read_model(model)


def test_other_files_that_are_only_pointers_are_told(model: Path) -> None:
    """P-39: a tokenizer that is there by name alone."""
    for name in ("tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (model / name).write_bytes(POINTER)
    source = read_model(model)
    assert set(source.pointers) == {"tokenizer.json", "tokenizer_config.json", "model.safetensors"}
    found = {f.code: f for f in examine(source, None, False, None).findings}
    assert {"file_lfs_pointer", "file_unreadable", "weights_lfs_pointer"} <= set(found)
    assert found["file_lfs_pointer"].evidence == "tokenizer.json", "each is told once"


@pytest.mark.parametrize(
    ("name", "said"),
    [("adapter_config.json", "adapter"), ("model-Q4_K_M.gguf", "GGUF"), ("params.json", "Hugging Face's layout")],
)
def test_a_folder_of_another_kind_is_named_as_what_it_seems_to_be(tmp_path: Path, name: str, said: str) -> None:
    """P-23: no config.json, and what to do instead."""
    (tmp_path / name).write_text("{}")
    with pytest.raises(WrongQuestion, match=f"no config.json.*{said}"):
        read_model(tmp_path)


def test_a_key_given_twice_is_told_and_the_last_is_used(model: Path) -> None:
    """P-26: other readers may take the first."""
    text = json.dumps(LLAMA)[:-1] + ', "num_hidden_layers": 3, "x": {"\\u001b": 1, "\\u001b": 2}}'
    (model / "config.json").write_text(text)
    source = read_model(model)
    assert source.config["num_hidden_layers"] == 3
    assert "twice" in source.files["config.json"].note
    assert "file_note" in {f.code for f in examine(source, None, False, None).findings}


def test_an_index_that_is_only_a_pointer_or_names_no_text_is_a_disagreement(model: Path) -> None:
    """P-39: the folder is not taken for whole."""
    for raw in (POINTER, b'{"weight_map": {"a": 1}}'):
        (model / "model.safetensors.index.json").write_bytes(raw)
        intake = examine(read_model(model), None, False, None)
        assert "index_disagrees" in {f.code for f in intake.findings}
        assert not intake.inventory.known


def test_an_adapter_s_file_beside_the_model_is_not_read_as_its_weights(model: Path) -> None:
    """P-28: the count stays that of the model."""
    write_safetensors(model / "adapter_model.safetensors", {"base.x.lora_A.weight": (4, 8)})
    (model / "adapter_config.json").write_text("{}")
    intake = examine(read_model(model), None, False, None)
    assert intake.linear_count == 15
    assert {"adapter_beside", "weights_passed_by"} <= {f.code for f in intake.findings}


def test_a_byte_order_mark_is_accepted_with_a_note(model: Path) -> None:
    (model / "config.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())
    source = read_model(model)
    assert "byte order mark" in source.files["config.json"].note
    assert "file_note" in {f.code for f in examine(source, None, False, None).findings}


def test_nan_is_accepted_with_a_note_and_never_written(model: Path) -> None:
    (model / "config.json").write_text(json.dumps({**LLAMA, "hidden_size": float("nan"), "x": [float("inf")]}))
    source = read_model(model)
    assert "NaN" in source.files["config.json"].note
    intake = examine(source, None, False, None)
    json.dumps(model_answer(intake), allow_nan=False)
    assert intake.facts["hidden_size"].value is None


def test_other_files_may_be_damaged_and_are_told(model: Path) -> None:
    (model / "tokenizer_config.json").write_bytes(b"{")
    source = read_model(model)
    assert source.files["tokenizer_config.json"].problem
    assert "file_unreadable" in {f.code for f in examine(source, None, False, None).findings}


def test_too_large_files_are_not_read(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_JSON", 10)
    with pytest.raises(WrongQuestion, match="more than 10"):
        read_model(model)


def test_pipes_and_dangling_links_do_not_block_or_fail(model: Path) -> None:
    os.mkfifo(model / "generation_config.json")
    os.mkfifo(model / "model-2.safetensors")
    (model / "tokenizer_config.json").symlink_to("nowhere")
    source = read_model(model)
    assert "generation_config.json" not in source.files
    assert read_json(model / "generation_config.json").problem == "is not a regular file"


def test_python_files_are_digested_anywhere_but_not_behind_links(model: Path, tmp_path: Path) -> None:
    """P-27: the code that could run, by content."""
    (model / "sub").mkdir()
    (model / "sub" / "code.py").write_text("x = 1")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "far.py").write_text("x = 2")
    (model / "link").symlink_to(tmp_path / "outside")
    (model / "loop").symlink_to(model)
    (model / "linked.py").symlink_to(tmp_path / "outside" / "far.py")
    source = read_model(model)
    assert source.python_files == {
        "linked.py": hashlib.sha256(b"x = 2").hexdigest(),
        "sub/code.py": hashlib.sha256(b"x = 1").hexdigest(),
    }


def test_the_listing_is_bounded_and_says_so(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (model / "many").mkdir()
    for number in range(30):
        (model / "many" / f"{number}.py").write_text("")
    monkeypatch.setattr(reading, "MAX_ENTRIES", 20)
    source = read_model(model)
    assert not source.listing_complete and len(source.listing) <= 20
    assert "config.json" in source.listing, "the top of the folder comes first"
    assert "listing_cut" in {f.code for f in examine(source, None, False, None).findings}


def test_a_folder_of_links_as_the_hub_cache_has_it_is_read(model: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for file in model.iterdir():
        (snapshot / file.name).symlink_to(file)
    assert examine(read_model(snapshot), None, False, None).linear_count == 15


@pytest.mark.parametrize(
    ("prepare", "code"),
    [
        ("bin", "bin_only"),
        ("pointer", "weights_lfs_pointer"),
        ("cut", "weights_unsound"),
        ("index", "index_disagrees"),
        ("nothing", "weights_missing"),
        ("adapter", "adapter_only"),
        ("tokenizer", "tokenizer_missing"),
    ],
)
def test_what_is_missing_or_unsound_is_told(model: Path, prepare: str, code: str) -> None:
    """P-39: missing tokenizer, weights or their parts are structured risks."""
    weights = model / "model.safetensors"
    if prepare == "bin":
        weights.unlink()
        (model / "pytorch_model.bin").write_bytes(b"PK")
    elif prepare == "pointer":
        weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    elif prepare == "cut":
        weights.write_bytes(weights.read_bytes()[:-5])
    elif prepare == "index":
        index = {"weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors"}}
        (model / "model.safetensors.index.json").write_text(json.dumps(index))
    elif prepare == "nothing":
        weights.unlink()
    elif prepare == "adapter":
        weights.unlink()
        (model / "adapter_config.json").write_text("{}")
    else:
        (model / "tokenizer.json").unlink()
    found = {f.code: f for f in examine(read_model(model), None, False, None).findings}
    assert code in found
    assert found[code].next_step


def test_a_sound_model_has_none_of_these(model: Path) -> None:
    assert {f.code for f in examine(read_model(model), None, False, None).findings} == {"template_unknown"}


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    data, problem, _ = parse_json(raw)
    assert problem == "" or data is None
