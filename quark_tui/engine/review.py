"""What the checkpoints of a job show, from one look at everything that they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.finding import blocks
from quark_tui.core.model.intake import model_answer
from quark_tui.core.text import clean
from quark_tui.engine import command as commands
from quark_tui.engine import environment as envs
from quark_tui.engine import plan as plans
from quark_tui.engine.locate import open_job
from quark_tui.engine.situation import Situation


@dataclass(frozen=True, slots=True)
class Review:
    """The answers of Checkpoints 1 to 3.

    ``analysis`` is what ``model`` answers with ``digest``, ``questions``, ``confirmed``, ``confirmed_at`` and ``via``
    added; ``plan`` and ``command`` are what these commands answer, the plan with ``confirmed_at`` and ``via``.
    ``environment`` holds what the same look found of the interpreter and the machine, by the names of ``env``.
    """

    analysis: Answer
    plan: Answer
    command: Answer
    environment: Answer


def review(path: str, environ: Mapping[str, str]) -> Review:
    """Look once and answer all of them; what is missing is regenerated and the command's digest remembered, as the
    commands do.

    Raises WrongQuestion when there is no PTQ job at ``path``, Unreadable when it or its model cannot be read, OSError
    when the digest cannot be remembered.
    """
    situation = plans.looked_at(*open_job(path), environ)
    shown = plans.answered(situation)
    built = commands.build(situation, environ)
    return Review(
        analysis=_analysis(situation),
        plan=replace(shown, body={**shown.body, **_given(situation, "plan", situation.plan_confirmed)}),
        command=commands.answered(built, environ),
        environment=_environment(built),
    )


def _given(situation: Situation, checkpoint: str, holds: bool) -> dict[str, str | None]:
    """When and by what a confirmation that still holds was given."""
    given = situation.job.confirmations.get(checkpoint) if holds else None
    return {"confirmed_at": given.confirmed_at if given else None, "via": given.via if given else None}


def _analysis(situation: Situation) -> Answer:
    intake = situation.intake
    body = {
        "path": situation.job.model,
        **model_answer(intake),
        "analysis": situation.analysis,
        "questions": list(intake.questions),
        "corrections": dict(situation.job.corrections),
        "digest": situation.analysis_digest,
        "confirmed": situation.analysis_confirmed,
        **_given(situation, "analysis", situation.analysis_confirmed),
    }
    problem = situation.asked.problem
    findings = intake.findings if problem is None else (*intake.findings, problem)
    return Answer("analysis", body, findings, 1 if blocks(findings) else 0)


def _environment(built: commands.Built) -> Answer:
    situation = built.situation
    target, seen = situation.asked.target, situation.seen
    build = target.torch if target else None
    packages: Mapping[str, Any] = target.packages if target else dict.fromkeys(envs.PACKAGE_NAMES)
    body = {
        "interpreter": {
            "executable": target.executable if target else situation.job.python,
            "prefix": target.prefix if target else None,
            "version": target.version if target else None,
            "supported": target.supported if target else None,
        },
        "packages": {name: found.to_json() if found else None for name, found in packages.items()},
        "torch": {
            "version": envs.torch_version(target) if target else None,
            "backend": envs.torch_backend(target) if target else None,
            "cuda": build.cuda if build else None,
            "hip": build.hip if build else None,
        },
        "gpus": seen["gpus"],
        "gpu_verdict": seen["gpu_verdict"],
        "gpu_evidence": clean(seen["evidence"]),
        "driver": seen["driver"],
        "quark_cli": target.quark_cli if target else None,
        "compute": envs.compute(target, seen),
    }
    return Answer("environment", body, built.environment, 1 if blocks(built.environment) else 0)
