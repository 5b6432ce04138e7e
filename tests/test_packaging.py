"""What breaks if this is wrong: an installed program lacks its schemas, themes or styles, or wants torch."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import quark_tui

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built from the sources as they are."""
    folder = tmp_path_factory.mktemp("dist")
    # Without isolation the build needs no network: hatchling is one of the tools of the development environment.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def test_the_wheel_holds_what_the_program_reads(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for folder in ("schemas", "themes"):
        wanted = {f"quark_tui/_data/{folder}/{one.name}" for one in (ROOT / folder).iterdir() if one.is_file()}
        assert wanted
        assert wanted <= names
    assert {"quark_tui/demo/quark-cpu.lock", "quark_tui/ui/styles/app.tcss"} <= names
    assert not [name for name in names if name.startswith(("tests", "benchmarks"))]
    sources = {str(one.relative_to(ROOT)) for one in (ROOT / "quark_tui").rglob("*.py")}
    assert sources <= names


def test_the_sdist_can_be_built_and_tested(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {one.partition("/")[2] for one in archive.getnames()}
    wanted = {"LICENSE", "CHANGELOG.md", "README.md", "Makefile", "tests/test_packaging.py", "benchmarks/__main__.py"}
    assert wanted <= names
    assert {f"snapshots/{one.name}" for one in (ROOT / "snapshots").iterdir()} <= names


def test_one_version(metadata: Message, wheel: Path) -> None:
    assert metadata["Version"] == quark_tui.__version__
    assert wheel.name.startswith(f"quark_tui-{quark_tui.__version__}-py3-none-any")
    assert metadata["License-Expression"] == "MIT"


def test_without_an_extra_nothing_of_the_target_is_required(metadata: Message) -> None:
    plain = [one for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
    names = {re.match(r"[A-Za-z0-9._-]+", one)[0].lower().replace("_", "-") for one in plain}  # type: ignore[index]
    assert {"textual", "huggingface-hub"} <= names
    assert not names & {"torch", "transformers", "amd-quark", "datasets", "safetensors", "numpy", "accelerate"}


def test_the_installed_program_finds_its_files(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=120)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "QUARK_TUI_STATE": str(tmp_path / "state")}
    program = str(python.with_name("quark-tui"))

    def say(*argv: str) -> str:
        done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert say(program, "--version") == f"quark-tui {quark_tui.__version__}"
    script = (
        "import sys\nfrom quark_tui.io.paths import data_folder as d\nimport quark_tui.demo as demo\n"
        "from pathlib import Path\nlock = Path(demo.__file__).with_name('quark-cpu.lock')\n"
        "for path in (*sorted(d('schemas').iterdir()), *sorted(d('themes').iterdir()), lock):\n"
        "    assert path.is_file() and path.is_relative_to(sys.prefix), path\n"
        "    print(path.name)\n"
    )
    found = say(str(python), "-I", "-c", script).split()
    assert {"job.schema.json", "dark.yaml", "light.yaml", "quark-cpu.lock"} <= set(found)
    # Listing jobs needs none of the dependencies that were left out.
    assert "sessions" in say(program, "sessions", "--json")
