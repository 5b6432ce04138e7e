"""Home with values instead of a disk behind it, and text frames that are compared."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quark_tui.ui.app import QuarkTui
from quark_tui.ui.listing import Listing, row
from tests.support.results import Fake

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
def _own_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    for name in ("STATE", "CONFIG"):
        monkeypatch.setenv(f"QUARK_TUI_{name}", str(tmp_path / name.lower()))


@pytest.fixture
def home() -> Callable[[Listing], QuarkTui]:
    return lambda shown: QuarkTui(Fake(listing=lambda: shown, truths=told), "gpu-box-7")


def told(path: str) -> dict[str, Any]:
    """The truths about a row: a running job calibrates, the others are over."""
    alive = "Llama" in path
    return {
        **session("x", "running" if alive else "succeeded", liveness="alive" if alive else "finished"),
        "stage": "calibration 31 of 128" if alive else "accept the result",
        "pid": 31842 if alive else None,
        "liveness_evidence": "its lock is held" if alive else "exit status 0",
        "fresh_seconds": 4.2 if alive else None,
    }


def frame(app: QuarkTui) -> str:
    """The screen as text, one line a row."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def is_snapshot(name: str, text: str, app: QuarkTui | None = None) -> None:
    """``snapshots/NAME.txt`` holds ``text``; UPDATE_SNAPSHOTS=1 writes it instead of comparing.

    For the README a picture of ``app`` is written beside it then; that is not compared.
    """
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        path.write_text(text, encoding="utf-8")
        if app is not None and name in _PICTURES:
            picture = _FONTS.sub("", app.export_screenshot(simplify=True))
            path.with_suffix(".svg").write_text(picture, encoding="utf-8")
    assert path.is_file(), f"{path.name} is missing; UPDATE_SNAPSHOTS=1 writes it"
    assert text == path.read_text(encoding="utf-8")


#: What the README shows.
_PICTURES = {
    f"{name}-120x40" for name in ("home-four-jobs", "model", "plan", "approve", "run-running", "result-verified")
}
#: Fonts that a picture would load from elsewhere; a viewer has a monospaced one.
_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)
