"""Verify an output folder: read it, judge it, answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.model.inventory import Inventory
from quark_tui.core.ptq.verify import Export, Source, Verification, verify
from quark_tui.core.text import clean
from quark_tui.io.export import read_export, read_tokenizer


def verify_folder(path: Path) -> Answer:
    """A bare folder against its own configuration. Raises WrongQuestion when nothing is at ``path``."""
    if not os.path.lexists(path):
        raise WrongQuestion(f"no such path: {clean(path)}")
    return verify_output(path)


def verify_output(path: Path) -> Answer:
    """As :func:`verify_folder`; an output that is not there is a failed verdict."""
    export = read_export(path)
    return _answer(export, verify(export))


def verify_against(
    plan: Mapping[str, Any],
    analysis_inventory: Inventory | None,
    model_dir: Path,
    output: Path,
    metric: float | None,
    estimate_bytes: int | None,
) -> Answer:
    """A run's output against the confirmed plan. An output that is not there is a failed verdict.

    ``metric`` is what an evaluation reported, ``estimate_bytes`` the plan's estimate of the weight files; None when
    unknown. ``model_dir`` may be a folder that does not exist (a Hub name): then the tokenizer is not compared.
    """
    export = read_export(output)
    tokenizer = read_tokenizer(model_dir) if model_dir.is_dir() else None
    result = verify(export, plan=plan, inventory=analysis_inventory, source=Source(tokenizer, estimate_bytes, metric))
    return _answer(export, result)


def _answer(export: Export, result: Verification) -> Answer:
    body = {
        "verdict": result.verdict,
        "against": result.against,
        "path": export.directory,
        "checks": [
            {"code": check.code, "ok": check.ok, "message": check.message, "evidence": check.evidence}
            for check in result.checks
        ],
        "files": [{"path": os.path.join(export.directory, name), "size": size} for name, size in export.files],
        "quantized_modules": result.quantized,
        "expected_modules": result.expected,
        "digest": result.digest,
    }
    return Answer("verify", body, result.findings, 0 if result.verdict == "verified" else 1)
