"""The use case ``env``: the target interpreter, its packages, the GPUs and the host, with findings.

It reads and asks; it imports nothing of torch or Quark, installs nothing and changes nothing. What a look without torch
cannot know (whether an operation on the GPU succeeds) is None, until ``engine.torch_runtime`` asked.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.environment.readiness import Needs, readiness
from quark_tui.core.finding import Finding, block, blocks
from quark_tui.core.text import clean, human_duration, redact, redact_env
from quark_tui.engine.environment_facts import (
    TORCH_MINIMUM,
    build_conflict,
    masks,
    parsed,
    requirements,
    wanted_by_quark,
)
from quark_tui.engine.environment_facts import compute as compute
from quark_tui.engine.environment_facts import torch_backend as torch_backend
from quark_tui.engine.environment_facts import torch_version as torch_version
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
    "GPU_DEVICE_ORDINAL",
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
#: From this version on the stock command fails on a host without GPU (run with 0.13; 0.12.post1 runs there).
QUARK_NEEDS_GPU = Version("0.13")


#: Where each part of the answer was seen. ``gpus`` and their holders say it themselves.
SOURCES: Mapping[str, str] = {
    "interpreter": "the interpreter itself, asked in an empty folder with this environment",
    "packages": "metadata of the distributions on the interpreter's search path",
    "torch": "torch/version.py, read and not imported",
    "requirements": "Requires-Dist and Requires-Python of the installed amd-quark",
    "quark_cli": "the files of the distribution amd-quark, and the interpreter's scripts folder",
    "kernel": "uname",
    "memory": "/proc/meminfo",
    "env_vars": "this environment, which a run inherits",
    "masks": "ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES of this environment",
    "tools": "PATH, ROCM_PATH, CUDA_HOME and their usual homes",
    "target_tools": "the bin folder of the interpreter's prefix",
    "device_files": "/dev, looked at and not opened",
    "build_locks": "the folder of torch's compiled extensions",
    "built_extensions": "the folder of torch's compiled extensions",
    "hub": "HF_ variables and the caches that they name",
}


@dataclass(frozen=True, slots=True)
class Look:
    """One look at an interpreter (None: it did not answer) and at this machine, before torch is asked."""

    target: Target | None
    seen: Mapping[str, Any]
    body: Mapping[str, Any]
    findings: tuple[Finding, ...]

    def answer(self) -> Answer:
        """What ``env`` says of it."""
        return Answer("env", self.body, self.findings, 1 if blocks(self.findings) else 0)


def environment(python: str | None, env: Mapping[str, str]) -> Answer:
    """The body of ``env`` for the interpreter ``python`` (a path or a name on PATH; None: the active one).

    Raises WrongQuestion when ``python`` names no file. Exit 1 when a finding blocks or no interpreter answers.
    """
    return look(python, env).answer()


def look(python: str | None, env: Mapping[str, str]) -> Look:
    """Ask the interpreter and this machine; raises as :func:`environment` does. It takes well under a second."""
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
    return described(target, gpu_io.look(env), env, tuple(found))


def described(
    target: Target | None, seen: Mapping[str, Any], env: Mapping[str, str], found: tuple[Finding, ...] = ()
) -> Look:
    """The look of somebody who asked the interpreter and the GPUs already; ``found`` is what she found on the way."""
    findings = list(found)
    tools = host.tools(env)
    locks = host.build_locks(env)
    shown = masks(env, seen)
    if target is not None:
        findings += python_findings(target)
        findings += package_findings(target)
        findings += tool_findings(target, tools)
        findings += lock_findings(target, locks)
        findings += gpu_findings(target, seen)
    findings += mask_findings(env, shown)
    body: dict[str, Any] = {
        "interpreter": _interpreter(target),
        "packages": _packages(target),
        "torch": _torch(target),
        "torch_runtime": None,
        "requirements": requirements(target) if target else [],
        "gpus": seen["gpus"],
        "gpu_verdict": seen["gpu_verdict"],
        "gpu_evidence": seen["evidence"],
        "driver": seen["driver"],
        "kernel": host.kernel(),
        "container": host.container(env),
        "memory": host.memory(),
        "env_vars": redact_env(env, ENV_VARS),
        "masks": shown,
        "device_files": host.device_files(),
        "tools": tools,
        "target_tools": {"ninja": _beside(target, "ninja")},
        "build_locks": [_lock(target, lock) for lock in locks],
        "built_extensions": [clean(path) for path in host.built_extensions(env)],
        "hub": host.hub(env),
        "quark_cli": target.quark_cli if target else None,
        "compute": compute(target, seen),
        "sources": {**SOURCES, "gpus": clean(seen["evidence"])},
    }
    body["readiness"] = ready(body)
    return Look(target, seen, body, tuple(findings))


def ready(body: Mapping[str, Any], needs: Needs | None = None) -> list[dict[str, str]]:
    """The rows of :func:`quark_tui.core.environment.readiness.readiness` as plain values."""
    return [row.to_json() for row in readiness(body, needs)]


def _beside(target: Target | None, name: str) -> str | None:
    path = os.path.join(target.prefix, "bin", name) if target else ""
    return path if path and os.access(path, os.X_OK) else None


def _lock(target: Target | None, lock: host.BuildLock) -> dict[str, Any]:
    """``blocks``: whether a start waits for the mere file; None when that is not known of this torch."""
    return {
        "path": clean(lock.path),
        "age_seconds": lock.age_seconds,
        "blocks": target.torch.lock_file_blocks if target and target.torch else None,
        "owner": host.lock_owner(lock.path).to_json(),
    }


def mask_findings(env: Mapping[str, str], shown: Mapping[str, Any]) -> list[Finding]:
    """A mask within a mask: the second one numbers what the first one left, which is often meant otherwise."""
    applied, visible = shown["applied"], shown["visible"]
    if len(applied) < 2:
        return []
    first, second = applied
    left = "unknown" if visible is None else ", ".join(map(str, visible)) or "none"
    return [
        Finding(
            "high" if visible == [] else "medium",
            "masks_nested",
            f"{second} counts within what {first} leaves; physical devices that are left: {left}.",
            f"{first}={clean(env[first])}, {second}={clean(env[second])}",
            f"Unset one of them where physical indices were meant in {second}.",
        )
    ]


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


def _who(target: Target) -> str:
    return clean(target.executable or target.asked)


def python_findings(target: Target) -> list[Finding]:
    """Whether Quark runs on this Python: by the installed amd-quark's own Requires-Python where it is known."""
    evidence = f"3.{SUPPORTED_MINORS[0]} to 3.{SUPPORTED_MINORS[-1]} are supported"
    fits = target.supported
    version = parsed(target.version)
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
    torch = parsed(torch_version(target))
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
    for wanted, name, installed in wanted_by_quark(target):
        version = parsed(installed)
        if version is None or wanted.specifier.contains(version, prereleases=True):
            continue
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
    return [_lock_finding(lock, host.lock_owner(lock.path)) for lock in locks]


