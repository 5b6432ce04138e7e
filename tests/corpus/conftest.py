"""The folder of real configurations, logs and exports, where there is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shared() -> Path:
    """QUARK_TUI_SHARED, or ``shared`` beside the checkout; a test that needs it is skipped where it is absent."""
    folder = Path(os.environ.get("QUARK_TUI_SHARED") or REPOSITORY.parent / "shared")
    if not folder.is_dir():
        pytest.skip(f"no corpus: QUARK_TUI_SHARED is unset or absent, looked for {folder}")
    return folder
