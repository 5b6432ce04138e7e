"""A process that starts a run as a user interface would, and stays: the launcher of the kill table."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from quark_tui.io.runs import process
from tests.e2e.support.job import Job
from tests.e2e.support.twin import ROOT
from tests.support.waiting import until

#: With "deaf" it ignores what a terminal sends, which its children inherit unless somebody takes care.
_LAUNCHER = """
import json, os, signal, sys
path, job, digest, deaf = sys.argv[1:5]
sys.path.insert(0, path)
if deaf == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
from quark_tui.engine.run import run
answer = run(job, digest, "cli", False, os.environ)
print(json.dumps({**answer.to_json(), "exit": answer.exit}), flush=True)
sys.stdin.read()
"""


@dataclass
class Launched:
    """A started run with the pids of launcher, guard, supervisor and child."""

    job: Job
    process: subprocess.Popen[str]
    pids: dict[str, int] = field(default_factory=dict)

    def kill(self, *names: str) -> None:
        """SIGKILL to all of them in one breath."""
        for name in names:
            os.kill(self.pids[name], signal.SIGKILL)
        if "launcher" in names:
            self.process.wait()
        for name in names:
            until(lambda n=name: self.gone(n), f"{name} is gone")

    def gone(self, name: str) -> bool:
        return process.stat_fields(self.pids[name]) is None or process.is_zombie(self.pids[name])

    def close(self) -> None:
        """End what is left."""
        for name in ("child", "supervisor", "guard", "launcher"):
            if name in self.pids and not self.gone(name):
                os.kill(self.pids[name], signal.SIGKILL)
        self.process.communicate()
        self.job.gone()


def launch(job: Job, *, deaf: bool = False, program: Path = ROOT, python: str = sys.executable) -> Launched:
    """Approve the job's command from a process of its own; ``program`` is the folder that holds its quark_tui."""
    argv = [python, "-c", _LAUNCHER, str(program), job.path, job.digests["command"], "deaf" if deaf else "hears"]
    launcher = subprocess.Popen(
        argv, env={**job.twin.env}, cwd=job.twin.cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert launcher.stdout is not None
    answer = json.loads(launcher.stdout.readline())
    assert answer["exit"] == 0, answer
    job.started(answer)
    supervisor = _parent(job.pid)
    pids = {"launcher": launcher.pid, "guard": _parent(supervisor), "supervisor": supervisor, "child": job.pid}
    assert len(set(pids.values())) == 4
    return Launched(job, launcher, pids)


def _parent(pid: int) -> int:
    fields = process.stat_fields(pid)
    assert fields is not None
    return int(fields[1])
