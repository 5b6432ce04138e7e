"""``model``: what a model's configuration and weight headers say."""

from __future__ import annotations

import os
from collections.abc import Mapping

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import blocks
from quark_tui.core.model.intake import model_answer
from quark_tui.core.text import clean
from quark_tui.engine.environment import resolve_interpreter
from quark_tui.engine.situation import ask, take_in
from quark_tui.io.paths import absolute


def model(source: str, python: str | None, environ: Mapping[str, str]) -> Answer:
    """Raises WrongQuestion when ``source`` is no local model directory."""
    path = model_path(source)
    asked = ask(None if python is None else resolve_interpreter(python, environ), environ)
    intake = take_in(path, asked, {})
    findings = intake.findings if asked.problem is None else (*intake.findings, asked.problem)
    return Answer("model", {"path": path, **model_answer(intake)}, findings, 1 if blocks(findings) else 0)


def model_path(source: str) -> str:
    """The absolute path of a local model directory. Raises WrongQuestion when there is none."""
    path = absolute(source)
    if not os.path.lexists(path):
        raise WrongQuestion(
            f"quark-tui: {clean(path)}: no such model directory (a Hub repository has to be fetched first)"
        )
    return path
