"""What breaks if this is wrong: an environment counts as proven although torch was never asked, or says no."""

from __future__ import annotations

import os
import sys
import venv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quark_tui.engine import torch_runtime as engine
from quark_tui.engine.environment import look
from quark_tui.engine.environment_facts import compute, masks
from quark_tui.io.target import Target, TorchBuild, probe
from quark_tui.io.torch_runtime import Device, Operation, TorchRuntime

from .conftest import Inside, codes

_SEEN: dict[str, Any] = {"gpus": [{"vendor": "amd"}] * 2, "gpu_verdict": "gpus", "evidence": "kfd", "driver": "6.12"}
_SOUND = TorchRuntime(
    version="2.9.1+rocm7.2",
    hip="7.2",
    available=True,
    count=2,
    devices=(Device(0, "MI300X", 1, "gfx942"), Device(1, "MI300X", 1, "gfx942")),
    operations=(Operation(0, ""), Operation(1, "")),
    complete=True,
    step="all steps were done",
    status=0,
    ended="exit status 0",
    imported=True,
)


@pytest.fixture(scope="module")
def bare() -> Target:
    return probe(sys.executable, {"PATH": os.defpath})


@pytest.fixture
def target(bare: Target) -> Target:
    build = TorchBuild("2.9.1+rocm7.2", None, "7.2", False, "/env/torch/version.py", True)
    return replace(bare, torch=build)


def _codes(target: Target, runtime: TorchRuntime, env: dict[str, str] | None = None) -> list[str]:
    return [one.code for one in engine.runtime_findings(target, _SEEN, runtime, env or {})]


def test_an_operation_on_each_device_proves_the_gpu(target: Target) -> None:
    """P-14, P-19: ready is said after an operation on each device, and not before."""
    facts = engine.runtime_facts(_SOUND)
    assert facts == {
        "gpu_available": True, "device_count": 2, "device_names": ["MI300X", "MI300X"], "operation_ok": True,
        "operation_error": None,
    }  # fmt: skip
    assert _codes(target, _SOUND) == []
    assert compute(target, _SEEN)["ready"] is None
    assert (compute(target, _SEEN, facts)["mode"], compute(target, _SEEN, facts)["ready"]) == ("gpu", True)


@pytest.mark.parametrize(
    ("changes", "ok", "code"),
    [
        ({"operations": (Operation(0, ""), Operation(1, "no kernel image")), "error": "x"}, False, "torch_operation"),
        ({"complete": False, "status": -11, "error": "killed by SIGSEGV"}, False, "torch_operation_failed"),
        ({"imported": False, "complete": False, "status": 1, "error": "ImportError: x"}, False, "torch_import_failed"),
        ({"complete": False, "status": None, "error": "no answer within 60 s"}, None, "torch_silent"),
    ],
)
def test_what_went_wrong_is_a_finding_with_its_evidence(
    changes: dict[str, Any], ok: bool | None, code: str, target: Target
) -> None:
    """P-14: an error is told, a crash is one, and a limit of time proves neither."""
    runtime = replace(_SOUND, **changes)
    assert engine.runtime_facts(runtime)["operation_ok"] is ok
    (finding,) = engine.runtime_findings(target, _SEEN, runtime, {})
    assert finding.code.startswith(code)
    assert finding.evidence and finding.next_step
    assert compute(target, _SEEN, engine.runtime_facts(runtime))["ready"] is not True


