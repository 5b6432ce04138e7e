"""Starting a run on this host: the run folder, the archive that keeps it, and the guard."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pwd
import resource
import select
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import quark_tui
from quark_tui.core.command import Command
from quark_tui.core.run import RUN_SCHEMA
from quark_tui.io import atomic
from quark_tui.io.runs import evidence, process
from quark_tui.io.runs.supervisor import utc_now

#: The modules that guard and supervisor are made of: standard library only, carried unchanged.
CARRIED = (
    "__init__.py",
    "core/__init__.py",
    "core/approval.py",
    "core/command.py",
    "core/digest.py",
    "core/run.py",
    "core/text.py",
    "core/model/__init__.py",
    "core/model/headers.py",
    "io/__init__.py",
    "io/atomic.py",
    "io/checkpoint.py",
    "io/runs/__init__.py",
    "io/runs/evidence.py",
    "io/runs/process.py",
    "io/runs/supervisor.py",
)
_MAIN = "import sys\nfrom quark_tui.io.runs.supervisor import main\nsys.exit(main(sys.argv[1:]))\n"
_LIMITS = ("AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "STACK")


# A guard that ended is reaped at the next launch; one that lives belongs to nobody.
_guards: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, slots=True)
class Started:
    """What became of a launch: ``pid`` of the child, or the refusal as recorded (code, message, differences)."""

    folder: str
    run_id: str
    pid: int | None
    refused: Mapping[str, Any] | None


def write_archive(path: str) -> None:
    """The zip archive that guard and supervisor run from, made of this installation's own modules."""
    root = os.path.dirname(os.path.abspath(quark_tui.__file__))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", _MAIN)
        for name in CARRIED:
            archive.write(os.path.join(root, name), f"quark_tui/{name}")


def new_run_id() -> str:
    """Sorts by start, to the microsecond: the last one is the newest."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{now:%Y%m%dT%H%M%S.%fZ}-{os.urandom(3).hex()}"


def who() -> str:
    """The name of the user that approves; the uid where it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def launch(
    job: str,
    workflow: str,
    commands: Sequence[Command],
    digest: str,
    subject: evidence.Subject,
    inputs: Mapping[str, Any],
    via: str,
    unattended: bool,
    lock: int | None,
    about: Mapping[str, Any] | None = None,
    keep: Sequence[str] = (),
) -> Started:
    """Write the run folder and start the guard; returns when the child's exec was recorded or refused.

    ``lock`` is a descriptor of the job's lock: guard and supervisor hold it until then, so that a launcher that is
    killed here cannot lead to a second start. ``about`` is kept in the record for whoever judges the run later; it is
    no part of what was approved. ``keep`` are files that are copied into the run folder, as they were when it started.
    Raises OSError when the run folder cannot be written.
    """
    run_id = new_run_id()
    folder = f"{job}/.quark-tui/runs/{run_id}"
    os.makedirs(folder, mode=0o700)
    umask = os.umask(0o077)
    os.umask(umask)
    run = {
        "schema": RUN_SCHEMA,
        "id": run_id,
        "workflow": workflow,
        "job": job,
        "commands": [command.to_json() for command in commands],
        "digest": digest,
        "subject": subject.to_json(),
        "inputs": inputs,
        "approval": {"digest": digest, "approved_at": utc_now(), "by": who(), "via": via},
        "launcher": {"kind": "local", "pid": os.getpid(), "unattended": unattended, "version": quark_tui.__version__},
        "host": process.this_host().to_json(),
        "created_at": utc_now(),
        "about": dict(about or {}),
        "umask": umask,
        "limits": {name: list(resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))) for name in _LIMITS},
        "process": None,
        "refused": None,
    }
    for path in keep:
        shutil.copyfile(path, f"{folder}/{os.path.basename(path)}")
    archive = f"{folder}/supervisor.pyz"
    write_archive(archive)
    atomic.write_json(f"{folder}/run.json", run)
    read_end, write_end = os.pipe()
    passed = [write_end] + ([lock] if lock is not None else [])
    with open(f"{folder}/supervisor.log", "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as log:
        guard = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", archive, "guard", folder),
                *(str(write_end), "-" if lock is None else str(lock)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            pass_fds=passed,
            start_new_session=True,
        )
    _guards[:] = [one for one in _guards if one.poll() is None] + [guard]
    os.close(write_end)
    message = _wait(read_end)
    if "started" in message:
        return Started(folder, run_id, int(message["started"]), None)
    if "refused" in message:
        return Started(folder, run_id, None, message["refused"])
    return _from_record(folder, run_id)


def _wait(read_end: int) -> dict[str, Any]:
    """The guard's one JSON line; empty when it ended without a word."""
    data = b""
    with contextlib.closing(os.fdopen(read_end, "rb", buffering=0)) as pipe:
        while not data.endswith(b"\n"):
            select.select([pipe], [], [])
            part = pipe.read(65536)
            if not part:
                break
            data += part
    try:
        message = json.loads(data)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _from_record(folder: str, run_id: str) -> Started:
    """Guard and supervisor ended without a word: believe what they wrote down."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        run = atomic.read_json(f"{folder}/run.json")
        if run.get("process"):
            return Started(folder, run_id, int(run["process"]["pid"]), None)
        if run.get("refused"):
            return Started(folder, run_id, None, run["refused"])
        if evidence.was_started(folder, run):
            return Started(folder, run_id, int(atomic.read_json(f"{folder}/alive.lock")["pid"]), None)
    refused = {
        "code": "launch_failed",
        "message": "guard and supervisor ended before the command was started",
        "differences": [],
    }
    return Started(folder, run_id, None, refused)
