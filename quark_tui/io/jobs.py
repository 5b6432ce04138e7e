"""Job folders on disk: reading, writing, locking, and the list of those that this user knows."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from typing import Any

from quark_tui.core.job import Job
from quark_tui.io import artifacts, atomic
from quark_tui.io.glance import Glance
from quark_tui.io.paths import state_folder


class JobBusy(Exception):
    """Another quark-tui is changing or starting this job."""


def job_file(job: str) -> str:
    return f"{job}/.quark-tui/job.json"


def is_job(path: str) -> bool:
    return os.path.isfile(job_file(path))


def read_job(path: str) -> Job:
    """Raises FileNotFoundError, or ArtifactProblem when job.json is damaged."""
    return Job.from_json(artifacts.read(job_file(path)))


def write_job(path: str, job: Job) -> None:
    artifacts.write(job_file(path), job.to_json())


@contextlib.contextmanager
def locked(path: str, patience: float = 5.0) -> Iterator[int]:
    """Hold the job's lock; yields its descriptor. Raises JobBusy after ``patience`` seconds of another holding it."""
    descriptor = os.open(f"{path}/.quark-tui/job.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise JobBusy(path) from None
                time.sleep(0.05)
        yield descriptor
    finally:
        os.close(descriptor)


def _registry() -> str:
    return str(state_folder() / "jobs")


def register(path: str) -> None:
    """Remember the job, so that Home finds it; one small file a job, so two writers never meet."""
    os.makedirs(_registry(), mode=0o700, exist_ok=True)
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    atomic.write_json(f"{_registry()}/{name}.json", {"path": path})


def _registered(entry: dict[str, Any]) -> str | None:
    path = entry.get("path")
    return path if isinstance(path, str) and os.path.isabs(path) else None


_path_of = Glance(_registered, 1 << 16)


def known() -> list[str]:
    """Paths of registered jobs that are still there, in no order."""
    paths = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(_registry()):
            with contextlib.suppress(OSError, ValueError):
                if not entry.is_file():  # opening a pipe would wait for ever
                    continue
                path = _path_of(entry.path)
                if path is not None and is_job(path):
                    paths.append(path)
    return paths


def run_folders(job: str) -> list[str]:
    """The job's run folders, oldest first (ids sort by time)."""
    try:
        names = sorted(os.listdir(f"{job}/.quark-tui/runs"))
    except OSError:
        return []
    return [f"{job}/.quark-tui/runs/{name}" for name in names if os.path.isdir(f"{job}/.quark-tui/runs/{name}")]


def job_of(path: str) -> str | None:
    """The job folder that ``path`` (a job, a run folder or something below) belongs to."""
    here = os.path.abspath(path)
    while True:
        if is_job(here):
            return here
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent


def summary(job: str) -> dict[str, Any]:
    """``job.json`` as plain JSON without a validator, for lists. Raises OSError or ValueError."""
    if not is_job(job):  # opening a pipe would wait for ever
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), job_file(job))
    return atomic.read_json(job_file(job))
