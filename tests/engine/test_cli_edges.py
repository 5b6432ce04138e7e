"""The command line where its streams are closed, its paths are URLs, and the system refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def ask(tmp_path: Path, *words: str, closed: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "QUARK_TUI_STATE": str(tmp_path / "state")}
    script = f'exec "$@" {closed}'
    return subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "quark_tui", *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_exit_status(tmp_path: Path, closed: str) -> None:
    done = ask(tmp_path, "paths", "--json", closed=closed)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert ask(tmp_path, "status", "nowhere", closed=closed).returncode == 2
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("model", "https://user:PLANTED@host/model"),
        ("status", "hf://PLANTED@host/model"),
        ("verify", "/models/https://user:PLANTED@host/x"),
        ("env", "--python", "https://user:PLANTED@host/python"),
        ("sessions", "--root", "https://user:PLANTED@host/jobs"),
        ("new", "job", "--workflow", "ptq", "--model", "https://user:PLANTED@host/model"),
    ],
    ids=lambda words: words[0],
)
def test_a_url_is_no_path_and_its_credentials_are_not_repeated(tmp_path: Path, words: tuple[str, ...]) -> None:
    """No credential on a screen, wherever it was typed."""
    done = ask(tmp_path, *words)
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert "PLANTED" not in done.stderr


def test_what_the_system_refuses_is_still_an_answer(tmp_path: Path) -> None:
    done = ask(tmp_path, "sessions", "--root", str(tmp_path), "--json", closed=">/dev/full")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 1}')
    done = ask(tmp_path, "new", "n" * 300, "--workflow", "ptq", "--model", str(model), "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and answer["schema"] == "quark-tui.new.v1"
    assert [finding["code"] for finding in answer["findings"]] == ["not_done"]
    assert "File name too long" in answer["findings"][0]["message"]
