"""Who a process is, beyond its pid: host, boot, pid namespace, start time; and signalling exactly that one.

Sources: proc(5) (``/proc/PID/stat`` field 22, ``/proc/sys/kernel/random/boot_id``), pidfd_open(2).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
from typing import Any

from quark_tui.core.run import HostIdentity


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None


def this_host() -> HostIdentity:
    """The identity of the host, boot and pid namespace that this process is in."""
    try:
        namespace: str | None = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = None
    return HostIdentity(
        socket.gethostname(),
        _text("/etc/machine-id"),
        _text("/proc/sys/kernel/random/boot_id"),
        namespace,
    )


def stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state (field 3) on; the command name before may hold anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode("ascii", "replace").split()
    except OSError:
        return None


def start_ticks(pid: int) -> int | None:
    """When ``pid`` started, in clock ticks since boot; None when there is no such process."""
    fields = stat_fields(pid)
    try:
        return int(fields[19]) if fields else None
    except (IndexError, ValueError):
        return None


def identity(pid: int) -> dict[str, Any]:
    """What tells the process ``pid`` from every other: pid, start time in ticks, host, boot and pid namespace."""
    return {"pid": pid, "start_ticks": start_ticks(pid), "host": this_host().to_json()}


def is_zombie(pid: int) -> bool:
    fields = stat_fields(pid)
    return bool(fields) and fields is not None and fields[0] in "ZX"


def command_line(pid: int) -> list[str] | None:
    """argv of ``pid``; None when it cannot be read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            raw = file.read(1 << 20)
    except OSError:
        return None
    return [part.decode("utf-8", "surrogateescape") for part in raw.rstrip(b"\0").split(b"\0")] if raw else []


def lock_held(path: str) -> bool | None:
    """True when another process holds the flock on ``path``, False when it is free, None when it cannot be told.

    The probe asks for a shared lock on its own read-only descriptor: it never waits, writes or truncates.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False


def group_members(pgid: int) -> list[int]:
    """Pids of the process group ``pgid`` that are no zombies, as far as /proc shows them."""
    members = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = stat_fields(int(entry))
            if fields and len(fields) > 2 and fields[2] == str(pgid) and fields[0] not in "ZX":
                members.append(int(entry))
    return sorted(members)


def signal_group(pid: int, ticks: int, number: int) -> bool:
    """Send ``number`` to the process group that ``pid`` leads, if it still is the process that started at ``ticks``.

    False when that process is gone. The pidfd keeps the number from being taken by another process between check and
    signal; where pidfd_open is missing (old kernels, gVisor) the identity is read before and after.
    """
    descriptor = None
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.pidfd_open(pid)
    try:
        if start_ticks(pid) != ticks:
            return False
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            return False
        return descriptor is not None or start_ticks(pid) in (ticks, None)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def reset_signals() -> None:
    """Default dispositions and an empty mask: an ignored SIGINT would outlive exec, and Stop never work."""
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
