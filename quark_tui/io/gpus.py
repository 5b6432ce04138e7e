"""The GPUs of this host: nvidia-smi's query, else the kernel's own list of AMD compute nodes.

The NVIDIA side was seen on an H200; the AMD side was only checked against recorded sysfs trees (MI210, MI300X, MI25)
and is unverified on AMD hardware.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from quark_tui.core.text import clean, elide_end
from quark_tui.io import holders
from quark_tui.io.capture import Captured, capture

Verdict = Literal["gpus", "no_gpu", "no_driver", "no_permission", "tool_error"]

#: Seconds that nvidia-smi is given; a lost GPU can hang it.
TOOL_TIMEOUT = 5.0
_FIELDS = "index,name,memory.total,memory.used,utilization.gpu,power.draw,temperature.gpu,compute_cap,driver_version"
_BUS = "pci.bus_id"
_MIB = 1 << 20
_AMD = 4098  # PCI vendor ids, as the kernel prints them in decimal for a compute node
_DISPLAY_CLASS = "0x03"
_ACCELERATOR_CLASS = "0x12"
_VENDORS = {"0x10de": "nvidia", "0x1002": "amd"}


def look(env: Mapping[str, str], root: Path = Path("/")) -> dict[str, Any]:
    """``{gpus, gpu_verdict, driver, evidence}`` in the shape of the ``env`` answer; who holds each GPU is in its entry.

    ``env`` decides where nvidia-smi is found; ``root`` is the root of the filesystem that ``sys``, ``proc`` are read
    below. Nothing is raised: what cannot be read is None.
    """
    tool = shutil.which("nvidia-smi", path=env.get("PATH", os.defpath))
    found: dict[str, Any] | None = None
    if tool:
        argv = [tool, f"--query-gpu={_FIELDS},{_BUS}", "--format=csv,noheader,nounits"]
        try:
            found = read_nvidia(capture(argv, {**env, "LC_ALL": "C"}, timeout=TOOL_TIMEOUT))
        except (OSError, ValueError) as error:
            found = _answer("tool_error", f"{clean(tool)}: {clean(error)}")
    if tool and found and found["gpu_verdict"] == "gpus":
        buses = {gpu["index"]: gpu["bus_id"] for gpu in found["gpus"]}
        return _held(found, holders.of_nvidia(tool, env, buses, root))
    amd = read_kfd(root / "sys/class/kfd/kfd/topology/nodes")
    if amd:
        driver = _read(root / "sys/module/amdgpu/version")
        nodes = [gpu["source"].removeprefix("kfd node ") for gpu in amd]
        answer = _answer("gpus", "/sys/class/kfd/kfd/topology/nodes", amd, driver)
        return _held(answer, holders.of_amd(env, nodes, root))
    if found:
        return found
    if (root / "proc/driver/nvidia/version").exists():
        return _answer("tool_error", "the NVIDIA driver is loaded, but there is no nvidia-smi on PATH")
    hardware = display_devices(root / "sys/bus/pci/devices")
    if hardware:
        return _answer("no_driver", f"{', '.join(hardware)}, but neither its driver nor its tool answers")
    return _answer("no_gpu", "no nvidia-smi on PATH, no AMD compute node, no NVIDIA or AMD display device in sysfs")


def _answer(
    verdict: Verdict, evidence: str, gpus: list[dict[str, Any]] | None = None, driver: str | None = None
) -> dict[str, Any]:
    return {"gpus": gpus or [], "gpu_verdict": verdict, "driver": driver, "evidence": evidence}


def _held(answer: dict[str, Any], held: Sequence[holders.Held]) -> dict[str, Any]:
    """``answer`` with who holds each of its GPUs, in their order."""
    return {**answer, "gpus": [{**gpu, **one.to_json()} for gpu, one in zip(answer["gpus"], held, strict=True)]}


def read_nvidia(answer: Captured) -> dict[str, Any]:
    """What nvidia-smi's answer to our query says; ``[N/A]`` and the like become None."""
    text = answer.stdout.decode("utf-8", "replace")
    gpus: list[dict[str, Any]] = []
    driver = None
    odd = 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        bus = cells.pop() if len(cells) > 9 and holders.bus_id(cells[-1]) else None
        if len(cells) < 9 or not _is_index(cells[0]):
            odd += bool(line.strip())
            continue
        # A comma in a name must not move the columns behind it.
        total, used, utilisation, power, temperature, capability, version = cells[-7:]
        gpus.append(
            {
                "index": int(cells[0]),
                "vendor": "nvidia",
                "name": clean(", ".join(cells[1:-7])),
                "arch": _word(capability),
                "memory_total": _mebibytes(total),
                "memory_used": _mebibytes(used),
                "utilisation_percent": _number(utilisation),
                "power_w": _number(power),
                "temperature_c": _number(temperature),
                "bus_id": bus.lower() if bus else None,
                "holders": None,
                "holders_from": None,
                "source": "nvidia-smi",
            }
        )
        driver = driver or _word(version)
    if gpus and answer.status == 0:
        evidence = "nvidia-smi --query-gpu" + (f" ({odd} more lines were not understood)" if odd else "")
        return _answer("gpus", evidence, gpus, driver)
    said = (text.strip() or answer.stderr.decode("utf-8", "replace").strip()).splitlines()
    shown = elide_end(clean(said[0]), 300) if said else "nothing was printed"
    if answer.status is None:
        return _answer("tool_error", f"nvidia-smi gave no answer within {TOOL_TIMEOUT:g} s")
    return _answer(_nvidia_verdict(shown), f"nvidia-smi (exit status {answer.status}): {shown}")


