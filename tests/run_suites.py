"""``python tests/run_suites.py [SUITE]…``: run the suites one by one, all of them, and say what each took.

Exit status 1 when any failed. The last line is like pytest's own: ``N passed, …``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_OUTCOME = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)\b")
_SUMMARY = re.compile(r"^(=+ )?\d+ (passed|failed|errors?|skipped|deselected).* in [0-9.]+s")
#: pytest's status when nothing was collected.
_NOTHING = 5

# Two workers where tests share no terminal, cache or clock; whole files together, for their fixtures.
_TWO = ("-n", "2", "--dist", "loadfile")
LINT: tuple[tuple[str, ...], ...] = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("lint-imports",),
)
SUITES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "core": (("tests/core",), _TWO),
    "io": (("tests/io", "tests/demo"), ()),
    "engine": (("tests/engine",), _TWO),
    "ui": (("tests/ui", "tests/terminal", "tests/test_wall.py", "tests/test_packaging.py"), _TWO),
    # Its counts are printed: what was found there is part of the answer.
    "corpus": (("tests/corpus",), ("-s",)),
    "e2e": (("tests/e2e",), _TWO),
}


@dataclass(slots=True)
class Done:
    """One suite: its status (0 is good), seconds, and pytest's outcomes."""

    name: str
    status: int
    seconds: float
    outcomes: Counter[str] = field(default_factory=Counter)


def unnamed() -> tuple[str, ...]:
    """Folders and files of tests that no suite names, so that a new one is never forgotten."""
    named = {path for paths, _ in SUITES.values() for path in paths}
    tops = {"/".join(path.relative_to(ROOT).parts[:2]) for path in (ROOT / "tests").rglob("test_*.py")}
    return tuple(sorted(tops - named))


def run(argv: Sequence[str]) -> tuple[int, Counter[str]]:
    """Run from the top of the checkout, showing its output; its exit status and what pytest's last line counts."""
    outcomes: Counter[str] = Counter()
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    with subprocess.Popen(
        argv, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if _SUMMARY.match(line):
                outcomes = Counter({word.rstrip("s"): int(count) for count, word in _OUTCOME.findall(line)})
    return process.returncode, outcomes


def lint() -> Done:
    begun = time.monotonic()
    status = 0
    for argv in LINT:
        print(f"$ {' '.join(argv)}", flush=True)
        status |= run([str(Path(sys.executable).with_name(argv[0])), *argv[1:]])[0]
    return Done("lint", status, time.monotonic() - begun)


def suite(name: str, paths: Sequence[str], options: Sequence[str]) -> Done:
    begun = time.monotonic()
    print(f"\n$ pytest {' '.join(paths)}", flush=True)
    status, outcomes = run([sys.executable, "-m", "pytest", "-q", *options, *paths])
    return Done(name, status, time.monotonic() - begun, outcomes)


def main(wanted: Sequence[str]) -> int:
    every = {**SUITES, **({"other": (unnamed(), ())} if unnamed() else {})}
    if unknown := [name for name in wanted if name not in every and name != "lint"]:
        print(f"no suite {unknown[0]}; there are: lint {' '.join(every)}")
        return 2
    done = [lint()] if not wanted or "lint" in wanted else []
    done += [suite(name, *parts) for name, parts in every.items() if not wanted or name in wanted]
    total: Counter[str] = Counter()
    print("\nsuite        result      seconds  tests")
    for one in done:
        total += one.outcomes
        tests = ", ".join(f"{count} {word}" for word, count in one.outcomes.items())
        result = "ok" if one.status == 0 else "NO TESTS" if one.status == _NOTHING else "FAILED"
        print(f"{one.name:<12} {result:<10} {one.seconds:>8.1f}  {tests}")
    failed = [one.name for one in done if one.status != 0]
    if failed:
        print(f"not good: {', '.join(failed)}")
    words = [f"{total[word]} {word}" for word in ("failed", "error", "passed", "skipped") if total[word]]
    print(f"{', '.join(words) or 'no tests'} in {sum(one.seconds for one in done):.1f}s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
