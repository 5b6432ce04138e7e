"""What breaks if this is wrong: a GPU that somebody uses is said to be free."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.io import gpus, holders
from quark_tui.io.capture import Captured

_BUS = "00000000:3B:00.0"
_ROW = b"0, Board, 81559, 1000, 3, 70.0, 40, 9.0, 580.1, 00000000:3B:00.0\n"


def _file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _host(root: Path, *, first: bool = True) -> Path:
    """A /proc of the host's first pid namespace, or of another one."""
    link = root / "proc/self/ns/pid"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("pid:[4026531836]" if first else "pid:[4026532000]")
    return root


def _process(root: Path, pid: int, *opened: str) -> None:
    folder = root / f"proc/{pid}/fd"
    folder.mkdir(parents=True)
    for number, path in enumerate(opened):
        (folder / str(number)).symlink_to(path)
    _file(root / f"proc/{pid}/status", f"Name:\tx\nUid:\t{os.getuid()}\t0\t0\t0\n")


def _tool(folder: Path, name: str, text: str) -> dict[str, str]:
    tool = _file(folder / "bin" / name, f"#!/bin/sh\n{text}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def _nvidia(folder: Path, apps: str) -> dict[str, str]:
    return _tool(
        folder,
        "nvidia-smi",
        f"case $1 in --query-gpu=*) printf '%s' '{_ROW.decode()}';; --query-compute-apps=*) {apps};; esac",
    )


def test_compute_processes_are_listed_with_user_and_memory(tmp_path: Path) -> None:
    """Two instances of one GPU are one process with their sum; the user is the process's own."""
    _process(_host(tmp_path), 77)
    rows = f"echo '{_BUS}, 77, 100'; echo '{_BUS}, 77, 20'; echo '{_BUS}, 99, [N/A]'"
    (gpu,) = gpus.look(_nvidia(tmp_path, rows), tmp_path)["gpus"]
    import pwd

    assert gpu["holders"] == [
        {"pid": 77, "user": pwd.getpwuid(os.getuid()).pw_name, "memory": 120 << 20},
        {"pid": 99, "user": None, "memory": None},
    ]
    assert gpu["holders_from"] == "nvidia-smi --query-compute-apps"
    assert gpu["bus_id"] == _BUS.lower()


def test_nobody_is_said_only_where_everybody_would_be_seen(tmp_path: Path) -> None:
    """In a container the tool leaves out whom it cannot name: its empty list proves nothing there."""
    env = _nvidia(tmp_path, ":")
    assert gpus.look(env, _host(tmp_path / "host"))["gpus"][0]["holders"] == []
    (inside,) = gpus.look(env, _host(tmp_path / "inside", first=False))["gpus"]
    assert inside["holders"] is None
    assert inside["holders_from"]


def test_a_tool_that_fails_leaves_what_the_kernel_shows(tmp_path: Path) -> None:
    _process(_host(tmp_path), 5, "/dev/nvidia0", "/dev/nvidiactl")
    _process(tmp_path, 6, "/dev/nvidia1")
    (gpu,) = gpus.look(_nvidia(tmp_path, "echo broken; exit 9"), tmp_path)["gpus"]
    assert [(one["pid"], one["memory"]) for one in gpu["holders"]] == [(5, None)]
    assert gpu["holders_from"] == "/proc/*/fd"


def test_a_process_that_cannot_be_looked_at_keeps_nobody_from_being_said(tmp_path: Path) -> None:
    _process(_host(tmp_path), 5)
    (tmp_path / "proc/6").mkdir()
    _file(tmp_path / "proc/6/fd", "no folder, so that listing it fails")
    (gpu,) = gpus.look(_nvidia(tmp_path, "exit 9"), tmp_path)["gpus"]
    assert gpu["holders"] is None


@given(st.binary(max_size=200), st.none() | st.integers(-9, 255))
def test_any_output_of_nvidia_smi_is_rows_or_unknown(stdout: bytes, status: int | None) -> None:
    rows = holders.read_compute_apps(Captured(status, stdout, b""))
    assert rows is None or status == 0


def test_the_forms_of_a_bus_id() -> None:
    assert holders.bus_id("00000000:3B:00.0") == holders.bus_id("0000:3b:00.0") == holders.bus_id("3B:00.0")
    assert holders.bus_id("00000001:3B:00.0") != holders.bus_id(_BUS)
    assert holders.bus_id("580.95.05") is None


def _kfd(root: Path, *ids: int) -> Path:
    for number, gpu_id in enumerate(ids, start=1):
        node = root / f"sys/class/kfd/kfd/topology/nodes/{number}"
        _file(node / "properties", "simd_count 416\nvendor_id 4098\ngfx_target_version 90402\n")
        _file(node / "gpu_id", f"{gpu_id}\n")
    (root / "sys/class/kfd/kfd/proc").mkdir(parents=True)
    return root / "sys/class/kfd/kfd/proc"


def test_the_kernel_names_the_processes_of_each_amd_gpu(tmp_path: Path) -> None:
    """Memory or a queue on the GPU makes a holder; having /dev/kfd open does not."""
    processes = _kfd(_host(tmp_path), 111, 222)
    for pid, first, second in ((10, 4096, 0), (11, 0, 0)):
        _file(processes / f"{pid}/vram_111", f"{first}\n")
        _file(processes / f"{pid}/vram_222", f"{second}\n")
    _file(processes / "11/queues/0/gpuid", "222\n")
    found = gpus.look({"PATH": str(tmp_path)}, tmp_path)["gpus"]
    assert [[(one["pid"], one["memory"]) for one in gpu["holders"]] for gpu in found] == [[(10, 4096)], [(11, 0)]]
    assert found[0]["holders_from"] == "/sys/class/kfd/kfd/proc"


def test_no_process_of_the_kernel_s_list_is_nobody_and_pids_of_the_host_have_no_user_here(tmp_path: Path) -> None:
    """The kernel's list is the host's, also inside a container: a pid of it may be somebody else in here."""
    processes = _kfd(_host(tmp_path, first=False), 111)
    (gpu,) = gpus.look({"PATH": str(tmp_path)}, tmp_path)["gpus"]
    assert gpu["holders"] == []
    _process(tmp_path, 10)
    _file(processes / "10/vram_111", "1\n")
    (gpu,) = gpus.look({"PATH": str(tmp_path)}, tmp_path)["gpus"]
    assert gpu["holders"] == [{"pid": 10, "user": None, "memory": 1}]
    assert "of the host" in gpu["holders_from"]


def test_a_kernel_without_that_list_leaves_the_tools(tmp_path: Path) -> None:
    """amd-smi before rocm-smi; what neither says is unknown."""
    _kfd(_host(tmp_path), 111).rmdir()
    process = {"process_info": {"pid": 42, "memory_usage": {"vram_mem": {"value": 7, "unit": "B"}}}}
    env = _tool(tmp_path, "rocm-smi", "echo 'No KFD PIDs currently running'")
    assert gpus.look(env, tmp_path)["gpus"][0]["holders"] == []
    env = _tool(tmp_path, "amd-smi", f"echo '{json.dumps([{'gpu': 0, 'process_list': [process]}])}'")
    (gpu,) = gpus.look(env, tmp_path)["gpus"]
    assert [(one["pid"], one["memory"]) for one in gpu["holders"]] == [(42, 7)]
    assert gpu["holders_from"] == "amd-smi process --json"


def test_without_any_tool_an_open_device_names_its_holder_where_there_is_one_gpu(tmp_path: Path) -> None:
    _kfd(_host(tmp_path), 111, 222).rmdir()
    _process(tmp_path, 5, "/dev/kfd")
    env = {"PATH": str(tmp_path)}
    assert [gpu["holders"] for gpu in gpus.look(env, tmp_path)["gpus"]] == [None, None]
    one = tmp_path / "one"
    _kfd(_host(one), 111).rmdir()
    assert gpus.look(env, one)["gpus"][0]["holders"] == []
    _process(one, 5, "/dev/kfd")
    assert [holder["pid"] for holder in gpus.look(env, one)["gpus"][0]["holders"]] == [5]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([{"gpu": 0, "process_list": "No running processes detected"}], [[]]),
        ({"gpu_data": [{"gpu": 0, "process_list": [{"process_info": "No running processes detected"}]}]}, [[]]),
        ([{"gpu": 0, "process_list": [{"process_info": {"pid": 3, "memory_usage": "N/A"}}]}], [[(3, None)]]),
        ([{"gpu": 0, "process_list": [{"process_info": {"pid": "N/A"}}]}], [None]),
        ([{"gpu": 0, "process_list": "N/A"}], [None]),
        ([{"gpu": 4, "process_list": []}], None),
        ([], [None]),
        ("text", None),
    ],
)
def test_the_forms_of_amd_smi(data: object, expected: object) -> None:
    text = b"WARNING: a word before\n" + json.dumps(data).encode()
    assert holders.read_amd_smi_processes(Captured(0, text, b""), 1) == expected


