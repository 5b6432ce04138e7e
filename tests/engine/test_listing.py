"""What breaks if this is wrong: Home says of a job what is not so, or what was so before."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from quark_tui.engine import listing
from quark_tui.engine.listing import job_row, listed
from quark_tui.io import jobs
from tests.support.runs import HeldRun

from .conftest import PlainJob

#: The head of a log of quark-cli 0.12.post1: colour code and record on lines of their own, bars over carriage returns.
HEAD = "\x1b[32m\n[QUARK-INFO]: Loading model ...\x1b[0m\n"
CALIBRATION = HEAD + "\x1b[32m\n[QUARK-INFO]: Calibration start.\x1b[0m\n"
BAR = "\rCalibrating activations:  24%|██▍       | 31/128 [00:10<00:31,  3.05it/s]"


def stage(job: PlainJob) -> object:
    return job_row(str(job.path))[0]["stage"]


def ran(job: PlainJob, status: int) -> Path:
    run = job.start(f"import sys; sys.exit({status})")
    run.exit()
    run.close()
    return run.folder


def test_a_living_run_says_where_it_is(planned: PlainJob, held: HeldRun) -> None:
    """Cheap evidence only: the end of its log. What the log does not say is not said."""
    log = held.folder / "output.log"
    assert stage(planned) == "started"
    for text, expected in (
        (HEAD, "loading the weights"),
        (CALIBRATION, "calibration"),
        (CALIBRATION + BAR, "calibration 31 of 128"),
        (CALIBRATION + BAR.replace("31/128", "200/128"), "calibration"),
        ("x" * (1 << 20) + "\n" + BAR + "\n", "calibration 31 of 128"),
        (BAR + "\n" + "y" * (1 << 20), "started"),
        ("\x1b]0;title\x07[QUARK-INFO]: Exporting hugging face format\n", "export"),
        ("\0" * 100_000, "started"),
    ):
        log.write_text(text)
        assert stage(planned) == expected, text[-200:]
    log.unlink()
    assert stage(planned) == "started"


def test_an_ended_run_is_not_asked_for_its_log(planned: PlainJob) -> None:
    folder = ran(planned, 0)
    (folder / "output.log").write_text(CALIBRATION + BAR)
    row, pid = job_row(str(planned.path))
    assert (row["verdict"], row["stage"], row["liveness"], pid) == (
        "unknown",
        "finished, to be verified",
        "finished",
        None,
    )
    assert row["started_at"] is not None
    assert row["started_at"] == planned.inside.ask("status", str(planned.path), exit=1)["started_at"]


def test_what_was_accepted_says_so(planned: PlainJob) -> None:
    ran(planned, 0)
    record = jobs.summary(str(planned.path))
    record["accepted"] = {"digest": "0" * 64, "confirmed_at": "2026-01-01T00:00:00.000Z", "via": "cli"}
    record["state"] = {}
    from quark_tui.io import atomic

    atomic.write_json(jobs.job_file(str(planned.path)), record)
    assert stage(planned) == "accepted"


def test_a_plan_that_was_changed_after_a_run_waits_for_its_person(planned: PlainJob) -> None:
    ran(planned, 3)
    assert (job_row(str(planned.path))[0]["verdict"], stage(planned)) == ("failed", None)
    planned.set("num_calib_data=8")
    assert (job_row(str(planned.path))[0]["verdict"], stage(planned)) == ("failed", "confirm the plan")


def test_a_second_look_sees_every_change(planned: PlainJob) -> None:
    """What is remembered of a file is used only while it is that file."""
    seen = [stage(planned)]
    planned.set("num_calib_data=8")
    seen.append(stage(planned))
    assert seen == ["approve the command", "confirm the plan"]
    planned.confirm("plan")
    folder = ran(planned, 0)
    assert job_row(str(planned.path))[0]["verdict"] == "unknown"
    planned.inside("verify", str(planned.path), "--json")
    assert (job_row(str(planned.path))[0]["verdict"], stage(planned)) == ("failed", "look at what went wrong")
    second = planned.path / ".quark-tui" / "runs" / ("9" + folder.name)
    shutil.copytree(folder, second)
    assert job_row(str(planned.path))[0]["verdict"] == "unknown", "the newest run is meant"
    (second / "exit.json").write_text("{")
    assert job_row(str(planned.path))[0]["liveness"] != "finished"
    shutil.rmtree(second)
    assert job_row(str(planned.path))[0]["verdict"] == "failed"
    shutil.rmtree(planned.path)
    with pytest.raises(OSError):
        job_row(str(planned.path))
    assert listed([]) == ([], [])


def test_two_jobs_on_one_model_have_names_of_their_own(planned: PlainJob, tmp_path: Path) -> None:
    shutil.copytree(planned.path, tmp_path / "other" / "again")
    rows, problems = listed([str(tmp_path / "other")])
    assert not problems and sorted(row["name"] for row in rows) == ["again", "job"]
    assert len({row["model"] for row in rows}) == 1
    assert all(row["name"] == os.path.basename(row["path"]) for row in rows)


def test_a_damaged_record_is_a_row_with_its_problem_each_time(planned: PlainJob) -> None:
    (planned.path / ".quark-tui" / "job.json").write_text("[1]")
    for _ in range(2):
        rows, problems = listed([])
        assert [row["verdict"] for row in rows] == ["unreadable"] and problems[0][0] == str(planned.path)
    (planned.path / ".quark-tui" / "job.json").write_text('{"state": 7, "model": 7, "accepted": 7, "workflow": 7}')
    rows, problems = listed([])
    assert not problems and (rows[0]["model"], rows[0]["stage"], rows[0]["verdict"]) == (None, None, "not_started")


def test_the_words_name_every_phase(planned: PlainJob, held: HeldRun) -> None:
    from quark_tui.core.ptq import phases

    for start, key in phases._STARTS:
        (held.folder / "output.log").write_text(f"[QUARK-INFO]: {start}\n")
        assert stage(planned) != "started", key
    assert listing._TAIL == 64 << 10
