"""``python -m benchmarks [-n N]``: ratios against what is budgeted. Repetitions interleave, medians count.

Exit status 1 when a budget is exceeded.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
_IDLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Screen:
    """One start in a pty: seconds to the complete first screen, resident bytes, then bytes and CPU share while idle."""

    seconds: float
    resident: int
    idle_bytes: int
    idle_cpu: float


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    """Resident memory in bytes: what ``VmRSS`` says."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no VmRSS")


def start(argv: Sequence[str], env: Mapping[str, str], idle: bool) -> Screen:
    """Start, wait for the word ready in the last line, look, and quit with q."""
    begun = time.monotonic()
    with Terminal(argv, env, 120, 40, cwd=str(ROOT)) as terminal:
        terminal.until(lambda: "ready" in terminal.display[-1], "the last line says ready")
        seconds = time.monotonic() - begun
        while terminal.read(0.3):
            pass
        resident = _resident(terminal.pid)
        sent, used = 0, 0.0
        if idle:
            before, end = _cpu(terminal.pid), time.monotonic() + _IDLE_SECONDS
            while (left := end - time.monotonic()) > 0:
                sent += terminal.read(left)
            used = (_cpu(terminal.pid) - before) / _IDLE_SECONDS
        terminal.press("q")
        if terminal.wait() != 0:
            raise SystemExit(f"{argv} ended with {terminal.status}")
    return Screen(seconds, resident, sent, used)


def timed(argv: Sequence[str], env: Mapping[str, str]) -> float:
    """Seconds that a command takes, its interpreter included."""
    begun = time.monotonic()
    done = subprocess.run(argv, env=env, cwd=ROOT, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 1):  # 1 is an answer too: a job that was never started
        raise SystemExit(f"{argv} ended with {done.returncode}")
    return time.monotonic() - begun


class Report:
    """Lines of a table, and whether a budget was exceeded."""

    def __init__(self) -> None:
        self.exceeded = False

    def line(self, what: str, measured: str, base: str, value: float, unit: str, budget: float | None) -> None:
        over = budget is not None and value > budget
        self.exceeded |= over
        promised = "" if budget is None else f"budget {budget:g}{unit}  {'EXCEEDED' if over else 'kept'}"
        print(f"{what:<44} {measured:>10} {base:>10} {value:>7.2f}{unit:<3} {promised}")


def screens(report: Report, env: Mapping[str, str], count: int) -> None:
    """First complete screen, resident memory and idling of Home against the empty application."""
    home, empty = [sys.executable, "-m", "quark_tui"], [sys.executable, "-m", "benchmarks.empty_app"]
    for argv in (home, empty):  # byte code and the page cache
        start(argv, env, False)
    ours, theirs = [], []
    for turn in range(count):
        theirs.append(start(empty, env, turn == 0))
        ours.append(start(home, env, turn == 0))

    def pair(value: Callable[[Screen], float]) -> tuple[float, float]:
        return statistics.median(map(value, ours)), statistics.median(map(value, theirs))

    one, other = pair(lambda screen: screen.seconds)
    report.line(
        "first complete screen of Home", f"{one * 1000:.0f} ms", f"{other * 1000:.0f} ms", one / other, "x", 1.5
    )
    one, other = pair(lambda screen: screen.resident)
    report.line("resident memory on Home", f"{one / 1e6:.1f} MB", f"{other / 1e6:.1f} MB", one / other, "x", 1.6)
    report.line("idle, to the terminal", "", "", ours[0].idle_bytes, "B", 0)
    report.line("idle, of a core", "", f"{theirs[0].idle_cpu:.2%}", ours[0].idle_cpu * 100, "%", 0.5)


def commands(report: Report, env: Mapping[str, str], job: str, count: int) -> None:
    """Start-up of the plain twin against an interpreter that does nothing."""
    bare = [sys.executable, "-c", "pass"]
    asked = {
        "quark-tui --version": [sys.executable, "-m", "quark_tui", "--version"],
        "quark-tui sessions --json": [sys.executable, "-m", "quark_tui", "sessions", "--json"],
        "quark-tui status JOB --json": [sys.executable, "-m", "quark_tui", "status", job, "--json"],
    }
    for argv in (bare, *asked.values()):
        timed(argv, env)
    base: list[float] = []
    taken: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(count):
        base.append(timed(bare, env))
        for name, argv in asked.items():
            taken[name].append(timed(argv, env))
    other = statistics.median(base)
    for name, seconds in taken.items():
        one = statistics.median(seconds)
        report.line(name, f"{one * 1000:.0f} ms", f"{other * 1000:.0f} ms", one / other, "x", None)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("-n", type=int, default=7, help="repetitions of each measurement (default: 7)")
    count = max(1, parser.parse_args().n)
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        apart = ("QUARK_TUI_", "TEXTUAL", "NO_COLOR", "COLUMNS", "LINES")
        env = {name: value for name, value in os.environ.items() if not name.startswith(apart)}
        env |= {"QUARK_TUI_STATE": f"{folder}/state", "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        print(f"medians of n = {count}, interleaved, at 120x40; Home with 10 jobs\n")
        print(f"{'what':<44} {'measured':>10} {'against':>10}   ratio")
        jobs = [_job(f"{folder}/jobs/{number:02}", env) for number in range(10)]
        screens(report, env, count)
        commands(report, env, jobs[0], count)
    return 1 if report.exceeded else 0


def _job(path: str, env: Mapping[str, str]) -> str:
    """A registered job, made without a model."""
    script = (
        "import os, sys\nfrom quark_tui.core.job import Job\nfrom quark_tui.io import jobs\n"
        "path = sys.argv[1]\nos.makedirs(f'{path}/.quark-tui/runs')\n"
        "jobs.write_job(path, Job('ptq', '2026-01-01T00:00:00Z', '/models/any', f'{path}/out', None))\n"
        "jobs.register(path)\n"
    )
    subprocess.run([sys.executable, "-c", script, path], env=env, cwd=ROOT, check=True)
    return path


if __name__ == "__main__":
    sys.exit(main())
