"""Bounded reads of logs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quark_tui.io.log import tail
from quark_tui.io.log.tail import read_range, read_tail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "output.log"
    path.write_bytes(b"one\ntwo\nthree\n")
    return path


def test_the_tail_begins_with_a_whole_line(log: Path) -> None:
    assert read_tail(log, 100).data == b"one\ntwo\nthree\n"
    assert read_tail(log, 8).data == b"three\n"
    piece = read_tail(log, 10)
    assert (piece.data, piece.start, piece.end, piece.size) == (b"two\nthree\n", 4, 14, 14)


def test_a_cut_line_that_is_all_there_is_is_kept(log: Path) -> None:
    assert read_tail(log, 3).data == b"ee\n"
    log.write_bytes(b"x" * 100)
    assert read_tail(log, 7).data == b"x" * 7
    assert read_tail(log, 7).start == 93


def test_without_whole_lines_the_cut_is_exact(log: Path) -> None:
    assert read_tail(log, 8, whole_lines=False).data == b"o\nthree\n"


def test_a_range_ends_with_the_file(log: Path) -> None:
    assert read_range(log, 4, 3).data == b"two"
    assert read_range(log, 8, 100).data == b"three\n"
    assert read_range(log, 100, 5).data == b""
    assert read_range(log, 2**70, 5).problem


def test_no_call_reads_more_than_the_limit(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "MAX_READ", 5)
    assert read_range(log, 0, 10**12).data == b"one\nt"
    assert read_tail(log, 10**12, whole_lines=False).data == b"hree\n"


def test_what_is_no_log_is_a_problem_and_never_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_tail(tmp_path / "pipe", 10).problem == "not a regular file"
    assert read_tail(tmp_path, 10).problem
    assert "No such file" in read_tail(tmp_path / "none", 10).problem
    assert read_tail("a\0b", 10).problem


def test_negative_numbers_are_refused(log: Path) -> None:
    with pytest.raises(ValueError, match="negative"):
        read_tail(log, -1)
    with pytest.raises(ValueError, match="negative"):
        read_range(log, -1, 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.integers(0, 70))
def test_the_tail_is_a_suffix_on_a_line_border(log: Path, raw: bytes, length: int) -> None:
    log.write_bytes(raw)
    piece = read_tail(log, length)
    assert raw[piece.start :] == piece.data
    assert len(piece.data) <= length
    border = piece.start == 0 or raw[piece.start - 1 : piece.start] == b"\n"
    assert border or b"\n" not in piece.data[:-1]
