"""The use case ``env``: the target interpreter, its packages, the GPUs and the host, with findings.

It reads and asks; it imports nothing of torch or Quark, installs nothing and changes nothing. What a look without torch
cannot know (whether an operation on the GPU succeeds) is None.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from packaging.markers import InvalidMarker, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding, block, blocks
from quark_tui.core.text import clean, human_duration, redact, redact_env
from quark_tui.io import gpus as gpu_io
from quark_tui.io import host
from quark_tui.io.target import SUPPORTED_MINORS, Target, TargetProblem, find_interpreter, probe

#: The variables that the install and the PTQ documents name, and those that mask devices on ROCm.
ENV_VARS = (
    "QUARK_ACCELERATOR",
    "PYTORCH_ROCM_ARCH",
    "QUARK_BUILD_DISABLE_JIT_FALLBACK",
    "HSA_OVERRIDE_GFX_VERSION",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "PYTORCH_HIP_ALLOC_CONF",
    "PIP_EXTRA_INDEX_URL",
)
#: What a PTQ run needs, and the smallest install that brings it. torch has no line of pip that fits every machine.
NEEDED = {
    "torch": "the PyTorch build that matches the accelerator, from PyTorch's own index",
    "amd-quark": 'pip install "amd-quark[cli]"',
    "transformers": 'pip install "amd-quark[cli]", which asks for the versions that fit',
    "datasets": "pip install datasets",
    "accelerate": 'pip install "amd-quark[cli]", which asks for it',
}
PACKAGE_NAMES = ("amd-quark", "torch", "transformers", "datasets", "accelerate", "vllm")
_INTERPRETER = (
    "executable",
    "prefix",
    "base_prefix",
    "version",
    "supported",
    "is_venv",
    "externally_managed",
    "has_pip",
    "implementation",
    "platform",
    "machine",
)
#: PyTorch's oldest version that Quark supports.
TORCH_MINIMUM = Version("2.2")
#: From this version on the stock command fails on a host without GPU (run with 0.13; 0.12.post1 runs there).
QUARK_NEEDS_GPU = Version("0.13")


def environment(python: str | None, env: Mapping[str, str]) -> Answer:
    """The body of ``env`` for the interpreter ``python`` (a path or a name on PATH; None: the active one).

    Raises WrongQuestion when ``python`` names no file. Exit 1 when a finding blocks or no interpreter answers.
    """
    found: list[Finding] = []
    target: Target | None = None
    try:
        path = find_interpreter(env)[0] if python is None else resolve_interpreter(python, env)
        target = probe(path, env)
    except TargetProblem as problem:
        found.append(
            block(
                "interpreter_unusable",
                problem.message,
                problem.evidence,
                "Name the interpreter of the environment that has amd-quark: --python PATH.",
            )
        )
    seen = gpu_io.look(env)
    tools = host.tools(env)
    if target is not None:
        found += python_findings(target)
        found += package_findings(target)
        found += tool_findings(target, tools)
        found += lock_findings(target, host.build_locks(env))
        found += gpu_findings(target, seen)
    body = {
        "interpreter": _interpreter(target),
        "packages": _packages(target),
        "torch": _torch(target),
        "gpus": seen["gpus"],
        "gpu_verdict": seen["gpu_verdict"],
        "gpu_evidence": seen["evidence"],
        "driver": seen["driver"],
        "kernel": host.kernel(),
        "container": host.container(env),
        "env_vars": redact_env(env, ENV_VARS),
        "tools": tools,
        "quark_cli": target.quark_cli if target else None,
        "compute": compute(target, seen),
    }
    return Answer("env", body, tuple(found), 1 if blocks(found) else 0)


def resolve_interpreter(python: str, env: Mapping[str, str]) -> str:
    """What a person typed as an absolute path, links kept; a folder means the ``bin/python`` in it.

    Raises WrongQuestion when there is no such file.
    """
    if "://" in python:
        raise WrongQuestion(f"{redact(clean(python))} is a URL; the path of an interpreter is wanted")
    if "\0" in python or not python:
        raise WrongQuestion("the interpreter's path is empty or no path")
    if os.sep not in python and not os.path.lexists(python):
        on_path = shutil.which(python, path=env.get("PATH", os.defpath))
        if on_path is None:
            raise WrongQuestion(f"no such interpreter on PATH: {clean(python)}")
        return os.path.abspath(on_path)
    path = os.path.abspath(os.path.expanduser(python))
    if os.path.isdir(path):
        path = os.path.join(path, "bin", "python")
    if not os.path.lexists(path):
        raise WrongQuestion(f"no such interpreter: {clean(path)}")
    return path


def _interpreter(target: Target | None) -> dict[str, Any]:
    return {name: getattr(target, name) if target else None for name in _INTERPRETER} | {
        "site_packages": list(target.site_packages) if target else None
    }


def _packages(target: Target | None) -> dict[str, Any]:
    if target is None:
        return dict.fromkeys(PACKAGE_NAMES)
    return {name: package.to_json() if package else None for name, package in target.packages.items()}


def _torch(target: Target | None) -> dict[str, Any]:
    unknown = dict.fromkeys(
        ("gpu_available", "device_count", "device_names", "operation_ok", "operation_error"),
    )
    build = target.torch if target else None
    return {
        "version": torch_version(target) if target else None,
        "backend": torch_backend(target) if target else None,
        "cuda": build.cuda if build else None,
        "hip": build.hip if build else None,
        **unknown,
    }


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


def _who(target: Target) -> str:
    return clean(target.executable or target.asked)


def _parsed(version: str | None) -> Version | None:
    try:
        return Version(version) if version else None
    except InvalidVersion:
        return None


def python_findings(target: Target) -> list[Finding]:
    """Whether Quark runs on this Python: by the installed amd-quark's own Requires-Python where it is known."""
    evidence = f"3.{SUPPORTED_MINORS[0]} to 3.{SUPPORTED_MINORS[-1]} are supported"
    fits = target.supported
    version = _parsed(target.version)
    if target.quark_requires_python and version:
        try:
            fits = SpecifierSet(target.quark_requires_python).contains(version, prereleases=True)
            evidence = f"Requires-Python of the installed amd-quark: {clean(target.quark_requires_python)}"
        except InvalidSpecifier:
            pass
    if fits:
        return []
    return [
        block(
            "python_unsupported",
            f"{_who(target)} is Python {clean(target.version)}, which Quark does not support.",
            evidence,
            "Choose an interpreter of a supported version: --python PATH.",
        )
    ]


