"""Where quark-tui keeps things of its own, and how what a person types becomes an absolute path."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.text import clean, redact

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
    """What a person typed, against her folder: ``~`` expanded, ``.`` and ``..`` folded, symbolic links kept.

    Raises WrongQuestion for a URL, and for a relative path when her folder is gone.
    """
    if "://" in typed:
        # Before it is folded: a folded URL is not seen as one any more, nor are the credentials in it.
        raise WrongQuestion(f"quark-tui: {redact(clean(typed))} is a URL; a path on this machine is wanted")
    expanded = os.path.expanduser(typed)
    if not os.path.isabs(expanded):
        expanded = os.path.join(_here(), expanded)
    folded = os.path.normpath(expanded)
    return folded[1:] if folded.startswith("//") else folded  # POSIX lets two leading slashes mean something else


def _here() -> str:
    # The shell's PWD keeps the symbolic links that she came through; it is believed when it is the same folder.
    named = os.environ.get("PWD", "")
    with contextlib.suppress(OSError, ValueError):
        if os.path.isabs(named) and os.path.samefile(named, "."):
            return named
    try:
        return os.getcwd()
    except OSError as error:
        raise WrongQuestion(f"the current folder cannot be told: {error.strerror}") from None


def can_be_path(text: str) -> bool:
    """False for texts that no file can be named by: a zero byte, lone surrogates that are no undecodable bytes."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False
