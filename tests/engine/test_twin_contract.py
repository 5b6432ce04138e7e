"""What every command owes whoever calls it: one object, exit 0, 1 or 2, one line for a wrong question."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from quark_tui.cli import main
from quark_tui.demo.setup import Settings
from quark_tui.io.target import probe

from .conftest import SOUND, Inside, Maker, PlainJob, codes

ROOT = Path(__file__).parents[2]


def test_every_answer_in_its_envelope(planned: PlainJob, inside: Inside, target: Settings, model: Path) -> None:
    """The same facts as on a screen, for scripts: ``schema``, ``findings``, the keys that are promised."""
    path = str(planned.path)
    keys = {
        ("env", "--python", str(target.python)): "interpreter packages torch gpus gpu_verdict driver kernel container "
        "env_vars tools compute",
        ("model", str(model)): "analysis facts remote_code already_quantized inventory",
        ("plan", path): "plan rows patterns estimate analysis_digest digest",
        ("command", path): "commands blocked digest digest_inputs",
        ("status", path): "kind scope path liveness liveness_evidence verdict stage process runs files started_at "
        "updated_at fresh_seconds numbers tasks advice",
        ("sessions",): "roots sessions",
        ("paths",): "config state cache themes schemas known_jobs",
        ("doctor",): "version python terminal env paths",
    }
    for (command, *words), promised in keys.items():
        status = 1 if command in ("status", "env") else 0
        if command == "env":
            status = inside(command, *words, "--json")[0]
        answer = inside.ask(command, *words, exit=status)
        assert set(promised.split()) <= set(answer), command


def test_plain_text_says_it_too(planned: PlainJob, inside: Inside, target: Settings, model: Path) -> None:
    """Without --json: text on stdout, the same exit status, nothing on stderr."""
    path = str(planned.path)
    for words in (
        ["model", str(model)],
        ["plan", path],
        ["command", path],
        ["status", path],
        ["verify", path],
        ["sessions"],
        ["paths"],
        ["doctor"],
    ):
        status, out, err = inside(*words)
        assert status == inside(*words, "--json")[0]
        assert out.strip() and err == "" and "Traceback" not in out
    _, out, _ = inside("command", path)
    assert shlex.join(inside.ask("command", path)["commands"][0]["argv"]) or out


def test_paths_are_absolute_and_keep_links(make: Maker, inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed is resolved against the person's own folder, links kept."""
    make(*SOUND)
    (inside.folder / "link").symlink_to(inside.folder)
    monkeypatch.chdir(inside.folder / "link")
    monkeypatch.setenv("PWD", str(inside.folder / "link"))
    assert inside.ask("status", "./job/../job", exit=1)["path"] == str(inside.folder / "link" / "job")


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense", "x"],
        ["plan"],
        ["plan", "/nowhere/at/all"],
        ["status", "/nowhere/at/all"],
        ["stop", "/nowhere/at/all"],
        ["verify", "/nowhere/at/all"],
        ["accept", "/nowhere/at/all", "--digest", "0"],
        ["command", "/nowhere/at/all"],
        ["confirm", "/nowhere/at/all", "plan", "--digest", "0"],
        ["run", "/nowhere/at/all", "--approve", "0", "--unattended"],
        ["model", "/nowhere/at/all"],
        ["sessions", "--root", "/nowhere/at/all"],
        ["new", "job"],
        ["new", "job", "--workflow", "ptq"],
        ["new", "job", "--workflow", "ptq", "--model", "/nowhere/at/all"],
        ["new", "job", "--workflow", "other", "--model", "/"],
        ["confirm", "/", "nonsense", "--digest", "0"],
        ["status", "/"],
        ["stop", "/", "--signal", "STOP"],
        ["plan", "/", "--set", "novalue"],
        ["plan", "/", "--override", "=fp8"],
        ["status", "/", "--colour"],
        ["status", "a\x1b[31mb\nc"],
        ["status", "a\0b"],
        ["status", "a" * 5000],
        ["model", "\udce4"],
    ],
    ids=lambda words: " ".join(words)[:40].encode("unicode_escape").decode(),
)
def test_a_wrong_question(words: list[str], inside: Inside) -> None:
    inside.wrong(*words)
    assert not (inside.folder / "job").exists()


@pytest.mark.parametrize(
    "pair",
    [
        "nonsense=1",
        "num_calib_data=many",
        "num_calib_data=0",
        "num_calib_data=-1",
        "num_calib_data=1e3",
        "num_calib_data=" + "9" * 5000,
        "trust_remote_code=perhaps",
        "exclude_layers=[1",
        "layer_quant_config=[]",
        'layer_quant_config={"a": "fp8", "a": "int8"}',
        "devices=[-1]",
        "device_strategy=tpu",
        "evaluation_intent=some",
        "output_format=gguf",
        "global_scheme=--device",
        "global_scheme=a\x1bb",
    ],
)
def test_a_wrong_value_changes_nothing(pair: str, job: PlainJob, inside: Inside) -> None:
    """P-69: an unknown row or a value of the wrong type: exit 2, and the job is byte for byte what it was."""
    before = job.bytes()
    inside.wrong("plan", str(job.path), "--set", pair)
    inside.wrong("plan", str(job.path), "--set", "seq_len=64", "--set", pair)
    assert job.bytes() == before


