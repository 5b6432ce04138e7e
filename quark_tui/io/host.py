"""Facts about this machine that a run depends on: kernel, container, build tools, locks that an ended build left."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quark_tui.core.text import clean, redact
from quark_tui.io.holders import who_has_open
from quark_tui.io.runs.reading import filesystem

_CGROUP = re.compile(r"docker|kubepods|containerd|libpod|lxc|garden|buildkit", re.IGNORECASE)
#: Folders that compilers of GPU code are installed in when they are not on PATH; the variable that moves each.
_TOOL_HOMES = {"hipcc": ("ROCM_PATH", "/opt/rocm"), "nvcc": ("CUDA_HOME", "/usr/local/cuda")}


@dataclass(frozen=True, slots=True)
class BuildLock:
    """A lock file in a compiled-extensions folder; ``age_seconds`` since it was written."""

    path: str
    age_seconds: float


@dataclass(frozen=True, slots=True)
class LockOwner:
    """Whether the process that made a lock file lives: ``alive`` (``pids``), ``stale`` or ``unknown``, and why."""

    state: str
    pids: tuple[int, ...]
    evidence: str

    def to_json(self) -> dict[str, Any]:
        return {"state": self.state, "pids": list(self.pids), "evidence": self.evidence}


def kernel() -> str:
    """System, release and machine, for example ``Linux 6.1.0 x86_64``."""
    name = os.uname()
    return clean(f"{name.sysname} {name.release} {name.machine}")


def container(env: Mapping[str, str], root: Path = Path("/")) -> dict[str, Any]:
    """``{inside, image, evidence}``. ``inside`` is None when nothing says either way; ``image`` None when unknown."""
    if (root / "run/.containerenv").is_file():
        text = _text(root / "run/.containerenv")
        named = re.search(r'^image="([^"\n]+)"', text, re.MULTILINE)
        return {"inside": True, "image": clean(named[1]) if named else None, "evidence": "/run/.containerenv"}
    for mark in (".dockerenv", "run/systemd/container"):
        if (root / mark).exists():
            return {"inside": True, "image": None, "evidence": f"/{mark}"}
    for name in ("KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "container"):
        if value := env.get(name):
            image = clean(value) if name.endswith("_CONTAINER") else None
            return {"inside": True, "image": image, "evidence": f"{name} is set"}
    found = _CGROUP.search(_text(root / "proc/1/cgroup"))
    if found:
        return {"inside": True, "image": None, "evidence": f"/proc/1/cgroup names {found[0]}"}
    first = _text(root / "proc/1/comm").strip()
    if first in ("systemd", "init"):
        return {"inside": False, "image": None, "evidence": f"process 1 is {first}, and no container's mark was found"}
    return {"inside": None, "image": None, "evidence": "no container's mark was found, process 1 is no known init"}


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(65536).decode("utf-8", "replace")
    except OSError:
        return ""


def tools(env: Mapping[str, str]) -> dict[str, str | None]:
    """Where g++, ninja, hipcc and nvcc are: on PATH, the GPU compilers also in their usual home; None if nowhere."""
    found: dict[str, str | None] = {}
    for name in ("g++", "ninja", "hipcc", "nvcc"):
        path = shutil.which(name, path=env.get("PATH", os.defpath))
        if path is None and name in _TOOL_HOMES:
            variable, home = _TOOL_HOMES[name]
            path = shutil.which(name, path=os.path.join(env.get(variable) or home, "bin"))
        found[name] = path
    return found


def extensions_folder(env: Mapping[str, str]) -> Path | None:
    """Where torch keeps compiled extensions: ``TORCH_EXTENSIONS_DIR``, else its folder below the user's cache."""
    if named := env.get("TORCH_EXTENSIONS_DIR"):
        return Path(named)
    cache = env.get("XDG_CACHE_HOME")
    home = env.get("HOME")
    if cache:
        return Path(cache, "torch_extensions")
    return Path(home, ".cache", "torch_extensions") if home else None


def build_locks(env: Mapping[str, str], now: float | None = None) -> tuple[BuildLock, ...]:
    """Lock files of Quark's extensions, oldest first. The default folder has a level per Python and CUDA version."""
    folder = extensions_folder(env)
    if folder is None:
        return ()
    moment = time.time() if now is None else now
    locks: list[BuildLock] = []
    for path in [*folder.glob("*quark*/lock"), *folder.glob("*/*quark*/lock")]:
        try:
            locks.append(BuildLock(str(path), max(0.0, moment - path.stat().st_mtime)))
        except OSError:
            continue
    return tuple(sorted(locks, key=lambda lock: -lock.age_seconds))


