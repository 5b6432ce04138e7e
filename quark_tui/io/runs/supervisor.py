"""Guard, supervisor and child: what keeps a run and its end on record, whatever happens to the program that started it.

    guard (child subreaper) ── supervisor ── child (quark-cli)

The supervisor collects once more what the approval rests on, refuses any difference, starts the child and waits for
it. Whichever of guard and supervisor is alive when the child ends writes ``exit.json``: without the supervisor the
child becomes the guard's, without the guard nothing changes. Both run from one zip archive of standard-library modules
that was copied into the run folder, so removing or upgrading quark-tui during a run harms nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import errno
import fcntl
import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from quark_tui.core.approval import approval_digest, what_differs
from quark_tui.core.command import Command
from quark_tui.core.run import RUN_SCHEMA, STOP_FILES, Exit, ended_by_stop
from quark_tui.io import atomic
from quark_tui.io.runs import evidence, process

#: Space that the log owns from the start: a full disk would kill the child at its next progress bar.
PREALLOCATE = (64 << 20, 16 << 20, 4 << 20, 1 << 20)
_RESERVE = 8192
_FALLOC_FL_KEEP_SIZE = 1
_PR_SET_CHILD_SUBREAPER = 36
_RECORDED, _NOT_STARTED = 0, 3


def utc_now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Refused(Exception):
    """The child was not started. ``code`` is a finding code; ``differences`` are ``name: was → is`` lines."""

    def __init__(self, code: str, message: str, differences: list[str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.differences = differences or []

    def to_json(self) -> dict[str, Any]:
        return {"code": self.code, "message": str(self), "differences": self.differences, "at": utc_now()}


@dataclass
class _Launch:
    """One launch: ``folder`` is the run folder as its keepers write to it, ``home`` its path at the start; the pipes
    tell guard and supervisor of each other and of the child."""

    folder: str
    home: str
    ready: int | None
    lock: int | None
    pid_read: int = -1
    pid_write: int = -1
    exec_read: int = -1
    exec_write: int = -1
    done_read: int = -1
    done_write: int = -1

    def pipes(self) -> None:
        self.pid_read, self.pid_write = os.pipe()
        self.exec_read, self.exec_write = os.pipe()
        self.done_read, self.done_write = os.pipe()

    def report(self, **message: Any) -> None:
        """One JSON line for the launcher, if it still listens; then the job's lock is given up."""
        if self.ready is not None:
            with contextlib.suppress(OSError):
                os.write(self.ready, (json.dumps(message) + "\n").encode())
        self.release()

    def release(self) -> None:
        for descriptor in (self.ready, self.lock):
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self.ready = self.lock = None


class _ExitRecord:
    """Space for ``exit.json``, taken before anything can fill the disk; the first writer wins."""

    def __init__(self, folder: str, owner: str) -> None:
        self.folder, self.owner = folder, owner
        self.path = f"{folder}/exit.json"
        self.reserves = [self._reserve(f"{folder}/.exit.{owner}.{number}") for number in (1, 2)]

    @staticmethod
    def _reserve(path: str) -> tuple[str, int | None]:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            os.write(descriptor, b" " * _RESERVE)
            os.fsync(descriptor)
        except OSError:
            return path, None
        return path, descriptor

    def _fill(self, record: Exit) -> str:
        data = atomic.to_json_bytes(record.to_json())
        path, descriptor = self.reserves.pop(0)
        if descriptor is None:
            path = f"{path}.late"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
        os.fsync(descriptor)
        os.close(descriptor)
        return path

    def write(self, record: Exit) -> None:
        """Record the end unless the other keeper already did."""
        path = self._fill(record)
        try:
            os.link(path, self.path)
            os.unlink(path)
        except FileExistsError:
            os.unlink(path)
        except OSError:  # no hard links here
            if not os.path.exists(self.path):
                os.replace(path, self.path)
        atomic.sync_directory(self.folder)

    def improve(self, record: Exit) -> None:
        """Replace our own record by a better informed one."""
        os.replace(self._fill(record), self.path)
        atomic.sync_directory(self.folder)

    def drop(self) -> None:
        for path, descriptor in self.reserves:
            if descriptor is not None:
                os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(path)
        self.reserves = []


def _libc() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None, use_errno=True)
    except OSError:
        return None


