"""What breaks if this is wrong: after a run somebody skips a checkpoint, loses what failed, or overwrites an output."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.demo.setup import Settings
from quark_tui.engine.follow_up import FollowUp, begin, follow_ups
from quark_tui.engine.listing import job_row
from quark_tui.engine.locate import Unreadable
from quark_tui.engine.review import review
from quark_tui.io import jobs
from tests.support.runs import HeldRun

from .conftest import PlainJob, codes

#: Fails in the calibration for want of memory, as quark-cli 0.12.post1 writes it.
NO_MEMORY = """
import sys
sys.stderr.write("\\x1b[32m\\n[QUARK-INFO]: Loading model ...\\x1b[0m\\n")
sys.stderr.write("\\x1b[32m\\n[QUARK-INFO]: Calibration start.\\x1b[0m\\n")
raise MemoryError("DefaultCPUAllocator: can't allocate memory")
"""
#: Fails after something of the output was written.
HALF = "import os, sys\nos.makedirs('out')\nopen('out/model.safetensors', 'w').write('half')\nsys.exit(3)\n"


def ran(job: PlainJob, child: str) -> Path:
    """The folder of a run of ``job`` that has ended."""
    run = job.start(child)
    run.exit()
    run.close()
    return run.folder


def by_code(job: PlainJob) -> dict[str, FollowUp]:
    return {one.code: one for one in follow_ups(str(job.path))}


def go(job: PlainJob, code: str, exit: int = 0) -> Answer:
    answer = begin(str(job.path), code, os.environ)
    assert answer.exit == exit, answer.findings
    return answer


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_failed_run_leads_back_to_the_plan_and_to_a_new_approval(planned: PlainJob) -> None:
    """P-98, P-104, P-110: the smallest change first; the plan is confirmed again, the new command has a new digest
    that names the failed run, and everything of that run stays."""
    before = planned.inside.ask("command", str(planned.path))["digest"]
    folder = ran(planned, NO_MEMORY)
    kept = tree(folder)
    offered = follow_ups(str(planned.path))
    assert offered[0].code == "shorter_sequences" and offered[0].changes == (("seq_len", "16"),)
    assert all(one.legal for one in offered)

    answer = go(planned, "shorter_sequences")
    assert (answer.body["checkpoint"], answer.body["voided"]) == ("plan", ["plan"])
    assert answer.body["after_run"] == folder.name and answer.body["output_dir"] == str(planned.path / "out")
    plan = planned.artifact("quant_plan.json")
    assert (plan["seq_len"], plan["requires_confirmation"]) == (16, True) and "accuracy" in plan["reasons"]["seq_len"]
    assert not (planned.path / "run_manifest.yaml").exists()

    seen = review(str(planned.path), os.environ)
    assert (seen.analysis.body["confirmed"], seen.plan.body["plan_confirmed"]) == (True, False)
    assert "plan_unconfirmed" in seen.command.body["blocked"]
    told = planned.inside.ask("status", str(planned.path), exit=1)
    states = {task["key"]: task["state"] for task in told["tasks"]}
    assert (states["analysis"], states["plan"]) == ("done", "pending")

    refused = planned.inside.ask("run", str(planned.path), "--approve", before, "--unattended", exit=1)
    assert refused["pid"] is None
    planned.confirm("plan")
    command = planned.inside.ask("command", str(planned.path))
    assert command["digest"] not in (None, before)
    assert command["digest_inputs"]["earlier_runs"] == [folder.name]
    assert folder.name in next(one["message"] for one in command["findings"] if one["code"] == "earlier_run")
    assert tree(folder) == kept and jobs.run_folders(str(planned.path)) == [str(folder)], "nothing was started"


def test_a_partial_output_is_kept_and_the_next_one_goes_elsewhere(planned: PlainJob) -> None:
    """P-110, P-120: nothing is deleted or written over; a name that is taken is never used."""
    ran(planned, HALF)
    (planned.path / "out-2").write_text("somebody's")
    again = by_code(planned)["run_again"]
    assert again.checkpoint == "plan" and again.changes == (("output_dir", str(planned.path / "out-3")),)
    assert go(planned, "run_again").body["output_dir"] == str(planned.path / "out-3")
    assert (planned.path / "out" / "model.safetensors").read_text() == "half"
    assert (planned.path / "out-2").read_text() == "somebody's" and not (planned.path / "out-3").exists()
    (planned.path / "out-3").mkdir()
    (planned.path / "out-3" / "more").write_text("half")
    assert by_code(planned)["run_again"].changes == (("output_dir", str(planned.path / "out-4")),)


def test_a_folder_that_somebody_named_keeps_its_own_name(planned: PlainJob, tmp_path: Path) -> None:
    (tmp_path / "llama-3").mkdir()
    planned.set(f"output_dir={tmp_path / 'llama-3'}")
    planned.confirm("plan")
    ran(planned, "import sys; sys.exit(3)")
    assert by_code(planned)["run_again"].changes == ()
    (tmp_path / "llama-3" / "file").write_text("")
    assert by_code(planned)["run_again"].changes == (("output_dir", str(tmp_path / "llama-3-2")),)


def test_the_same_command_again_needs_its_own_approval(planned: PlainJob) -> None:
    """P-106: where nothing changes, both confirmations hold; the execution approval is never passed over."""
    before = planned.inside.ask("command", str(planned.path))["digest"]
    confirmed = planned.record()["confirmations"]
    ran(planned, "import sys; sys.exit(3)")
    assert by_code(planned)["run_again"].checkpoint == "command"
    answer = go(planned, "run_again")
    assert (answer.body["checkpoint"], answer.body["voided"], answer.body["changes"]) == ("command", [], [])
    assert planned.record()["confirmations"] == confirmed
    assert planned.artifact("quant_plan.json")["requires_confirmation"] is False
    assert planned.inside.ask("command", str(planned.path))["digest"] not in (None, before)


def test_a_wrong_fact_leads_back_to_the_analysis_and_takes_all_that_rests_on_it(planned: PlainJob) -> None:
    """P-106: the earliest checkpoint affected, and everything after it."""
    ran(planned, "import sys; sys.exit(3)")
    answer = go(planned, "correct_analysis")
    assert (answer.body["checkpoint"], sorted(answer.body["voided"])) == ("analysis", ["analysis", "plan"])
    assert planned.record()["confirmations"] == {} and not (planned.path / "quant_plan.json").exists()
    seen = review(str(planned.path), os.environ)
    assert (seen.analysis.body["confirmed"], seen.plan.body["analysis_confirmed"]) == (False, False)
    assert job_row(str(planned.path))[0]["stage"] == "confirm the analysis"


def test_a_list_says_where_a_follow_up_stands_until_its_run_starts(planned: PlainJob) -> None:
    """What became of the run before stays known, also when verify looks at it again."""
    ran(planned, HALF)
    go(planned, "run_again")
    for _ in range(2):
        row, _ = job_row(str(planned.path))
        assert (row["verdict"], row["stage"]) == ("failed", "confirm the plan")
        planned.inside("verify", str(planned.path), "--json")
    planned.set("num_calib_data=8")
    assert job_row(str(planned.path))[0]["stage"] == "confirm the plan"
    planned.confirm("plan")
    row, _ = job_row(str(planned.path))
    assert (row["verdict"], row["stage"]) == ("failed", "approve the command")


def test_nothing_begins_under_a_living_run(planned: PlainJob, held: HeldRun) -> None:
    before = planned.bytes()
    offered = follow_ups(str(planned.path))
    assert offered and not any(one.legal for one in offered) and held.folder.name in offered[0].reason
    answer = go(planned, "run_again", exit=1)
    assert codes(answer.to_json(), "block") == ["already_running"] and planned.bytes() == before
    assert (planned.path / "run_manifest.yaml").exists()


def test_an_accepted_result_is_left_alone(planned: PlainJob) -> None:
    ran(planned, "import sys; sys.exit(3)")
    record = planned.record()
    record["accepted"] = {"digest": "0" * 64, "confirmed_at": "2026-01-01T00:00:00.000Z", "via": "cli"}
    (planned.path / ".quark-tui" / "job.json").write_text(json.dumps(record))
    before = planned.bytes()
    assert {one.legal for one in follow_ups(str(planned.path))} == {False}
    answer = go(planned, "change_plan", exit=1)
    assert codes(answer.to_json(), "block") == ["result_accepted"] and planned.bytes() == before
    assert "quark-tui new" in answer.findings[0].next_step


def test_before_any_run_there_is_nothing_to_follow_up(planned: PlainJob) -> None:
    assert follow_ups(str(planned.path)) == ()
    assert codes(go(planned, "run_again", exit=1).to_json(), "block") == ["no_run"]


def test_a_choice_that_the_plan_refuses_changes_nothing(planned: PlainJob, target: Settings) -> None:
    """Beside an output inside the interpreter's environment there is no place for another one."""
    ran(planned, "import sys; sys.exit(3)")
    record = planned.record()
    record["wishes"]["values"]["output_dir"] = str(target.python.parent)
    (planned.path / ".quark-tui" / "job.json").write_text(json.dumps(record))
    before = planned.bytes()
    answer = go(planned, "run_again", exit=1)
    assert codes(answer.to_json(), "block") == ["output_in_prefix"] and answer.body["checkpoint"] is None
    assert planned.bytes() == before and not target.python.parent.with_name("bin-2").exists()