def package_findings(target: Target) -> list[Finding]:
    """Packages that are missing, too old, or other than the installed amd-quark asks for; nothing is installed."""
    found: list[Finding] = []
    for name, install in NEEDED.items():
        if target.packages.get(name) is None:
            found.append(
                Finding(
                    "high",
                    "package_missing",
                    f"{_who(target)} has no {name}: another environment than the one meant, or it is not installed.",
                    f"no metadata of {name} on this interpreter's search path",
                    f"If it is the right one, the smallest install: {install}. Nothing is installed by itself.",
                )
            )
    torch = _parsed(torch_version(target))
    if torch and torch < TORCH_MINIMUM:
        found.append(
            block(
                "torch_too_old",
                f"torch {torch} is older than {TORCH_MINIMUM}, which Quark needs.",
                f"torch of {_who(target)}",
                "Install a newer PyTorch build that matches the accelerator.",
            )
        )
    if target.packages.get("amd-quark") is not None:
        found += _requirement_findings(target)
        if target.quark_cli is None:
            found.append(
                Finding(
                    "high",
                    "quark_cli_missing",
                    "The environment that provides amd-quark has no quark-cli that can be run.",
                    f"looked for the console script of amd-quark for {_who(target)}",
                    'Check that amd-quark[cli] is what is installed there; pip install "amd-quark[cli]" brings it.',
                )
            )
    return found


