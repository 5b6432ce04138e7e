"""Where quark-tui keeps things of its own, and how what a person types becomes an absolute path."""

from __future__ import annotations

import os
from pathlib import Path

_APP = "quark-tui"


def _folder(variable: str, kind: str) -> Path:
    if value := os.environ.get(variable):
        return Path(os.path.abspath(value))
    import platformdirs  # not at start-up: Home needs only one of these

    return Path(getattr(platformdirs, f"user_{kind}_dir")(_APP))


def config_folder() -> Path:
    return _folder("QUARK_TUI_CONFIG", "config")


def state_folder() -> Path:
    return _folder("QUARK_TUI_STATE", "state")


def cache_folder() -> Path:
    return _folder("QUARK_TUI_CACHE", "cache")


def data_folder(name: str) -> Path:
    """``schemas`` or ``themes``: inside an installed wheel, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_data" / name
    return installed if installed.is_dir() else package.parent / name


def absolute(typed: str) -> str:
    """What a person typed, against her folder: ``~`` expanded, ``.`` and ``..`` folded, symbolic links kept."""
    expanded = os.path.expanduser(typed)
    return os.path.normpath(
        os.path.join(os.environ.get("PWD") or os.getcwd(), expanded) if _pwd_holds() else os.path.abspath(expanded)
    )


def _pwd_holds() -> bool:
    # The shell's PWD keeps the symbolic links that she came through; it is believed when it is the same folder.
    try:
        return os.path.samefile(os.environ["PWD"], ".")
    except (KeyError, OSError):
        return False
