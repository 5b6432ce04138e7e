"""The demonstration job: found again or made, and the app opened on it in the environment that its run needs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from quark_tui.core.text import clean
from quark_tui.demo.setup import SMOLLM2, Say, Settings, SetupProblem
from quark_tui.io import jobs

NAME = "smollm2"
#: Measured on two cores: 71 s, of which starting and loading take 30 s; with 32 samples 164 s on busy ones.
SAMPLES, LENGTH = 16, 128
SETS = (
    ("global_scheme", "fp8"),
    ("device_strategy", "cpu"),
    ("num_calib_data", str(SAMPLES)),
    ("seq_len", str(LENGTH)),
)
_SHORT = "a demonstration: the run shall take a minute or two on two CPU cores"
REASONS = (("num_calib_data", _SHORT), ("seq_len", _SHORT), ("device_strategy", "runs on every machine"))
#: What make tells its commands about itself; a run that is started from the app has nothing to do with it.
_OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MAKE_TERMOUT", "MAKE_TERMERR")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A demonstration job; ``made`` says that it was not there before."""

    path: Path
    made: bool


def environment(made: Settings, base: Mapping[str, str]) -> dict[str, str]:
    """What the app is run with, and so the run: ``base`` with what the target environment needs."""
    return {name: value for name, value in made.environment(base).items() if name not in _OF_MAKE}


def choose(made: Settings, fresh: bool, env: Mapping[str, str], say: Say) -> Chosen:
    """The newest demonstration job while its result was not accepted, else a new one; ``fresh`` asks for a new one.

    Raises SetupProblem when none can be made.
    """
    folder = made.cache / "demo"
    number = max(_numbers(folder), default=0)
    if number and not fresh:
        newest = _path(folder, number)
        word = _closed(newest)
        if not word:
            return Chosen(newest, False)
        say(f"{clean(newest)}: {word}, so another one is made")
    return Chosen(_make(made, _path(folder, number + 1), env), True)


def _path(folder: Path, number: int) -> Path:
    return folder / (NAME if number == 1 else f"{NAME}-{number}")


def _numbers(folder: Path) -> list[int]:
    """The numbers of what bears a name of ours, whatever it is: no name is used twice."""
    found: list[int] = []
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    for name in names:
        if name == NAME:
            found.append(1)
        tail = name.removeprefix(f"{NAME}-")
        if tail != name and tail.isascii() and tail.isdigit() and len(tail) < 10:
            found.append(int(tail))
    return found


def _closed(job: Path) -> str:
    """Why the job is not opened again; "" when it is."""
    try:
        accepted = jobs.summary(str(job)).get("accepted")
    except (OSError, ValueError) as error:
        return f"it cannot be read ({clean(error)})"
    return "its result was accepted" if accepted else ""


def _make(made: Settings, path: Path, env: Mapping[str, str]) -> Path:
    from quark_tui.core.answer import WrongQuestion
    from quark_tui.engine.new import new

    python, model = str(made.python), str(made.models[SMOLLM2])
    try:
        answer = new(str(path), "ptq", model, None, python, SETS, env, REASONS)
    except (OSError, WrongQuestion) as error:
        raise SetupProblem(f"The job {clean(path)} could not be made: {clean(error)}.") from error
    if answer.body["job"] is None:
        finding = answer.findings[0]
        raise SetupProblem(f"The job {clean(path)} could not be made: {finding.message}.", finding.next_step)
    return path


def stands(job: Path) -> str:
    """Where the job stands, in words."""
    from quark_tui.engine.listing import job_row

    try:
        row, _ = job_row(str(job))
    except (OSError, ValueError) as error:
        return f"unreadable: {clean(error)}"
    word = str(row["verdict"]).replace("_", " ")
    return f"{word}, {clean(row['stage'])}" if row["stage"] else word


def installed_quark(made: Settings, env: Mapping[str, str]) -> Path | None:
    """The interpreter beside a quark-cli of the person's own: of the active environment, else on PATH."""
    prefixes = [env[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if env.get(name)]
    places = [Path(prefix) / "bin" / "quark-cli" for prefix in prefixes]
    if on_path := shutil.which("quark-cli", path=env.get("PATH", os.defpath)):
        places.append(Path(on_path).absolute())
    for place in places:
        python = place.with_name("python")
        if os.access(place, os.X_OK) and os.access(python, os.X_OK) and python != made.python:
            return python
    return None


def on_a_gpu(made: Settings, env: Mapping[str, str]) -> str:
    """The command that makes the same job for a GPU and an installed Quark; "" where there are not both."""
    from quark_tui.io import gpus

    python = installed_quark(made, env)
    if python is None:
        return ""
    seen = gpus.look(env)["gpus"]
    if not seen:
        return ""
    given = {**dict(SETS), "device_strategy": "single", "devices": str(seen[0]["index"])}
    words = [str(Path.cwd() / f"{NAME}-gpu"), "--workflow", "ptq", "--model", str(made.models[SMOLLM2])]
    words += ["--python", str(python), *(word for pair in given.items() for word in ("--set", "=".join(pair)))]
    return shlex.join([*program(), "new", *words])


def program() -> list[str]:
    """The command line that starts quark-tui as it was started here."""
    return [sys.executable, "-m", "quark_tui"]


def open_it(made: Settings, fresh: bool, base: Mapping[str, str], say: Say) -> int:
    """Say what there is, then become the app; without a terminal say which line opens it and return 0.

    Raises SetupProblem when there is no job and none can be made.
    """
    start = time.monotonic()
    env = environment(made, base)
    chosen = choose(made, fresh, env, say)
    word = f"made in {time.monotonic() - start:.1f} s" if chosen.made else "opened again"
    say(f"job {clean(chosen.path)}: {word} ({stands(chosen.path)})")
    say(f"SmolLM2-135M to fp8 on the CPU, {SAMPLES} samples of {LENGTH} tokens, no evaluation: a minute or two, 2 GB")
    if chosen.made and (line := on_a_gpu(made, base)):
        say("a GPU and an installed Quark are here; this makes the same job for them:")
        say(f"  {line}")
    again = shlex.join([sys.executable, "-m", "quark_tui.demo", "open"])
    say(f"come back: make demo, or {again} (a run goes on without the app; --fresh makes another job)")
    if _has_terminal(base):
        sys.stdout.flush()
        # Nothing stays in between: signals and the exit status are the app's own.
        os.execve(sys.executable, [*program(), str(chosen.path)], env)
    say("no terminal is here; in one, that line opens the app on this job")
    return 0


def _has_terminal(env: Mapping[str, str]) -> bool:
    return all(os.isatty(number) for number in (0, 1, 2)) and env.get("TERM", "") not in ("", "dumb")