def _requirement_findings(target: Target) -> list[Finding]:
    """Installed packages whose version the installed amd-quark's own ``[cli]`` requirements exclude."""
    found: list[Finding] = []
    quark = target.packages.get("amd-quark")
    for line in target.quark_requires:
        try:
            wanted = Requirement(line)
            applies = wanted.marker is None or wanted.marker.evaluate(
                {"extra": "cli", "python_version": ".".join(target.version.split(".")[:2])}
            )
        except (InvalidRequirement, InvalidMarker, UndefinedEnvironmentName):
            continue
        installed = target.packages.get(canonicalize_name(wanted.name))
        version = _parsed(installed.version) if installed else None
        if not applies or version is None or wanted.specifier.contains(version, prereleases=True):
            continue
        name = canonicalize_name(wanted.name)
        found.append(
            Finding(
                "high",
                f"{name.replace('-', '_')}_outside_range",
                f"{name} {version} is installed; amd-quark[cli] {clean(quark.version if quark else '')} asks for "
                f"{name}{wanted.specifier}.",
                "Requires-Dist of the installed amd-quark",
                f"A version within {wanted.specifier} is the smallest change; nothing is changed by itself.",
            )
        )
    return found


def tool_findings(target: Target, tools: Mapping[str, str | None]) -> list[Finding]:
    """What compiling Quark's kernels on first use would lack; the universal wheel brings them as source only."""
    found: list[Finding] = []
    if tools.get("g++") is None:
        found.append(
            Finding(
                "medium",
                "compiler_missing",
                "There is no g++ on PATH; Quark compiles a helper on first use and stops without it.",
                "measured with amd-quark 0.12.post1 and 0.13, whose wheels hold no compiled helper",
                "Install a C++ compiler, unless the helper is already in the extensions folder.",
            )
        )
    if tools.get("ninja") is None:
        beside = os.path.join(target.prefix, "bin", "ninja")
        there = os.access(beside, os.X_OK)
        found.append(
            Finding(
                "medium",
                "ninja_missing",
                "ninja is in the target environment but not on PATH, where torch looks for it at every start."
                if there
                else "There is no ninja on PATH; torch needs it to compile Quark's helper on first use.",
                clean(beside) if there else "PATH",
                "Put the environment's bin folder on PATH for the run."
                if there
                else "ninja is a requirement of amd-quark: check that its installation is complete.",
            )
        )
    return found


def lock_findings(target: Target, locks: tuple[host.BuildLock, ...]) -> list[Finding]:
    """Lock files of an extension build, for a torch that would wait for them to go away."""
    if target.torch is None or target.torch.lock_file_blocks is False:
        return []
    return [
        Finding(
            "high",
            "extension_lock",
            f"A lock file of a build, {human_duration(lock.age_seconds)} old: a start waits for it silently.",
            clean(lock.path),
            "If no build is running now, remove that file. It is never removed by itself.",
        )
        for lock in locks
    ]


def gpu_findings(target: Target, seen: Mapping[str, Any]) -> list[Finding]:
    """Where the installed Quark, torch's build and the GPUs of the host do not go together."""
    found: list[Finding] = []
    quark = target.packages.get("amd-quark")
    version = _parsed(quark.version) if quark else None
    if seen["gpu_verdict"] == "no_gpu" and version and version >= QUARK_NEEDS_GPU:
        found.append(
            block(
                "quark_needs_gpu",
                f"amd-quark {version} fails on a host without GPU: it offloads all weights to disk and stops.",
                f"{clean(seen['evidence'])}; run with 0.13 on such a host",
                'Use a host with a GPU, or an environment with "amd-quark[cli]==0.12.post1", which runs on a CPU.',
            )
        )
    conflict = _conflict(target, seen)
    if conflict:
        found.append(
            Finding(
                "high",
                "torch_gpu_mismatch",
                conflict,
                f"torch {clean(torch_version(target) or 'unknown')}; {clean(seen['evidence'])}",
                "Install the PyTorch build that matches the GPUs, or choose CPU mode explicitly.",
            )
        )
    return found


def _conflict(target: Target, seen: Mapping[str, Any]) -> str:
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


def compute(target: Target | None, seen: Mapping[str, Any]) -> dict[str, Any]:
    """``{mode, ready, reasons}``. CPU is never chosen here: a host without GPU is undecided until a person says so.

    ``ready`` is None where only an operation on the GPU could tell, and that was not tried.
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
    conflict = _conflict(target, seen)
    if conflict:
        reasons.append(conflict)
    if reasons:
        return {"mode": "undecided", "ready": False, "reasons": reasons}
    return {
        "mode": "gpu",
        "ready": None,
        "reasons": ["GPUs and a matching torch build are there; no operation was run on one, so it is not proven"],
    }
