"""The program as a script sees it: a process of its own, an exit status, one object on stdout."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
#: Seconds; a bound against hanging, not a measure.
TIMEOUT = 900

#: What the installed console script does, for this checkout; PYTHONPATH would reach quark-cli as well.
PROGRAM = (
    sys.executable,
    "-c",
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[0] = 'quark-tui'\n"
    "from quark_tui.cli import main; sys.exit(main())",
)

LEVELS = ("info", "low", "medium", "high", "block")
#: Keys under which an answer names paths; relative ones would mean something else in another folder.
_PATHS = frozenset(["path", "job", "run_folder", "cwd", "output_log", "exit", "executable", "prefix"])


@dataclass(frozen=True)
class Twin:
    """``twin(*words)`` → (exit status, parsed JSON or text of stdout, stderr). ``env`` is the whole environment."""

    env: Mapping[str, str]
    cwd: Path
    program: Sequence[str] = PROGRAM
    changes: Mapping[str, str] = field(default_factory=dict)

    def __call__(
        self, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> tuple[int, Any, str]:
        done = subprocess.run(
            [*self.program, *arguments],
            env={**self.env, **self.changes, **(env or {})},
            cwd=cwd or self.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        if "--json" not in arguments or "--follow" in arguments or not done.stdout:
            return done.returncode, done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout), done.stderr

    def ask(self, command: str, *arguments: str, exit: int = 0, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON answer of a command whose exit status is known beforehand, its envelope checked."""
        status, answer, errors = self(command, *arguments, "--json", env=env)
        assert status == exit, f"{command} ended with {status}: {errors or json.dumps(answer, indent=1)[:4000]}"
        assert errors == "", errors
        check_envelope(command, answer)
        return answer

    def wrong(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        """The one line of a question that was wrong: exit 2, nothing on stdout, no traceback."""
        status, answer, errors = self(*arguments, "--json", env=env)
        assert (status, answer) == (2, ""), (status, answer, errors)
        check_stderr(errors)
        return errors.strip()

    @contextmanager
    def follow(self, path: str) -> Iterator[Iterator[dict[str, Any]]]:
        """The answers of ``status --follow``, one a line, as they come."""
        process = subprocess.Popen(
            [*self.program, "status", path, "--follow", "--json"],
            env={**self.env, **self.changes},
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        bound = threading.Timer(TIMEOUT, process.kill)
        bound.start()
        try:
            yield _answers(process)
        finally:
            bound.cancel()
            if process.poll() is None:
                process.kill()
            process.communicate()

    def wait(self, path: str, condition: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """The first answer of ``status --follow`` for which ``condition`` holds; fails when the run ends before."""
        last: dict[str, Any] = {}
        with self.follow(path) as answers:
            for last in answers:
                if condition(last):
                    return last
        raise AssertionError(f"never came: {what}; the last was {json.dumps(last, indent=1)[:6000]}")

    def end(self, path: str) -> dict[str, Any]:
        """The last answer of ``status --follow``: the run is over."""
        lines: list[dict[str, Any]] = []
        with self.follow(path) as answers:
            lines.extend(answers)
        assert lines, "status --follow said nothing"
        for one in lines[:-1]:
            assert one["liveness"] == "alive", "only the last line is final"
        check_trees(lines)
        return lines[-1]


def _answers(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        answer = json.loads(line)
        check_envelope("status", answer)
        yield answer
    assert process.stderr.read() == ""


def check_envelope(command: str, answer: dict[str, Any]) -> None:
    """``schema``, the shape of ``findings``, and that every path is absolute."""
    assert answer["schema"] == f"quark-tui.{command}.v1"
    for finding in answer["findings"]:
        assert set(finding) >= {"level", "code", "message", "evidence", "next_step"}, finding
        assert all(isinstance(finding[key], str) for key in finding), finding
        assert finding["level"] in LEVELS and finding["code"].isidentifier() and finding["message"], finding
        assert "Traceback" not in finding["message"], finding
    for name, value in _named(answer):
        if name in _PATHS and isinstance(value, str):
            assert value.startswith("/"), f"{name} is relative: {value}"


def check_stderr(text: str) -> None:
    """A wrong question gets one line that can be printed, and never a traceback."""
    lines = text.splitlines()
    assert len(lines) == 1 and text.endswith("\n"), text
    assert lines[0].startswith("quark-tui") or lines[0], text
    assert "Traceback" not in text and lines[0].isprintable(), text


def check_trees(answers: Sequence[dict[str, Any]]) -> None:
    """At most one task is active, and only while the run is; a done task stays done as the evidence grows."""
    done: set[str] = set()
    for answer in answers:
        active = [task["key"] for task in answer["tasks"] if task["state"] == "active"]
        assert len(active) <= (1 if answer["verdict"] == "running" else 0), (answer["verdict"], active)
        now = {task["key"] for task in answer["tasks"] if task["state"] == "done"}
        assert done <= now, f"taken back: {done - now}"
        done = now


def _named(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _named(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _named(item, name)
    else:
        yield name, value


def codes(answer: Mapping[str, Any], *levels: str) -> list[str]:
    """Codes of the findings of these levels (all of them where none is named), in order."""
    return [finding["code"] for finding in answer["findings"] if not levels or finding["level"] in levels]


def task(answer: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The task at a path of keys, such as ``quantize``, ``calibrate``."""
    below = answer["tasks"]
    found: dict[str, Any] = {}
    for key in keys:
        found = next(one for one in below if one["key"] == key)
        below = found["children"]
    return found
