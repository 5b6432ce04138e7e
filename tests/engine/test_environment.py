"""What breaks if this is wrong: an environment is said to be ready, or not to be, against the facts."""

from __future__ import annotations

import os
import venv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.finding import Finding
from quark_tui.engine import environment as engine
from quark_tui.io.host import BuildLock
from quark_tui.io.target import Package, Target, TorchBuild

_NO_GPU: dict[str, Any] = {"gpus": [], "gpu_verdict": "no_gpu", "evidence": "none seen"}


def _gpus(vendor: str) -> dict[str, Any]:
    return {"gpus": [{"vendor": vendor}], "gpu_verdict": "gpus", "evidence": "seen"}


def _target(**changes: Any) -> Target:
    versions = {"amd-quark": "0.12.post1", "torch": "2.9.1", "transformers": "5.2.0", "datasets": "5.0"}
    packages: Mapping[str, Package | None] = {
        name: Package(version, "/env/lib") for name, version in {**versions, "accelerate": "1.9"}.items()
    }
    sound = Target(
        executable="/env/bin/python",
        prefix="/env",
        base_prefix="/usr",
        version="3.12.4",
        supported=True,
        is_venv=True,
        externally_managed=False,
        has_pip=True,
        site_packages=("/env/lib",),
        packages={**packages, "vllm": None},
        torch=TorchBuild("2.9.1+cpu", None, None, False, "/env/lib/torch/version.py", True),
        quark_cli="/env/bin/quark-cli",
        quark_root="/env/lib",
        quark_requires=('transformers<5.3,>5; extra == "cli"', "numpy>=2.0"),
        quark_requires_python=">=3.11,<3.14",
    )
    return replace(sound, **changes)


def _with(name: str, version: str | None) -> dict[str, Package | None]:
    return {**_target().packages, name: None if version is None else Package(version, "/env/lib")}


def _codes(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.code) for finding in findings]


def test_a_sound_target_has_no_findings() -> None:
    target = _target()
    found = engine.python_findings(target) + engine.package_findings(target) + engine.gpu_findings(target, _NO_GPU)
    assert found == []


def test_an_unsupported_python_blocks_by_the_installed_distribution_s_word() -> None:
    """P-09, I-23: the installed amd-quark decides where it is there, else the supported versions."""
    assert _codes(engine.python_findings(_target(version="3.10.2", supported=False))) == [
        ("block", "python_unsupported")
    ]
    assert (
        engine.python_findings(_target(version="3.14.0", supported=False, quark_requires_python=">=3.11,<3.15")) == []
    )
    bare = _target(version="3.14.0", supported=False, quark_requires_python=None)
    assert _codes(engine.python_findings(bare)) == [("block", "python_unsupported")]


@pytest.mark.parametrize("name", ["torch", "amd-quark", "transformers", "datasets", "accelerate"])
def test_a_missing_package_names_the_interpreter_first_and_installs_nothing(name: str) -> None:
    """P-09, P-20, P-111: the interpreter's path, the package, the smallest install."""
    (finding,) = engine.package_findings(
        _target(packages=_with(name, None), torch=None if name == "torch" else _target().torch)
    )
    assert finding.code == "package_missing"
    assert finding.message.startswith("/env/bin/python")
    assert name in finding.message
    assert "install" in finding.next_step


def test_a_torch_that_is_too_old_blocks_whatever_its_build_tag() -> None:
    """P-09, I-24: PyTorch 2.2 or newer."""
    for version, codes in (("2.1.2+cu121", [("block", "torch_too_old")]), ("2.2.0+cpu", []), ("2.14.1+cu130", [])):
        build = TorchBuild(version, None, None, False, "f")
        assert _codes(engine.package_findings(_target(torch=build))) == codes


def test_transformers_is_judged_by_the_installed_quark_s_own_range() -> None:
    """P-37, P-105: exact installed and required versions."""
    (finding,) = engine.package_findings(_target(packages=_with("transformers", "5.13.1")))
    assert finding.code == "transformers_outside_range"
    assert "5.13.1" in finding.message
    assert "<5.3" in finding.message
    wider = _target(packages=_with("transformers", "5.13.1"), quark_requires=('transformers<5.17,>5; extra == "cli"',))
    assert engine.package_findings(wider) == []


def test_odd_requirement_lines_and_versions_are_passed_over() -> None:
    lines = ("", "!!", "transformers", 'transformers<5; extra == "lint"', "transformers<5; nonsense == 'x'")
    target = _target(packages=_with("transformers", "not a version"), quark_requires=lines)
    assert engine.package_findings(target) == []
    assert engine.package_findings(_target(quark_requires=lines)) == []


def test_a_missing_command_is_its_own_finding() -> None:
    """P-113: amd-quark without its command."""
    assert _codes(engine.package_findings(_target(quark_cli=None))) == [("high", "quark_cli_missing")]


def test_quark_013_needs_a_gpu_and_012_does_not() -> None:
    for version, codes in (
        ("0.12.post1", []),
        ("0.13", [("block", "quark_needs_gpu")]),
        ("0.13.1+rocm", [("block", "quark_needs_gpu")]),
    ):
        target = _target(packages=_with("amd-quark", version))
        assert _codes(engine.gpu_findings(target, _NO_GPU)) == codes
    unclear = {"gpus": [], "gpu_verdict": "tool_error", "evidence": "odd"}
    assert engine.gpu_findings(_target(packages=_with("amd-quark", "0.13")), unclear) == []