def become_subreaper() -> bool:
    """Orphans of our descendants become our children (prctl(2)); False where the kernel has no such thing."""
    libc = _libc()
    return libc is not None and libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def preallocate(descriptor: int) -> tuple[int, str]:
    """Give the log its space without changing its size: (bytes, why not); 0 bytes where the filesystem refuses."""
    libc = _libc()
    if libc is None or not hasattr(libc, "fallocate"):
        return 0, "this system's C library has no fallocate"
    for size in PREALLOCATE:
        if libc.fallocate(descriptor, _FALLOC_FL_KEEP_SIZE, ctypes.c_longlong(0), ctypes.c_longlong(size)) == 0:
            return size, ""
        code = ctypes.get_errno()
        if code not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return 0, f"the filesystem refuses fallocate: {os.strerror(code)}"
    return 0, "no space to preallocate the log"


def oom_kills() -> dict[str, int]:
    """The kernel's counts of out-of-memory kills: of this cgroup (v1 or v2) and of the whole host."""
    counts: dict[str, int] = {}
    paths = {"host": "/proc/vmstat"}
    with contextlib.suppress(OSError), open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
        for line in file:
            number, _, rest = line.rstrip("\n").partition(":")
            controllers, _, path = rest.partition(":")
            if number == "0" and not controllers:
                paths["cgroup"] = f"/sys/fs/cgroup{path}/memory.events"
            elif "memory" in controllers.split(","):
                paths["cgroup v1"] = f"/sys/fs/cgroup/memory{path}/memory.oom_control"
    for name, path in paths.items():
        with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("oom_kill "):
                    counts[name] = int(line.split()[1])
    return counts


def killed_for_memory(before: Mapping[str, int], after: Mapping[str, int]) -> bool | None:
    """True when this cgroup's count rose, False when the host's did not, None when it cannot be told."""
    if any(after[name] > before[name] for name in after if name in before and name != "host"):
        return True
    if "host" in before and "host" in after and after["host"] == before["host"]:
        return False
    return None


def resources_left(folder: str) -> dict[str, int]:
    """Bytes of memory that the kernel calls available, and of space on the run folder's filesystem."""
    left: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith(("MemTotal:", "MemAvailable:", "SwapFree:")):
                name, value = line.split()[:2]
                left[name.rstrip(":")] = int(value) * 1024
    with contextlib.suppress(OSError):
        space = os.statvfs(folder)
        left["run_folder_free"] = space.f_bavail * space.f_frsize
    return left


def sent_signals(folder: str) -> set[str]:
    """Names of the signals that ``stop`` recorded for this run."""
    records = [record for name in STOP_FILES for record in atomic.read_lines(f"{folder}/{name}")]
    return {str(record["signal"]) for record in records if "signal" in record}


