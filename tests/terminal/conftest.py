"""The program in a terminal of its own, with folders of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from quark_tui.core.job import Job

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def own_env(tmp_path: Path) -> dict[str, str]:
    """An environment that knows no job of this machine's user."""
    apart = ("QUARK_TUI_", "TEXTUAL", "NO_COLOR", "COLUMNS", "LINES")
    env = {name: value for name, value in os.environ.items() if not name.startswith(apart)}
    return {
        **env,
        "QUARK_TUI_STATE": str(tmp_path / "state"),
        "QUARK_TUI_CONFIG": str(tmp_path / "config"),
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm-256color",
    }


@pytest.fixture
def argv() -> list[str]:
    return [sys.executable, "-m", "quark_tui"]


@pytest.fixture
def jobs_root(tmp_path: Path) -> Path:
    """Three jobs, one with a hostile model name and one whose record is damaged."""
    from quark_tui.io import jobs

    root = tmp_path / "jobs"
    models = {"good": "/models/SmolLM2", "bad": "/models/[x\x1b]52;c;AA\x07[bold]\u202eאב", "torn": "/models/any"}
    for name, model in models.items():
        folder = root / name
        (folder / ".quark-tui" / "runs").mkdir(parents=True)
        state = {"word": "waits", "where": "confirm \x1b[2Jthe plan", "updated_at": "2026-01-01T00:00:00Z"}
        jobs.write_job(str(folder), Job("ptq", "2026-01-01T00:00:00Z", model, f"{folder}/out", None, state=state))
    (root / "torn" / ".quark-tui" / "job.json").write_text('{"workflow": "pt')
    return root
