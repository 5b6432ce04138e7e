"""Whether the environment of a job is ready for its command: what was seen, held against what the plan needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.environment.readiness import Needs
from quark_tui.engine.environment import described, ready
from quark_tui.engine.situation import Situation
from quark_tui.engine.torch_runtime import with_runtime
from quark_tui.io.torch_runtime import TorchRuntime


def needs_of(situation: Situation) -> Needs:
    """What the job's plan needs as it is now; None is what it does not decide yet."""
    plan: Mapping[str, Any] = situation.view.plan or {}
    rows = {row.key: row.value for row in situation.view.rows}
    strategy, devices, dataset = (plan.get(key, rows.get(key)) for key in ("device_strategy", "devices", "dataset"))
    listed = devices if isinstance(devices, (list, tuple)) else ()
    return Needs(
        strategy=strategy if isinstance(strategy, str) else None,
        devices=tuple(index for index in listed if isinstance(index, int) and not isinstance(index, bool)),
        output_bytes=situation.view.estimate.output_bytes,
        free_bytes=situation.around.free_bytes,
        memory_bytes=situation.view.estimate.peak_memory_bytes,
        dataset=dataset if isinstance(dataset, str) else None,
    )


def environment_of(situation: Situation, environ: Mapping[str, str], runtime: TorchRuntime | None = None) -> Answer:
    """What ``env`` says of the job's interpreter, from the look that ``situation`` rests on, with the rows of
    readiness held against the plan. ``runtime`` is torch's answer, where it was asked."""
    problem = situation.asked.problem
    look = described(situation.asked.target, situation.seen, environ, (problem,) if problem else ())
    answer = look.answer() if runtime is None or look.target is None else with_runtime(look, runtime, environ)
    body = {**answer.body, "readiness": ready(answer.body, needs_of(situation))}
    return Answer(answer.command, body, answer.findings, answer.exit)
