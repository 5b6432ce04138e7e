"""Recorded lists of processes, where they are at hand, each with what is right to conclude from it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quark_tui.io import holders
from quark_tui.io.capture import Captured


@pytest.fixture(scope="module")
def recorded() -> Path:
    default = Path(__file__).parents[2].parent / "shared"
    folder = Path(os.environ.get("QUARK_TUI_SHARED", default)) / "data/gpu"
    if not folder.is_dir():
        pytest.skip(f"no recorded GPU tool outputs: {folder} is absent (QUARK_TUI_SHARED names another folder)")
    return folder


def test_processes_of_the_amd_tools(recorded: Path) -> None:
    count = 0
    for pattern, read in (
        ("amd-smi__process_json*", holders.read_amd_smi_processes),
        ("rocm-smi__showpids*", holders.read_rocm_smi_processes),
    ):
        for folder in sorted(recorded.glob(pattern)):
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            listed = read(Captured(meta["rc"], (folder / "stdout").read_bytes(), b""), 1)
            assert listed is not None and listed[0] is not None, folder.name
            right = {one["pid"]: one.get("memory_bytes") for one in meta["expected"]["processes"]}
            assert set(dict(listed[0])) <= set(right), folder.name
            assert bool(listed[0]) == bool(right), folder.name
            assert all(right[pid] in (None, memory) for pid, memory in listed[0]), folder.name
            count += 1
    print(f"{count} lists of processes")
    assert count