def test_rocm_smi_counts_gpus_and_does_not_name_them() -> None:
    table = (
        b"KFD process information:\nPID \tPROCESS NAME\tGPU(s)\tVRAM USED\tSDMA USED\tCU OCCUPANCY\n"
        b"1304\tgunicorn x\t1\t4096\t0\t0\n964\tflask\t0\tUNKNOWN\tUNKNOWN\tUNKNOWN\n===\n"
    )
    read = holders.read_rocm_smi_processes
    assert read(Captured(0, table, b""), 1) == [[(1304, 4096)]]
    assert read(Captured(0, table, b""), 2) == [None, None]
    assert read(Captured(2, table, b""), 1) is None
    assert read(Captured(0, b"no table", b""), 1) is None


@given(st.binary(max_size=200), st.integers(0, 3))
def test_any_output_of_the_amd_tools_is_an_answer_or_unknown(stdout: bytes, count: int) -> None:
    for read in (holders.read_amd_smi_processes, holders.read_rocm_smi_processes):
        listed = read(Captured(0, stdout, b""), count)
        assert listed is None or len(listed) == count


def test_open_files_are_found_in_the_real_proc(tmp_path: Path) -> None:
    """This very process holds the file, and not one with a name that only begins alike."""
    path = tmp_path / "lock.x"
    with path.open("w"):
        scan = holders.who_has_open([re.compile(re.escape(str(path)))])
        assert scan.open_by == {str(path): (os.getpid(),)}
    assert holders.user_of(os.getpid()) is not None
    assert holders.user_of(0) is None
