"""What breaks if this is wrong: a copy is lost, a secret leaves, or a success is claimed that nobody saw."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest

from quark_tui.ui.clipboard import copy

TMUX = {"TMUX": "/tmp/tmux-0/default,1,0"}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUARK_TUI_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def fake_tmux(folder: Path, body: str) -> dict[str, str]:
    """An environment whose tmux is a script; what it reads lands in ``folder``/buffer."""
    folder.mkdir()
    (folder / "tmux").write_text(f'#!/bin/sh\necho "$@" > {folder}/words\n{body}\n')
    (folder / "tmux").chmod(0o755)
    return {**TMUX, "PATH": f"{folder}:/usr/bin:/bin"}


def test_the_terminal_gets_the_text_and_a_file_holds_it(state: Path) -> None:
    sent: list[str] = []
    copied = copy("naïve\nline", {}, sent.append)
    assert sent == [f"\x1b]52;c;{base64.b64encode('naïve'.encode() + bytes([10]) + b'line').decode()}\x07"]
    file = state / "last-copy.txt"
    assert copied.path == str(file) and file.read_text(encoding="utf-8") == "naïve\nline"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(state.stat().st_mode) == 0o700
    assert copied.where == f"sent to the terminal (it may be ignored) and written to {file}"


def test_secrets_and_control_characters_are_not_copied(state: Path) -> None:
    sent: list[str] = []
    copy("pip --token hf_abcdefghijABCDEFGH1234\r\n\x1b]52;c;AA\x07\u202e\ta", {}, sent.append)
    text = (state / "last-copy.txt").read_text(encoding="utf-8")
    assert text == "pip --token ***\n\\x1b]52;c;AA\\x07\\u202e\ta"
    assert base64.b64decode(sent[0][7:-1]).decode() == text


def test_what_is_too_long_is_only_written_down(state: Path) -> None:
    sent: list[str] = []
    assert copy("x" * 55_500, {}, sent.append).where.startswith("sent to the terminal")
    copied = copy("x" * 55_501, {}, sent.append)
    assert len(sent) == 1 and len(sent[0]) <= 74_000 + 10
    assert copied.where == f"too long to be sent to the terminal but written to {state}/last-copy.txt"
    assert (state / "last-copy.txt").stat().st_size == 55_501


def test_tmux_takes_it_as_a_buffer(tmp_path: Path, state: Path) -> None:
    sent: list[str] = []
    environ = fake_tmux(tmp_path / "bin", f"cat > {tmp_path}/bin/buffer")
    copied = copy("text", environ, sent.append)
    assert (tmp_path / "bin" / "words").read_text() == "load-buffer -w -\n"
    assert (tmp_path / "bin" / "buffer").read_text() == "text"
    assert sent == [] and copied.where.startswith("sent to tmux (the terminal around it may ignore it) and written to ")


@pytest.mark.parametrize("body", ["exit 1", None], ids=["an old tmux", "no tmux"])
def test_where_tmux_does_not_take_it_the_sequence_is_wrapped(tmp_path: Path, body: str | None) -> None:
    sent: list[str] = []
    environ = {**TMUX, "PATH": str(tmp_path)} if body is None else fake_tmux(tmp_path / "bin", body)
    assert copy("text", environ, sent.append).where.startswith("sent to the terminal (it may be ignored)")
    assert sent == ["\x1bPtmux;\x1b\x1b]52;c;dGV4dA==\x07\x1b\\"]


def test_a_tmux_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quark_tui.ui.clipboard._PATIENCE", 0.1)
    sent: list[str] = []
    copy("text", fake_tmux(tmp_path / "bin", "exec sleep 600"), sent.append)
    assert len(sent) == 1


def test_a_file_that_cannot_be_written_is_said(state: Path) -> None:
    state.write_text("a file in the way")
    copied = copy("text", {}, lambda sequence: None)
    assert copied.path is None and "written to" not in copied.where
    assert copied.where.startswith(
        f"sent to the terminal (it may be ignored); {state}/last-copy.txt cannot be written: "
    )


def test_a_terminal_that_is_gone_is_said_and_the_file_is_written(state: Path) -> None:
    def gone(sequence: str) -> None:
        raise OSError(5, "Input/output error")

    copied = copy("text", {}, gone)
    assert copied.where == f"not sent to the terminal (Input/output error) but written to {state}/last-copy.txt"


def test_nothing_is_not_copied_over_something(state: Path) -> None:
    sent: list[str] = []
    assert copy("", {}, sent.append).path is None
    assert sent == [] and not state.exists()