@pytest.mark.parametrize(
    ("cuda", "hip", "vendor", "conflict"),
    [
        (None, None, "nvidia", True),
        ("13.0", None, "amd", True),
        ("13.0", None, "nvidia", False),
        (None, "7.2", "amd", False),
        (None, "7.2", "nvidia", True),
    ],
)
def test_torch_s_build_is_held_against_the_gpus(cuda: str | None, hip: str | None, vendor: str, conflict: bool) -> None:
    """P-19: a torch that cannot use the GPUs is a mismatch; the mode is not switched silently."""
    target = _target(torch=TorchBuild("2.9", cuda, hip, False, "f"))
    codes = [finding.code for finding in engine.gpu_findings(target, _gpus(vendor))]
    assert codes == (["torch_gpu_mismatch"] if conflict else [])
    mode = engine.compute(target, _gpus(vendor))
    assert (mode["mode"], mode["ready"]) == (("undecided", False) if conflict else ("gpu", None))


def test_cpu_is_never_chosen_for_a_person() -> None:
    """P-19: without a GPU the mode is undecided until it is chosen."""
    mode = engine.compute(_target(), _NO_GPU)
    assert (mode["mode"], mode["ready"]) == ("undecided", False)
    assert mode["reasons"]


def test_a_left_lock_matters_only_to_a_torch_that_waits_for_the_file() -> None:
    lock = BuildLock("/cache/quark_x/lock", 7200.0)
    (finding,) = engine.lock_findings(_target(), (lock,))
    assert finding.code == "extension_lock"
    assert "2 h" in finding.message
    flock = TorchBuild("2.14.1", None, None, False, "f", False)
    assert engine.lock_findings(_target(torch=flock), (lock,)) == []


def test_missing_build_tools_are_named(tmp_path: Path) -> None:
    present = {"g++": "/usr/bin/g++", "ninja": "/usr/bin/ninja"}
    assert engine.tool_findings(_target(), present) == []
    assert [f.code for f in engine.tool_findings(_target(), {})] == ["compiler_missing", "ninja_missing"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ninja").write_text("")
    (tmp_path / "bin/ninja").chmod(0o755)
    (finding,) = engine.tool_findings(_target(prefix=str(tmp_path)), {**present, "ninja": None})
    assert "not on PATH" in finding.message


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bare") / "env"
    venv.create(root, with_pip=False)
    return root


def test_the_whole_answer_for_a_bare_environment(bare: Path) -> None:
    """P-12, P-14, I-15: every key is there, unknown is None, and a secret is only set or unset."""
    env = {
        "PATH": os.environ["PATH"],
        "VIRTUAL_ENV": str(bare),
        "HIP_VISIBLE_DEVICES": "",
        "PIP_EXTRA_INDEX_URL": "https://user:secret@example.org/simple",
    }
    answer = engine.environment(None, env)
    body = answer.to_json()
    assert body["schema"] == "quark-tui.env.v1"
    assert set(body) >= {
        "interpreter", "packages", "torch", "gpus", "gpu_verdict", "driver", "kernel", "container", "env_vars", "tools",
        "compute", "findings",
    }  # fmt: skip
    assert body["interpreter"]["executable"] == str(bare / "bin/python")
    assert body["packages"]["amd-quark"] is None
    assert body["torch"] == dict.fromkeys(
        ("version", "backend", "cuda", "hip", "gpu_available", "device_count", "device_names", "operation_ok",
         "operation_error")
    )  # fmt: skip
    assert body["env_vars"]["HIP_VISIBLE_DEVICES"] == ""
    assert body["env_vars"]["CUDA_VISIBLE_DEVICES"] is None
    assert body["env_vars"]["PIP_EXTRA_INDEX_URL"] == "set"
    assert "secret" not in str(body)
    assert answer.exit == 0
    assert body["compute"]["ready"] is False


def test_a_path_a_prefix_and_a_name_lead_to_the_same_interpreter(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"PATH": str(bare / "bin")}
    python = str(bare / "bin/python")
    monkeypatch.chdir(bare)
    for typed in (python, str(bare), "python", "bin/python", "."):
        assert engine.resolve_interpreter(typed, env) == python


@pytest.mark.parametrize("typed", ["/nowhere/python", "no-such-python", "", "a\0b", "/nowhere/\x1b[31m"])
def test_no_such_interpreter_is_a_wrong_question(typed: str) -> None:
    with pytest.raises(WrongQuestion) as caught:
        engine.environment(typed, {"PATH": "/nowhere"})
    assert str(caught.value).isprintable()


def test_a_file_that_is_no_interpreter_is_a_finding(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 0\n")
    fake.chmod(0o755)
    answer = engine.environment(str(fake), {"PATH": os.environ["PATH"]})
    assert answer.exit == 1
    assert [finding.code for finding in answer.findings] == ["interpreter_unusable"]
    assert answer.body["interpreter"]["executable"] is None


def test_the_variables_of_the_requirements_are_all_looked_at(bare: Path) -> None:
    """P-12, I-13: inspected, shown as value or null, and not changed; credentials are set or unset."""
    names = [
        "HIP_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "HSA_OVERRIDE_GFX_VERSION",
        "PYTORCH_ROCM_ARCH",
        "PYTORCH_HIP_ALLOC_CONF",
        "QUARK_ACCELERATOR",
        "QUARK_BUILD_DISABLE_JIT_FALLBACK",
    ]
    given = {name: f"value of {name}" for name in names}
    shown = engine.environment(str(bare), {**given, "PIP_EXTRA_INDEX_URL": "https://user:secret@host/"}).body[
        "env_vars"
    ]
    assert {name: shown[name] for name in names} == given
    assert shown["PIP_EXTRA_INDEX_URL"] == "set"
    assert {engine.environment(str(bare), {}).body["env_vars"][name] for name in names} == {None}
