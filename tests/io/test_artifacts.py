"""Artifacts on disk: valid or not written, whole or absent, and damage told with file and field."""

from __future__ import annotations

import copy
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from quark_tui.core.job import Job
from quark_tui.io import artifacts
from quark_tui.io.artifacts import ArtifactProblem

JOB = Job("ptq", "2025-01-01T00:00:00Z", "/m", "/o", None).to_json()


def step(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "produces": [], **more}


MANIFEST: dict[str, Any] = {
    "workflow": "quark-torch-ptq",
    "inputs": {"model_path": "/m", "model_type": "llama"},
    "outputs": {"output_dir": "/o", "expected_files": ["config.json"]},
    "checkpoints": [
        {"id": name, "reason": "r", "passed": False} for name in ("analysis", "plan", "execution", "result")
    ],
    "blocked_by": [],
    "steps": [
        step("Analyze", "analyze"),
        step("Plan", "plan"),
        step("Generate", "generate"),
        step("Run", "run", command="quark-cli x", argv=["quark-cli", "x"]),
    ],
}


def a_manifest(**inputs: Any) -> dict[str, Any]:
    made = copy.deepcopy(MANIFEST)
    made["inputs"].update(inputs)
    return made


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    return str(tmp_path / "run_manifest.yaml")


@pytest.fixture
def job(tmp_path: Path) -> str:
    return str(tmp_path / "job.json")


def test_what_is_written_is_read(job: str, manifest: str) -> None:
    """P-07: artifacts are validated against their schemas."""
    artifacts.write(job, JOB)
    artifacts.write(manifest, MANIFEST)
    assert artifacts.read(job) == JOB and artifacts.read(manifest) == MANIFEST
    assert list(artifacts.read(manifest)) == list(MANIFEST)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"workflow": "x"}, "workflow"),
        ({"inputs": {"model_path": "relative"}}, "inputs/model_path"),
        ({"inputs": {"x": [{"y": float("nan")}]}}, "inputs/x/0/y"),
        ({"inputs": {"x": {1: 2}}}, "inputs/x/1"),
        ({"inputs": {"x": b"bytes"}}, "inputs/x"),
        ({"inputs": {"x": {1, 2}}}, "inputs/x"),
        ({"steps": []}, "steps"),
    ],
)
def test_an_invalid_value_is_refused_and_the_old_file_stays(manifest: str, wrong: dict[str, Any], field: str) -> None:
    """P-85: nothing that is no manifest is ever written as one."""
    artifacts.write(manifest, MANIFEST)
    before, listed = Path(manifest).read_bytes(), os.listdir(os.path.dirname(manifest))
    with pytest.raises(ArtifactProblem) as told:
        artifacts.write(manifest, {**MANIFEST, **wrong})
    assert "not written" in str(told.value) and field in str(told.value) and manifest in str(told.value)
    assert Path(manifest).read_bytes() == before and os.listdir(os.path.dirname(manifest)) == listed


def test_a_write_that_fails_keeps_the_old_file(tmp_path: Path, job: str) -> None:
    artifacts.write(job, JOB)
    before = Path(job).read_bytes()
    os.mkdir(f"{job}.{os.getpid()}.{threading.get_ident()}.tmp")  # where the new file would be prepared
    with pytest.raises(OSError, match="directory"):
        artifacts.write(job, {**JOB, "model": "/other"})
    assert Path(job).read_bytes() == before


def test_no_file_is_no_damage(job: str, manifest: str) -> None:
    for path in (job, manifest):
        with pytest.raises(FileNotFoundError):
            artifacts.read(path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[]", "not a map"),
        (b"[" * 100_000, "nested"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nested"),
        (b'{"a":' + b"9" * 5000 + b"}", "no JSON"),
        (json.dumps(JOB).encode()[:-9], "no JSON"),
        (json.dumps({**JOB, "workflow": "x"}).encode(), "workflow: 'x' is not one of"),
        (json.dumps({**JOB, "state": {"n": float("nan")}}).encode(), "state/n: nan is no number"),
        (json.dumps({**JOB, "used_digests": ["\x1b[2J" * 50_000]}).encode(), "used_digests/0"),
        (json.dumps({"\x1b[2J": 1}).encode(), "required property"),
    ],
    ids=range(12),
)
def test_damaged_json_is_told_with_file_and_field(job: str, data: bytes, said: str) -> None:
    """P-101: damage is seen and said, never worked around."""
    Path(job).write_bytes(data)
    with pytest.raises(ArtifactProblem) as told:
        artifacts.read(job)
    text = str(told.value)
    assert said in text and text.startswith(job)
    assert len(text) < 900 and text.isprintable()


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a map"),
        (b"- a", "not a map"),
        (b"a: [", "no YAML"),
        (b"a: \x01", "no YAML"),
        (b"\xff", "no YAML"),
        (b"%YAML 9.9\n--- a", "no YAML"),
        (b"a: 1\n---\nb: 2", "no YAML"),
        (BOMB.encode(), "aliases are not read"),
        (b"a: &a [*a]", "aliases are not read"),
        (b"a: &a {b: *a}\n<<: *a", "aliases are not read"),
        (b"a: " + b"[" * 100_000, "nested"),
        (b"a: " + b"{a: " * 100_000, "nested"),
        (b"- " * 100_000, "nested"),
        (b"a: " + b"[" * 200 + b"]" * 200, "nested"),
        (b"a: !!python/object/apply:os.system [x]", "no YAML"),
        (b"a: !!binary aGVsbG8=", "no YAML"),
        (b"a: !!set {x}", "no YAML"),
        (b"a: !!timestamp 2025-01-01", "no YAML"),
        (b"a: .nan", "is a required property"),
        (b"1: 2", "key is no text"),
        (b"? [a]\n: b", "no YAML"),
        (b"a: " + b":".join([b"59"] * 100_000), "is a required property"),
        (b"a: !!int '" + b":".join([b"59"] * 20_000) + b"'", "no YAML"),
        (b"a: " + b"9" * 5000, "is a required property"),
        (b"a: b\n" * 400_000, "more than 1048576 bytes"),
    ],
    ids=range(25),
)
def test_damaged_and_hostile_yaml_ends_with_a_clear_problem(manifest: str, data: bytes, said: str) -> None:
    Path(manifest).write_bytes(data)
    with pytest.raises(ArtifactProblem) as told:
        artifacts.read(manifest)
    text = str(told.value)
    assert said in text and len(text) < 900 and text.isprintable()


