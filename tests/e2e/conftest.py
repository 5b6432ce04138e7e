"""The real thing for every test below: amd-quark's own command in a real environment, made once and kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from quark_tui.demo.setup import Settings, prepare

#: Seconds; a bound against hanging, not a measure.
TIMEOUT = 900


class Twin(Protocol):
    """``twin(*arguments)`` → (exit status, parsed JSON or text of stdout, stderr)."""

    def __call__(
        self, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> tuple[int, Any, str]: ...


@pytest.fixture(scope="session")
def target() -> Settings:
    """The prepared environment; the first call on a machine builds it, which takes minutes."""
    return prepare(lambda line: sys.stderr.write(line + "\n") and None)


@pytest.fixture(autouse=True)
def _needs_the_target(target: Settings) -> None:
    """Every test below this folder runs against the real environment; none is skipped for want of it."""


@pytest.fixture(scope="session")
def python(target: Settings) -> str:
    """The target interpreter's path."""
    return str(target.python)


@pytest.fixture(scope="session")
def tiny_llama(target: Settings) -> Path:
    """Two layers, hidden size 128, random weights."""
    return target.models["tiny-llama"]


@pytest.fixture(scope="session")
def tiny_qwen3_moe(target: Settings) -> Path:
    """Two layers of four experts each."""
    return target.models["tiny-qwen3-moe"]


@pytest.fixture(scope="session")
def tiny_llama_h96(target: Settings) -> Path:
    """Hidden size 96, which group sizes 64 and 128 do not divide."""
    return target.models["tiny-llama-h96"]


@pytest.fixture(scope="session")
def smollm2(target: Settings) -> Path:
    """A real language model of 134.5 million parameters."""
    return target.models["smollm2-135m"]


@pytest.fixture(scope="session")
def quark_env(target: Settings) -> dict[str, str]:
    """This process's environment with what a run in the target environment needs (offline data, compiled helper)."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return target.environment(inherited)


@pytest.fixture
def own_folders(tmp_path: Path) -> dict[str, str]:
    """Variables that keep the program's state, settings and cache of one test apart from everything else."""
    names = {"XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data"}
    return {name: str(tmp_path / "own" / folder) for name, folder in names.items()}


@pytest.fixture
def twin(quark_env: dict[str, str], own_folders: dict[str, str], tmp_path: Path) -> Twin:
    """Run the program as a person's script would: a process of its own, its exit status and both of its streams."""

    def call(*arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> tuple[int, Any, str]:
        done = subprocess.run(
            [sys.executable, "-m", "quark_tui", *arguments],
            env={**quark_env, "PYTHONPATH": str(Path(__file__).parents[2]), **own_folders, **(env or {})},
            cwd=cwd or tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        if "--json" not in arguments or "--follow" in arguments or not done.stdout:
            return done.returncode, done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout), done.stderr

    return call
