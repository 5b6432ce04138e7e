"""Who holds a GPU: the kernel's list of AMD compute processes, the tools' lists, and who has a device file open.

A list of nobody is claimed only where everybody would have been seen. Each answer says where it was seen. The NVIDIA
side was run on an H200; the AMD side is unverified on AMD hardware.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quark_tui.core.text import clean
from quark_tui.io.capture import Captured, capture

#: Seconds that a tool is given.
TOOL_TIMEOUT = 5.0
_MIB = 1 << 20
#: The first pid namespace of a host has this number (PROC_PID_INIT_INO); in any other, processes outside are not seen.
_FIRST_NAMESPACE = "pid:[4026531836]"
_PCI = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-9a-f])?\Z")
_ROCM_ROW = re.compile(r"\s*(\d{1,10})\s+(.*?)\s+(\d{1,4})\s+(\d{1,19}|UNKNOWN)(?:\s+\S+)*\s*\Z")


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a GPU; ``memory`` in bytes of that GPU. ``user`` is a name, a number, or None."""

    pid: int
    user: str | None
    memory: int | None

    def to_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "user": self.user, "memory": self.memory}


@dataclass(frozen=True, slots=True)
class Held:
    """Who holds one GPU, None when unknown (an empty tuple: nobody), and where that was seen."""

    holders: tuple[Holder, ...] | None
    source: str

    def to_json(self) -> dict[str, Any]:
        return {
            "holders": None if self.holders is None else [holder.to_json() for holder in self.holders],
            "holders_from": self.source,
        }


@dataclass(frozen=True, slots=True)
class Scan:
    """Processes that have files open: path → pids. ``complete``: every process of this host was looked at."""

    open_by: Mapping[str, tuple[int, ...]]
    complete: bool


def sees_all_processes(root: Path = Path("/")) -> bool:
    """Whether this process is in the host's first pid namespace, with a whole view of /proc."""
    try:
        return os.readlink(root / "proc/self/ns/pid") == _FIRST_NAMESPACE
    except OSError:
        return False


def user_of(pid: int, root: Path = Path("/")) -> str | None:
    """The name (else the number) of the user that ``pid`` runs as; None when there is no such process here."""
    try:
        with open(root / f"proc/{pid}/status", "rb") as file:
            found = re.search(rb"^Uid:\t(\d+)", file.read(8192), re.MULTILINE)
    except OSError:
        return None
    if not found:
        return None
    import pwd  # asks the directory service, so only where a process was found

    try:
        return clean(pwd.getpwuid(int(found[1])).pw_name)
    except (KeyError, OverflowError):
        return found[1].decode("ascii")


def who_has_open(wanted: Sequence[re.Pattern[str]], root: Path = Path("/")) -> Scan:
    """Which processes have a file open whose path one of ``wanted`` matches as a whole, as far as that may be read."""
    found: dict[str, set[int]] = {}
    complete = sees_all_processes(root)
    for pid in _pids(root / "proc"):
        folder = root / f"proc/{pid}/fd"
        try:
            descriptors = os.listdir(folder)
        except FileNotFoundError:
            continue  # it ended meanwhile
        except OSError:
            complete = False
            continue
        for descriptor in descriptors:
            try:
                path = os.readlink(folder / descriptor)
            except OSError:
                continue
            if any(pattern.fullmatch(path) for pattern in wanted):
                found.setdefault(path, set()).add(pid)
    return Scan({path: tuple(sorted(pids)) for path, pids in found.items()}, complete)


def _pids(proc: Path) -> Iterator[int]:
    try:
        names = os.listdir(proc)
    except OSError:
        return
    yield from sorted(int(name) for name in names if name.isascii() and name.isdigit() and len(name) <= 10)


