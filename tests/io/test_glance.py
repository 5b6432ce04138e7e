"""What breaks if this is wrong: a list shows what a file said before, or is held up by something that is no file."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from quark_tui.io import atomic
from quark_tui.io.glance import Glance


@pytest.fixture
def counted() -> tuple[Glance[Any], list[Any]]:
    """A glance at the value of ``a``, and every value that it took from a file."""
    taken: list[Any] = []

    def pick(data: dict[str, Any]) -> Any:
        taken.append(data["a"])
        return data["a"]

    return Glance(pick, 1000), taken


def test_a_file_is_read_again_only_when_it_was_replaced(tmp_path: Path, counted: tuple[Glance[Any], list[Any]]) -> None:
    glance, taken = counted
    path = str(tmp_path / "one.json")
    for value in (1, 2, 3):
        atomic.write_json(path, {"a": value})  # the same size, in the same tick of the clock
        assert [glance(path), glance(path)] == [value, value]
    assert taken == [1, 2, 3]


def test_a_file_that_was_written_in_place_with_its_time_put_back_is_seen(
    tmp_path: Path, counted: tuple[Glance[Any], list[Any]]
) -> None:
    glance, _ = counted
    path = tmp_path / "one.json"
    path.write_text('{"a": 1}')
    info = path.stat()
    assert glance(str(path)) == 1
    while time.time_ns() - info.st_ctime_ns < 20_000_000:  # a tick of the kernel's clock has passed
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    path.write_text('{"a": 2}')
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert glance(str(path)) == 2


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"nonsense", b'{"a": ', b"\xff\xfe", b"[" * 900, b'{"a": 1}' + b" " * 1000]
)
def test_damage_is_an_error_each_time_and_never_an_old_value(
    tmp_path: Path, counted: tuple[Glance[Any], list[Any]], content: bytes
) -> None:
    glance, _ = counted
    path = tmp_path / "one.json"
    atomic.write_json(str(path), {"a": 1})
    assert glance(str(path)) == 1
    atomic.write_bytes(str(path), content)
    for _ in range(2):
        with pytest.raises(ValueError):
            glance(str(path))
    path.unlink()
    with pytest.raises(FileNotFoundError):
        glance(str(path))


def test_deep_nesting_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(ValueError):
        Glance(lambda data: data)(str(path))


@pytest.mark.parametrize("kind", ["fifo", "folder", "link to nothing"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError):
        Glance(json.dumps)(str(path))
