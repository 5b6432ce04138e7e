"""The real thing for every test below: amd-quark's own command in a real environment, made once and kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quark_tui.demo.setup import Settings, prepare
from tests.e2e.support.contracts import Contracts
from tests.e2e.support.contracts import contracts as published
from tests.e2e.support.job import Job
from tests.e2e.support.twin import Twin


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file share runs of the real command, which take half a minute each: a file stays in one worker."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


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
def smollm2(target: Settings) -> Path:
    """A real language model of 134.5 million parameters."""
    return target.models["smollm2-135m"]


@pytest.fixture(scope="session")
def contracts(target: Settings) -> Contracts:
    """The artifact contracts of amd-quark 0.13."""
    return published(target.python, target.cache)


@pytest.fixture(scope="session")
def quark_env(target: Settings) -> dict[str, str]:
    """This process's environment with what a run in the target environment needs (offline data, compiled helper)."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PWD")}
    # Two runs at once on two cores: threads that wait for each other would make both slower than one thread each.
    return {**target.environment(inherited), "OMP_NUM_THREADS": "1"}


def person(quark_env: dict[str, str], folder: Path) -> Twin:
    """Somebody with a home of her own for the program's state and settings, sitting in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {"QUARK_TUI_STATE": "state", "QUARK_TUI_CONFIG": "config"}
    return Twin({**quark_env, **{name: str(folder / ".own" / kind) for name, kind in names.items()}}, folder)


@pytest.fixture
def twin(quark_env: dict[str, str], tmp_path: Path) -> Twin:
    """The plain twin of one test."""
    return person(quark_env, tmp_path)


@pytest.fixture(scope="module")
def module_twin(quark_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Twin:
    """The plain twin of one module, whose jobs are shared by its tests."""
    return person(quark_env, tmp_path_factory.mktemp("person"))


@pytest.fixture
def make_job(twin: Twin, tmp_path: Path, python: str, contracts: Contracts) -> Callable[[Path], Job]:
    """``make_job(model)`` → a job of one test, not made on disk yet."""
    return lambda model: Job(twin, str(tmp_path / "job"), model, python, contracts)
