"""The checkpoints through the command line: nothing before its time, each bound to exactly what was shown."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from quark_tui.demo.setup import Settings
from quark_tui.io import artifacts, jobs
from tests.support.runs import HeldRun

from .conftest import SOUND, Inside, Maker, PlainJob, codes


def test_before_checkpoint_1_only_wishes_are_kept(make: Maker) -> None:
    """P-04, P-46: what is asked for is remembered, no plan is written, nothing is confirmed."""
    job = make()
    answer = job.set(*SOUND)
    assert "analysis_unconfirmed" in codes(answer, "info") and answer["analysis_confirmed"] is False
    assert job.record()["wishes"]["values"]["global_scheme"] == "fp8"
    assert not (job.path / "quant_plan.json").exists() and not (job.path / "run_manifest.yaml").exists()
    command = job.inside.ask("command", str(job.path), exit=1)
    assert {"analysis_unconfirmed", "plan_unconfirmed"} <= set(command["blocked"]) and command["digest"] is None


def test_checkpoint_2_waits_for_checkpoint_1(make: Maker) -> None:
    job = make(*SOUND)
    assert codes(job.confirm("plan", exit=1), "block") == ["analysis_unconfirmed"]
    assert job.record()["confirmations"] == {}


@pytest.mark.parametrize("digest", ["0" * 64, "", "nonsense", "\x1b[31m", "9" * 100_000])
def test_another_digest_confirms_nothing(job: PlainJob, digest: str) -> None:
    """P-46, P-68, P-69: a digest stands for exactly what was shown."""
    before = job.bytes()
    for checkpoint in ("analysis", "plan"):
        answer = job.inside.ask("confirm", str(job.path), checkpoint, "--digest", digest, exit=1)
        assert codes(answer, "block") == ["digest_differs"] and answer["confirmed_at"] is None
    assert job.bytes() == before and job.artifact("quant_plan.json")["requires_confirmation"] is True


def test_an_open_decision_cannot_be_confirmed(make: Maker) -> None:
    """P-51: there is no default scheme."""
    job = make("device_strategy=cpu")
    job.confirm("analysis")
    shown = job.plan(exit=1)
    assert codes(shown, "block") == ["scheme_missing"] and shown["plan"] is None and shown["digest"] is None
    assert codes(job.confirm("plan", exit=1), "block") == ["scheme_missing"]


def test_a_correction_is_recorded_with_what_it_replaces(make: Maker, model: Path) -> None:
    """P-46: a fact corrected at Checkpoint 1 says that a person gave it, and what the configuration said."""
    job = make(*SOUND)
    before = job.plan()["analysis_digest"]
    job.confirm("analysis", "--set", "num_hidden_layers=3", "--set", "dtype=float32")
    analysis = job.artifact("model_analysis.json")
    text = json.dumps(analysis)
    assert job.record()["corrections"]["num_hidden_layers"] == 3
    assert job.plan()["analysis_digest"] != before
    told = [line for line in _texts(analysis) if "corrected" in line.lower() or "stated" in line.lower()]
    assert told, text
    assert any("2" in line for line in told), "the old value is kept"
    assert job.plan()["analysis_confirmed"] is True
    assert json.loads((model / "config.json").read_text())["num_hidden_layers"] == 2, "the model is not touched"


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [line for item in value.values() for line in _texts(item)]
    if isinstance(value, list):
        return [line for item in value for line in _texts(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize(
    "pair", ["nonsense=1", "num_hidden_layers=many", "num_hidden_layers=0", "num_hidden_layers=" + "9" * 5000]
)
def test_a_correction_of_nothing(make: Maker, pair: str) -> None:
    job = make(*SOUND)
    digest = job.plan()["analysis_digest"]
    before = job.bytes()
    job.inside.wrong("confirm", str(job.path), "analysis", "--digest", digest, "--set", pair)
    assert job.bytes() == before


def test_corrections_belong_to_checkpoint_1(job: PlainJob) -> None:
    digest = job.plan()["digest"]
    job.inside.wrong("confirm", str(job.path), "plan", "--digest", digest, "--set", "seq_len=1")


def test_an_unknown_model_type_is_asked_for(make: Maker, model: Path) -> None:
    """P-101, P-102: no artifact is written that would have to invent a required field."""
    config = json.loads((model / "config.json").read_text())
    del config["model_type"], config["architectures"]
    (model / "config.json").write_text(json.dumps(config))
    job = make(*SOUND, exit=1)
    assert not (job.path / "model_analysis.json").exists()
    assert "model_type_unknown" in codes(job.confirm("analysis", exit=1), "block")
    assert not (job.path / "model_analysis.json").exists()
    job.confirm("analysis", "--set", "model_type=llama")
    assert job.artifact("model_analysis.json")["model"]["model_type"] == "llama"
    assert job.plan()["plan"]["model"]["model_type"] == "llama"


def test_a_change_voids_checkpoint_2(planned: PlainJob) -> None:
    """P-04, P-68, P-69, P-100, P-106, P-110: the plan is rewritten, waits again, and the old digest no longer confirms
    it; changing back does not confirm by itself."""
    old = planned.plan()["digest"]
    answer = planned.set("seq_len=64")
    assert (answer["plan_confirmed"], answer["digest"] != old) == (False, True)
    assert planned.artifact("quant_plan.json")["requires_confirmation"] is True
    assert planned.artifact("quant_plan.json")["seq_len"] == 64
    assert "plan_unconfirmed" in planned.inside.ask("command", str(planned.path), exit=1)["blocked"]
    refused = planned.inside.ask("confirm", str(planned.path), "plan", "--digest", old, exit=1)
    assert codes(refused, "block") == ["digest_differs"]
    back = planned.set("seq_len=32")
    assert (back["digest"], back["plan_confirmed"]) == (old, False)


def test_setting_what_is_set_voids_nothing(planned: PlainJob) -> None:
    """P-106: asking again for what the plan says already is no change."""
    assert planned.set("seq_len=32")["plan_confirmed"] is True
    assert planned.inside.ask("command", str(planned.path))["digest"]


def test_a_changed_model_voids_checkpoint_1(planned: PlainJob, model: Path) -> None:
    """P-47, P-106: the plan rests on an analysis that holds; the earliest checkpoint that a change reaches comes
    again."""
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "vocab_size": config["vocab_size"] * 2}))
    answer = planned.plan()
    assert (answer["analysis_confirmed"], answer["plan_confirmed"]) == (False, False)
    assert not (planned.path / "quant_plan.json").exists(), "what no longer holds is not left lying about"
    planned.confirm("analysis")
    assert planned.plan()["plan_confirmed"] is False
    assert planned.artifact("quant_plan.json")["requires_confirmation"] is True


def test_confirming_again_keeps_what_holds(planned: PlainJob) -> None:
    planned.confirm("analysis")
    assert planned.plan()["plan_confirmed"] is True


def test_a_confirmation_says_how_it_was_given(planned: PlainJob) -> None:
    """Whatever was confirmed by a script says so wherever it is shown."""
    given = planned.record()["confirmations"]
    assert {name: one["via"] for name, one in given.items()} == {"analysis": "cli", "plan": "cli"}
    manifest = artifacts.read(str(planned.path / "run_manifest.yaml"))
    passed = {entry["id"]: entry.get("via") for entry in manifest["checkpoints"] if entry["passed"]}
    assert passed == {"analysis": "cli", "plan": "cli"}


def test_artifacts_are_replaced_whole(planned: PlainJob) -> None:
    """A reader that has the old file open still has it whole; nothing half-written is left beside it."""
    path = planned.path / "quant_plan.json"
    with open(path, "rb") as reader:
        planned.set("seq_len=64")
        assert json.loads(reader.read())["seq_len"] == 32
        assert os.fstat(reader.fileno()).st_ino != path.stat().st_ino
    assert not [name for name in os.listdir(planned.path) if name.endswith(".tmp")]
    assert not [name for name in os.listdir(planned.path / ".quark-tui") if name.endswith(".tmp")]


def test_nothing_changes_while_a_run_is_alive(planned: PlainJob, held: HeldRun) -> None:
    """Wishes, both checkpoints and a second start are refused; looking is not."""
    before = planned.bytes()
    plan = (planned.path / "quant_plan.json").read_bytes()
    shown = planned.plan()
    for words in (["--set", "seq_len=64"], ["--exclude", "*o_proj"], ["--override", "*o_proj=int8"]):
        assert codes(planned.plan(*words, exit=1), "block")[0] == "already_running"
    assert codes(planned.confirm("analysis", exit=1), "block") == ["already_running"]
    assert codes(planned.confirm("plan", exit=1), "block") == ["already_running"]
    assert "already_running" in planned.inside.ask("command", str(planned.path), exit=1)["blocked"]
    run = planned.inside.ask("run", str(planned.path), "--approve", "0" * 64, "--unattended", exit=1)
    assert codes(run) == ["already_running"] and held.folder.name in run["findings"][0]["message"]
    accepted = planned.inside.ask("accept", str(planned.path), "--digest", "0" * 64, exit=1)
    assert codes(accepted) == ["already_running"]
    assert planned.bytes() == before and (planned.path / "quant_plan.json").read_bytes() == plan
    assert planned.plan()["digest"] == shown["digest"]
    held.release()
    held.exit()
    held.gone("guard")
    planned.set("seq_len=64")


def test_another_process_is_changing_the_job(planned: PlainJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once: one is told to look again, and nothing is lost."""
    genuine = jobs.locked
    monkeypatch.setattr(jobs, "locked", lambda path, patience=0.0: genuine(path, 0.0))
    before = planned.bytes()
    with genuine(str(planned.path)):
        for words in (
            ["plan", str(planned.path), "--set", "seq_len=64"],
            ["confirm", str(planned.path), "plan", "--digest", "0"],
            ["run", str(planned.path), "--approve", "0", "--unattended"],
            ["accept", str(planned.path), "--digest", "0"],
        ):
            assert "already_running" in codes(planned.inside.ask(*words, exit=1), "block"), words
    assert planned.bytes() == before


