"""The pinned requirements of the demonstration environment, and the key under which a built one is kept."""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).with_name("quark-cpu.lock")

#: What only the CUDA build of torch depends on; its CPU build needs none of it.
_CUDA_ONLY = ("nvidia-", "cuda-", "triton")
#: What exists as a CPU build on PyTorch's own index.
_FROM_PYTORCH = frozenset({"torch", "torchvision"})


def pins(text: str) -> tuple[Requirement, ...]:
    """The requirements of a lock file, comments and blank lines left out.

    Raises ValueError for a line that is no exact pin and for a name that is pinned twice for the same marker.
    """
    found: dict[tuple[str, str], Requirement] = {}
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        requirement = Requirement(line)
        operators = [specifier.operator for specifier in requirement.specifier]
        if operators != ["=="]:
            raise ValueError(f"not an exact pin: {line}")
        key = (canonicalize_name(requirement.name), str(requirement.marker or ""))
        if key in found:
            raise ValueError(f"pinned twice: {requirement.name}")
        found[key] = requirement
    return tuple(found.values())


def torch_pins(requirements: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """What is installed first, from PyTorch's own index where that is wanted."""
    return tuple(item for item in requirements if canonicalize_name(item.name) in _FROM_PYTORCH)


def without_cuda(requirements: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """The pins that a CPU build of torch leaves needed."""
    return tuple(item for item in requirements if not canonicalize_name(item.name).startswith(_CUDA_ONLY))


def target_key(text: str, version: tuple[int, int] | None = None, machine: str | None = None) -> str:
    """Sixteen hex digits that change with the lock file, with Python's minor version and with the machine type."""
    major, minor = version or (sys.version_info.major, sys.version_info.minor)
    content = "\0".join([text, f"{major}.{minor}", machine or platform.machine()])
    return hashlib.sha256(content.encode()).hexdigest()[:16]