def check(folder: str, run: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[list[Command], str]:
    """The commands of a run that may start now. Raises Refused, naming each difference to what was approved."""
    if run.get("schema") != RUN_SCHEMA:
        raise Refused("run_unreadable", f"run.json is no {RUN_SCHEMA}")
    if run.get("process") or os.path.exists(f"{folder}/exit.json"):
        raise Refused("digest_used", "this run was started before; a second start needs a new approval")
    approved = run["approval"]["digest"]
    for sibling in sorted(os.listdir(os.path.dirname(folder))):
        path = f"{os.path.dirname(folder)}/{sibling}"
        if path == folder:
            continue
        if process.lock_held(f"{path}/alive.lock"):
            raise Refused("already_running", f"run {sibling} of this job is alive")
        with contextlib.suppress(OSError, ValueError):
            other = atomic.read_json(f"{path}/run.json")
            if evidence.was_started(path, other) and other.get("digest") == approved:
                raise Refused("digest_used", f"this approval was used by run {sibling}")
    commands = [Command.from_json(command) for command in run["commands"]]
    now = evidence.collect(evidence.Subject.from_json(run["subject"]), environ)
    if approval_digest(commands, now) != approved or run.get("digest") != approved:
        lines = what_differs(_as_shown(folder, approved) or (commands, run["inputs"]), (commands, now))
        if not lines:
            # Nothing that was looked at changed, so what was written down did.
            lines = ["run.json (commands, inputs or digest): as approved → changed since"]
        raise Refused("digest_differs", "what would run is not what was approved", lines)
    return commands, approved


def _as_shown(folder: str, approved: str) -> tuple[list[Command], Mapping[str, Any]] | None:
    """What the approved digest stood for when it was shown, from the job's own record of it; None without one."""
    job = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    try:
        shown = atomic.read_json(f"{job}/.quark-tui/previews/{approved}.json")
        command, inputs = Command.from_json(shown["command"]), shown["inputs"]
        return ([command], inputs) if approval_digest([command], inputs) == approved else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _run_child(launch: _Launch, command: Command, run: Mapping[str, Any], alive: int, log: int) -> None:
    """In the forked child: become the command. Never returns."""
    try:
        os.setsid()
        environment = {name: value for name, value in os.environ.items() if name not in command.env_unset}
        environment.update(command.env_set)
        environment["QUARK_TUI_RUN"] = run["id"]
        os.umask(run["umask"])
        os.chdir(command.cwd)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.set_inheritable(alive, True)
        with contextlib.suppress(OSError):  # whoever finds no record of the process finds it here
            os.pwrite(alive, json.dumps(process.identity(os.getpid())).encode(), 0)
        with contextlib.suppress(OSError):  # a guard that is gone must not keep the run from starting
            os.write(launch.pid_write, str(os.getpid()).encode())
        process.reset_signals()
        os.execve(command.argv[0], list(command.argv), environment)
    except BaseException as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
        with contextlib.suppress(OSError):
            os.write(launch.exec_write, f"{command.argv[0]}: {reason}".encode("utf-8", "replace"))
    os._exit(127)


def _record_process(launch: _Launch, pid: int, keeper: str) -> None:
    path = f"{launch.folder}/run.json"
    run = atomic.read_json(path)
    run["process"] = {**process.identity(pid), "started_at": utc_now(), "recorded_by": keeper}
    atomic.write_json(path, run)


def _record_refusal(launch: _Launch, refused: Refused) -> None:
    path = f"{launch.folder}/run.json"
    with contextlib.suppress(OSError, ValueError):
        run = atomic.read_json(path)
        if not run.get("process"):
            run["refused"] = refused.to_json()
            atomic.write_json(path, run)
    launch.report(refused=refused.to_json())
    print(f"refused ({refused.code}): {refused}", *refused.differences, sep="\n", file=sys.stderr, flush=True)


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 65536):
        parts.append(part)
    return b"".join(parts)


def _exit_of(info: Any, started: str, folder: str, keeper: str, before: Mapping[str, int]) -> Exit:
    by_signal = info.si_code in (os.CLD_KILLED, os.CLD_DUMPED)
    status = None if by_signal else info.si_status
    number = info.si_status if by_signal else None
    return Exit(
        status=status,
        signal=number,
        started_at=started,
        ended_at=utc_now(),
        peak_memory_bytes=None,
        recorded_by=keeper,
        stopped_by=ended_by_stop(status, number, sent_signals(folder)),
        oom_kill=killed_for_memory(before, oom_kills()) if number == signal.SIGKILL else None,
        resources=resources_left(folder),
    )


def _record_end(record: _ExitRecord, end: Exit, pid: int) -> None:
    """Write first, reap afterwards: a kill between the two loses nothing. The peak comes with the reaping."""
    record.write(end)
    with contextlib.suppress(ChildProcessError):
        _, _, usage = os.wait4(pid, 0)
        with contextlib.suppress(OSError):
            record.improve(replace(end, peak_memory_bytes=usage.ru_maxrss * 1024))
    with contextlib.suppress(OSError):
        # Gives back what was preallocated behind the end; the size stays.
        log = f"{record.folder}/output.log"
        os.truncate(log, os.stat(log).st_size)
    record.drop()