def of_nvidia(tool: str, env: Mapping[str, str], buses: Mapping[int, str | None], root: Path = Path("/")) -> list[Held]:
    """Who holds each GPU of ``buses`` (physical index → PCI bus id, None when unknown), in its order."""
    argv = [tool, "--query-compute-apps=gpu_bus_id,pid,used_gpu_memory", "--format=csv,noheader,nounits"]
    try:
        listed = read_compute_apps(capture(argv, {**env, "LC_ALL": "C"}, timeout=TOOL_TIMEOUT))
    except (OSError, ValueError):
        listed = None
    everybody = sees_all_processes(root)
    held: dict[int, tuple[Holder, ...] | None] = dict.fromkeys(buses)
    if listed is not None and (everybody or listed):
        slots = {bus_id(bus): index for index, bus in buses.items() if bus is not None}
        known = all(bus_id(bus) in slots for bus, _, _ in listed) and len(slots) == len(buses)
        for index in buses:
            rows = [(pid, memory) for bus, pid, memory in listed if slots.get(bus_id(bus)) == index]
            # In a namespace of its own the tool leaves out whom it cannot name: nobody there is not nobody at all.
            held[index] = _holders(rows, root) if rows or (everybody and known) else None
    if all(holders is not None for holders in held.values()):
        return [Held(holders, "nvidia-smi --query-compute-apps") for holders in held.values()]
    scan = who_has_open([re.compile(rf"/dev/nvidia{index}") for index in buses], root)
    answer = []
    for index, holders in held.items():
        pids = scan.open_by.get(f"/dev/nvidia{index}", ())
        if holders is not None:
            answer.append(Held(holders, "nvidia-smi --query-compute-apps"))
        elif pids or scan.complete:
            answer.append(Held(_holders([(pid, None) for pid in pids], root), _scanned(scan)))
        else:
            answer.append(Held(None, "nvidia-smi names no process, and not all processes can be looked at from here"))
    return answer


def _scanned(scan: Scan) -> str:
    return "/proc/*/fd" + ("" if scan.complete else ", as far as it may be read: there may be more")


def _holders(rows: Iterable[tuple[int, int | None]], root: Path) -> tuple[Holder, ...]:
    """One entry a process; what it uses in several instances of a GPU is added up."""
    memory: dict[int, int | None] = {}
    for pid, used in rows:
        before = memory.get(pid, 0)
        memory[pid] = None if used is None or before is None else before + used
    return tuple(Holder(pid, user_of(pid, root), used) for pid, used in sorted(memory.items()))


def bus_id(text: str) -> str | None:
    """A PCI address in one form: ``00000000:3B:00.0`` and ``0000:3b:00.0`` are one slot. None when it is none."""
    found = _PCI.match(text.strip().lower())
    return f"{int(found[1] or '0', 16):x}:{found[2]}" if found else None


def read_compute_apps(answer: Captured) -> list[tuple[str, int, int | None]] | None:
    """(bus id, pid, bytes) of nvidia-smi's rows; None when it failed or printed anything that is no such row."""
    if answer.status != 0:
        return None
    rows: list[tuple[str, int, int | None]] = []
    for line in answer.stdout.decode("utf-8", "replace").splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip():
            continue
        if len(cells) != 3 or bus_id(cells[0]) is None or not _digits(cells[1]):
            return None
        rows.append((cells[0], int(cells[1]), int(cells[2]) * _MIB if _digits(cells[2]) else None))
    return rows


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10


def of_amd(env: Mapping[str, str], nodes: Sequence[str], root: Path = Path("/")) -> list[Held]:
    """Who holds each AMD GPU; ``nodes`` are the numbers of its compute nodes, in order."""
    kernel = root / "sys/class/kfd/kfd"
    ids = [number for node in nodes if (number := _read(kernel / "topology/nodes" / node / "gpu_id"))]
    if len(ids) == len(nodes) and (kernel / "proc").is_dir():
        rows = read_kfd_processes(kernel / "proc", ids)
        if rows is not None:
            source = str(Path("/", (kernel / "proc").relative_to(root)))
            inside = sees_all_processes(root)
            said = source if inside else f"{source}; these are pids of the host, not of this container"
            # A pid of the host may be another process in here.
            return [
                Held(
                    tuple(Holder(pid, user_of(pid, root) if inside else None, used) for pid, used in rows[number]), said
                )
                for number in rows
            ]
    for name, arguments, read in (
        ("amd-smi", ["process", "--json"], read_amd_smi_processes),
        ("rocm-smi", ["--showpids"], read_rocm_smi_processes),
    ):
        tool = shutil.which(name, path=env.get("PATH", os.defpath))
        if tool is None:
            continue
        try:
            listed = read(capture([tool, *arguments], {**env, "LC_ALL": "C"}, timeout=TOOL_TIMEOUT), len(nodes))
        except (OSError, ValueError):
            continue
        if listed is not None and (any(listed) or sees_all_processes(root)):
            source = f"{name} {' '.join(arguments)}"
            return [Held(_holders(found, root) if found is not None else None, source) for found in listed]
    scan = who_has_open([re.compile("/dev/kfd")], root)
    pids = scan.open_by.get("/dev/kfd", ())
    if not pids and scan.complete:
        return [Held((), _scanned(scan)) for _ in nodes]
    if pids and len(nodes) == 1:
        return [Held(_holders([(pid, None) for pid in pids], root), f"/dev/kfd is open: {_scanned(scan)}")]
    words = f"{len(pids)} processes have /dev/kfd open, for whichever GPU" if pids else "nobody can be told from here"
    return [Held(None, words) for _ in nodes]


