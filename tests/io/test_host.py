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


def test_the_owner_of_a_lock_is_whoever_has_it_open(tmp_path: Path) -> None:
    """Alive is what is seen; stale only where everybody who could hold it is seen."""
    lock = _file(tmp_path / "quark_x/lock")
    with lock.open():
        owner = host.lock_owner(str(lock))
        assert (owner.state, owner.pids) == ("alive", (os.getpid(),))
    first = tmp_path / "first"
    (first / "proc/self/ns").mkdir(parents=True)
    (first / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    assert host.lock_owner(str(lock), first).state == "stale"
    _file(first / "proc/7/fd", "no folder, so that listing it fails")
    assert host.lock_owner(str(lock), first).state == "unknown"
    other = tmp_path / "other"
    (other / "proc/self/ns").mkdir(parents=True)
    (other / "proc/self/ns/pid").symlink_to("pid:[1]")
    assert host.lock_owner(str(lock), other).state == "unknown"
    assert host.lock_owner(str(tmp_path / "gone"), first).state == "unknown"


def test_device_files_are_looked_at_and_not_opened(tmp_path: Path) -> None:
    """P-11: whether this user may use the devices that a container or a group decides about."""
    for name in ("kfd", "dri/renderD128", "dri/card0", "nvidia0", "nvidia-caps", "nvidiactl"):
        _file(tmp_path / "dev" / name)
    os.mkfifo(tmp_path / "dev/nvidia1")
    assert [(one["path"], one["accessible"]) for one in host.device_files(tmp_path)] == [
        ("/dev/kfd", True),
        ("/dev/dri/renderD128", True),
        ("/dev/nvidiactl", True),
        ("/dev/nvidia0", True),
        ("/dev/nvidia1", True),
    ]


def test_memory_is_that_of_the_machine(tmp_path: Path) -> None:
    """P-06: what is available, in bytes; unknown where the kernel does not say."""
    assert host.memory(tmp_path) == {"total": None, "available": None}
    _file(tmp_path / "proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n")
    assert host.memory(tmp_path) == {"total": 1_024_000, "available": 614_400}


def test_compiled_extensions_are_found_beside_their_locks(tmp_path: Path) -> None:
    built = _file(tmp_path / ".cache/torch_extensions/py311_cu130/quark_x/quark_x.so")
    _file(tmp_path / ".cache/torch_extensions/py311_cu130/other/other.so")
    assert host.built_extensions({"HOME": str(tmp_path)}) == (str(built),)
    assert host.built_extensions({}) == ()


def test_the_caches_of_hugging_face_are_found_by_their_variables(tmp_path: Path) -> None:
    """A folder without a snapshot holds nothing; both caches count; a credential in the endpoint is not shown."""
    _file(tmp_path / "hub/datasets--Salesforce--wikitext/snapshots/abc/x.parquet")
    _file(tmp_path / "hub/datasets--empty--one/refs/main")
    _file(tmp_path / "own/abisee___cnn_dailymail/3.0.0/x.arrow")
    env = {"HF_HOME": str(tmp_path), "HF_DATASETS_CACHE": str(tmp_path / "own"), "HF_HUB_OFFLINE": "1"}
    found = host.hub({**env, "HF_ENDPOINT": "https://user:secret@mirror.example"})
    assert found["cached_datasets"] == ["Salesforce/wikitext", "abisee/cnn_dailymail"]
    assert found["offline"] == ["HF_HUB_OFFLINE"]
    assert "secret" not in str(found)
    assert host.hub({"HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"})["offline"] == []
    assert host.hub({"HOME": "/h", "XDG_CACHE_HOME": "/c"})["hub_cache"] == "/c/huggingface/hub"