def lock_owner(path: str, root: Path = Path("/")) -> LockOwner:
    """Who has the lock file at ``path`` open: its maker keeps it open until the build is over.

    Nobody having it open proves that it was left only where every process that could would be seen: on a local
    filesystem, in the host's first pid namespace, with every process readable.
    """
    scan = who_has_open([re.compile(re.escape(os.path.realpath(path)))], root)
    pids = tuple(sorted({pid for found in scan.open_by.values() for pid in found}))
    if pids:
        return LockOwner("alive", pids, "/proc/*/fd: the file is open there")
    remote = filesystem(path)
    if remote is not None:
        return LockOwner("unknown", (), f"another host may hold it: its filesystem is {clean(remote)}")
    if not scan.complete:
        return LockOwner("unknown", (), "nobody was seen with it open, but not every process can be looked at")
    return LockOwner("stale", (), "/proc/*/fd: no process of this host has it open")


def built_extensions(env: Mapping[str, str]) -> tuple[str, ...]:
    """Compiled extensions of Quark that torch kept, in the layouts of :func:`build_locks`."""
    folder = extensions_folder(env)
    if folder is None:
        return ()
    return tuple(sorted(str(path) for path in [*folder.glob("*quark*/*.so"), *folder.glob("*/*quark*/*.so")]))


def device_files(root: Path = Path("/")) -> list[dict[str, Any]]:
    """``{path, accessible}`` of the device files that GPU programs open; ``accessible``: this user may read and write.

    Nothing is opened.
    """
    found: list[Path] = []
    for pattern in ("kfd", "dri/renderD*", "nvidiactl", "nvidia-uvm", "nvidia[0-9]*"):
        found += sorted((root / "dev").glob(pattern))
    return [{"path": f"/{path.relative_to(root)}", "accessible": os.access(path, os.R_OK | os.W_OK)} for path in found]


def memory(root: Path = Path("/")) -> dict[str, int | None]:
    """``{total, available}`` bytes of the machine by /proc/meminfo; a limit of a container is not in it."""
    text = _text(root / "proc/meminfo")
    answer: dict[str, int | None] = {}
    for name, key in (("total", "MemTotal"), ("available", "MemAvailable")):
        found = re.search(rf"^{key}:\s+(\d{{1,18}}) kB$", text, re.MULTILINE)
        answer[name] = int(found[1]) * 1024 if found else None
    return answer


def hub(env: Mapping[str, str]) -> dict[str, Any]:
    """``{hub_cache, datasets_cache, offline, endpoint, cached_datasets}``: where Hugging Face's libraries look.

    ``offline`` names the variables that forbid the network; ``cached_datasets`` are names (``owner/name``) that one of
    the two caches has a folder of, which does not prove that it is complete.
    """
    home = env.get("HF_HOME") or os.path.join(env.get("XDG_CACHE_HOME") or _home_cache(env), "huggingface")
    hub_cache = env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    datasets_cache = env.get("HF_DATASETS_CACHE") or os.path.join(home, "datasets")
    offline = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")
    names = {
        name.removeprefix("datasets--").replace("--", "/") for name in _names(hub_cache, "datasets--*/snapshots/*")
    }
    names |= {name.replace("___", "/") for name in _names(datasets_cache, "*___*/*")}
    return {
        "hub_cache": hub_cache,
        "datasets_cache": datasets_cache,
        "offline": [name for name in offline if env.get(name, "").upper() in ("1", "ON", "YES", "TRUE")],
        "endpoint": redact(env["HF_ENDPOINT"]) if env.get("HF_ENDPOINT") else None,
        "cached_datasets": sorted(clean(name) for name in names),
    }


def _home_cache(env: Mapping[str, str]) -> str:
    return os.path.join(env.get("HOME") or os.path.expanduser("~"), ".cache")


def _names(folder: str, pattern: str) -> set[str]:
    """First parts of what ``pattern`` matches below ``folder``."""
    try:
        return {path.relative_to(folder).parts[0] for path in Path(folder).glob(pattern)}
    except OSError:
        return set()
