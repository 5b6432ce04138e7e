"""What breaks if this is wrong: the demonstration opens something else than promised, uses a name twice, asks the
target where it need not, or leaves something between make and the app."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quark_tui.demo import opening
from quark_tui.demo.setup import Settings, SetupProblem, prepare, settings
from quark_tui.io import atomic, jobs
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def prepared() -> Settings:
    return prepare(lambda line: sys.stderr.write(line + "\n") and None)


@pytest.fixture
def env(prepared: Settings, tmp_path: Path) -> dict[str, str]:
    """An environment whose cache holds the prepared parts and no demonstration job."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for name in ("targets", "models", "hf", "torch_extensions", "stamps"):
        (cache / name).symlink_to(prepared.cache / name)
    apart = ("QUARK_TUI_", "TEXTUAL", "NO_COLOR", "COLUMNS", "LINES", "MAKE", "MFLAGS", "VIRTUAL_ENV", "CONDA")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(apart)}
    return {
        **kept,
        "QUARK_TUI_CACHE": str(cache),
        "QUARK_TUI_STATE": str(tmp_path / "state"),
        "QUARK_TUI_CONFIG": str(tmp_path / "config"),
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm-256color",
    }


@pytest.fixture
def made(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("QUARK_TUI_STATE", env["QUARK_TUI_STATE"])
    return settings(env)


def opened(env: dict[str, str], *words: str, status: int = 0) -> str:
    """What ``open`` says where no terminal is."""
    done = subprocess.run(
        [sys.executable, "-m", "quark_tui.demo", "open", *words],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def accept(job: Path) -> None:
    record = jobs.summary(str(job))
    record["accepted"] = {"digest": "0" * 64, "confirmed_at": "2026-01-01T00:00:00.000Z", "via": "cli"}
    atomic.write_json(jobs.job_file(str(job)), record)


def test_the_job_is_open_at_every_checkpoint_and_planned_for_any_machine(env: dict[str, str]) -> None:
    told = opened(env)
    job = Path(env["QUARK_TUI_CACHE"]) / "demo" / "smollm2"
    assert str(job) in told and "confirm the analysis" in told and "quark_tui.demo open" in told
    record = jobs.summary(str(job))
    assert record["confirmations"] == {} and record["accepted"] is None and jobs.run_folders(str(job)) == []
    assert record["target"]["python"] == str(settings(env).python)
    asked = [sys.executable, "-m", "quark_tui", "plan", str(job), "--json"]
    plan = json.loads(subprocess.run(asked, cwd=ROOT, env=env, capture_output=True, check=True, timeout=60).stdout)
    rows = {row["key"]: row for row in plan["rows"]}
    assert {key: rows[key]["value"] for key in ("global_scheme", "device_strategy", "evaluation_intent")} == {
        "global_scheme": "fp8",
        "device_strategy": "cpu",
        "evaluation_intent": "none",
    }
    assert rows["num_calib_data"]["value"] == opening.SAMPLES and rows["seq_len"]["value"] == opening.LENGTH
    assert "demonstration" in rows["num_calib_data"]["reason"]
    assert not [finding for finding in plan["findings"] if finding["level"] not in ("info", "low")]


def test_the_same_job_is_opened_until_its_result_is_accepted(made: Settings, env: dict[str, str]) -> None:
    said: list[str] = []
    first = opening.choose(made, False, env, said.append)
    assert first.made and first.path.name == "smollm2"
    assert opening.choose(made, False, env, said.append) == opening.Chosen(first.path, False)
    accept(first.path)
    second = opening.choose(made, False, env, said.append)
    assert second.made and second.path.name == "smollm2-2" and "accepted" in said[-1]
    assert opening.choose(made, False, env, said.append) == opening.Chosen(second.path, False)
    third = opening.choose(made, True, env, said.append)
    assert third.made and third.path.name == "smollm2-3"
    shutil.rmtree(second.path)
    accept(third.path)
    assert opening.choose(made, False, env, said.append).path.name == "smollm2-4", "no name is used twice"


@pytest.mark.parametrize("damage", ["{", "[]", '{"accepted": null', None])
def test_a_damaged_job_is_left_alone_and_said(made: Settings, env: dict[str, str], damage: str | None) -> None:
    said: list[str] = []
    first = opening.choose(made, False, env, said.append).path
    record = first / ".quark-tui" / "job.json"
    if damage is None:
        record.unlink()
    else:
        record.write_text(damage)
    assert opening.choose(made, False, env, said.append).path.name == "smollm2-2"
    assert str(first) in said[-1] and "cannot be read" in said[-1]
    assert not record.exists() if damage is None else record.read_text() == damage


def test_what_is_in_the_way_is_never_written_to(made: Settings, env: dict[str, str]) -> None:
    folder = made.cache / "demo"
    folder.mkdir()
    (folder / "smollm2").write_text("somebody's")
    (folder / "smollm2-x").mkdir()
    (folder / f"smollm2-{'9' * 30}").mkdir()
    assert opening.choose(made, False, env, lambda line: None).path.name == "smollm2-2"
    assert (folder / "smollm2").read_text() == "somebody's"
    shutil.rmtree(folder)
    folder.write_text("")
    with pytest.raises(SetupProblem, match="could not be made"):
        opening.choose(made, False, env, lambda line: None)
    assert "could not be made" in opened(env, status=1)


def test_the_second_opening_asks_the_target_nothing(env: dict[str, str], tmp_path: Path) -> None:
    opened(env)
    python = settings(env).python
    targets = Path(env["QUARK_TUI_CACHE"]) / "targets"
    real = targets.resolve()
    targets.unlink()
    for prefix in real.iterdir():  # the same paths, with an interpreter that says that it was started
        (targets / prefix.name / "bin").mkdir(parents=True)
        (targets / prefix.name / "bin" / "quark-cli").touch()
    python.write_text(f"#!/bin/sh\necho started >> {shlex.quote(str(tmp_path / 'starts'))}\nexit 1\n")
    python.chmod(0o755)
    assert "opened again" in opened(env)
    assert not (tmp_path / "starts").exists()


def test_the_app_has_the_environment_of_the_run_and_nothing_of_make(made: Settings) -> None:
    base = {"PATH": "/usr/bin", "MAKEFLAGS": "--jobserver-auth=3,4", "MAKELEVEL": "1", "MFLAGS": "-j", "KEPT": "1"}
    got = opening.environment(made, base)
    assert got["PATH"] == f"{made.python.parent}:/usr/bin" and got["KEPT"] == "1"
    assert {"HF_HOME", "HF_HUB_OFFLINE", "TORCH_EXTENSIONS_DIR", "QUARK_DISABLE_COMPILE"} <= got.keys()
    assert not [name for name in got if name.startswith(("MAKE", "MFLAGS"))]


def test_an_installed_quark_is_found_where_a_person_would_have_it(made: Settings, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs" / "bin"
    theirs.mkdir(parents=True)
    for name in ("python", "quark-cli"):
        (theirs / name).write_text("#!/bin/sh\n")
        (theirs / name).chmod(0o755)
    for env in (
        {"PATH": "/nowhere", "VIRTUAL_ENV": str(theirs.parent)},
        {"PATH": "/nowhere", "CONDA_PREFIX": str(theirs.parent)},
        {"PATH": f"/nowhere:{theirs}"},
    ):
        assert opening.installed_quark(made, env) == theirs / "python"
    assert opening.installed_quark(made, {"PATH": str(made.python.parent)}) is None, "the demonstration's own"
    (theirs / "python").unlink()
    assert opening.installed_quark(made, {"PATH": str(theirs)}) is None


def test_the_line_for_a_gpu_makes_a_job_for_it(made: Settings, tmp_path: Path) -> None:
    theirs = tmp_path / "their env" / "bin"
    theirs.mkdir(parents=True)
    gpu = "0, NVIDIA H200, 143771, 0, 0, 75.21, 30, 9.0, 570.86"
    for name, script in (("python", ""), ("quark-cli", ""), ("nvidia-smi", f"echo '{gpu}'")):
        (theirs / name).write_text(f"#!/bin/sh\n{script}\n")
        (theirs / name).chmod(0o755)
    line = shlex.split(opening.on_a_gpu(made, {"PATH": f"{theirs}:/usr/bin:/bin"}))
    assert line[:4] == [*opening.program(), "new"] and line[line.index("--python") + 1] == str(theirs / "python")
    assert {"device_strategy=single", "devices=0", "global_scheme=fp8"} <= set(line)
    (theirs / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    assert opening.on_a_gpu(made, {"PATH": f"{theirs}:/usr/bin:/bin"}) == ""


@pytest.fixture
def in_make() -> list[str]:
    """``make demo`` with this interpreter's environment, whatever it was made by."""
    tool = shutil.which("make")
    assert tool is not None, "make is a tool of this project"
    return [tool, "demo", "STAMP=pyproject.toml", f"VENV={Path(sys.executable).parent.parent}"]


def _children(pid: int) -> list[list[str]]:
    pids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{one}/cmdline").read_text().split("\0")[:-1] for one in pids]


def test_make_demo_becomes_the_app_and_a_normal_end_is_no_error(env: dict[str, str], in_make: list[str]) -> None:
    job = Path(env["QUARK_TUI_CACHE"]) / "demo" / "smollm2"
    with Terminal(in_make, env, cwd=str(ROOT)) as terminal:
        terminal.ready()
        assert "smollm2" in "\n".join(terminal.display)
        (app,) = _children(terminal.pid)
        assert app[1:] == ["-m", "quark_tui", str(job)], "nothing stays between make and the app"
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.left_whole() == "" and b"***" not in terminal.raw
    assert str(job).encode() in terminal.raw.partition(b"\x1b[?1049h")[0], "where the job is was said before"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_make_and_its_child_leaves_the_terminal_whole(
    env: dict[str, str], in_make: list[str], number: int
) -> None:
    with Terminal(in_make, env, cwd=str(ROOT)) as terminal:
        terminal.ready()
        os.killpg(terminal.pid, number)
        assert terminal.wait() != 0
        assert terminal.left_whole() == ""
