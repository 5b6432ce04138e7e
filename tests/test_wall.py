"""What breaks if this is wrong: a command pays for a screen, Home pays for validators, or torch is loaded here."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import quark_tui
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
#: They live in the target interpreter only.
TARGET = {"torch", "transformers", "quark", "datasets", "safetensors", "numpy"}
#: Measured: pydantic alone makes the first screen 1.41 times as slow, all listed dependencies 2.33 times.
HEAVY = {"pydantic", "jsonschema", "yaml", "watchfiles", "psutil", "huggingface_hub", "packaging", "pynvml"}


def modules(package: str) -> list[str]:
    folder = Path(quark_tui.__file__).parent.joinpath(*package.split(".")[1:])
    found = [one.name for one in pkgutil.walk_packages([str(folder)], f"{package}.")]
    return [package, *(name for name in found if not name.endswith(".__main__"))]


def loaded_by(names: list[str]) -> set[str]:
    """Every module in ``sys.modules`` of a fresh process that imported ``names`` and nothing else."""
    script = "import importlib, json, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\n"
    script += "print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script, *names], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout))


def tops(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("package", ["core", "io", "engine"])
def test_below_the_screens_nothing_of_a_screen_or_of_torch_is_imported(package: str) -> None:
    every = modules(f"quark_tui.{package}")
    print(f"{package}: {len(every)} modules")
    assert len(every) > 10
    assert not tops(loaded_by(every)) & ({"textual", "rich"} | TARGET)


def test_core_is_the_standard_library_and_itself() -> None:
    every = loaded_by(modules("quark_tui.core"))
    bare = loaded_by([])
    foreign = tops(every - bare) - set(sys.stdlib_module_names) - {"quark_tui"}
    assert not foreign
    assert not [
        name for name in every if name.startswith("quark_tui.") and not f"{name}.".startswith("quark_tui.core.")
    ]


def test_the_screens_never_import_what_lives_in_the_target() -> None:
    assert not tops(loaded_by(modules("quark_tui.ui"))) & TARGET


def test_the_command_line_imports_neither_a_screen_nor_a_validator_to_start() -> None:
    assert not tops(loaded_by(["quark_tui.cli"])) & ({"textual", "rich"} | TARGET | HEAVY)


WATCHED = """
import json, sys
from quark_tui.ui import app as module
from quark_tui import cli

class Watched(module.QuarkTui):
    seen = {}
    def on_mount(self):
        self.call_after_refresh(self.first)
    def first(self):
        self.seen["first paint"] = sorted(sys.modules)
        self.set_interval(0.05, self.complete)
    def complete(self):
        if "ready" not in self.seen and self.screen._complete:
            self.seen["ready"] = True
            self.set_timer(1.0, self.later)
    def later(self):
        self.seen["one second later"] = sorted(sys.modules)
        with open(sys.argv[1], "w") as file:
            json.dump(self.seen, file)
        self.exit()

module.QuarkTui = Watched
sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.mark.parametrize("known", [False, True], ids=["no job", "a job under the cursor"])
def test_home_has_imported_nothing_heavy_at_its_first_paint_and_a_second_after(tmp_path: Path, known: bool) -> None:
    job = tmp_path / "job"
    (job / ".quark-tui" / "runs" / "1").mkdir(parents=True)
    (job / ".quark-tui" / "job.json").write_text('{"workflow": "ptq", "model": "/m", "output": "/o", "state": {}}')
    (job / ".quark-tui" / "runs" / "1" / "run.json").write_text("{}")
    (tmp_path / "watched.py").write_text(WATCHED)
    root = [str(tmp_path)] if known else []
    argv = [sys.executable, str(tmp_path / "watched.py"), str(tmp_path / "seen.json"), *root]
    env = {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with Terminal(argv, env) as terminal:
        assert terminal.wait() == 0, bytes(terminal.raw[-1000:])
    seen = json.loads((tmp_path / "seen.json").read_text())
    for moment in ("first paint", "one second later"):
        assert "quark_tui.ui.screens.home" in seen[moment]
        assert not tops(set(seen[moment])) & (HEAVY | TARGET), moment
    assert "quark_tui.engine.listing" in seen["one second later"]
    assert ("quark_tui.engine.truths" in seen["one second later"]) is known
