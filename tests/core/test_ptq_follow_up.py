"""What breaks if this is wrong: after a run somebody is led to a change that does not help, or past a checkpoint."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.ptq.follow_up import CHECKPOINTS, Ended, FollowUp, earlier, offers
from quark_tui.core.ptq.wishes import Wishes, changed

PLAN = {"batch_size": 4, "seq_len": 512, "num_calib_data": 128, "device_strategy": "single", "algorithm": None}


def failure(kind: str, checkpoint: int | None) -> dict[str, Any]:
    return {"kind": kind, "checkpoint": checkpoint, "next_step": "the advice"}


def ended(**given: Any) -> Ended:
    values: dict[str, Any] = {
        "run": "R1",
        "verdict": "failed",
        "stage": "quantize",
        "failure": failure("unknown", 3),
        "plan": PLAN,
        "gpus": 0,
        "output": None,
    }
    return Ended(**{**values, **given})


def codes(found: tuple[FollowUp, ...]) -> list[str]:
    return [one.code for one in found]


@pytest.mark.parametrize(
    ("number", "checkpoint", "expected"),
    [
        (1, "analysis", ["correct_analysis", "change_plan", "run_again"]),
        (2, "plan", ["change_plan", "run_again", "correct_analysis"]),
        (3, "command", ["run_again", "change_plan", "correct_analysis"]),
    ],
)
def test_the_class_of_the_failure_decides_where_it_goes_on(number: int, checkpoint: str, expected: list[str]) -> None:
    """P-105, P-109: the advice of the failure comes first, with the checkpoint that it names."""
    found = offers(ended(failure=failure("compatibility", number)))
    assert codes(found) == expected
    assert (found[0].checkpoint, found[0].why, found[0].changes) == (checkpoint, "the advice", ())


def test_memory_that_ran_out_in_calibration_asks_for_less_with_the_cost_written_down() -> None:
    """P-104, P-117: the change that costs nothing first; those that can cost accuracy keep that as their reason."""
    found = offers(ended(failure=failure("memory", 2)))
    assert codes(found)[:3] == ["smaller_batch", "shorter_sequences", "fewer_samples"]
    assert [one.changes for one in found[:3]] == [
        (("batch_size", "2"),),
        (("seq_len", "256"),),
        (("num_calib_data", "64"),),
    ]
    assert ["accuracy" in one.reasons[0][1] for one in found[:3]] == [False, True, True]
    assert all(one.checkpoint == "plan" and "R1" in one.reasons[0][1] for one in found[:3])
    for one in found:
        wishes = changed(Wishes(), one.changes, reasons=one.reasons)
        assert set(wishes.values) == {key for key, _ in one.changes}


def test_what_cannot_be_halved_is_not_offered() -> None:
    small = {**PLAN, "batch_size": 1, "seq_len": 1, "num_calib_data": 1}
    assert codes(offers(ended(failure=failure("memory", 2), plan=small)))[0] == "change_plan"
    four = {**PLAN, "num_calib_data": 4}
    assert "fewer_samples" not in codes(offers(ended(failure=failure("memory", 2), plan=four))), "less than a batch"
    assert codes(offers(ended(failure=failure("memory", 2), plan={})))[0] == "change_plan"


def test_memory_that_ran_out_while_loading_takes_more_devices_where_there_are_some() -> None:
    found = offers(ended(failure=failure("memory", 2), stage="load", gpus=2))
    assert found[0].code == "several_devices" and found[0].changes == (("device_strategy", "multi_device"),)
    for gpus, more in ((None, {}), (1, {}), (2, {"device_strategy": "multi_device"}), (2, {"algorithm": "gptq"})):
        one = offers(ended(failure=failure("memory", 2), stage="load", gpus=gpus, plan={**PLAN, **more}))[0]
        assert (one.code, one.changes) == ("change_plan", ())
    assert offers(ended(failure=failure("memory", 2), stage="evaluate"))[0].changes == (("evaluation_intent", "none"),)


def test_an_output_that_is_in_the_way_makes_every_choice_a_change_of_the_plan() -> None:
    """P-110: nothing is overwritten; the plan names the new folder and is confirmed again."""
    free = {one.code: one for one in offers(ended(verdict="interrupted", failure=failure("interrupted", 3)))}
    taken = {one.code: one for one in offers(ended(verdict="interrupted", failure=None, output="/job/out-2"))}
    assert next(iter(free)) == next(iter(taken)) == "run_again"
    assert (free["run_again"].checkpoint, free["run_again"].changes) == ("command", ())
    assert taken["run_again"].checkpoint == "plan"
    for one in taken.values():
        assert one.changes[-1] == ("output_dir", "/job/out-2") and one.reasons[-1][0] == "output_dir"
    assert taken["correct_analysis"].checkpoint == "analysis"


@given(
    st.sampled_from(["succeeded", "partial", "failed", "interrupted", "unknown", "unreadable"]),
    st.sampled_from([None, "memory", "interrupted", "load", "export"]),
    st.sampled_from([None, 0, 1, 2, 3, 7, "2", True]),
    st.sampled_from(["load", "quantize", "evaluate", "verify", None]),
    st.sampled_from([None, "/job/out-2"]),
    st.sampled_from(["", "it lives"]),
)
def test_there_is_always_a_bounded_choice(
    verdict: str, kind: str | None, number: Any, stage: str | None, output: str | None, obstacle: str
) -> None:
    """P-98: whatever became of a run, each choice is named once, and none begins while something stands in its way."""
    told = failure(kind, number) if kind else None
    found = offers(ended(verdict=verdict, failure=told, stage=stage, output=output, obstacle=obstacle))
    assert 3 <= len(found) <= 6 and len(set(codes(found))) == len(found)
    assert {one.legal for one in found} == {not obstacle} and {one.reason for one in found} == {obstacle}
    assert {"analysis", "plan"} <= {one.checkpoint for one in found} <= set(CHECKPOINTS)


def test_foreign_advice_is_made_safe() -> None:
    told = {"kind": "load", "checkpoint": 1, "next_step": "look\x1b]52;c;AAAA\x07 here"}
    assert offers(ended(failure=told))[0].why.isprintable()


def test_the_earlier_checkpoint() -> None:
    assert [earlier(one, "plan") for one in CHECKPOINTS] == ["analysis", "plan", "plan"]
