"""Run a short command and keep what it printed: bounded in time and in size, nothing of it left behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Bytes kept of each stream; a tool that prints more than this is not one that we ask.
LIMIT = 4 << 20
#: Seconds that a killed command gets to end. It needs none, unless it waits in the kernel.
KILL_PATIENCE = 2.0

#: Commands that a kill did not end; each is reaped by a later call, once the kernel lets it go.
_UNENDED: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, slots=True)
class Captured:
    """``status``: exit status, negative for a signal, None when the command was ended for taking too long.

    ``stuck`` is the pid of a command that was killed and did not end: the kernel keeps it in an uninterruptible wait,
    which a broken GPU is known for.
    """

    status: int | None
    stdout: bytes
    stderr: bytes
    overflowed: bool = False
    stuck: int | None = None


def capture(
    argv: Sequence[str], env: Mapping[str, str], *, timeout: float, cwd: str | None = None, limit: int = LIMIT
) -> Captured:
    """Run ``argv`` with exactly ``env`` for at most ``timeout`` seconds.

    The command gets no terminal and no stdin, and its whole process group is ended when it takes too long or prints
    more than ``limit`` bytes to a stream. It is waited for until it has ended, but for one that even a kill does not
    end. Raises OSError or ValueError (a NUL in an argument) when it cannot start.
    """
    _UNENDED[:] = [earlier for earlier in _UNENDED if earlier.poll() is None]
    process = subprocess.Popen(
        list(argv),
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    kept: dict[int, bytearray] = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    names = list(kept)
    deadline = time.monotonic() + timeout
    overflowed = late = False
    stuck = None
    try:
        with selectors.DefaultSelector() as selector:
            for descriptor in names:
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                left = deadline - time.monotonic()
                if left <= 0:
                    late = True
                    break
                ready = selector.select(min(left, 0.1))
                if not ready and process.poll() is not None:
                    break  # a grandchild keeps the pipe open; what the command itself printed has been read
                for key, _ in ready:
                    descriptor = key.fd
                    chunk = os.read(descriptor, 65536)
                    if not chunk:
                        selector.unregister(descriptor)
                    elif len(kept[descriptor]) + len(chunk) > limit:
                        overflowed = True
                    else:
                        kept[descriptor] += chunk
                if overflowed:
                    break
        if not (late or overflowed):
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                late = True
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.stderr.close()
        try:
            process.wait(KILL_PATIENCE)
        except subprocess.TimeoutExpired:
            stuck = process.pid
            _UNENDED.append(process)
    status = None if late else process.returncode
    return Captured(status, bytes(kept[names[0]]), bytes(kept[names[1]]), overflowed, stuck)
