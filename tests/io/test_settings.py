"""What breaks if this is wrong: a setting is not heeded, a broken file stops the program, or hers is written over."""

from __future__ import annotations

import itertools
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from quark_tui.io import settings
from quark_tui.io.settings import COMMAND_LINE, DEFAULT, Options, load, read_config, remember, remembered, resolve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a ``config.yaml`` that is not there yet."""
    monkeypatch.setenv("QUARK_TUI_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("QUARK_TUI_STATE", str(tmp_path / "state"))
    (tmp_path / "config").mkdir()
    return tmp_path / "config" / "config.yaml"


SAID: dict[str, tuple[Any, Any, Any, Any]] = {
    "theme": ("a", "b", "c", "d"),
    "ascii": ("on", "off", "on", "auto"),
    "color": ("256", "16", "none", "true"),
    "mouse": (False, True, False, True),
}


@pytest.mark.parametrize("speaks", list(itertools.product([True, False], repeat=4)), ids=str)
@pytest.mark.parametrize("name", SAID)
def test_the_first_source_that_says_something_decides(name: str, speaks: tuple[bool, ...]) -> None:
    sources = [
        (f"source {number}", Options(**{name: value if speaks[number] else None}))
        for number, value in enumerate(SAID[name])
    ]
    found = resolve(*sources)
    first = next((number for number, one in enumerate(speaks) if one), None)
    default = {"theme": None, "ascii": "auto", "color": "auto", "mouse": True}[name]
    assert getattr(found, name) == (default if first is None else SAID[name][first])
    assert found.source[name] == (DEFAULT if first is None else f"source {first}")


def test_command_line_then_variable_then_file_then_what_is_remembered(config: Path) -> None:
    remember("theme", "remembered")
    assert load(Options(), {})[0].theme == "remembered"
    config.write_text("theme: file\nmouse: false\n")
    assert load(Options(), {})[0].theme == "file"
    assert load(Options(), {"QUARK_TUI_THEME": "variable"})[0].theme == "variable"
    found, findings = load(Options(theme="option"), {"QUARK_TUI_THEME": "variable"})
    assert (found.theme, found.mouse, findings) == ("option", False, ())
    assert (found.source["theme"], found.source["mouse"]) == (COMMAND_LINE, str(config))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", Options()),
        ("# nothing\n", Options()),
        (
            "theme: quark-light  # by day\nascii: on\ncolor: 256\nmouse: false\n",
            Options("quark-light", "on", "256", False),
        ),
        ("color: true", Options(color="true")),
        ("color: none", Options(color="none")),
        ('color: "16"', Options(color="16")),
        ("ascii: off", Options(ascii="off")),
        ("{theme: a, mouse: true}", Options("a", mouse=True)),
    ],
)
def test_a_config_is_read_as_it_looks(config: Path, text: str, meant: Options) -> None:
    config.write_text(text)
    assert read_config(str(config)) == (meant, ())


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("themes: x", "themes"),
        ("theme: 3", "theme"),
        ("theme: [a]", "theme"),
        ('theme: ""', "theme"),
        ("mouse: on", "mouse"),
        ("color: 8", "color"),
        ("color: 1", "color"),
        ("ascii: maybe", "ascii"),
        ("theme: a\ntheme: b", "theme"),
        ("theme: &x a\nascii: *x", "aliases"),
        ("- a", "map"),
        ("theme: a: b", "line 1"),
        ("\x00", ""),
        ("!!python/object/apply:os.system [x]", ""),
        ("? [a]\n: b", ""),
        ("[" * 5000, ""),
        ("theme: " + "x" * 70_000, "more than"),
    ],
    ids=lambda one: one[:20],
)
def test_a_broken_config_says_nothing_and_names_file_and_key(config: Path, text: str, key: str) -> None:
    config.write_text(text)
    found, findings = load(Options(), {})
    assert (found.theme, found.ascii, found.color, found.mouse) == (None, "auto", "auto", True)
    (finding,) = findings
    assert finding.message.startswith(f"{config} is passed over: ") and key in finding.message
    assert finding.next_step and len(finding.message) < 1000


def test_what_is_no_readable_file_is_a_finding(config: Path, tmp_path: Path) -> None:
    config.mkdir()
    assert len(read_config(str(config))[1]) == 1
    config.rmdir()
    os.mkfifo(config)
    assert "regular" in read_config(str(config))[1][0].message
    assert read_config(str(tmp_path / "none" / "config.yaml")) == (Options(), ())


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_told(config: Path, data: bytes) -> None:
    config.write_bytes(data)
    options, findings = read_config(str(config))
    assert options == Options() or not findings


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("ASCII", "1", Options(ascii="on")),
        ("ASCII", "0", Options(ascii="off")),
        ("ASCII", "AUTO", Options(ascii="auto")),
        ("ASCII", "", Options()),
        ("COLOR", "none", Options(color="none")),
        ("MOUSE", "0", Options(mouse=False)),
        ("MOUSE", "yes", Options(mouse=True)),
        ("THEME", "x", Options(theme="x")),
    ],
)
def test_variables(name: str, value: str, meant: Options) -> None:
    assert settings.from_environment({f"QUARK_TUI_{name}": value}) == (meant, ())


@pytest.mark.parametrize("name", ["ASCII", "COLOR", "MOUSE"])
def test_a_wrong_variable_is_named_and_passed_over(name: str) -> None:
    options, (finding,) = settings.from_environment({f"QUARK_TUI_{name}": "x\x1b[2J"})
    assert options == Options()
    assert f"QUARK_TUI_{name}" in finding.message and "\x1b" not in finding.evidence


def test_what_is_remembered_is_private_and_whole_and_not_in_her_file(config: Path, tmp_path: Path) -> None:
    config.write_text("mouse: true\n")
    remember("theme", "one")
    remember("filter", "x")
    remember("theme", "two")
    path = tmp_path / "state" / "ui.json"
    assert json.loads(path.read_text()) == {"version": 1, "theme": "two", "filter": "x"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert remembered() == Options(theme="two") and config.read_text() == "mouse: true\n"
    assert [one.name for one in path.parent.iterdir()] == ["ui.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"theme": 3}', '{"theme": ""}', '{"theme": NaN}', "\xff" * 70_000])
def test_a_damaged_memory_is_no_memory_and_can_be_written_again(tmp_path: Path, text: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "ui.json").write_text(text)
    assert remembered() == Options()
    remember("theme", "x")
    assert remembered() == Options(theme="x")


def test_a_memory_that_cannot_be_kept_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in the way")
    assert remembered() == Options()
    with pytest.raises(OSError):
        remember("theme", "x")


def test_without_a_config_no_library_is_imported(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom quark_tui.io.settings import Options, load\nload(Options(), {})\n"
        "print(sorted({'yaml', 'jsonschema'} & set(sys.modules)))"
    )
    env = {**os.environ, "QUARK_TUI_CONFIG": str(tmp_path / "none"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