def _nvidia_verdict(said: str) -> Verdict:
    words = said.lower()
    if "no devices were found" in words:
        return "no_gpu"
    if "insufficient permissions" in words or "blocked by the operating system" in words:
        return "no_permission"
    if "communicate with the nvidia driver" in words or "couldn't find libnvidia-ml" in words:
        return "no_driver"
    if "driver not loaded" in words:
        return "no_driver"
    return "tool_error"


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _word(text: str) -> str | None:
    return None if not text or text.startswith("[") or text.upper() in ("N/A", "ERR!") else clean(text)


def _number(text: str) -> float | None:
    """A plain decimal number, None for everything else (``nan`` and ``1e999`` among it)."""
    head, _, tail = text.partition(".")
    digits = head.removeprefix("-") + tail
    if not digits.isascii() or not digits.isdigit() or len(digits) > 15:
        return None
    value = float(text)
    return int(value) if value == int(value) else value


def _mebibytes(text: str) -> int | None:
    value = _number(text)
    return None if value is None else int(value * _MIB)


def read_kfd(nodes: Path) -> list[dict[str, Any]]:
    """The GPUs among the compute nodes under ``nodes``, in node order, which is the order that HIP counts them in.

    A partitioned card is one entry a partition. A kernel that does not know ``gfx_target_version`` leaves arch None.
    """
    try:
        numbers = sorted(int(name) for name in os.listdir(nodes) if _is_index(name))
    except OSError:
        return []
    gpus: list[dict[str, Any]] = []
    for number in numbers:
        node = nodes / str(number)
        facts = _properties(node / "properties")
        if not facts.get("simd_count"):
            continue
        gpus.append(
            {
                "index": len(gpus),
                "vendor": "amd" if facts.get("vendor_id") == _AMD else None,
                "name": _read(node / "name"),
                "arch": gfx_name(facts.get("gfx_target_version", 0)),
                "memory_total": _node_memory(node, facts),
                "memory_used": None,
                "utilisation_percent": None,
                "power_w": None,
                "temperature_c": None,
                "bus_id": None,
                "holders": None,
                "holders_from": None,
                "source": f"kfd node {number}",
            }
        )
    return gpus


