"""The tamper table: between approval and start something is not what it was, and then nothing starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quark_tui.demo.setup import Settings
from quark_tui.io.runs import launcher
from tests.e2e.support.contracts import Contracts
from tests.e2e.support.environment import borrowed
from tests.e2e.support.job import Job
from tests.e2e.support.twin import TIMEOUT, Twin, codes
from tests.support.waiting import until

SETS = ("global_scheme=fp8", "device_strategy=cpu", "num_calib_data=512", "seq_len=256")
REMOTE = '"""Code that a model brings along."""\nVALUE = 1\n'


@pytest.fixture(scope="module")
def model(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of our own to change, with code of its own that its configuration names."""
    copy = tmp_path_factory.mktemp("models") / "tiny"
    shutil.copytree(tiny_llama, copy)
    config = json.loads((copy / "config.json").read_text())
    config["auto_map"] = {"AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}
    (copy / "config.json").write_text(json.dumps(config, indent=2))
    (copy / "modeling_own.py").write_text(REMOTE)
    return copy


@pytest.fixture(scope="module")
def environment(target: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of a target environment whose own files can be changed."""
    return borrowed(target, tmp_path_factory.mktemp("target"))


@pytest.fixture(scope="module")
def approvable(module_twin: Twin, model: Path, environment: Path, contracts: Contracts) -> Job:
    """A job whose command was shown; its digest is what each test tries to have approved."""
    job = Job(module_twin, str(module_twin.cwd / "job"), model, str(environment / "bin/python"), contracts)
    job.ready(sets=SETS)
    assert job.command_answer["commands"][0]["argv"][0] == str(environment / "bin/quark-cli")
    return job


def _refused(job: Job, **environment: str) -> list[str]:
    """Messages of the refusal; nothing started, nothing was made, the digest was not used."""
    answer = job.twin.ask("run", job.path, "--approve", job.digests["command"], "--unattended", exit=1, env=environment)
    assert answer["pid"] is None
    assert "digest_differs" in codes(answer) and set(codes(answer, "block")) == set(codes(answer))
    assert not job.quark_processes() and not job.output.exists()
    for folder in (Path(job.path) / ".quark-tui/runs").iterdir():
        assert json.loads((folder / "run.json").read_text())["process"] is None
    record = json.loads((Path(job.path) / ".quark-tui/job.json").read_text())
    assert record["used_digests"] == []
    return [finding["message"] for finding in answer["findings"] if finding["code"] == "digest_differs"]


@contextmanager
def _put_back(path: Path) -> Iterator[bytes]:
    """The file's content; afterwards it is as it was, its times too."""
    content, info = path.read_bytes(), path.stat()
    try:
        yield content
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def _one_byte(content: bytes, at: bytes) -> bytes:
    """``content`` with one byte changed behind ``at``: a digit of a number, a letter of a text."""
    place = content.index(at) + len(at)
    while not content[place : place + 1].isalnum():
        place += 1
    other = b"1" if content[place : place + 1].isdigit() else b"x"
    changed = content[:place] + (other if content[place : place + 1] != other else b"2") + content[place + 1 :]
    assert len(changed) == len(content) and changed != content
    return changed


#: Name → (file of job, model or environment; text before the byte that is changed).
FILES: dict[str, tuple[str, bytes]] = {
    "plan": ("{job}/quant_plan.json", b'"seq_len": '),
    "a reason in the plan": ("{job}/quant_plan.json", b'"reasons"'),
    "analysis": ("{job}/model_analysis.json", b'"analysis_status": "'),
    "config": ("{model}/config.json", b'"rms_norm_eps": '),
    "a layer count": ("{model}/config.json", b'"num_hidden_layers": '),
    "a broken config": ("{model}/config.json", b'"vocab_size'),
    "tokenizer": ("{model}/tokenizer.json", b'"version": "'),
    "tokenizer settings": ("{model}/tokenizer_config.json", b'"tokenizer_class": "'),
    "remote code": ("{model}/modeling_own.py", b"VALUE = "),
    "quark-cli": ("{environment}/bin/quark-cli", b"import re"),
}


@pytest.mark.parametrize("name", FILES)
def test_one_byte(name: str, approvable: Job, environment: Path) -> None:
    """P-92: whatever file it is in, nothing starts, and the file is named with what it was and is."""
    place, at = FILES[name]
    path = Path(place.format(job=approvable.path, model=approvable.model, environment=environment))
    with _put_back(path) as content:
        path.write_bytes(_one_byte(content, at))
        lines = _refused(approvable)
    named = [line for line in lines if line.startswith(f"{path}: sha256 ")]
    assert len(named) == 1 and " → sha256 " in named[0], lines
    assert [line for line in lines if not line.startswith((str(path), "command."))] == [], "and nothing else"


def test_a_file_that_is_gone(approvable: Job) -> None:
    path = approvable.model / "tokenizer.json"
    with _put_back(path):
        path.unlink()
        (line,) = _refused(approvable)
    assert line.startswith(f"{path}: sha256 ") and line.endswith("→ not there")


def test_no_configuration_at_all(approvable: Job) -> None:
    """The model cannot be read any more: a refusal that names the file, not a usage error."""
    path = approvable.model / "config.json"
    with _put_back(path):
        path.unlink()
        lines = _refused(approvable)
    assert [line for line in lines if line.startswith(f"{path}: sha256 ") and line.endswith("→ not there")], lines


def test_a_new_file_of_code(approvable: Job) -> None:
    path = approvable.model / "processing_own.py"
    path.write_text("VALUE = 2\n")
    try:
        (line,) = _refused(approvable)
    finally:
        path.unlink()
    assert line.startswith(f"{path}: not there → sha256 ")


def test_weights_that_were_written_anew(approvable: Job) -> None:
    """Weights are known by name, size, time and header."""
    path = approvable.model / "model.safetensors"
    with _put_back(path) as content:
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        (line,) = _refused(approvable)
    assert line.startswith(f"{path}: ") and " → " in line and "mtime_ns" in line


@pytest.mark.parametrize(
    ("name", "value"),
    [("HF_HOME", "/elsewhere"), ("LD_LIBRARY_PATH", ""), ("QUARK_DISABLE_COMPILE", "0"), ("PATH", "")],
)
def test_a_changed_variable(approvable: Job, name: str, value: str) -> None:
    """P-12, P-92: a variable that can change the run is part of what was approved."""
    before = approvable.twin.env.get(name)
    value = value or f"{before or ''}:/another"
    lines = _refused(approvable, **{name: value})
    shown = "not there" if before is None else before
    assert any(line.startswith(f"environment {name}: ") and " → " in line for line in lines), lines
    if len(shown) < 300:
        assert f"environment {name}: {shown} → {value}" in lines


def test_a_variable_that_decides_nothing(approvable: Job) -> None:
    """A terminal's own noise voids no approval: the same digest is shown."""
    answer = approvable.twin.ask(
        "command", approvable.path, env={"COLUMNS": "77", "TERM": "vt100", "SSH_TTY": "/dev/x"}
    )
    assert answer["digest"] == approvable.digests["command"]


def test_a_secret_is_told_as_set_or_unset(approvable: Job) -> None:
    lines = _refused(approvable, HF_TOKEN="hf_abcdefghijklmnopqrstuvwxyz")
    assert lines == ["environment HF_TOKEN: not there → set"]


def test_another_quark_cli(approvable: Job, target: Settings, tmp_path: Path) -> None:
    """The interpreter of the job now belongs to another environment, and with it the command."""
    other = borrowed(target, tmp_path)
    path = Path(approvable.path) / ".quark-tui/job.json"
    with _put_back(path) as content:
        record = json.loads(content)
        record["target"]["python"] = str(other / "bin/python")
        path.write_text(json.dumps(record))
        lines = _refused(approvable)
    assert any(line.startswith("command.argv: ") and str(other / "bin/quark-cli") in line for line in lines), lines
    assert any(line.startswith(f"{other / 'bin/quark-cli'}: not there → ") for line in lines), lines


def test_another_quark(approvable: Job, environment: Path) -> None:
    """P-20, P-105: the same command, but another release of amd-quark behind it."""
    metadata = next(environment.glob("lib/python3.*/site-packages/amd_quark-*.dist-info/METADATA"))
    with _put_back(metadata) as content:
        metadata.write_bytes(content.replace(b"\nVersion: 0.12.post1\n", b"\nVersion: 0.12.post2\n"))
        lines = _refused(approvable)
    assert "version of amd-quark: 0.12.post1 → 0.12.post2" in lines


@pytest.mark.parametrize("digest", ["0" * 64, "", "../../etc/passwd", "x" * 100_000, "\x1b]52;c;AA\x07"])
def test_a_digest_that_was_never_shown(approvable: Job, digest: str) -> None:
    answer = approvable.twin.ask("run", approvable.path, "--approve", digest, "--unattended", exit=1)
    assert codes(answer) == ["digest_differs"] and not approvable.output.exists()


def test_without_a_terminal_it_needs_unattended(approvable: Job) -> None:
    """Nobody can be asked, so somebody has to have said that nobody is to be."""
    assert "--unattended" in approvable.twin.wrong("run", approvable.path, "--approve", approvable.digests["command"])
    assert approvable.runs() == []


@pytest.fixture(scope="module")
def used(approvable: Job) -> Job:
    """The control: untouched, the very same digest starts. The run is ended at once."""
    assert not (Path(approvable.path) / ".quark-tui/runs").exists() or approvable.runs() == []
    approvable.run()
    os.kill(approvable.pid, 9)
    assert approvable.twin.end(approvable.path)["verdict"] == "failed"
    return approvable


def test_the_digest_used_twice(used: Job) -> None:
    """P-92, P-110: one approval, one start; a new start needs a new digest, which is another one for the same plan."""
    answer = used.twin.ask("run", used.path, "--approve", used.digests["command"], "--unattended", exit=1)
    assert codes(answer) == ["digest_used"] and used.run_folder.name in answer["findings"][0]["message"]
    assert used.runs() == [used.run_folder.name] and not used.quark_processes()
    again = used.twin.ask("command", used.path)
    assert again["digest"] != used.digests["command"]
    assert any(used.run_folder.name in finding["message"] for finding in again["findings"]), "it names the failed run"


@pytest.fixture
def prepared(used: Job) -> Iterator[Path]:
    """An approved run folder whose guard was not started yet, as a launcher leaves it just before it starts one."""
    runs = used.run_folder.parent
    aside = Path(used.path) / "aside"
    used.run_folder.rename(aside)
    fresh = runs / "fresh"
    fresh.mkdir(mode=0o700)
    record = json.loads((aside / "run.json").read_text())
    record.update(process=None, refused=None)
    record.pop("log", None)
    launcher.write_archive(str(fresh / "supervisor.pyz"))
    (fresh / "run.json").write_text(json.dumps(record))
    job = Path(used.path) / ".quark-tui" / "job.json"
    kept = job.read_bytes()
    job.write_text(json.dumps({**json.loads(kept), "used_digests": []}))
    yield fresh
    job.write_bytes(kept)
    shutil.rmtree(fresh)
    aside.rename(used.run_folder)


def _guard(folder: Path, job: Job, **environment: str) -> dict[str, Any]:
    """run.json after the guard was started by hand on ``folder``."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(folder / "supervisor.pyz"), "guard", str(folder)],
        env={**job.twin.env, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert "Traceback" not in done.stderr
    return dict(json.loads((folder / "run.json").read_text()))


def _argv(record: dict[str, Any]) -> None:
    argv = record["commands"][0]["argv"]
    argv[argv.index("--quant_scheme") + 1] = "mxfp4"


def _program(record: dict[str, Any]) -> None:
    record["commands"][0]["argv"] = [sys.executable, "-c", "open('/tmp/owned', 'w')"]


def _variables(record: dict[str, Any]) -> None:
    record["commands"][0]["env_set"]["LD_PRELOAD"] = "/tmp/other.so"


def _folder(record: dict[str, Any]) -> None:
    record["commands"][0]["cwd"] = "/tmp"


def _unlooked(record: dict[str, Any]) -> None:
    record["subject"]["files"] = record["subject"]["files"][:1]


def _second_command(record: dict[str, Any]) -> None:
    record["commands"].append(record["commands"][0])


@pytest.mark.parametrize(
    "change", [_argv, _program, _variables, _folder, _unlooked, _second_command], ids=lambda change: change.__name__
)
def test_run_json_is_changed_and_the_guard_started_on_it(
    change: Callable[[dict[str, Any]], None], prepared: Path, used: Job
) -> None:
    """The supervisor computes the digest itself: what is written down is not what was approved."""
    record = json.loads((prepared / "run.json").read_text())
    change(record)
    (prepared / "run.json").write_text(json.dumps(record))
    after = _guard(prepared, used)
    assert after["process"] is None and after["refused"]["code"] == "digest_differs"
    assert after["refused"]["differences"] and all(" → " in line for line in after["refused"]["differences"])
    assert not (prepared / "exit.json").exists() and not (prepared / "output.log").exists()
    assert not used.quark_processes() and not used.output.exists()
    told = used.twin.ask("status", str(prepared), exit=1)
    assert (told["verdict"], codes(told, "block")) == ("not_started", ["digest_differs"])


def test_a_variable_changed_before_the_guard(prepared: Path, used: Job) -> None:
    after = _guard(prepared, used, HF_HOME="/elsewhere")
    assert after["process"] is None
    (line,) = after["refused"]["differences"]
    assert line.startswith("environment HF_HOME: ") and line.endswith("→ /elsewhere")


def test_the_guard_on_an_unchanged_copy(prepared: Path, used: Job) -> None:
    """The rows above mean something only because this one starts."""
    guard = [sys.executable, "-I", "-S", str(prepared / "supervisor.pyz"), "guard", str(prepared)]
    with subprocess.Popen(guard, env=dict(used.twin.env)) as process:
        until(lambda: used.quark_processes() or process.poll() is not None, "it started, or was refused", 60)
        for pid in used.quark_processes():
            os.kill(pid, 9)
    assert process.returncode == 0
    assert json.loads((prepared / "run.json").read_text())["refused"] is None
    assert json.loads((prepared / "exit.json").read_text())["signal"] == 9