def _lock_finding(lock: host.BuildLock, owner: host.LockOwner) -> Finding:
    """A build that is running is waited for; only the file of one that ended has to go."""
    message = f"A lock file of a build, {human_duration(lock.age_seconds)} old: a start waits for it silently."
    evidence = f"{clean(lock.path)} ({owner.evidence})"
    if owner.state == "alive":
        step = f"A build is running: wait for pid {', '.join(map(str, owner.pids))}, and look again."
    elif owner.state == "stale":
        step = "The build that made it is gone: remove that file. It is never removed by itself."
    else:
        step = "If no build is running now, remove that file. It is never removed by itself."
    return Finding("high", "extension_lock", message, evidence, step)


def gpu_findings(target: Target, seen: Mapping[str, Any]) -> list[Finding]:
    """Where the installed Quark, torch's build and the GPUs of the host do not go together."""
    found: list[Finding] = []
    quark = target.packages.get("amd-quark")
    version = parsed(quark.version) if quark else None
    if seen["gpu_verdict"] == "no_gpu" and version and version >= QUARK_NEEDS_GPU:
        found.append(
            block(
                "quark_needs_gpu",
                f"amd-quark {version} fails on a host without GPU: it offloads all weights to disk and stops.",
                f"{clean(seen['evidence'])}; run with 0.13 on such a host",
                'Use a host with a GPU, or an environment with "amd-quark[cli]==0.12.post1", which runs on a CPU.',
            )
        )
    conflict = build_conflict(target, seen)
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
