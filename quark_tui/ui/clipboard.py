"""Copying over SSH: the terminal is asked to take the text, and the text is always also in a file.

No terminal says whether it took it: that is never claimed.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from quark_tui.core.text import clean, redact
from quark_tui.io import atomic
from quark_tui.io.paths import state_folder

#: Base64 characters that terminals are known to take in one sequence.
_MAX_SEQUENCE: Final = 74_000
#: Seconds for tmux to answer; it takes milliseconds, unless its server hangs.
_PATIENCE: Final = 2.0


@dataclass(frozen=True, slots=True)
class Copied:
    """``where`` is the sentence for a person; ``path`` the file with the text, None when it could not be written."""

    where: str
    path: str | None


def copy(text: str, environ: Mapping[str, str], write: Callable[[str], object]) -> Copied:
    """Hand ``text`` to the terminal's clipboard and to ``last-copy.txt`` of the state folder, credentials hidden.

    Control characters become visible escapes: what is pasted into a shell must not act. ``write`` gets one escape
    sequence, or is not called. May take seconds where tmux hangs: call it off the event loop. Raises nothing for what
    the file system or tmux refuses.
    """
    safe = redact("\n".join(clean(line, keep="\t") for line in text.replace("\r\n", "\n").split("\n")))
    if not safe:
        return Copied("there is nothing to copy", None)
    data = safe.encode("utf-8", "backslashreplace")
    said, sent = _send(data, environ, write)
    folder = state_folder()
    path = str(folder / "last-copy.txt")
    shown = redact(clean(path))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic.write_bytes(path, data)
    except OSError as error:
        return Copied(f"{said}; {shown} cannot be written: {clean(error.strerror or type(error).__name__)}", None)
    return Copied(f"{said} {'and' if sent else 'but'} written to {shown}", path)


def _send(data: bytes, environ: Mapping[str, str], write: Callable[[str], object]) -> tuple[str, bool]:
    """What is said of the terminal, and whether anything was sent there."""
    encoded = base64.b64encode(data).decode("ascii")
    if environ.get("TMUX") and _to_tmux(data, environ):
        # tmux keeps it in a buffer of its own, and hands it on to the terminal as far as it is set up to.
        return "sent to tmux (the terminal around it may ignore it)", True
    if len(encoded) > _MAX_SEQUENCE:
        return "too long to be sent to the terminal", False
    sequence = f"\x1b]52;c;{encoded}\x07"
    if environ.get("TMUX"):
        sequence = "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    try:
        write(sequence)
    except OSError as error:
        return f"not sent to the terminal ({clean(error.strerror or type(error).__name__)})", False
    return "sent to the terminal (it may be ignored)", True


def _to_tmux(data: bytes, environ: Mapping[str, str]) -> bool:
    """True when tmux took ``data`` as its newest buffer. By default it hands on only what comes this way: sequences of
    programs inside it are dropped. Before tmux 3.2 there is no ``-w``."""
    try:
        done = subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=data,
            env=dict(environ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            start_new_session=True,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
