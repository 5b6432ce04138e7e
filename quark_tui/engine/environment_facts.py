"""What follows from what an interpreter and a machine answered: build of torch, requirements, masks, compute mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.markers import InvalidMarker, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from quark_tui.core.text import clean
from quark_tui.io import gpus as gpu_io
from quark_tui.io.target import Target

#: PyTorch's oldest version that Quark supports.
TORCH_MINIMUM = Version("2.2")


def torch_version(target: Target) -> str | None:
    """torch's own statement (with its build tag), else its metadata's."""
    if target.torch and target.torch.version:
        return target.torch.version
    package = target.packages.get("torch")
    return package.version if package else None


def torch_backend(target: Target) -> str | None:
    """``rocm``, ``cuda`` or ``cpu`` from ``version.py``; ``unknown`` when it cannot be read; None without torch."""
    build = target.torch
    if build is None or build.version is None:
        return "unknown" if build or target.packages.get("torch") else None
    if build.hip:
        return "rocm"
    return "cuda" if build.cuda else "cpu"


def parsed(version: str | None) -> Version | None:
    """``version`` as PEP 440 reads it; None for none and for an odd one."""
    try:
        return Version(version) if version else None
    except InvalidVersion:
        return None


def requirements(target: Target) -> list[dict[str, Any]]:
    """``{name, specifier, installed, satisfied, from}`` of what the installed amd-quark asks for, and of torch.

    ``satisfied`` is None where it cannot be told. A line that cannot be read is left out.
    """
    version, torch = parsed(target.version), parsed(torch_version(target))
    found: list[dict[str, Any]] = []
    if target.quark_requires_python:
        fits = None
        if version:
            with contextlib.suppress(InvalidSpecifier):
                fits = SpecifierSet(target.quark_requires_python).contains(version, prereleases=True)
        found.append(_required("python", target.quark_requires_python, target.version, fits, "Requires-Python"))
    for wanted, name, installed in wanted_by_quark(target):
        there = parsed(installed)
        fits = wanted.specifier.contains(there, prereleases=True) if there else None
        if name != "torch":
            found.append(_required(name, str(wanted.specifier), installed, fits, "Requires-Dist"))
    fits = torch >= TORCH_MINIMUM if torch else None
    oldest = {"name": "torch", "specifier": f">={TORCH_MINIMUM}", "installed": torch_version(target)}
    return [*found, {**oldest, "satisfied": fits, "from": "the oldest PyTorch that Quark supports"}]


def _required(name: str, specifier: str, installed: str | None, fits: bool | None, line: str) -> dict[str, Any]:
    source = f"{line} of the installed amd-quark"
    return {
        "name": name,
        "specifier": clean(specifier) or "any version",
        "installed": None if installed is None else clean(installed),
        "satisfied": fits,
        "from": source,
    }


def wanted_by_quark(target: Target) -> Iterator[tuple[Requirement, str, str | None]]:
    """The requirements of amd-quark[cli] on packages that were looked for: line, name, installed version."""
    for line in target.quark_requires:
        try:
            wanted = Requirement(line)
            applies = wanted.marker is None or wanted.marker.evaluate(
                {"extra": "cli", "python_version": ".".join(target.version.split(".")[:2])}
            )
        except (InvalidRequirement, InvalidMarker, UndefinedEnvironmentName):
            continue
        name = canonicalize_name(wanted.name)
        if applies and name in target.packages:
            installed = target.packages[name]
            yield wanted, name, installed.version if installed else None


def masks(env: Mapping[str, str], seen: Mapping[str, Any]) -> dict[str, Any]:
    """``{applied, visible}``: variables that mask devices here, in the order in which they apply, and the physical
    indices that they leave (None when that cannot be told)."""
    vendors = {gpu["vendor"] for gpu in seen["gpus"]}
    vendor = vendors.pop() if len(vendors) == 1 else None
    hip = "HIP_VISIBLE_DEVICES" if "HIP_VISIBLE_DEVICES" in env else "CUDA_VISIBLE_DEVICES"
    order = ("CUDA_VISIBLE_DEVICES",) if vendor == "nvidia" else ("ROCR_VISIBLE_DEVICES", hip)
    applied = [name for name in order if name in env]
    known = seen["gpu_verdict"] in ("gpus", "no_gpu") and not (applied and vendor is None and seen["gpus"])
    visible = gpu_io.visible_indices(env, len(seen["gpus"]), vendor) if known else None
    return {"applied": applied, "visible": None if visible is None else list(visible)}


def build_conflict(target: Target, seen: Mapping[str, Any]) -> str:
    """In words, why torch's build cannot use the GPUs that were seen; empty when it can or when that is not known."""
    backend = torch_backend(target)
    vendors = {gpu["vendor"] for gpu in seen["gpus"]}
    if seen["gpu_verdict"] != "gpus" or not vendors or backend in (None, "unknown"):
        return ""
    if backend == "cpu":
        return "torch is a CPU build, although this host has GPUs."
    fitting = {"cuda": "nvidia", "rocm": "amd"}[str(backend)]
    if vendors.isdisjoint({fitting, None}):
        return f"torch is a {backend} build, but the GPUs here are {', '.join(sorted(str(v) for v in vendors))}."
    return ""


def compute(target: Target | None, seen: Mapping[str, Any], asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """``{mode, ready, reasons}``. CPU is never chosen here: a host without GPU is undecided until a person says so.

    ``asked`` are the runtime facts of torch, once it was asked. ``ready`` is None where only an operation on the GPU
    could tell, and that was not tried.
    """
    verdict = seen["gpu_verdict"]
    if target is None:
        return {"mode": "undecided", "ready": False, "reasons": ["no interpreter answers"]}
    reasons: list[str] = []
    backend = torch_backend(target)
    if backend is None:
        reasons.append("torch is not installed")
    if verdict == "no_gpu":
        reasons.append("no GPU was seen; running on the CPU is a choice that has to be made explicitly")
    elif verdict != "gpus":
        reasons.append(f"the GPUs are unclear: {clean(seen['evidence'])}")
    conflict = build_conflict(target, seen)
    if conflict:
        reasons.append(conflict)
    reached, done = (asked or {}).get("gpu_available"), (asked or {}).get("operation_ok")
    if not reasons and reached is False:
        reasons.append("torch reaches none of the GPUs that are here")
    if not reasons and done is False:
        reasons.append(f"torch cannot use the GPU: {clean((asked or {}).get('operation_error'))}")
    if reasons:
        return {"mode": "undecided", "ready": False, "reasons": reasons}
    if reached and done:
        return {"mode": "gpu", "ready": True, "reasons": ["a tensor operation succeeded on each device of torch"]}
    return {
        "mode": "gpu",
        "ready": None,
        "reasons": ["GPUs and a matching torch build are there; no operation was run on one, so it is not proven"],
    }
