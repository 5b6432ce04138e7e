"""``paths`` and ``doctor``: where things are, and facts for a bug report."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from typing import Any

import quark_tui
from quark_tui.core.answer import Answer
from quark_tui.core.command import decides_a_run
from quark_tui.core.text import redact_env
from quark_tui.io import jobs
from quark_tui.io import paths as own


def _paths() -> dict[str, Any]:
    return {
        "config": str(own.config_folder()),
        "state": str(own.state_folder()),
        "cache": str(own.cache_folder()),
        "themes": str(own.data_folder("themes")),
        "schemas": str(own.data_folder("schemas")),
        "known_jobs": sorted(jobs.known()),
    }


def paths() -> Answer:
    """The folders that quark-tui uses and the jobs that it knows."""
    return Answer("paths", _paths())


def doctor(environ: Mapping[str, str]) -> Answer:
    """Version, interpreter, terminal, the variables that decide a run (secrets as set or unset), and the paths."""
    terminal = {
        "stdin": sys.stdin.isatty(),
        "stdout": sys.stdout.isatty(),
        "term": environ.get("TERM"),
        "colorterm": environ.get("COLORTERM"),
        "encoding": sys.stdout.encoding,
        "size": _size(),
        "tmux": "TMUX" in environ,
        "ssh": "SSH_CONNECTION" in environ,
    }
    return Answer(
        "doctor",
        {
            "version": quark_tui.__version__,
            "python": {"executable": sys.executable, "version": platform.python_version()},
            "platform": {"system": platform.platform(), "machine": platform.machine()},
            "terminal": terminal,
            "env": redact_env(environ, sorted(filter(decides_a_run, environ))),
            "paths": _paths(),
        },
    )


def _size() -> list[int] | None:
    try:
        return list(os.get_terminal_size(1))
    except OSError:
        return None
