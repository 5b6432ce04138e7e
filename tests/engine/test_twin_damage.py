"""Damaged files of a job: every command says what is wrong with which file, and nothing is made up instead."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quark_tui.demo.setup import Settings

from .conftest import SOUND, Inside, PlainJob


@dataclass
class Wreck:
    """A job with both checkpoints passed and a finished run, whose files are damaged and put back."""

    job: PlainJob
    run: Path
    whole: Path

    @property
    def path(self) -> Path:
        return self.job.path

    def file(self, name: str) -> Path:
        return self.run / name.removeprefix("run:") if name.startswith("run:") else self.path / name

    def mend(self) -> None:
        shutil.rmtree(self.path)
        shutil.copytree(self.whole, self.path)


@pytest.fixture(scope="module")
def _wreck(target: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wreck]:
    folder = tmp_path_factory.mktemp("damage")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PWD", raising=False)
        patch.setenv("QUARK_TUI_STATE", str(folder / "state"))
        patch.chdir(folder)
        inside = Inside(folder)
        shutil.copytree(target.models["tiny-llama"], folder / "model")
        sets = [word for pair in SOUND for word in ("--set", pair)]
        arguments = ["--workflow", "ptq", "--model", str(folder / "model"), "--python", str(target.python)]
        inside.ask("new", "job", *arguments, *sets)
        job = PlainJob(inside, folder / "job")
        job.confirm("analysis")
        job.confirm("plan")
        run = job.start("import sys; print('Traceback (most recent call last):'); sys.exit(1)")
        run.exit()
        run.close()
        os.unlink(job.path / "gate")
        for name in ("model_analysis.json", "quant_plan.json"):
            shutil.copy(job.path / name, run.folder / name)
        shutil.copytree(job.path, folder / "whole")
        yield Wreck(job, run.folder, folder / "whole")


@pytest.fixture
def wreck(_wreck: Wreck) -> Iterator[Wreck]:
    yield _wreck
    _wreck.mend()


FILES = (
    ".quark-tui/job.json",
    "model_analysis.json",
    "quant_plan.json",
    "run_manifest.yaml",
    "run:run.json",
    "run:exit.json",
    "run:quant_plan.json",
    "run:model_analysis.json",
    "run:stops.jsonl",
    "run:output.log",
)

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "truncated": lambda whole: whole[: len(whole) // 2],
    "binary": lambda whole: bytes(range(256)) * 8,
    "a list": lambda whole: b"[]",
    "a number": lambda whole: b"1e999",
    "nothing in it": lambda whole: b"{}",
    "not UTF-8": lambda whole: whole.replace(b'"', b'"\xff', 1),
    "UTF-16": lambda whole: whole.decode("utf-8", "replace").encode("utf-16"),
    "nested": lambda whole: b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "a digit too many": lambda whole: b'{"schema": ' + b"9" * 100_000 + b"}",
}


def _commands(wreck: Wreck) -> list[list[str]]:
    path = str(wreck.path)
    return [
        ["status", path],
        ["status", str(wreck.run)],
        ["status", path, "--follow"],
        ["verify", path],
        ["verify", str(wreck.run)],
        ["stop", path, "--yes"],
        ["accept", path, "--digest", "0" * 64],
        ["sessions"],
        ["paths"],
    ]


def _asking(wreck: Wreck) -> list[list[str]]:
    """Those that ask the target interpreter, which takes its time."""
    path = str(wreck.path)
    return [
        ["plan", path],
        ["plan", path, "--set", "seq_len=64"],
        ["confirm", path, "analysis", "--digest", "0" * 64],
        ["confirm", path, "plan", "--digest", "0" * 64],
        ["command", path],
        ["run", path, "--approve", "0" * 64, "--unattended"],
    ]


def _sane(wreck: Wreck, commands: list[list[str]]) -> None:
    """Whatever is asked: an answer with findings, or one line; never a traceback, never 2 from status and verify."""
    for words in commands:
        for more in (["--json"], []):
            status, out, err = wreck.job.inside(*words, *more)
            where = f"{words} → {status}\n{err}\n{out[:2000]}"
            assert "Traceback" not in err and "unexpected" not in err, where
            assert status in (0, 1, 2), where
            if status == 2:
                assert words[0] not in ("status", "verify", "sessions", "paths"), where
                assert out == "" and err.count("\n") == 1 and err[:-1].isprintable(), where
            elif more and "--follow" not in words:
                answer = json.loads(out)
                assert answer["schema"] == f"quark-tui.{words[0]}.v1" and err == "", where
                if status == 1 and words[0] not in ("status", "verify"):
                    assert any(finding["level"] == "block" for finding in answer["findings"]), where
            else:
                assert out.strip() and err == "", where


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file(name: str, kind: str, wreck: Wreck) -> None:
    path = wreck.file(name)
    path.write_bytes(DAMAGE[kind](path.read_bytes() if path.exists() else b'{"signal": "INT"}\n'))
    _sane(wreck, _commands(wreck))


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_and_the_commands_that_ask_the_interpreter(name: str, wreck: Wreck) -> None:
    path = wreck.file(name)
    for kind in ("truncated", "nothing in it"):
        path.write_bytes(DAMAGE[kind](path.read_bytes() if path.exists() else b'{"signal": "INT"}\n'))
        _sane(wreck, _asking(wreck))
        wreck.mend()


@pytest.mark.parametrize("put", ["folder", "pipe", "loop", "gone"])
@pytest.mark.parametrize("name", [name for name in FILES if name != ".quark-tui/job.json"])
def test_something_else_where_a_file_was(name: str, put: str, wreck: Wreck) -> None:
    """Nothing is waited for: a pipe that nobody writes to would hold a reader for ever."""
    path = wreck.file(name)
    path.unlink(missing_ok=True)
    match put:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(path)
    _sane(wreck, [*_commands(wreck), *_asking(wreck)] if put == "pipe" else _commands(wreck))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [[[]] * 3] * 3, None], ids=str)
def test_numbers_that_are_none(wreck: Wreck, value: Any) -> None:
    """What a record holds and JSON has no word for is never passed on as if it were JSON."""
    for name, key in (("run:exit.json", "resources"), ("run:run.json", "limits"), (".quark-tui/job.json", "state")):
        record = json.loads(wreck.file(name).read_bytes())
        wreck.file(name).write_text(json.dumps({**record, key: {"AS": value}}))
        _sane(wreck, _commands(wreck))
        wreck.mend()


def test_each_is_named(wreck: Wreck) -> None:
    """Which file it is, and what is wrong with it, is in the answer."""
    path = str(wreck.path)
    for name, code in (("run:run.json", "run_unreadable"), ("run:exit.json", "exit_unreadable")):
        wreck.file(name).write_text('{"status": tru')
        answer = wreck.job.inside.ask("status", path, exit=1)
        (finding,) = [finding for finding in answer["findings"] if finding["code"] == code]
        assert name.removeprefix("run:") in finding["message"] and finding["level"] == "high"
        wreck.mend()
    wreck.file(".quark-tui/job.json").write_text('{"schema": "quark-tui.job.v1"')
    answer = wreck.job.inside.ask("status", path, exit=1)
    assert "job_unreadable" in [finding["code"] for finding in answer["findings"]]
    assert answer["verdict"] == "failed", "the run is told all the same"
    for words in (["command", path], ["accept", path, "--digest", "0"]):
        (finding,) = wreck.job.inside.ask(*words, exit=1)["findings"]
        assert finding["code"] == "job_unreadable" and "job.json" in finding["message"]
    row = next(row for row in wreck.job.inside.ask("sessions")["sessions"] if row["path"] == path)
    assert row["verdict"] == "unreadable"


def test_an_unreadable_run_is_a_verdict(wreck: Wreck) -> None:
    wreck.file("run:run.json").write_bytes(b"\0" * 100)
    answer = wreck.job.inside.ask("status", str(wreck.path), exit=1)
    assert answer["verdict"] == "unreadable"
    assert answer["files"]["output_log"] == str(wreck.run / "output.log"), "the log is there to be looked at"


def test_a_damaged_plan_is_made_anew_by_plan(wreck: Wreck) -> None:
    """P-101: what the wishes say is not lost with the artifact: it is regenerated, never patched, and waits for its
    word."""
    wreck.file("quant_plan.json").write_text('{"global_scheme": 1}')
    blocked = wreck.job.inside.ask("command", str(wreck.path), exit=1)
    finding = next(f for f in blocked["findings"] if f["code"] == "plan_unconfirmed")
    assert "quant_plan.json" in finding["evidence"]
    assert wreck.job.plan()["plan"]["global_scheme"] == "fp8"
    assert wreck.job.artifact("quant_plan.json")["global_scheme"] == "fp8"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, 2**63, 2**31])
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["\0", "\ud800", "\x1b[2J", "/", "relative", "../..", "x" * 5000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value[:3]):
            yield from _leaves(item, (*path, number))


def _changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.deepcopy(value)
    here = changed
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = new
    return changed


@pytest.mark.parametrize(
    "name", ["run:run.json", "run:exit.json", ".quark-tui/job.json", "run:quant_plan.json", "quant_plan.json"]
)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_any_value_of_another_kind(_wreck: Wreck, name: str, data: st.DataObject) -> None:
    """One value somewhere in a record is anything that JSON can hold, or more than that."""
    path = _wreck.file(name)
    whole = json.loads(path.read_bytes())
    place = data.draw(st.sampled_from(list(_leaves(whole))))
    text = json.dumps(_changed(whole, place, data.draw(json_values)), allow_nan=True)
    kept = path.read_bytes()
    manifest = (_wreck.path / "run_manifest.yaml").read_bytes()
    record = (_wreck.path / ".quark-tui/job.json").read_bytes()
    try:
        path.write_text(text)
        _sane(_wreck, _commands(_wreck))
    finally:
        path.write_bytes(kept)
        (_wreck.path / "run_manifest.yaml").write_bytes(manifest)
        if name != ".quark-tui/job.json":
            (_wreck.path / ".quark-tui/job.json").write_bytes(record)
