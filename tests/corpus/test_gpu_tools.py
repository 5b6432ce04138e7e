"""Recorded sysfs trees and tool failures, where they are at hand, each with what is right to conclude from it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from quark_tui.io import gpus
from quark_tui.io.capture import Captured


@pytest.fixture(scope="module")
def recorded() -> Path:
    default = Path(__file__).parents[2].parent / "shared"
    folder = Path(os.environ.get("QUARK_TUI_SHARED", default)) / "data/gpu"
    if not folder.is_dir():
        pytest.skip(f"no recorded GPU tool outputs: {folder} is absent (QUARK_TUI_SHARED names another folder)")
    return folder


def _meta(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "meta.json").read_text(encoding="utf-8"))


def test_compute_nodes(recorded: Path, tmp_path: Path) -> None:
    count = 0
    for folder in sorted(recorded.glob("sysfs-kfd__*")):
        expected = _meta(folder)["expected"]
        answer = gpus.look({"PATH": str(tmp_path)}, folder / "tree")
        assert answer["gpu_verdict"] == expected["verdict"], folder.name
        assert len(answer["gpus"]) == len(expected["gpus"]), folder.name
        for gpu, right in zip(answer["gpus"], expected["gpus"], strict=True):
            assert gpu["vendor"] == right.get("vendor", gpu["vendor"]), folder.name
            assert gpu["arch"] in (right.get("arch"), None), folder.name
        count += 1
    print(f"{count} trees of compute nodes")
    assert count


def test_failures_of_nvidia_smi(recorded: Path) -> None:
    count = 0
    for folder in sorted(recorded.glob("nvidia-smi__*")):
        meta = _meta(folder)
        right = meta["expected"]["verdict"]
        if right in (None, "gpus") or meta["rc"] == 127:
            continue
        streams = [(folder / name).read_bytes() if (folder / name).exists() else b"" for name in ("stdout", "stderr")]
        verdict = gpus.read_nvidia(Captured(meta["rc"], *streams))["gpu_verdict"]
        assert verdict in (right, *(meta["expected"].get("also_acceptable") or ())), folder.name
        count += 1
    print(f"{count} failures of nvidia-smi")
    assert count