def test_what_is_no_file_is_told_and_not_waited_for(job: str, manifest: str) -> None:
    for path in (job, manifest):
        os.mkfifo(path)
        with pytest.raises(ArtifactProblem, match="not a regular file"):
            artifacts.read(path)
        os.unlink(path)
        os.mkdir(path)
        with pytest.raises(ArtifactProblem, match="not a regular file"):
            artifacts.read(path)


def test_a_file_without_end_is_read_up_to_its_limit(job: str, manifest: str) -> None:
    for path in (job, manifest):
        with open(path, "wb") as file:
            file.truncate(10 << 30)
        with pytest.raises(ArtifactProblem, match="more than"):
            artifacts.read(path)


@pytest.mark.parametrize(
    "text",
    ["1", "1.0", "1e5", "0x1F", "0o17", "017", "1_000", "1:30", "-", "~", "null", "Null", "true", "yes", "off", "n",
     "", " ", "2025-01-01", "2025-01-01T00:00:00Z", ".nan", "-.inf", "=", "<<", "*a", "&a", "!x", "# c", "a: b", "a #b",
     "%", "@", "`", "---", "...", "'", '"', "a\nb\n", "\t", "\r", "\x85", "\u2028", "\ufeff", "\ud800", "\U0001f600",
     "\0", "x" * 9000, "a " * 4000],
    ids=range(48),
)  # fmt: skip
def test_text_stays_the_same_text_in_yaml(manifest: str, text: str) -> None:
    artifacts.write(manifest, a_manifest(text=text, **{f"key {text}": [text]}))
    read = artifacts.read(manifest)
    assert read["inputs"]["text"] == text and read["inputs"][f"key {text}"] == [text]
    # Other readers follow YAML 1.1 or 1.2: they have to see the same.
    other = yaml.safe_load(Path(manifest).read_bytes())
    assert other["inputs"]["text"] == text
    shown = Path(manifest).read_text().split("text:")[1].splitlines()[0].strip()
    assert shown[:1] in "'\"|" or not re.fullmatch(r"[-+.0-9].*|(?i:true|false|null|~|)", shown)


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=[]), max_size=8),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.dictionaries(st.text(min_size=1, max_size=5).filter(lambda key: not key.startswith("model")), VALUES, max_size=3)
)
def test_a_manifest_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, inputs: dict[str, Any]
) -> None:
    path = str(tmp_path_factory.mktemp("artifact") / "run_manifest.yaml")
    written = a_manifest(**inputs)
    artifacts.write(path, written)
    assert artifacts.read(path) == written
    assert Path(path).read_bytes().isascii()


def test_our_own_files_hold_no_aliases(manifest: str) -> None:
    shared = {"digest": "x"}
    artifacts.write(manifest, a_manifest(one=shared, two=shared, three=[shared, shared]))
    assert b"&" not in Path(manifest).read_bytes()
    assert artifacts.read(manifest)["inputs"]["three"] == [shared, shared]


def test_a_manifest_that_a_person_wrote_by_hand_is_read(manifest: str) -> None:
    text = (
        yaml.safe_dump(MANIFEST, default_flow_style=False) + "written: 2025-01-01T00:00:00Z\nsize: 12\nratio: 1.5e3\n"
    )
    Path(manifest).write_text(text)
    read = artifacts.read(manifest)
    assert (read["written"], read["size"], read["ratio"]) == ("2025-01-01T00:00:00Z", 12, 1500.0)