def test_a_job_is_made_once(planned: PlainJob, model: Path, target: Settings) -> None:
    """job_exists: neither a job nor somebody's artifacts are written over."""
    arguments = ["--workflow", "ptq", "--model", str(model), "--python", str(target.python)]
    before = planned.bytes()
    assert codes(planned.inside.ask("new", str(planned.path), *arguments, exit=1)) == ["job_exists"]
    assert planned.bytes() == before
    other = planned.inside.folder / "other"
    other.mkdir()
    (other / "quant_plan.json").write_text("mine")
    answer = planned.inside.ask("new", str(other), *arguments, exit=1)
    assert codes(answer) == ["job_exists"] and answer["job"] is None
    assert sorted(os.listdir(other)) == ["quant_plan.json"] and (other / "quant_plan.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        (["global_scheme=fp9"], "scheme_unknown"),
        (["output_dir=relative"], "path_not_absolute"),
        (["global_scheme=fp8", "num_calib_data=4", "batch_size=8"], "batch_exceeds_samples"),
    ],
)
def test_a_refused_wish_makes_no_job(
    inside: Inside, model: Path, target: Settings, pairs: list[str], code: str
) -> None:
    """A refused --set makes nothing: no folder, no entry in any list."""
    sets = [word for pair in pairs for word in ("--set", pair)]
    arguments = ["--workflow", "ptq", "--model", str(model), "--python", str(target.python)]
    answer = inside.ask("new", "job", *arguments, *sets, exit=1)
    assert answer["job"] is None and code in codes(answer, "block")
    assert not (inside.folder / "job").exists() and inside.ask("paths")["known_jobs"] == []


