"""Real runs with a child that tests can hold and release: a launcher process, guard, supervisor and child."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from quark_tui.io.runs import process
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]

#: Writes a line, waits until somebody opens the gate, writes another, leaves with the status that the gate says.
CHILD = """
import sys
print("begun", flush=True)
with open(sys.argv[1]) as gate:
    word = gate.read().strip()
print("ended", flush=True)
sys.exit(int(word or 0))
"""

#: Starts a run and stays, as a user interface would. With "deaf" it ignores what a terminal sends.
LAUNCHER = """
import json, os, signal, sys
from quark_tui.core.approval import approval_digest
from quark_tui.core.command import Command
from quark_tui.io.runs import evidence, launcher
job, gate, python, deaf = sys.argv[1:5]
if deaf == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
command = Command((python, "-c", os.environ["CHILD_SOURCE"], gate), job, {"SET_FOR_RUN": "yes"}, ("CHILD_SOURCE",))
subject = evidence.Subject((job + "/quant_plan.json",), job + "/model", python, (), job + "/.quark-tui/runs")
inputs = evidence.collect(subject, os.environ)
digest = approval_digest([command], inputs)
started = launcher.launch(job, "ptq", [command], digest, subject, inputs, "cli", True, None)
print(json.dumps({"folder": started.folder, "pid": started.pid, "refused": started.refused}), flush=True)
sys.stdin.read()
"""


@dataclass
class HeldRun:
    """A run whose child waits at the gate; ``pids`` maps launcher, guard, supervisor and child to their pids."""

    job: Path
    folder: Path
    launcher: subprocess.Popen[str]
    pids: dict[str, int] = field(default_factory=dict)

    def release(self, status: int = 0) -> None:
        gate = until(self._gate, "the child is at the gate")
        os.write(gate, str(status).encode())
        os.close(gate)

    def _gate(self) -> int | None:
        try:
            return os.open(self.job / "gate", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            return None

    def close(self) -> None:
        """End what is left of the run."""
        for pid in self.pids.values():
            if process.start_ticks(pid) is not None:
                os.kill(pid, signal.SIGKILL)
        self.launcher.communicate()

    def kill(self, *names: str) -> None:
        for name in names:
            os.kill(self.pids[name], signal.SIGKILL)
        for name in names:
            until(lambda n=name: _gone(self.pids[n]) or n == "launcher", f"{name} is gone")
        if "launcher" in names:
            self.launcher.wait()

    def exit(self) -> dict:
        """exit.json, once it is there."""
        return json.loads(until(lambda: (self.folder / "exit.json").exists() and self._read("exit.json"), "exit.json"))

    def gone(self, name: str) -> None:
        until(lambda: _gone(self.pids[name]), f"{name} has left")

    def _read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def log(self) -> str:
        return self._read("output.log")


def _gone(pid: int) -> bool:
    return process.stat_fields(pid) is None or process.is_zombie(pid)


def make_job(folder: Path) -> Path:
    """A job folder with just enough in it for a run to rest on."""
    (folder / ".quark-tui" / "runs").mkdir(parents=True)
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model" / "modeling_own.py").write_text("VALUE = 1\n")
    (folder / "quant_plan.json").write_text('{"global_scheme": "fp8"}')
    os.mkfifo(folder / "gate")
    return folder


def start(job: Path, *, deaf: bool = False, pythonpath: Path = ROOT, child: str = CHILD, holds: bool = True) -> HeldRun:
    """Start the run from a launcher process of its own and wait until its child has begun, if it is one that holds."""
    environment = {**os.environ, "PYTHONPATH": str(pythonpath), "CHILD_SOURCE": child}
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(job), str(job / "gate"), sys.executable, "deaf" if deaf else "hears"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert launcher.stdout is not None
    told = json.loads(launcher.stdout.readline())
    folder = Path(told["folder"])
    run = HeldRun(job, folder, launcher)
    if told["pid"] is not None and holds:
        supervisor = parent(told["pid"])
        run.pids = {
            "launcher": launcher.pid,
            "guard": parent(supervisor),
            "supervisor": supervisor,
            "child": told["pid"],
        }
        until(lambda: "begun" in run.log(), "the child has begun")
    return run


def parent(pid: int) -> int:
    fields = process.stat_fields(pid)
    assert fields is not None
    return int(fields[1])