def test_a_wrong_value_makes_no_job(inside: Inside, target: Settings, model: Path) -> None:
    arguments = ["--workflow", "ptq", "--model", str(model), "--python", str(target.python)]
    inside.wrong("new", "job", *arguments, "--set", "nonsense=1")
    assert not (inside.folder / "job").exists()


def test_the_process_itself(tmp_path: Path) -> None:
    """Exit status, both streams and a closed pipe, as a shell sees them."""
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from quark_tui.cli import main; sys.exit(main())"
    argv = [sys.executable, "-c", code, str(ROOT)]
    environment = {**os.environ, "QUARK_TUI_STATE": str(tmp_path / "state")}
    wrong = subprocess.run([*argv, "status", "nowhere"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == f"quark-tui: {tmp_path}/nowhere: no such path\n"
    with subprocess.Popen([*argv, "doctor", "--json"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as good:
        assert json.load(good.stdout or open(os.devnull))["schema"] == "quark-tui.doctor.v1"
    assert good.returncode == 0
    closed = subprocess.Popen(
        [*argv, "doctor"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert closed.stdout is not None and closed.stderr is not None
    closed.stdout.close()
    assert b"Traceback" not in closed.stderr.read()
    closed.stderr.close()
    assert closed.wait() == 1
    bare = subprocess.run(argv, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (bare.returncode, bare.stdout) == (2, "") and bare.stderr.count("\n") == 1, "no terminal, no app"


def test_advice_can_be_pasted(inside: Inside, target: Settings, model: Path) -> None:
    """P-82: a path with spaces and quotes is one word of the command that is advised next."""
    path = inside.folder / "it's a job"
    arguments = ["--workflow", "ptq", "--model", str(model), "--python", str(target.python)]
    sets = [word for pair in SOUND for word in ("--set", pair)]
    inside.ask("new", str(path), *arguments, *sets)
    shown = inside.ask("plan", str(path))
    advised = next(f["next_step"] for f in shown["findings"] if f["code"] == "analysis_unconfirmed")
    program, *words = shlex.split(advised)
    assert program == "quark-tui"
    confirmed = inside.ask(*words)
    assert shlex.split(confirmed["next"]) == ["quark-tui", "plan", str(path)]
    digest = inside.ask("plan", str(path))["digest"]
    after = inside.ask("confirm", str(path), "plan", "--digest", digest)["next"]
    command = inside.ask(*shlex.split(after)[1:])["commands"][0]
    assert shlex.split(command["shell"]) == command["argv"]
    assert str(path / "out") in command["argv"]


def test_the_command_is_that_of_the_targets_environment(planned: PlainJob, inside: Inside, target: Settings) -> None:
    """P-70, P-71, P-84: an argument list for the public command of the interpreter that provides amd-quark."""
    answer = inside.ask("command", str(planned.path))
    (command,) = answer["commands"]
    argv = command["argv"]
    assert argv[:2] == [probe(str(target.python)).quark_cli, "torch-llm-ptq"]
    for option in ("--model_dir", "--output_dir", "--quant_scheme", "--num_calib_data", "--seq_len", "--device"):
        assert argv.count(option) == 1
    assert (
        "--no_trust_remote_code" in argv and "--skip_evaluation" in argv and argv[argv.index("--device") + 1] == "cpu"
    )
    assert command["env_set"]["CUDA_VISIBLE_DEVICES"] == ""
    assert answer["digest_inputs"]["versions"]["amd-quark"] == "0.12.post1"
    for entry in answer["digest_inputs"]["files"]:
        assert entry["path"].startswith("/") and ("sha256" in entry) != ("stat" in entry)
    assert not planned.path.joinpath("out").exists()


def test_secrets_are_only_set_or_unset(planned: PlainJob, inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-15: in doctor, in what a digest covers, and in what is kept on disk."""
    secret = "hf_abcdefghijklmnopqrstuvwxyzABCDEF"
    monkeypatch.setenv("HF_TOKEN", secret)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"https://somebody:{secret}@example.org/simple")
    monkeypatch.setenv("HTTPS_PROXY", f"http://somebody:{secret}@example.org:3128")
    for words in (["doctor"], ["command", str(planned.path)], ["env"], ["status", str(planned.path)], ["sessions"]):
        for more in (["--json"], []):
            _, out, err = inside(*words, *more)
            assert secret not in out + err, words
    assert inside.ask("doctor")["env"]["HF_TOKEN"] == "set"
    kept = [path for path in planned.path.rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if secret.encode() in path.read_bytes()]


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["plan", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 0
        assert "quark-tui" in capsys.readouterr().out


def test_an_environment_that_is_none(inside: Inside, model: Path) -> None:
    """P-90: an interpreter that cannot be asked is a finding, and the job is made all the same."""
    nothing = inside.folder / "not-python"
    nothing.write_text("#!/bin/sh\nexit 3\n")
    nothing.chmod(0o755)
    answer = inside.ask("new", "job", "--workflow", "ptq", "--model", str(model), "--python", str(nothing), exit=1)
    assert answer["job"] is not None and "interpreter_unusable" in codes(answer, "block")
    blocked = inside.ask("command", "job", exit=1)
    assert blocked["digest"] is None and "interpreter_unusable" in blocked["blocked"]
