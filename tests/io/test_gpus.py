"""What breaks if this is wrong: a run on somebody else's GPU, or a host with GPUs that is said to have none."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.text import clean
from quark_tui.io import gpus
from quark_tui.io.capture import Captured

_TWO = (
    b"0, NVIDIA H200, 143771, 55, 0, 78.28, 28, 9.0, 580.95.05\n"
    b"1, Board, with comma, 24564, 1024, [N/A], [Not Supported], 61, 8.9, 580.95.05\n"
)


def _node(root: Path, number: int, properties: str, name: str = "", bank: str = "") -> None:
    node = root / "sys/class/kfd/kfd/topology/nodes" / str(number)
    node.mkdir(parents=True)
    (node / "properties").write_text(properties)
    (node / "name").write_text(name)
    if bank:
        (node / "mem_banks/0").mkdir(parents=True)
        (node / "mem_banks/0/properties").write_text(bank)


def test_nvidia_rows_become_bytes_and_unknowns_become_none() -> None:
    """P-10, P-16: units are bytes; what the tool does not know stays unknown; a comma in a name moves no column."""
    answer = gpus.read_nvidia(Captured(0, _TWO, b""))
    assert answer["gpu_verdict"] == "gpus"
    assert answer["driver"] == "580.95.05"
    first, second = answer["gpus"]
    assert first["index"] == 0
    assert first["memory_total"] == 143771 * 1024 * 1024
    assert (first["arch"], first["power_w"], first["temperature_c"]) == ("9.0", 78.28, 28)
    assert second["name"] == "Board, with comma"
    assert second["utilisation_percent"] is None
    assert second["power_w"] is None
    assert second["memory_used"] == 1 << 30
    assert second["holders"] is None


@pytest.mark.parametrize(
    ("status", "stdout", "verdict"),
    [
        (6, b"No devices were found\n", "no_gpu"),
        (4, b"Failed to initialize NVML: Insufficient Permissions\n", "no_permission"),
        (9, b"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "no_driver"),
        (12, b"NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", "no_driver"),
        (18, b"Failed to initialize NVML: Driver/library version mismatch\n", "tool_error"),
        (15, b"Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.\n", "tool_error"),
        (0, b"", "tool_error"),
        (None, b"", "tool_error"),
    ],
)
def test_a_failing_tool_gives_the_verdict_that_its_words_carry(status: int | None, stdout: bytes, verdict: str) -> None:
    """P-112: no device, no permission and no driver are told apart."""
    answer = gpus.read_nvidia(Captured(status, stdout, b""))
    assert answer["gpu_verdict"] == verdict
    assert answer["gpus"] == []


@given(st.binary(max_size=300), st.binary(max_size=100), st.none() | st.integers(-9, 255))
def test_any_output_gives_a_verdict_and_safe_text(stdout: bytes, stderr: bytes, status: int | None) -> None:
    answer = gpus.read_nvidia(Captured(status, stdout, stderr))
    assert answer["gpu_verdict"] in {"gpus", "no_gpu", "no_driver", "no_permission", "tool_error"}
    assert clean(answer["evidence"]) == answer["evidence"]


@given(st.sampled_from(["nan", "inf", "1e999", "9" * 40, "[N/A]", "", "-", "١٢", "0x10", "5 W"]))
def test_a_reading_that_is_no_plain_number_is_unknown(text: str) -> None:
    row = f"0, X, {text}, {text}, {text}, {text}, {text}, 9.0, 1.0\n".encode()
    (gpu,) = gpus.read_nvidia(Captured(0, row, b""))["gpus"]
    assert {gpu[name] for name in ("memory_total", "memory_used", "utilisation_percent", "power_w")} == {None}


def test_the_tool_is_really_run_and_its_hang_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        '#!/bin/sh\ncase "$1" in --query-gpu=index,*) ;; *) exit 2;; esac\n' + f"cat <<'X'\n{_TWO.decode()}X\n"
    )
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    env = {"PATH": os.pathsep.join([str(tmp_path), os.environ["PATH"]])}
    assert [gpu["index"] for gpu in gpus.look(env, tmp_path)["gpus"]] == [0, 1]
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(gpus, "TOOL_TIMEOUT", 0.3)
    assert gpus.look(env, tmp_path)["gpu_verdict"] == "tool_error"


def test_amd_nodes_are_counted_in_node_order_without_the_cpus(tmp_path: Path) -> None:
    """P-10: the architecture is what the kernel states, with no built-in list."""
    _node(tmp_path, 0, "cpu_cores_count 64\nsimd_count 0\n")
    for number, version in ((2, 90402), (10, 90010)):
        text = f"simd_count 416\nvendor_id 4098\ngfx_target_version {version}\nlocal_mem_size 0\n"
        _node(tmp_path, number, text, bank="heap_type 1\nsize_in_bytes 68702699520\n")
    answer = gpus.look({"PATH": str(tmp_path)}, tmp_path)
    assert answer["gpu_verdict"] == "gpus"
    assert [(gpu["index"], gpu["arch"], gpu["source"]) for gpu in answer["gpus"]] == [
        (0, "gfx942", "kfd node 2"),
        (1, "gfx90a", "kfd node 10"),
    ]
    assert {gpu["memory_total"] for gpu in answer["gpus"]} == {68702699520}


def test_an_old_kernel_leaves_the_architecture_unknown(tmp_path: Path) -> None:
    _node(tmp_path, 1, "simd_count 256\nvendor_id 4098\nlocal_mem_size 17163091968\n", "vega10\n")
    (gpu,) = gpus.look({"PATH": str(tmp_path)}, tmp_path)["gpus"]
    assert (gpu["arch"], gpu["name"], gpu["memory_total"]) == (None, "vega10", 17163091968)


def test_nothing_a_driver_without_tool_and_hardware_without_driver_are_told_apart(tmp_path: Path) -> None:
    """P-112: no device, no driver and a missing tool are three different things."""
    env = {"PATH": str(tmp_path)}
    assert gpus.look(env, tmp_path)["gpu_verdict"] == "no_gpu"
    device = tmp_path / "sys/bus/pci/devices/0000:03:00.0"
    device.mkdir(parents=True)
    for name, text in (("vendor", "0x1002"), ("class", "0x038000"), ("device", "0x74a1")):
        (device / name).write_text(text + "\n")
    answer = gpus.look(env, tmp_path)
    assert answer["gpu_verdict"] == "no_driver"
    assert "0x74a1" in answer["evidence"]
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("NVRM version: 580\n")
    assert gpus.look(env, tmp_path)["gpu_verdict"] == "tool_error"


@pytest.mark.parametrize(
    ("version", "name"), [(90010, "gfx90a"), (90402, "gfx942"), (110001, "gfx1101"), (120001, "gfx1201"), (0, None)]
)
def test_gfx_names(version: int, name: str | None) -> None:
    assert gpus.gfx_name(version) == name


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, (0, 1, 2, 3)),
        ({"CUDA_VISIBLE_DEVICES": "2,0"}, (2, 0)),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "1,-1,2"}, (1,)),
        ({"CUDA_VISIBLE_DEVICES": "1,9,2"}, (1,)),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8f2c1b1e-0000"}, None),
        ({"CUDA_VISIBLE_DEVICES": "MIG-1,0"}, None),
        ({"CUDA_VISIBLE_DEVICES": "0,0"}, None),
        ({"HIP_VISIBLE_DEVICES": "3"}, (3,)),
        ({"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0"}, (1,)),
        ({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "1"}, (3,)),
        ({"ROCR_VISIBLE_DEVICES": "2,3"}, (2, 3)),
    ],
)
def test_visible_devices_are_physical_indices_within_the_mask(
    env: dict[str, str], expected: tuple[int, ...] | None
) -> None:
    """P-12: what was inherited is kept; what cannot be told is unknown, never everything."""
    assert gpus.visible_indices(env, 4) == expected


def test_the_other_vendor_s_mask_does_not_count_on_nvidia() -> None:
    assert gpus.visible_indices({"HIP_VISIBLE_DEVICES": "1"}, 2, "nvidia") == (0, 1)


@given(st.text(max_size=20), st.integers(0, 8))
def test_any_mask_stays_within_the_devices(mask: str, count: int) -> None:
    visible = gpus.visible_indices({"CUDA_VISIBLE_DEVICES": mask}, count, "nvidia")
    assert visible is None or (set(visible) <= set(range(count)) and len(set(visible)) == len(visible))
