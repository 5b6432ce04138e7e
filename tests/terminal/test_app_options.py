"""What breaks if this is wrong: an option of the app is not heeded, or what is set for the screen reaches a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.terminal import Terminal

# The app's place is taken by what writes down how it was opened: its module is where Textual is imported.
WITNESS = """
import dataclasses, json, os, sys, types
app = types.ModuleType("quark_tui.ui.app")
def run_app(path, environ, *, settings, terminal, findings):
    with open(sys.argv[1], "w") as file:
        json.dump({
            "path": path, "theme": settings.theme, "source": settings.source, "ascii": terminal.ascii,
            "colors": terminal.colors, "mouse": terminal.mouse, "findings": [one.code for one in findings],
            "textual": "textual" in sys.modules, "inherited": environ, "own": dict(os.environ),
        }, file)
    return 7
app.run_app = run_app
sys.modules["quark_tui.ui.app"] = app
from quark_tui.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture
def env(own_env: dict[str, str]) -> dict[str, str]:
    apart = ("LC_", "LANG", "COLORTERM", "TMUX", "STY")
    return {**{name: value for name, value in own_env.items() if not name.startswith(apart)}, "LANG": "C.UTF-8"}


def opened(tmp_path: Path, env: dict[str, str], *words: str) -> dict[str, Any]:
    (tmp_path / "witness.py").write_text(WITNESS)
    argv = [sys.executable, str(tmp_path / "witness.py"), str(tmp_path / "seen.json"), *words]
    with Terminal(argv, env, cwd=str(tmp_path)) as terminal:
        assert terminal.wait() == 7, bytes(terminal.raw)
    seen: dict[str, Any] = json.loads((tmp_path / "seen.json").read_text())
    return seen


def test_options_and_a_path_in_any_order(tmp_path: Path, env: dict[str, str]) -> None:
    seen = opened(tmp_path, env, "--ascii", ".", "--no-mouse", "--color", "16", "--theme=mine")
    assert (seen["path"], seen["theme"], seen["ascii"], seen["colors"]) == (str(tmp_path), "mine", True, "16")
    assert seen["mouse"] is False and seen["source"]["theme"] == "the command line"


def test_without_options_the_terminal_decides(tmp_path: Path, env: dict[str, str]) -> None:
    seen = opened(tmp_path, env)
    assert (seen["path"], seen["theme"], seen["ascii"], seen["colors"]) == (None, None, False, "256")
    assert seen["mouse"] is True and seen["findings"] == []


def test_a_path_may_look_like_an_option_or_a_command(tmp_path: Path, env: dict[str, str]) -> None:
    for name in ("-x", "sessions"):
        (tmp_path / name).mkdir()
    assert opened(tmp_path, env, "--ascii", "--", "-x")["path"] == f"{tmp_path}/-x"
    assert opened(tmp_path, env, "./sessions")["path"] == f"{tmp_path}/sessions"


@pytest.mark.parametrize("no_color", ["", "1"])
def test_what_is_set_for_textual_is_set_before_it_and_reaches_no_run(
    tmp_path: Path, env: dict[str, str], no_color: str
) -> None:
    seen = opened(tmp_path, {**env, "NO_COLOR": no_color}, "--color", "256")
    assert seen["textual"] is False
    assert seen["inherited"]["NO_COLOR"] == no_color and "NO_COLOR" not in seen["own"]
    assert seen["own"]["TEXTUAL_COLOR_SYSTEM"] == "256"
    assert not [name for name in seen["inherited"] if name.startswith("TEXTUAL_")]


def test_variables_and_the_file_are_heeded_and_what_is_wrong_there_is_told(tmp_path: Path, env: dict[str, str]) -> None:
    config = Path(env["QUARK_TUI_CONFIG"])
    config.mkdir()
    (config / "config.yaml").write_text("theme: hers\nmouse: false\n")
    seen = opened(tmp_path, {**env, "QUARK_TUI_ASCII": "1", "QUARK_TUI_COLOR": "pink"})
    assert (seen["theme"], seen["mouse"], seen["ascii"], seen["colors"]) == ("hers", False, True, "256")
    assert seen["findings"] == ["setting_invalid"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--color", "7"], "--color"),
        (["--color"], "--color"),
        (["--theme"], "--theme"),
        (["--asc"], "--asc"),
        (["/", "--json"], "--json"),
        (["--ascii", "sessions"], "sessions is a command"),
        (["--ascii", "a", "b"], "no command 'a'"),
        (["status", "--ascii", "/"], "--ascii"),
        (["--ascii", "/nowhere/\x1b[2J"], "/nowhere/"),
        (["--no-mouse"], "quark-tui --help"),
    ],
)
def test_a_wrong_question_is_one_line(env: dict[str, str], words: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "quark_tui", *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--ascii", "--help"]])
def test_the_help_names_the_options(env: dict[str, str], words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "quark_tui", *words], env=env, capture_output=True, text=True)
    assert done.returncode == 0
    for option in ("--ascii", "--no-mouse", "--color", "--theme", "sessions"):
        assert option in done.stdout


@pytest.mark.parametrize("term", ["", "dumb"])
def test_a_terminal_that_can_show_no_screen_gets_the_plain_twin_named(env: dict[str, str], term: str) -> None:
    with Terminal([sys.executable, "-m", "quark_tui", "--ascii"], {**env, "TERM": term}) as terminal:
        assert terminal.wait() == 2
        assert bytes(terminal.raw).strip().endswith(b"every screen has a plain twin: quark-tui --help")