def test_devices_that_torch_does_not_reach_are_explained_by_what_is_in_the_way(target: Target) -> None:
    """P-19, P-112: the build is not blamed where a mask, or the driver, keeps the devices away."""
    unreached = replace(
        _SOUND, available=False, count=0, devices=(), operations=(Operation(None, ""),), stderr="driver too old\n"
    )
    nested = {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"}
    (masked,) = engine.runtime_findings(target, _SEEN, unreached, nested)
    assert masked.code == "torch_sees_no_device"
    assert "ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES" in masked.next_step
    (driver,) = engine.runtime_findings(target, _SEEN, unreached, {})
    assert driver.evidence == "driver too old" and "6.12" in driver.next_step
    nothing = {**_SEEN, "gpus": [], "gpu_verdict": "no_gpu"}
    assert engine.runtime_findings(target, nothing, unreached, {}) == []
    assert compute(target, _SEEN, engine.runtime_facts(unreached))["mode"] == "undecided"


def test_another_torch_than_the_one_that_was_read_is_told(target: Target) -> None:
    assert _codes(target, replace(_SOUND, version="2.8")) == ["torch_shadowed"]


@pytest.mark.parametrize(
    ("env", "vendor", "applied", "visible"),
    [
        ({}, "amd", [], [0, 1]),
        ({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"}, "amd", ["ROCR", "HIP"], []),
        ({"ROCR_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0"}, "amd", ["ROCR", "CUDA"], [1]),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, "amd", ["HIP"], [0]),
        ({"ROCR_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0"}, "nvidia", ["CUDA"], [0]),
        ({"ROCR_VISIBLE_DEVICES": "GPU-abc"}, "amd", ["ROCR"], None),
    ],
)
def test_masks_are_told_in_the_order_in_which_they_apply(
    env: dict[str, str], vendor: str, applied: list[str], visible: list[int] | None
) -> None:
    """P-12: a mask within a mask counts within what is left, which is told."""
    shown = masks(env, {**_SEEN, "gpus": [{"vendor": vendor}] * 2})
    assert [name.removesuffix("_VISIBLE_DEVICES") for name in shown["applied"]] == applied
    assert shown["visible"] == visible


_TORCH = """
__version__ = "2.9.1+cpu"
float32 = None
class version: cuda = hip = None
class cuda:
    is_available = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 0)
class ones:
    def __init__(self, *a, **k): pass
    def __matmul__(self, other): return self
    def min(self): return self
    max = min
    def item(self): return 64.0
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A real environment whose torch is a stand-in of a few lines."""
    root = tmp_path / "env"
    venv.create(root, with_pip=False)
    site = next(root.glob("lib/python*/site-packages"))
    (site / "torch").mkdir()
    (site / "torch/__init__.py").write_text(_TORCH)
    (site / "torch/version.py").write_text("__version__ = '2.9.1+cpu'\n")
    return root / "bin/python"


def test_env_asks_torch_only_when_it_is_told_to(inside: Inside, python: Path) -> None:
    """P-14: unknown is null until torch was asked; then each fact has its source."""
    plain = inside.ask("env", "--python", str(python))
    assert plain["torch"]["operation_ok"] is None and plain["torch_runtime"] is None
    asked = inside.ask("env", "--python", str(python), "--torch")
    assert asked["torch"]["operation_ok"] is True
    assert (asked["torch"]["gpu_available"], asked["torch"]["device_count"]) == (False, 0)
    assert asked["torch_runtime"]["loaded"]["version"] == "2.9.1+cpu"
    assert str(python) in asked["sources"]["torch_runtime"]
    rows = {row["name"]: row for row in asked["readiness"]}
    assert rows["operation"]["value"].startswith("torch reaches no GPU")
    assert set(plain) == set(asked)


def test_a_torch_that_crashes_is_told_and_the_answer_comes(inside: Inside, python: Path) -> None:
    """The signal is said, the whole of stderr kept, and nothing of it ends this program."""
    init = next(python.parent.parent.glob("lib/python*/site-packages/torch")) / "__init__.py"
    init.write_text("import os, sys\nsys.stderr.write('one\\ntwo\\n')\nsys.stderr.flush()\nos.kill(os.getpid(), 11)\n")
    asked = inside.ask("env", "--python", str(python), "--torch")
    assert "torch_import_failed" in codes(asked, "high")
    assert asked["torch"]["operation_ok"] is False
    assert "killed by SIGSEGV" in asked["torch"]["operation_error"]
    assert asked["torch_runtime"]["stderr"] == "one\ntwo\n"
    assert inside("env", "--python", str(python), "--torch")[0] == 0


def test_without_torch_nothing_is_started(inside: Inside, tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", with_pip=False)
    asked = inside.ask("env", "--python", str(tmp_path / "empty"), "--torch")
    assert asked["torch_runtime"] is None
    assert "package_missing" in codes(asked)


def test_every_part_of_the_answer_has_its_source() -> None:
    """Each fact says where it was seen; GPUs and the container say it themselves."""
    body = look(sys.executable, {"PATH": os.defpath}).body
    own = {"gpu_verdict", "gpu_evidence", "driver", "container", "torch_runtime", "compute", "sources", "readiness"}
    assert set(body) - own == set(body["sources"])
