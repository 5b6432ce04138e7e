"""What ``stop`` puts on record, whatever lies where it writes; real files, no process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quark_tui.engine import stop
from quark_tui.io.runs.supervisor import sent_signals


def test_a_torn_last_line_does_not_swallow_the_record(tmp_path: Path) -> None:
    (tmp_path / "stops.jsonl").write_text('{"signal": "IN')
    stop._record(str(tmp_path), "INT")
    assert sent_signals(str(tmp_path)) == {"INT"}


@pytest.mark.parametrize("kind", ["fifo", "folder", "full"])
def test_a_file_that_takes_no_line_has_a_second_one(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "stops.jsonl"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\n" * (2 << 20))
    stop._record(str(tmp_path), "INT")
    stop._record(str(tmp_path), "TERM")
    assert sent_signals(str(tmp_path)) == {"INT", "TERM"}
    assert stop._can_record(str(tmp_path))


def test_where_nothing_can_be_recorded_it_is_told(tmp_path: Path) -> None:
    """Then the order INT, TERM, KILL cannot be asked for, and a run can still be ended."""
    for name in ("stops.jsonl", "stops.2.jsonl"):
        (tmp_path / name).mkdir()
    with pytest.raises(OSError):
        stop._record(str(tmp_path), "INT")
    assert not stop._can_record(str(tmp_path))