def test_a_blocking_model_still_makes_the_job(inside: Inside, target: Settings) -> None:
    """No template for its type: the job is made, because a template file may follow."""
    gpt2 = target.models["tiny-gpt2"]
    arguments = ["--workflow", "ptq", "--model", str(gpt2), "--python", str(target.python)]
    status, out, _ = inside("new", "job", *arguments, "--json")
    answer = json.loads(out)
    assert answer["job"] == str(inside.folder / "job") and (inside.folder / "job").is_dir()
    assert status == (1 if codes(answer, "block") else 0)


@pytest.mark.parametrize("workflow", ["install", "quant-perf"])
def test_other_workflows_are_said_not_to_be_there(inside: Inside, workflow: str) -> None:
    answer = inside.ask("new", "job", "--workflow", workflow, exit=1)
    assert answer["job"] is None and answer["findings"] and not (inside.folder / "job").exists()


def test_the_command_says_all_that_an_approval_has_to_show(make: Maker, model: Path) -> None:
    """P-91: the whole command, where output goes, what it takes and what is free, remote code, the files to expect."""
    (model / "own.py").write_text("raise SystemExit\n")
    settings = json.loads((model / "tokenizer_config.json").read_text())
    settings["auto_map"] = {"AutoTokenizer": ["own.Own", None]}
    (model / "tokenizer_config.json").write_text(json.dumps(settings))
    job = make(*SOUND)
    job.confirm("analysis")
    job.confirm("plan")
    shown = job.inside.ask("command", str(job.path))
    (command,) = shown["commands"]
    assert command["argv"][command["argv"].index("--output_dir") + 1] == str(job.path / "out")
    assert str(job.path / "out") in command["writes"]
    weights = (model / "model.safetensors").stat().st_size
    assert weights // 3 < shown["estimate"]["output_bytes"] < weights
    assert shown["estimate"]["peak_memory_bytes"] > weights
    assert shown["available"]["output_bytes"] > 0 and shown["available"]["memory_bytes"] > 0
    (code,) = shown["remote_code"]
    assert (code["file"], code["stopped_by_flag"]) == ("tokenizer_config.json", False)
    assert code["sha256"] == hashlib.sha256(b"raise SystemExit\n").hexdigest()
    names = {path.removeprefix(f"{job.path}/out/") for path in shown["expected_files"]}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= names
    assert not (job.path / "out").exists()