def _supervise(launch: _Launch) -> int:
    """The supervisor's whole life; its exit status says whether the end is on record or nothing was started."""
    folder = launch.folder
    record = _ExitRecord(folder, "supervisor")
    before = oom_kills()
    try:
        run = atomic.read_json(f"{folder}/run.json")
        commands, _ = check(launch.home, run, os.environ)
        if len(commands) != 1:
            raise Refused("run_unreadable", f"{len(commands)} commands in run.json, this supervisor runs one")
        log = os.open(f"{folder}/output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        size, why = preallocate(log)
        run["log"] = {"preallocated_bytes": size, "problem": why}
        atomic.write_json(f"{folder}/run.json", run)
        alive = os.open(f"{folder}/.alive.new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(alive, fcntl.LOCK_EX)
        os.rename(f"{folder}/.alive.new", f"{folder}/alive.lock")
        started = utc_now()
        child = os.fork()
        if child == 0:
            _run_child(launch, commands[0], run, alive, log)
        os.close(alive)
        os.close(log)
        os.close(launch.exec_write)
        os.close(launch.pid_write)
        launch.exec_write = launch.pid_write = -1
        if failure := _read_all(launch.exec_read):
            os.waitpid(child, 0)
            os.unlink(f"{folder}/alive.lock")
            raise Refused("exec_failed", f"the command could not be started: {failure.decode('utf-8', 'replace')}")
    except Refused as refused:
        record.drop()
        _record_refusal(launch, refused)
        return _NOT_STARTED
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        record.drop()
        traceback.print_exc()
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = (error.strerror if isinstance(error, OSError) else None) or f"{type(error).__name__}: {error}"
        message = f"the run could not be prepared: {reason}" + ("; make room where the job is" if full else "")
        _record_refusal(launch, Refused("no_space" if full else "run_unreadable", message))
        return _NOT_STARTED
    with contextlib.suppress(OSError, ValueError):
        _record_process(launch, child, "supervisor")
    with contextlib.suppress(OSError):
        os.write(launch.done_write, b"r")
    launch.report(started=child)
    info = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    _record_end(record, _exit_of(info, started, folder, "supervisor", before), child)
    return _RECORDED


def _guard(launch: _Launch, supervisor: int) -> int:
    """The guard's whole life: stand in for a supervisor that is gone, leave with the child."""
    folder = launch.folder
    record = _ExitRecord(folder, "guard")
    before = oom_kills()
    started = utc_now()
    child = int(os.read(launch.pid_read, 32) or b"0")
    if os.read(launch.done_read, 1) != b"r" and child and not _left_by_itself(os.waitid(os.P_PID, supervisor, _PEEK)):
        # The supervisor died between fork and record: the child runs, so its record is made here.
        if failure := _read_all(launch.exec_read):
            text = f"the command could not be started: {failure.decode('utf-8', 'replace')}"
            _record_refusal(launch, Refused("exec_failed", text))
        else:
            _record_process(launch, child, "guard")
            launch.report(started=child)
    launch.release()
    while True:
        try:
            info = os.waitid(os.P_ALL, 0, _PEEK)
        except ChildProcessError:
            break
        if info is None:
            break
        if info.si_pid == child and not os.path.exists(record.path):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                started = atomic.read_json(f"{folder}/run.json")["process"]["started_at"]
            _record_end(record, _exit_of(info, started, folder, "guard", before), child)
            break
        with contextlib.suppress(ChildProcessError):
            os.waitpid(info.si_pid, 0)
        if info.si_pid == child or (info.si_pid == supervisor and _left_by_itself(info)):
            break
    record.drop()
    return 0


_PEEK = os.WEXITED | os.WNOWAIT


def _left_by_itself(info: Any) -> bool:
    """True when the supervisor was neither killed nor broken: the end is on record, or nothing was started."""
    return info is not None and info.si_code == os.CLD_EXITED and info.si_status in (_RECORDED, _NOT_STARTED)


def main(argv: list[str]) -> int:
    """``guard RUN_FOLDER [READY_FD LOCK_FD]``; the descriptors are the launcher's, "-" for none."""
    if len(argv) not in (2, 4) or argv[0] != "guard":
        print("usage: guard RUN_FOLDER [READY_FD LOCK_FD]", file=sys.stderr)
        return 2
    folder = os.path.abspath(argv[1])
    os.chdir(folder)  # everything of the run is written relative to it: the job may be moved while it runs
    ready, lock = (None if text == "-" else int(text) for text in (argv[2:] or ["-", "-"]))
    for descriptor in (ready, lock):
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        # At shutdown everyone is told to go: whoever keeps the record has to outlast the child.
        signal.signal(number, signal.SIG_IGN)
    become_subreaper()
    launch = _Launch(".", folder, ready, lock)
    launch.pipes()
    supervisor = os.fork()
    if supervisor == 0:
        status = 4
        try:
            for descriptor in (launch.pid_read, launch.done_read):
                os.close(descriptor)
            status = _supervise(launch)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    for descriptor in (launch.pid_write, launch.exec_write, launch.done_write):
        os.close(descriptor)
    return _guard(launch, supervisor)
