"""Commands that an answer advises, as text that a shell reads back."""

from __future__ import annotations

import shlex

from quark_tui.core.text import clean


def hint(*words: str) -> str:
    """``quark-tui`` with these words, each quoted where a shell needs it and free of control characters."""
    return shlex.join(["quark-tui", *(clean(word) for word in words)])
