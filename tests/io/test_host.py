"""What breaks if this is wrong: a start that hangs for ever, or a container that is said to be a bare host."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from quark_tui.io import host


def _file(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_container_is_known_by_its_marks_and_nothing_else_is_claimed(tmp_path: Path) -> None:
    """P-11: the image is recorded where it can be found, and unknown is unknown."""
    assert host.container({}, tmp_path)["inside"] is None
    _file(tmp_path / "proc/1/comm", "systemd\n")
    assert host.container({}, tmp_path)["inside"] is False
    assert host.container({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)["inside"] is True
    _file(tmp_path / "proc/1/cgroup", "0::/kubepods.slice/x\n")
    assert host.container({}, tmp_path)["inside"] is True
    _file(tmp_path / "run/.containerenv", 'engine="podman"\nimage="rocm/pytorch:7.2"\n')
    assert host.container({}, tmp_path) == {
        "inside": True,
        "image": "rocm/pytorch:7.2",
        "evidence": "/run/.containerenv",
    }


def test_tools_are_looked_for_on_the_given_path_and_in_their_home(tmp_path: Path) -> None:
    for name in ("bin/g++", "cuda/bin/nvcc"):
        tool = _file(tmp_path / name, "#!/bin/sh\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    env = {"PATH": str(tmp_path / "bin"), "CUDA_HOME": str(tmp_path / "cuda"), "ROCM_PATH": str(tmp_path)}
    assert host.tools(env) == {
        "g++": str(tmp_path / "bin/g++"),
        "ninja": None,
        "hipcc": None,
        "nvcc": str(tmp_path / "cuda/bin/nvcc"),
    }


def test_left_build_locks_are_found_in_both_layouts_with_their_age(tmp_path: Path) -> None:
    default = _file(tmp_path / ".cache/torch_extensions/py311_cu130/quark_custom_ops_stable_abi/lock")
    _file(tmp_path / ".cache/torch_extensions/py311_cu130/flash_attn/lock")
    os.utime(default, (1000, 1000))
    (lock,) = host.build_locks({"HOME": str(tmp_path)}, now=4600)
    assert (lock.path, lock.age_seconds) == (str(default), 3600)
    own = _file(tmp_path / "own/quark_hw_emulation_stable_abi/lock")
    named = {"HOME": str(tmp_path), "TORCH_EXTENSIONS_DIR": str(tmp_path / "own")}
    assert [lock.path for lock in host.build_locks(named)] == [str(own)]
    assert host.build_locks({}) == ()
