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

from quark_tui.core.text import clean

_CGROUP = re.compile(r"docker|kubepods|containerd|libpod|lxc|garden|buildkit", re.IGNORECASE)
#: Folders that compilers of GPU code are installed in when they are not on PATH; the variable that moves each.
_TOOL_HOMES = {"hipcc": ("ROCM_PATH", "/opt/rocm"), "nvcc": ("CUDA_HOME", "/usr/local/cuda")}


@dataclass(frozen=True, slots=True)
class BuildLock:
    """A lock file in a compiled-extensions folder; ``age_seconds`` since it was written."""

    path: str
    age_seconds: float


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
