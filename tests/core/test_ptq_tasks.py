"""The PTQ task tree."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.ptq.phases import PHASES, Bar, PhaseReport, Seen
from quark_tui.core.ptq.tasks import PtqEvidence, PtqSpec, build
from quark_tui.core.tasks import Task, problems

KEYS = (
    "analysis plan command approval load calibration_data quantize freeze export evaluate verify accept".split()  # noqa: SIM905
)
READY = PtqEvidence(analysis_confirmed=True, plan_confirmed=True, command_ready=True, approved=True)
ALIVE = replace(READY, run="alive")
ZERO = replace(READY, run="finished", exit_status=0)
SPEC = PtqSpec(evaluation=True, algorithm="awq")
LOG_ONLY = {"load", "calibration_data", "quantize", "freeze", "evaluate"}


def upto(key: str, *, without: tuple[str, ...] = (), progress: Bar | None = None) -> PhaseReport:
    """A report of a log that has come to the phase ``key``."""
    at = PHASES.index(key)  # type: ignore[arg-type]
    seen = tuple(
        Seen(phase, "active" if phase == key else "done", number)
        for number, phase in enumerate(PHASES[: at + 1], 1)
        if phase not in without
    )
    return PhaseReport(seen=seen, current=PHASES[at], progress=progress)


def states(tree: tuple[Task, ...]) -> dict[str, str]:
    return {task.key: task.state for task in tree}


def task(tree: tuple[Task, ...], key: str, child: str = "") -> Task:
    found = next(item for item in tree if item.key == key)
    return next(item for item in found.children if item.key == child) if child else found


def test_the_keys_follow_from_the_plan() -> None:
    """P-02: the last step is accepting the quantized output; nothing follows it."""
    assert [item.key for item in build(SPEC, PtqEvidence())] == KEYS
    assert [item.key for item in build(PtqSpec(), PtqEvidence())] == [key for key in KEYS if key != "evaluate"]
    assert [child.key for child in task(build(SPEC, PtqEvidence()), "load").children] == [
        "import",
        "model",
        "tokenizer",
    ]


def test_waiting_for_a_person_is_pending_with_a_reason() -> None:
    tree = build(SPEC, PtqEvidence())
    assert set(states(tree).values()) == {"pending"}
    assert "Checkpoint 1" in task(tree, "analysis").reason
    confirmed = PtqEvidence(analysis_confirmed=True)
    assert "Checkpoint 2" in task(build(SPEC, confirmed), "plan").reason
    ready = replace(READY, approved=False)
    assert "Checkpoint 3" in task(build(SPEC, ready), "approval").reason
    blocked = replace(ready, blocked=("no_space",))
    assert "no_space" in task(build(SPEC, blocked), "command").reason
    assert task(build(SPEC, blocked), "command").state == "pending"


def test_a_plan_without_algorithm_skips_it_with_the_reason() -> None:
    child = task(
        build(PtqSpec(), replace(ALIVE, phases=upto("calibrate", without=("algorithm",)))), "quantize", "algorithm"
    )
    assert (child.state, bool(child.reason)) == ("skipped", True)


@pytest.mark.parametrize("phase", PHASES)
def test_a_living_run_has_one_active_task(phase: str) -> None:
    tree = build(SPEC, replace(ALIVE, phases=upto(phase)))
    active = [item.key for item in tree if item.state == "active"]
    owner = {"import": "load", "model": "load", "tokenizer": "load", "replace": "quantize", "algorithm": "quantize"}
    assert active == [owner.get(phase, "quantize" if phase == "calibrate" else phase)]


def test_a_living_run_that_wrote_nothing_loads() -> None:
    tree = build(SPEC, ALIVE)
    assert task(tree, "load").state == "active"
    assert task(tree, "load").source == "process"


def test_progress_is_on_the_active_task_and_its_child() -> None:
    report = upto("calibrate", progress=Bar("Calibrating activations", 6, 16, "batches", ""))
    tree = build(SPEC, replace(ALIVE, phases=report))
    assert task(tree, "quantize").progress == task(tree, "quantize", "calibrate").progress
    assert task(tree, "quantize").progress is not None
    assert task(tree, "quantize", "replace").state == "done"
    assert task(tree, "freeze").progress is None


def test_the_export_is_done_only_with_exit_zero_and_weights() -> None:
    report = upto("evaluate")
    assert task(build(SPEC, replace(ALIVE, phases=report)), "export").state == "pending"
    assert task(build(SPEC, replace(ZERO, phases=report)), "export").state == "pending"
    seen = replace(ZERO, phases=report, weights_seen=True)
    assert (task(build(SPEC, seen), "export").state, task(build(SPEC, seen), "export").source) == ("done", "files")
    lost = build(SPEC, replace(ZERO, phases=report, weights_seen=False, verify_verdict="failed"))
    assert task(lost, "export").state == "failed"
    assert {task(lost, key).state for key in ("evaluate", "verify", "accept")} == {"skipped"}
    crash = replace(READY, run="finished", exit_status=1, phases=report, weights_seen=True)
    assert task(build(SPEC, crash), "export").state != "done"


def test_exit_zero_ends_every_phase() -> None:
    tree = build(
        SPEC, replace(ZERO, phases=upto("export"), weights_seen=True, verify_verdict="partial", verify_summary="x")
    )
    assert {task(tree, key).state for key in LOG_ONLY | {"export", "verify"}} == {"done"}
    assert task(tree, "verify").detail == "partial: x"
    assert "Checkpoint 4" in task(tree, "accept").reason
    assert task(tree, "evaluate").detail == "perplexity unknown: not in the log"
    assert task(tree, "load").source == "log"
    assert task(build(SPEC, ZERO), "load").source == "exit"


def test_the_perplexity_is_shown() -> None:
    report = replace(upto("evaluate"), perplexity=10.25)
    assert task(build(SPEC, replace(ZERO, phases=report, weights_seen=True)), "evaluate").detail == "perplexity 10.25"


def test_a_failed_run_failed_where_the_log_stops() -> None:
    tree = build(SPEC, replace(READY, run="finished", exit_status=1, phases=upto("calibrate")))
    assert states(tree)["load"] == "done"
    assert states(tree)["quantize"] == "failed"
    assert "exit status 1" in task(tree, "quantize").reason
    assert task(tree, "quantize", "calibrate").state == "failed"
    assert all(states(tree)[key] == "skipped" for key in KEYS[7:])


@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        (replace(READY, run="dead"), "interrupted"),
        (replace(READY, run="finished", signal=2, stopped_by="INT"), "interrupted"),
        (replace(READY, run="finished", signal=9), "failed"),
        (replace(READY, run="finished"), "interrupted"),
        (replace(READY, run="unknown"), "pending"),
    ],
)
def test_where_a_run_stopped(evidence: PtqEvidence, state: str) -> None:
    stopped = task(build(SPEC, replace(evidence, phases=upto("freeze"))), "freeze")
    assert stopped.state == state
    assert stopped.reason


def test_an_evaluation_that_was_not_asked_for_is_the_end_of_the_export() -> None:
    assert task(build(PtqSpec(), replace(ALIVE, phases=upto("evaluate"))), "export").state == "active"


def test_accepted() -> None:
    evidence = replace(ZERO, weights_seen=True, verify_verdict="verified", accepted=True)
    assert task(build(SPEC, evidence), "accept").state == "done"
    assert task(build(SPEC, replace(evidence, verify_verdict="unknown")), "accept").state == "pending"


_REPORTS = st.one_of(
    st.none(),
    st.just(PhaseReport()),
    st.builds(
        upto,
        st.sampled_from(PHASES),
        without=st.lists(st.sampled_from(["import", "algorithm", "tokenizer"]), max_size=2).map(tuple),
        progress=st.one_of(
            st.none(),
            st.builds(
                Bar,
                st.just("b"),
                st.integers(0, 9),
                st.one_of(st.none(), st.integers(0, 9)),
                st.just("it"),
                st.just(""),
            ),
        ),
    ).filter(lambda report: report.has(report.current)),
)
_EVIDENCE = st.builds(
    PtqEvidence,
    analysis_confirmed=st.booleans(),
    plan_confirmed=st.booleans(),
    command_ready=st.booleans(),
    blocked=st.sampled_from([(), ("no_space",)]),
    approved=st.booleans(),
    run=st.sampled_from(["none", "alive", "finished", "dead", "unknown"]),
    exit_status=st.sampled_from([None, 0, 1, 2]),
    signal=st.sampled_from([None, 2, 9]),
    stopped_by=st.sampled_from([None, "INT"]),
    phases=_REPORTS,
    verify_verdict=st.sampled_from([None, "verified", "partial", "failed", "unknown"]),
    verify_summary=st.just("a\x1b[2Jb"),
    weights_seen=st.sampled_from([None, True, False]),
    accepted=st.booleans(),
    output_files=st.sampled_from([None, 0, 5]),
)
_SPECS = st.builds(PtqSpec, evaluation=st.booleans(), algorithm=st.sampled_from(["", "awq"]))


@given(_SPECS, _EVIDENCE)
def test_every_tree_is_sound(spec: PtqSpec, evidence: PtqEvidence) -> None:
    tree = build(spec, evidence)
    assert problems(tree, running=evidence.run == "alive") == []
    assert [item.key for item in tree] == [key for key in KEYS if key != "evaluate" or spec.evaluation]
    if evidence.run == "alive":
        assert [item.state for item in tree].count("active") == 1
    if evidence.run == "none":
        assert all(task(tree, key).state == "pending" for key in KEYS[4:9])
    for item in tree:
        assert item.state != "pending" or item.reason
        assert item.detail.isprintable()
        assert item.key not in ("export", "verify", "accept") or item.source != "log"
        assert item.source != "log" or item.key in LOG_ONLY
        if item.state == "done":
            assert all(child.state in ("done", "skipped") for child in item.children)
        for child in item.children:
            assert child.state != "active" or item.state == "active"
            assert child.state != "skipped" or child.reason
    if task(tree, "export").state == "done":
        assert (evidence.run, evidence.exit_status, evidence.weights_seen) == ("finished", 0, True)
    if task(tree, "accept").state == "done":
        assert evidence.accepted
        assert evidence.verify_verdict in ("verified", "partial")


@given(_SPECS, _EVIDENCE, st.integers(0, len(PHASES) - 1), st.integers(0, len(PHASES) - 1))
def test_a_growing_log_takes_no_done_task_back(spec: PtqSpec, evidence: PtqEvidence, one: int, two: int) -> None:
    early, late = sorted((one, two))
    trees = [
        build(spec, replace(evidence, phases=report)) for report in (None, upto(PHASES[early]), upto(PHASES[late]))
    ]
    for before, after in pairwise(trees):
        done = {item.key for item in before if item.state == "done"}
        assert done <= {item.key for item in after if item.state == "done"}
        flat = {(item.key, child.key) for item in before for child in item.children if child.state == "done"}
        assert flat <= {(item.key, child.key) for item in after for child in item.children if child.state == "done"}