@pytest.mark.parametrize("code", ["nonsense", "", "\x1b[31m", "x" * 5000])
def test_another_word_is_a_wrong_question(planned: PlainJob, code: str) -> None:
    ran(planned, "import sys; sys.exit(3)")
    with pytest.raises(WrongQuestion) as wrong:
        begin(str(planned.path), code, os.environ)
    assert "run_again" in str(wrong.value) and str(wrong.value).isprintable() and len(str(wrong.value)) < 400


def test_a_job_that_somebody_else_holds_is_left_alone(planned: PlainJob) -> None:
    ran(planned, "import sys; sys.exit(3)")
    before = planned.bytes()
    with jobs.locked(str(planned.path)):
        answer = begin(str(planned.path), "run_again", os.environ)
    assert codes(answer.to_json(), "block") == ["already_running"] and planned.bytes() == before


def test_damage_is_said(planned: PlainJob, model: Path) -> None:
    folder = ran(planned, "import sys; sys.exit(3)")
    (folder / "quant_plan.json").unlink(missing_ok=True)
    (folder / "run.json").write_text("[")
    assert follow_ups(str(planned.path)), "an unreadable record is an end too"
    (model / "config.json").unlink()
    answer = go(planned, "run_again", exit=1)
    assert codes(answer.to_json(), "block") == ["model_unreadable"]
    (planned.path / ".quark-tui" / "job.json").write_text("[")
    with pytest.raises(Unreadable):
        follow_ups(str(planned.path))
