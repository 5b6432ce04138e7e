"""What a run folder tells: its record, its end, whether it lives, how fresh it is. Reads only."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import Any

from quark_tui.core.run import STOP_FILES, Exit, HostIdentity, Liveness
from quark_tui.core.text import clean
from quark_tui.io import atomic
from quark_tui.io.runs import process

# statfs(2) magic numbers of filesystems where a lock of another host cannot be seen or is not kept.
_REMOTE = {0x6969: "NFS", 0xFF534D42: "CIFS", 0xFE534D42: "SMB2", 0x0BD00BD0: "Lustre", 0x65735546: "FUSE",
           0x01021997: "9p", 0x00C36400: "Ceph", 0x47504653: "GPFS", 0x794C7630: "overlay"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunState:
    """A run folder at one moment. ``problem`` is set when run.json cannot be read; ``run`` is then empty."""

    folder: str
    run: dict[str, Any]
    exit: Exit | None
    exit_problem: str
    liveness: Liveness | None
    liveness_evidence: str
    log_size: int | None
    updated_at: float | None
    stops: tuple[dict[str, Any], ...] = ()
    problem: str = ""
    other: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return os.path.basename(self.folder)

    @property
    def process(self) -> dict[str, Any] | None:
        value = self.run.get("process")
        return value if isinstance(value, dict) else None


def filesystem(path: str) -> str | None:
    """The name of a filesystem on which locks prove little, None for a local one; read from /proc/self/mountinfo."""
    import ctypes

    class Statfs(ctypes.Structure):
        _fields_ = [("f_type", ctypes.c_long), ("rest", ctypes.c_byte * 512)]

    result = Statfs()
    try:
        if ctypes.CDLL(None).statfs(os.fsencode(path), ctypes.byref(result)) != 0:
            return "unknown"
    except (OSError, AttributeError):
        return "unknown"
    return _REMOTE.get(result.f_type & 0xFFFFFFFF)


def read_run(folder: str) -> RunState:
    """Everything at once; damaged files are told, nothing is raised."""
    run: dict[str, Any] = {}
    problem = ""
    try:
        run = atomic.read_json(f"{folder}/run.json")
    except (OSError, ValueError) as error:
        problem = f"run.json: {error}"
    if run and not run.get("process") and not run.get("refused"):
        # Its keepers were killed before they could write it down: the process itself did, into its lock.
        with contextlib.suppress(OSError, ValueError):
            own = atomic.read_json(f"{folder}/alive.lock")
            run = {**run, "process": {**own, "started_at": run.get("created_at"), "recorded_by": "itself"}}
    if wrong := _mistyped(run):
        run, problem = {}, f"run.json: {wrong}"
    exit_record, exit_problem = _exit(folder)
    told: tuple[Liveness | None, str] = (None, "")
    if exit_record is None:
        told = _liveness(folder, run)
        if told[0] == "dead":
            # It may have ended and been recorded since exit.json was looked for.
            exit_record, exit_problem = _exit(folder)
    if exit_record is not None:
        told = ("finished", f"exit.json, recorded by the {exit_record.recorded_by}")
    liveness, evidence = told
    log_size, changed = _stat(f"{folder}/output.log")
    times = [t for t in (changed, _stat(f"{folder}/run.json")[1], _stat(f"{folder}/exit.json")[1]) if t is not None]
    return RunState(
        folder, run, exit_record, exit_problem, liveness, evidence, log_size, max(times, default=None),
        tuple(record for name in STOP_FILES for record in atomic.read_lines(f"{folder}/{name}")), problem,
    )  # fmt: skip


#: Types of what readers of run.json look into. The schema says more, but lists have no time for a validator.
_TYPES: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "workflow": (str,),
    "digest": (str,),
    "commands": (list,),
    "subject": (dict,),
    "inputs": (dict,),
    "host": (dict,),
    "about": (dict,),
    "log": (dict,),
    "limits": (dict,),
    "process": (dict, type(None)),
    "refused": (dict, type(None)),
}


def _mistyped(run: dict[str, Any]) -> str:
    """What is not of the type that readers rely on; "" when all is."""
    for name, types in _TYPES.items():
        if name in run and not isinstance(run[name], types):
            return f"{name} is of another type"
    for command in run.get("commands", []):
        argv = command.get("argv") if isinstance(command, dict) else None
        if not isinstance(argv, list) or not all(isinstance(item, str) for item in argv):
            return "a command has no argv of texts"
    if not isinstance(run.get("inputs", {}).get("versions", {}), dict):
        return "inputs.versions is of another type"
    started = run.get("process") or {}
    for name in ("pid", "start_ticks"):
        value = started.get(name)
        if value is not None and (type(value) is not int or not 0 <= value < 1 << 63):
            return f"process.{name} is no number of a process"
    if not isinstance((run.get("refused") or {}).get("differences", []), list):
        return "refused.differences is of another type"
    return ""


def _stat(path: str) -> tuple[int | None, float | None]:
    try:
        info = os.stat(path)
        return info.st_size, info.st_mtime
    except OSError:
        return None, None


def _exit(folder: str) -> tuple[Exit | None, str]:
    try:
        return Exit.from_json(atomic.read_json(f"{folder}/exit.json")), ""
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError) as error:
        return None, f"exit.json: {error}"


def _liveness(folder: str, run: dict[str, Any]) -> tuple[Liveness | None, str]:
    """What lock and identity say while there is no exit record."""
    path = f"{folder}/alive.lock"
    held = process.lock_held(path)
    if held:
        return "alive", "alive.lock is held by the process itself"
    started = run.get("process")
    if not started and not os.path.exists(path):
        refused = run.get("refused")
        return None, "the command was never started" + (
            f": {refused.get('message', '')}" if isinstance(refused, dict) else ""
        )
    try:
        then = HostIdentity.from_json((started or run)["host"])
    except (KeyError, TypeError, AttributeError):
        return "unknown", "run.json does not say on which host it started"
    told = _without_lock(then, process.this_host(), started or {}, held, filesystem(folder), _keeper(folder, started))
    if told[0] == "alive" and (origin := _elsewhere(folder, run)):
        return (
            "unknown",
            f"this folder is a copy or was moved here from {clean(origin)}, whose run lives",
        )
    return told


def _elsewhere(folder: str, run: dict[str, Any]) -> str:
    """Where the run was started, when that is not this folder; "" when it is or when nobody can tell."""
    origin = f"{run.get('job')}/.quark-tui/runs/{os.path.basename(folder)}"
    try:
        return "" if os.path.samefile(origin, folder) else origin
    except OSError:
        return origin if isinstance(run.get("job"), str) else ""


def _keeper(folder: str, started: Any) -> int | None:
    """Pid of the guard or supervisor that has the ended process before it: it records the end first and reaps then."""
    pid, ticks = (started or {}).get("pid"), (started or {}).get("start_ticks")
    if not isinstance(pid, int) or process.start_ticks(pid) != ticks or not process.is_zombie(pid):
        return None
    fields = process.stat_fields(pid)
    parent = int(fields[1]) if fields else 0
    archive = f"/{os.path.basename(folder)}/supervisor.pyz"
    return parent if any(item.endswith(archive) for item in process.command_line(parent) or []) else None


def _without_lock(
    then: HostIdentity,
    here: HostIdentity,
    started: dict[str, Any],
    held: bool | None,
    remote: str | None,
    keeper: int | None = None,
) -> tuple[Liveness, str]:
    """A lock that nobody is seen to hold proves an end only where its holder would be seen; identity helps out."""
    if (then.name, then.machine_id) != (here.name, here.machine_id):
        return "unknown", f"it ran on host {clean(then.name)}, this is {clean(here.name)}"
    if then.boot_id and here.boot_id and then.boot_id != here.boot_id:
        return "dead", "the host was booted since it started"
    if not then.boot_id or not here.boot_id:
        return "unknown", "the kernel does not tell boots apart"
    if then.pid_namespace != here.pid_namespace:
        return "unknown", "it started in another pid namespace; a free lock proves nothing here"
    pid, ticks = started.get("pid"), started.get("start_ticks")
    if keeper is not None:
        return "alive", f"process {pid} has ended, and its keeper {keeper} is recording how"
    if isinstance(pid, int) and isinstance(ticks, int):
        if process.start_ticks(pid) == ticks and not process.is_zombie(pid):
            return "alive", f"process {pid} is the one that started, though it gave up alive.lock"
        return "dead", f"process {pid} is gone, alive.lock is free and no exit was recorded"
    if held is None:
        return "unknown", "alive.lock cannot be probed"
    if remote is not None:
        return "unknown", f"the run folder is on {remote}, where a free lock proves nothing"
    return "dead", "alive.lock is free and no exit was recorded"
