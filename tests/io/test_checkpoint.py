"""Weight headers: what a shard says, and whether it can be believed."""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.model.headers import MAX_HEADER, Tensor, parse_header
from quark_tui.io.checkpoint import INDEX_NAME, decode, read_checkpoint, read_scalars, read_shard
from tests.support.models import llama, write_safetensors


def raw_file(path: Path, header: object, data: bytes = b"") -> Path:
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + data)
    return path


def entry(dtype: str, shape: list[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def test_a_sound_shard_is_read_with_its_header_digest(tmp_path: Path) -> None:
    """P-24: headers alone."""
    write_safetensors(tmp_path / "a.safetensors", llama())
    shard = read_shard(tmp_path / "a.safetensors")
    assert shard.problem == "" and set(shard.tensors) == set(llama())
    assert shard.header_sha256 is not None and len(shard.header_sha256) == 64
    assert shard.data_start + max(t.end for t in shard.tensors.values()) == shard.size


@pytest.mark.parametrize(
    ("header", "data", "said"),
    [
        ({"a": entry("F32", [2], 0, 8)}, b"1234", "cut short"),
        ({"a": entry("F32", [2], 0, 8)}, b"123456789", "1 bytes after"),
        ({"a": entry("F32", [2], 0, 4)}, b"1234", "4 bytes, its type and shape need 8"),
        ({"a": entry("F32", [1], 4, 8)}, b"12345678", "hole"),
        ({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 0, 4)}, b"1234", "overlaps"),
        ({"a": entry("F32", [1], 4, 0)}, b"1234", "ends before"),
        ({"a": entry("F32", [-1], 0, 4)}, b"1234", "malformed"),
        ({"a": {"dtype": "F32"}}, b"", "malformed"),
        ({"a": {"dtype": 1, "shape": [1], "data_offsets": [0, 4]}}, b"1234", "malformed"),
        ({"a": entry("F32", [True], 0, 4)}, b"1234", "malformed"),
        ([1], b"", "no JSON object"),
    ],
)
def test_headers_that_contradict_themselves_are_told(tmp_path: Path, header: object, data: bytes, said: str) -> None:
    assert said in read_shard(raw_file(tmp_path / "a.safetensors", header, data)).problem


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "too few"),
        (struct.pack("<Q", MAX_HEADER + 1), "too long"),
        (struct.pack("<Q", 100) + b"{}", "cut short"),
        (struct.pack("<Q", 2) + b"{x", "no JSON"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (struct.pack("<Q", 100_000) + b"[" * 100_000, "no JSON"),
    ],
)
def test_what_is_no_shard_is_told_and_never_raised(tmp_path: Path, raw: bytes, said: str) -> None:
    (tmp_path / "a.safetensors").write_bytes(raw)
    assert said in read_shard(tmp_path / "a.safetensors").problem


def test_pipes_and_missing_files_are_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.safetensors")
    assert read_shard(tmp_path / "p.safetensors").problem == "not a regular file"
    assert "cannot be read" in read_shard(tmp_path / "none.safetensors").problem


def test_index_and_shards_are_compared(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "a.safetensors", {"x.weight": (2, 2), "y.weight": (2, 2)})
    (tmp_path / INDEX_NAME).write_text(
        json.dumps({"weight_map": {"x.weight": "a.safetensors", "z.weight": "a.safetensors", "q": "b.safetensors"}})
    )
    said = " ".join(read_checkpoint(tmp_path).index_disagreements())
    assert "b.safetensors" in said and "z.weight" in said and "y.weight" in said


@pytest.mark.parametrize("text", ["{", "[]", '{"weight_map": {"a": 1}}', '{"weight_map": []}'])
def test_an_unusable_index_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / INDEX_NAME).write_text(text)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.index is None and checkpoint.index_problem


def test_other_formats_are_listed_and_optimizer_states_are_not(tmp_path: Path) -> None:
    for name in ("pytorch_model.bin", "x.GGUF", "optimizer.pt", "training_args.bin", "readme.md"):
        (tmp_path / name).write_bytes(b"123")
    assert read_checkpoint(tmp_path).other_weights == {"pytorch_model.bin": 3, "x.GGUF": 3}


def test_scalars_are_read_and_large_tensors_are_not(tmp_path: Path) -> None:
    data = struct.pack("<f", 0.5) + b"\x80\x3f" + bytes(400)
    header = {"s": entry("F32", [], 0, 4), "b": entry("BF16", [1], 4, 6), "big": entry("F32", [100], 6, 406)}
    raw_file(tmp_path / "a.safetensors", header, data)
    checkpoint = read_checkpoint(tmp_path)
    assert read_scalars(tmp_path, checkpoint, ["s", "b", "big", "none"]) == {"s": [0.5], "b": [1.0]}


@given(st.floats(width=16, allow_nan=False))
def test_half_precision_is_decoded_exactly(value: float) -> None:
    tensor = Tensor("t", "F16", (1,), 0, 2)
    assert decode(tensor, struct.pack("<e", value)) == [value]


@pytest.mark.parametrize(
    ("dtype", "byte", "value"),
    [("F8_E4M3", 0x38, 1.0), ("F8_E4M3", 0x7E, 448.0), ("F8_E4M3", 0x01, 2.0**-9), ("F8_E4M3", 0xB8, -1.0),
     ("F8_E5M2", 0x3C, 1.0), ("F8_E5M2", 0x7B, 57344.0), ("F8_E5M2", 0x7C, math.inf)],
)  # fmt: skip
def test_eight_bit_floats_are_decoded_by_their_formats(dtype: str, byte: int, value: float) -> None:
    assert decode(Tensor("t", dtype, (1,), 0, 1), bytes([byte])) == [value]


def test_what_cannot_be_decoded_is_none() -> None:
    assert decode(Tensor("t", "I32", (1,), 0, 4), b"1234") is None
    assert decode(Tensor("t", "F32", (1,), 0, 4), b"123") is None


@given(st.binary(max_size=300), st.integers(0, 1000))
def test_no_bytes_break_the_header_parser(raw: bytes, size: int) -> None:
    tensors, problem = parse_header(raw, size)
    assert problem or isinstance(tensors, dict)


@given(st.dictionaries(st.text(max_size=8), st.lists(st.integers(0, 5), max_size=3).map(tuple), max_size=6))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, shapes: dict[str, tuple[int, ...]]
) -> None:
    shapes.pop("__metadata__", None)
    path = tmp_path_factory.mktemp("shard") / "a.safetensors"
    write_safetensors(path, shapes)
    shard = read_shard(path)
    assert shard.problem == ""
    assert {name: tensor.shape for name, tensor in shard.tensors.items()} == shapes
