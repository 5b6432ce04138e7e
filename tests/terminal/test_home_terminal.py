"""What breaks if this is wrong: a person's terminal is left unusable, or a foreign name writes into it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.terminal import ESCAPES, Terminal

# The final letters of the sequences that Textual draws, asks and restores with.
_FINALS = b"HJKmhlupqrtnSABCDcys"


def _no_foreign_escape(raw: bytes) -> None:
    for found in ESCAPES.finditer(raw):
        body = found[1]
        assert body[:1] not in (b"]", b"P", b"X", b"^", b"_"), raw[max(0, found.start() - 40) : found.end() + 40]
        assert body[-1:] in _FINALS or len(body) == 1, found[0]
    assert b"\x07" not in raw


def test_home_opens_says_ready_and_q_leaves_the_terminal_as_it_was(argv: list[str], own_env: dict[str, str]) -> None:
    with Terminal(argv, own_env) as terminal:
        terminal.ready()
        assert terminal.display[0].startswith(" quark-tui")
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.left_whole() == ""
        assert b"Traceback" not in terminal.raw
        _no_foreign_escape(bytes(terminal.raw))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_restores_the_terminal_and_names_itself(
    argv: list[str], own_env: dict[str, str], number: signal.Signals
) -> None:
    with Terminal(argv, own_env) as terminal:
        terminal.ready()
        os.kill(terminal.pid, number)
        assert terminal.wait() == 128 + number
        assert terminal.left_whole() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_first_paint_restores_it_too(
    argv: list[str], own_env: dict[str, str], number: signal.Signals
) -> None:
    with Terminal(argv, own_env) as terminal:
        terminal.until(lambda: terminal.raw, "the first byte")
        os.kill(terminal.pid, number)
        assert terminal.wait() == 128 + number
        assert terminal.left_whole() == ""


def test_a_lost_connection_ends_it(argv: list[str], own_env: dict[str, str]) -> None:
    with Terminal(argv, own_env) as terminal:
        terminal.ready()
        terminal.hang_up()
        _, status = os.waitpid(terminal.pid, 0)
        terminal.status = os.waitstatus_to_exitcode(status)
        assert terminal.status == 128 + signal.SIGHUP


def test_names_of_other_people_are_shown_and_never_obeyed(
    argv: list[str], own_env: dict[str, str], jobs_root: Path
) -> None:
    with Terminal([*argv, str(jobs_root)], own_env, 120, 40) as terminal:
        terminal.ready()
        shown = "\n".join(terminal.display)
        assert r"[x\x1b]52;c" in shown
        assert r"confirm \x1b[2Jthe" in shown
        assert "unreadable" in shown
        terminal.press("q")
        assert terminal.wait() == 0
        _no_foreign_escape(bytes(terminal.raw))


def test_a_job_named_on_the_command_line_is_under_the_cursor(
    argv: list[str], own_env: dict[str, str], jobs_root: Path
) -> None:
    with Terminal([*argv, str(jobs_root / "good")], own_env) as terminal:
        terminal.ready()
        assert any(line.startswith(" ▸ ") and "SmolLM2" in line for line in terminal.display)


@pytest.mark.parametrize(
    ("make", "hint"), [("", "no job is below"), ("config.json", "holds a model")], ids=["empty", "model"]
)
def test_another_folder_gets_a_hint(
    argv: list[str], own_env: dict[str, str], tmp_path: Path, make: str, hint: str
) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    if make:
        (folder / make).write_text("{}")
    with Terminal([*argv, str(folder)], own_env, 120, 40) as terminal:
        terminal.ready()
        assert hint in "\n".join(terminal.display)


def test_idle_sends_nothing(argv: list[str], own_env: dict[str, str], jobs_root: Path) -> None:
    """Nothing changes: not a byte for as long as three frames of any timer of Textual's would take."""
    with Terminal([*argv, str(jobs_root)], own_env) as terminal:
        terminal.ready()
        while terminal.read(0.3):
            pass
        assert terminal.read(2.0) == 0


def test_without_colour_no_colour_is_sent(argv: list[str], own_env: dict[str, str], jobs_root: Path) -> None:
    with Terminal([*argv, str(jobs_root)], {**own_env, "NO_COLOR": "1"}) as terminal:
        terminal.ready()
        for found in ESCAPES.finditer(bytes(terminal.raw)):
            if found[1][-1:] == b"m" and found[1][1:2] not in (b">", b"<"):
                codes = found[1][1:-1].split(b";")
                assert all(int(code or 0) < 30 or code in (b"39", b"49") for code in codes), found[0]


def test_a_terminal_that_is_too_small_gets_a_polite_word(argv: list[str], own_env: dict[str, str]) -> None:
    with Terminal(argv, own_env, 60, 15) as terminal:
        terminal.ready()
        assert "80×24" in "\n".join(terminal.display)


def test_standard_error_that_is_no_terminal_is_said_and_nothing_is_drawn(
    argv: list[str], own_env: dict[str, str], tmp_path: Path
) -> None:
    script = f"exec {sys.executable} -m quark_tui 2>{tmp_path}/errors"
    with Terminal(["/bin/sh", "-c", script], own_env) as terminal:
        assert terminal.wait() == 2
        assert terminal.raw == b""
    assert (tmp_path / "errors").read_text().count("\n") == 1


def test_without_a_terminal_one_line_names_the_plain_twin(argv: list[str], own_env: dict[str, str]) -> None:
    done = subprocess.run(argv, env=own_env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "--help" in done.stderr


def test_a_defect_of_ours_is_one_sentence_and_the_terminal_is_whole(own_env: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text(
        "import sys\n"
        "from quark_tui.ui.screens import home\n"
        "home.HomeScreen.do_app_help = lambda self: 1 / 0\n"
        "from quark_tui.cli import main\n"
        "sys.exit(main([]))\n"
    )
    with Terminal([sys.executable, str(script)], own_env) as terminal:
        terminal.ready()
        terminal.press("?")
        assert terminal.wait() == 1
        assert terminal.left_whole() == ""
        tail = bytes(terminal.raw).rpartition(b"\x1b")[2]
        assert b"ZeroDivisionError" in tail
        assert b"Traceback" not in terminal.raw
