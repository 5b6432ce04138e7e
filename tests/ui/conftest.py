"""Home with values instead of a disk behind it, and text frames that are compared."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quark_tui.ui.app import QuarkTui
from quark_tui.ui.listing import Listing, row

SNAPSHOTS = Path(__file__).resolve().parents[2] / "snapshots"
HOSTILE = "[/x]\x1b]52;c;AA\x07[bold]שלום\u202e[link='x']"


def session(name: str, verdict: str, **more: Any) -> dict[str, Any]:
    """A row of the answer of ``sessions``."""
    return {
        "path": f"/jobs/{name}",
        "kind": "ptq",
        "model": name,
        "verdict": verdict,
        "liveness": None,
        "stage": None,
        "started_at": None,
        "updated_at": None,
        **more,
    }


def four() -> list[dict[str, Any]]:
    """A running one, one that waits, one of a hostile name, one that is over."""
    return [
        session("Meta-Llama-3.1-70B", "running", liveness="alive", started_at="2026-01-02T03:04:05Z"),
        session("SmolLM2-135M", "not_started", stage="confirm the analysis"),
        session("hostile", "failed", model=HOSTILE, liveness="finished", stage=HOSTILE, path=f"/jobs/{HOSTILE}"),
        session(
            "Qwen3-30B-A3B-Instruct-2507-and-more", "unknown", liveness="finished", stage="finished, to be verified"
        ),
    ]


def listing(sessions: list[dict[str, Any]], **more: Any) -> Listing:
    return Listing(tuple(row(one) for one in sessions), **more)


@pytest.fixture(autouse=True)
def _own_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home() -> Callable[[Listing], QuarkTui]:
    return lambda shown: QuarkTui(lambda: shown, "gpu-box-7")


def frame(app: QuarkTui) -> str:
    """The screen as text, one line a row."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def is_snapshot(name: str, text: str) -> None:
    """``snapshots/NAME.txt`` holds ``text``; UPDATE_SNAPSHOTS=1 writes it instead of comparing."""
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{path.name} is missing; UPDATE_SNAPSHOTS=1 writes it"
    assert text == path.read_text(encoding="utf-8")
