"""What breaks if this is wrong: a screen shows another truth than the command line, or asks the target again for each
checkpoint."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.demo.setup import Settings
from quark_tui.engine.locate import Unreadable
from quark_tui.engine.review import Review, review
from tests.support.runs import HeldRun

from .conftest import SOUND, Inside, Maker, PlainJob


def _json(answer: Answer) -> str:
    return _lasting(answer.to_json())


def _told(job: PlainJob, command: str) -> str:
    return _lasting(json.loads(job.inside(command, str(job.path), "--json")[1]))


def _lasting(answer: dict[str, Any]) -> str:
    """What two looks have in common: free memory and disk change between them."""
    return json.dumps({key: value for key, value in answer.items() if key != "available"}, sort_keys=True)


def _agrees(job: PlainJob) -> Review:
    """A review that says word for word what the commands say."""
    seen = review(str(job.path), os.environ)
    plan = dict(seen.plan.body)
    assert {"confirmed_at", "via"} <= plan.keys()
    del plan["confirmed_at"], plan["via"]
    assert _json(Answer("plan", plan, seen.plan.findings, seen.plan.exit)) == _told(job, "plan")
    assert _json(seen.command) == _told(job, "command")
    return seen


def test_the_screen_says_what_the_commands_say_at_each_checkpoint(make: Maker) -> None:
    job = make(*SOUND)
    seen = _agrees(job)
    assert seen.analysis.body["confirmed"] is False and seen.plan.body["plan_confirmed"] is False
    assert seen.command.body["digest"] is None and seen.command.exit == 1
    assert (seen.analysis.body["confirmed_at"], seen.plan.body["confirmed_at"]) == (None, None)

    given = job.confirm("analysis")
    assert given["digest"] == seen.analysis.body["digest"]
    seen = _agrees(job)
    assert seen.analysis.body["confirmed"] is True and seen.analysis.body["via"] == "cli"
    assert seen.analysis.body["confirmed_at"] == given["confirmed_at"]
    assert seen.analysis.body["analysis"] == job.artifact("model_analysis.json")

    given = job.confirm("plan")
    seen = _agrees(job)
    assert (seen.plan.body["confirmed_at"], seen.plan.body["via"]) == (given["confirmed_at"], "cli")
    assert seen.command.body["digest"] is not None and seen.command.exit == 0


def test_the_model_and_the_environment_are_those_of_their_commands(
    job: PlainJob, model: Path, target: Settings, inside: Inside
) -> None:
    seen = review(str(job.path), os.environ)
    asked = inside.ask("model", str(model), "--python", str(target.python))
    for name in ("path", "analysis", "facts", "remote_code", "already_quantized", "inventory"):
        assert seen.analysis.body[name] == asked[name], name
    told = json.loads(inside("env", "--python", str(target.python), "--json")[1])
    here = seen.environment.body
    for name in ("packages", "gpus", "gpu_verdict", "driver", "quark_cli", "compute"):
        assert here[name] == told[name], name
    for group in ("interpreter", "torch"):
        assert here[group] == {name: told[group][name] for name in here[group]}


def test_a_review_asks_the_target_once(make: Maker, target: Settings, tmp_path: Path) -> None:
    python, starts = tmp_path / "python", tmp_path / "starts"
    python.write_text(f'#!/bin/sh\necho started >> "{starts}"\nexec "{target.python}" "$@"\n')
    python.chmod(0o755)
    job = make(*SOUND, python=python)
    job.confirm("analysis")
    starts.write_text("")
    review(str(job.path), os.environ)
    once = starts.read_text().count("started")
    starts.write_text("")
    job.plan()
    assert once == starts.read_text().count("started") > 0


def test_the_digest_that_a_review_shows_starts_the_run(planned: PlainJob) -> None:
    """What was shown is what can be approved, and a difference from it can be named afterwards."""
    digest = review(str(planned.path), os.environ).command.body["digest"]
    with (planned.path / "quant_plan.json").open("a") as plan:
        plan.write("\n")
    words = ("run", str(planned.path), "--approve", digest, "--unattended", "--json")
    status, out, _ = planned.inside(*words)
    assert status == 1
    (refusal,) = json.loads(out)["findings"]
    assert refusal["code"] == "digest_differs" and "quant_plan.json" in refusal["message"]


def test_a_plan_that_was_lost_comes_back_and_nothing_changes_under_a_run(planned: PlainJob) -> None:
    """P-101: an artifact is regenerated from its own rules, but not while a run rests on it."""
    whole = planned.artifact("quant_plan.json")
    (planned.path / "quant_plan.json").unlink()
    assert review(str(planned.path), os.environ).plan.body["plan"] == whole == planned.artifact("quant_plan.json")
    run = planned.start()
    try:
        (planned.path / "quant_plan.json").unlink()
        seen = review(str(planned.path), os.environ)
        assert "already_running" in seen.command.body["blocked"]
        assert not (planned.path / "quant_plan.json").exists()
    finally:
        run.close()


def test_a_changed_model_takes_both_confirmations_back(planned: PlainJob, model: Path) -> None:
    """P-106: what a person confirmed of another model is confirmed no more."""
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "vocab_size": config["vocab_size"] + 1}))
    seen = _agrees(planned)
    assert (seen.analysis.body["confirmed"], seen.analysis.body["via"]) == (False, None)
    assert seen.plan.body["confirmed_at"] is None and seen.command.body["digest"] is None


def test_no_interpreter_is_a_finding_of_all_of_them(make: Maker, tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    job = make(python=broken, exit=1)
    seen = _agrees(job)
    for answer in (seen.analysis, seen.plan, seen.command, seen.environment):
        assert answer.exit == 1 and "interpreter_unusable" in [finding.code for finding in answer.findings]
    assert seen.environment.body["compute"]["mode"] == "undecided"
    assert seen.environment.body["packages"]["torch"] is None


def test_what_cannot_be_read_is_said_by_one_sentence(job: PlainJob, model: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongQuestion, match="no such path"):
        review(str(tmp_path / "nothing"), os.environ)
    shutil.rmtree(model)
    with pytest.raises(Unreadable, match="model"):
        review(str(job.path), os.environ)
    (job.path / ".quark-tui" / "job.json").write_text("{")
    with pytest.raises(Unreadable, match=r"job\.json"):
        review(str(job.path), os.environ)


def test_a_review_of_a_held_job_is_still_given(planned: PlainJob, held: HeldRun) -> None:
    seen = review(str(planned.path), os.environ)
    assert seen.analysis.body["confirmed"] is True and seen.plan.body["plan_confirmed"] is True
    assert "already_running" in seen.command.body["blocked"]