def read_kfd_processes(folder: Path, gpu_ids: Sequence[str]) -> dict[str, list[tuple[int, int | None]]] | None:
    """gpu_id → (pid, bytes) of the processes that hold memory or a queue on it, by the kernel's own record (a folder a
    process with ``vram_ID`` and ``queues/N/gpuid``). None when it cannot be read, or has not what is looked for."""
    found: dict[str, list[tuple[int, int | None]]] = {number: [] for number in gpu_ids}
    try:
        pids = [int(name) for name in os.listdir(folder) if _digits(name)]
    except OSError:
        return None
    for pid in sorted(pids):
        process = folder / str(pid)
        queued = {_read(queue / "gpuid") for queue in _children(process / "queues")}
        for number in gpu_ids:
            text = _read(process / f"vram_{number}")
            used = int(text) if text and text.isascii() and text.isdigit() and len(text) <= 19 else None
            if text is None and not process.exists():
                continue
            if used is None and number not in queued:
                return None  # an older kernel without these files: it says nothing about who holds what
            if used or number in queued:
                found[number].append((pid, used))
    return found


def _children(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]
    except OSError:
        return []


def _read(path: Path) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(64).decode("ascii", "replace").strip() or None
    except OSError:
        return None


_Listed = list[list[tuple[int, int | None]] | None]


def read_amd_smi_processes(answer: Captured, count: int) -> _Listed | None:
    """For each of ``count`` GPUs, by amd-smi's own numbers: (pid, bytes), None where it says nothing of that GPU.

    Its JSON is a list by GPU in some versions and an object around that list in others, with words such as
    ``No running processes detected`` where an object is expected. None when it cannot be understood.
    """
    if answer.status != 0:
        return None
    text = answer.stdout.decode("utf-8", "replace")
    try:
        data = json.loads(text[min((at for at in (text.find("["), text.find("{")) if at >= 0), default=0) :])
    except (ValueError, RecursionError):
        return None
    if isinstance(data, dict):
        data = data.get("gpu_data", data.get("process_data"))
    if not isinstance(data, list):
        return None
    listed: _Listed = [None] * count
    for one in data:
        index = one.get("gpu") if isinstance(one, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            return None
        processes = one.get("process_list", one.get("process"))
        rows = [_amd_smi_row(item) for item in processes] if isinstance(processes, list) else [None]
        known = [row for row in rows if row is not None]
        if _says_nobody(processes):
            listed[index] = []
        elif len(known) == len(rows):
            listed[index] = known
    return listed


def _amd_smi_row(item: object) -> tuple[int, int | None] | None:
    info = item.get("process_info", item) if isinstance(item, dict) else None
    if not isinstance(info, dict) or not isinstance(info.get("pid"), int) or isinstance(info["pid"], bool):
        return None
    usage = info.get("memory_usage")
    memory = usage.get("vram_mem") if isinstance(usage, dict) else None
    value = memory.get("value") if isinstance(memory, dict) else None
    in_bytes = isinstance(memory, dict) and memory.get("unit") == "B"
    sound = isinstance(value, int) and not isinstance(value, bool) and value >= 0 and in_bytes
    return (info["pid"], value if sound and isinstance(value, int) else None) if info["pid"] > 0 else None


def _says_nobody(processes: object) -> bool:
    words = json.dumps(processes).lower() if isinstance(processes, (str, list, dict)) else ""
    return "no running process" in words


def read_rocm_smi_processes(answer: Captured, count: int) -> _Listed | None:
    """For each of ``count`` GPUs: (pid, bytes). It counts a process's GPUs and does not name them, so that with several
    GPUs only nobody is an answer. None when it cannot be understood."""
    text = answer.stdout.decode("utf-8", "replace")
    if answer.status != 0:
        return None
    if "No KFD PIDs currently running" in text:
        return [[] for _ in range(count)]
    _, header, body = text.partition("PROCESS NAME")
    if not header:
        return None
    rows: list[tuple[int, int | None]] = []
    for line in body.splitlines()[1:]:
        if not line.strip() or set(line.strip()) <= {"="} or "End of ROCm SMI Log" in line:
            continue
        found = _ROCM_ROW.match(line)
        if not found:
            return None
        if found[3] != "0":
            rows.append((int(found[1]), int(found[4]) if found[4].isdigit() else None))
    if not rows:
        return [[] for _ in range(count)]
    return [rows] if count == 1 else [None] * count