def gfx_name(version: int) -> str | None:
    """``90010`` → ``gfx90a``: two digits each for minor and stepping, which the name writes in hexadecimal."""
    if version <= 0:
        return None
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def _node_memory(node: Path, facts: Mapping[str, int]) -> int | None:
    """Bytes of the node's own memory: its banks, else ``local_mem_size``; None when neither says."""
    total = 0
    try:
        banks = sorted(os.listdir(node / "mem_banks"))
    except OSError:
        banks = []
    for bank in banks:
        heap = _properties(node / "mem_banks" / bank / "properties")
        if heap.get("heap_type") in (1, 2):  # frame buffer, visible or not visible to the CPU
            total += heap.get("size_in_bytes", 0)
    return total or facts.get("local_mem_size") or None


def _properties(path: Path) -> dict[str, int]:
    """``NAME NUMBER`` lines of a sysfs file; other lines are left out."""
    facts: dict[str, int] = {}
    for line in (_read(path, lines=True) or "").splitlines():
        name, _, value = line.strip().partition(" ")
        value = value.strip()
        if value.isascii() and value.isdigit() and len(value) <= 20:
            facts[name] = int(value)
    return facts


def _read(path: Path, *, lines: bool = False) -> str | None:
    """At most 64 KiB of a small file, cleaned unless ``lines``; None when it cannot be read or is empty."""
    try:
        with open(path, "rb") as file:
            text = file.read(65536).decode("utf-8", "replace").strip()
    except OSError:
        return None
    return (text if lines else clean(text)) or None


def display_devices(devices: Path) -> list[str]:
    """NVIDIA and AMD display or accelerator devices on the PCI bus, as ``vendor device at address``."""
    found: list[str] = []
    try:
        addresses = sorted(os.listdir(devices))
    except OSError:
        return found
    for address in addresses:
        kind = _read(devices / address / "class") or ""
        vendor = _VENDORS.get(_read(devices / address / "vendor") or "")
        if vendor and kind.startswith((_DISPLAY_CLASS, _ACCELERATOR_CLASS)):
            found.append(f"{vendor} device {_read(devices / address / 'device') or 'unknown'} at {clean(address)}")
    return found


def visible_indices(
    env: Mapping[str, str], count: int, vendor: Literal["nvidia", "amd"] | None = None
) -> tuple[int, ...] | None:
    """The physical indices, of ``count`` GPUs, that the inherited masks leave visible, in the mask's order.

    Without a mask: all. An empty mask or ``-1``: none. None means that the mask cannot be told from here: UUIDs, or
    an entry that is no index. CUDA_VISIBLE_DEVICES counts on NVIDIA; on ROCm ROCR_VISIBLE_DEVICES comes first, then
    HIP_VISIBLE_DEVICES (else CUDA_VISIBLE_DEVICES) numbers what that left. ``vendor`` None applies what is set.
    """
    masks = []
    if vendor != "nvidia":
        masks.append(env.get("ROCR_VISIBLE_DEVICES"))
        masks.append(env["HIP_VISIBLE_DEVICES"] if "HIP_VISIBLE_DEVICES" in env else env.get("CUDA_VISIBLE_DEVICES"))
    else:
        masks.append(env.get("CUDA_VISIBLE_DEVICES"))
    visible: tuple[int, ...] = tuple(range(count))
    for mask in masks:
        if mask is None:
            continue
        chosen = _chosen(mask, len(visible))
        if chosen is None:
            return None
        visible = tuple(visible[index] for index in chosen)
    return visible


def _chosen(mask: str, count: int) -> list[int] | None:
    chosen: list[int] = []
    if not mask.strip():
        return chosen
    for entry in mask.split(","):
        entry = entry.strip()
        digits = entry.removeprefix("-")
        if not digits.isascii() or not digits.isdigit():
            return None
        # CUDA and HIP stop at the first index that is not there; what precedes it stays visible.
        if entry.startswith("-") or len(digits) > 6 or int(digits) >= count:
            break
        if int(digits) in chosen:
            return None
        chosen.append(int(digits))
    return chosen
