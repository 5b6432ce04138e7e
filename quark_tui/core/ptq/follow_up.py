"""What can come after a run that has ended: bounded choices, each with the checkpoint that it goes back to.

Nothing is tried again by itself. A choice names every row of the plan that it sets; what it leaves open is decided at
its checkpoint, and each leads to a new approval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from quark_tui.core.text import clean, redact

Checkpoint = Literal["analysis", "plan", "command"]
#: In the order in which they are passed.
CHECKPOINTS: tuple[Checkpoint, ...] = ("analysis", "plan", "command")
_OUTPUT_REASON = "the output of the run before stays as it is"
#: Tasks in which the weights are loaded already, so that only the calibration can need less.
_CALIBRATING = ("calibration_data", "quantize", "freeze")


@dataclass(frozen=True, slots=True)
class FollowUp:
    """One choice. ``changes`` are the rows that it sets, as ``plan --set`` takes them, ``reasons`` why, row by row;
    ``reason`` says why it may not begin where it is not ``legal``."""

    code: str
    title: str
    checkpoint: Checkpoint
    why: str
    changes: tuple[tuple[str, str], ...] = ()
    legal: bool = True
    reason: str = ""
    reasons: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """A job whose newest run has ended.

    ``verdict`` and ``stage`` (the task that it stands at) are those of ``status``; ``failure`` its record of what went
    wrong, None where nothing did; ``plan`` the plan of that run, ``gpus`` how many GPUs it saw (None: unknown);
    ``output`` the folder that a next run needs instead of the one that is in the way, None while none is; ``obstacle``
    what keeps every follow-up from beginning, "" for nothing.
    """

    run: str
    verdict: str
    stage: str | None
    failure: Mapping[str, Any] | None
    plan: Mapping[str, Any]
    gpus: int | None
    output: str | None
    obstacle: str = ""


def offers(ended: Ended) -> tuple[FollowUp, ...]:
    """The choices, the recommended one first; their codes are unique."""
    first = _from_failure(ended)
    taken = {one.code for one in first}
    return tuple(_settled(one, ended) for one in (*first, *(one for one in _standard(ended) if one.code not in taken)))


def earlier(one: Checkpoint, other: Checkpoint) -> Checkpoint:
    """The one of two checkpoints that is passed first."""
    return min(one, other, key=CHECKPOINTS.index)


def _settled(one: FollowUp, ended: Ended) -> FollowUp:
    """With an output folder that is free, and with what keeps it from beginning."""
    if ended.output is not None:
        one = replace(
            one,
            checkpoint=earlier(one.checkpoint, "plan"),
            changes=(*one.changes, ("output_dir", ended.output)),
            reasons=(*one.reasons, ("output_dir", _OUTPUT_REASON)),
        )
    return replace(one, legal=not ended.obstacle, reason=ended.obstacle)


def _standard(ended: Ended) -> tuple[FollowUp, ...]:
    plan = FollowUp(
        "change_plan", "change the plan", "plan", "another scheme, other exclusions or other calibration data"
    )
    fails = ended.verdict == "failed"
    again = FollowUp(
        "run_again",
        "run the same plan again",
        "command",
        "it fails the same way unless something else has changed" if fails else "the same plan, approved once more",
    )
    analysis = FollowUp(
        "correct_analysis", "correct a fact of the analysis", "analysis", "the plan is made anew from what is corrected"
    )
    return (again, plan, analysis) if ended.verdict in ("interrupted", "unknown") else (plan, again, analysis)


def _from_failure(ended: Ended) -> tuple[FollowUp, ...]:
    failure = ended.failure
    number = failure.get("checkpoint") if failure else None
    if failure is None or number not in (1, 2, 3):
        return ()
    why = redact(clean(failure.get("next_step", "")))
    if failure.get("kind") == "memory" and number == 2 and (found := _less_memory(ended, why)):
        return found
    if number == 3:
        interrupted = failure.get("kind") == "interrupted"
        title = "run the same plan again" if interrupted else "see to the environment, then run the same plan again"
        return (FollowUp("run_again", title, "command", why),)
    if number == 2:
        return (FollowUp("change_plan", "make the smallest change of the plan", "plan", why),)
    return (FollowUp("correct_analysis", "see to the model, then to its analysis again", "analysis", why),)


def _less_memory(ended: Ended, why: str) -> tuple[FollowUp, ...]:
    """Plans that need less memory than the one that ran out of it; none where a person has to find one."""
    plan, after = ended.plan, f"run {clean(ended.run)} ran out of memory"
    if ended.stage == "evaluate":
        change = ("evaluation_intent", "none")
        title = "plan without evaluation"
        return (FollowUp("no_evaluation", title, "plan", why, (change,), reasons=((change[0], after),)),)
    if ended.stage == "load":
        several = (ended.gpus or 0) > 1 and plan.get("device_strategy") == "single" and plan.get("algorithm") is None
        if not several:
            return ()
        change = ("device_strategy", "multi_device")
        title = "spread the weights over several GPUs (slower; the plan names which)"
        return (FollowUp("several_devices", title, "plan", why, (change,), reasons=((change[0], after),)),)
    if ended.stage not in _CALIBRATING:
        return ()
    found = []
    batch = _number(plan, "batch_size")
    costs = f"halved after {after}: it calibrates on less, which can cost accuracy"
    for key, code, what, reason, least in (
        ("batch_size", "smaller_batch", "the batch size (the result stays the same)", f"halved after {after}", 1),
        ("seq_len", "shorter_sequences", "the length of the samples (can cost accuracy)", costs, 1),
        ("num_calib_data", "fewer_samples", "the number of samples (can cost accuracy)", costs, batch or 1),
    ):
        value = _number(plan, key)
        if value is not None and value // 2 >= least:
            title = f"halve {what}: {value} → {value // 2}"
            change = (key, str(value // 2))
            found.append(FollowUp(code, title, "plan", why, (change,), reasons=((key, reason),)))
    return tuple(found)


def _number(plan: Mapping[str, Any], key: str) -> int | None:
    value = plan.get(key)
    return value if type(value) is int else None
