"""Help where the person is: what this screen is, and every key that works on it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from quark_tui.ui.actions import MOVES, bindings, shown
from quark_tui.ui.modals.whole import WholeModal
from quark_tui.ui.screens.base import BaseScreen
from quark_tui.ui.text import Part, safe


class HelpModal(WholeModal):
    """The help of ``screen``, made from the registry of actions."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(("modal.close", "app.copy"))

    def __init__(self, screen: BaseScreen) -> None:
        super().__init__("Help", _lines(screen))


def _lines(screen: BaseScreen) -> list[Part]:
    lines: list[Part] = [(screen.about(), "text"), ("", "text")] if screen.about() else []
    words = screen.labels()
    groups: dict[str, list[str]] = {}
    for action in screen.offered():
        keys = " ".join(shown(key) for key in action.keys)
        reason = screen.blocked(action.id)
        label = words.get(action.id, action.label)
        line = f"{keys:<10} {label:<16} {action.help}{f' (blocked: {reason})' if reason else ''}"
        groups.setdefault(action.group, []).append(line)
    for group, entries in groups.items():
        lines += [(group, "strong"), *((line, "text") for line in entries), ("", "text")]
    lines.append(("in every list", "strong"))
    lines += [(f"{keys:<20} {what}", "text") for keys, what in MOVES]
    lines += [
        ("", "text"),
        ("outside this program", "strong"),
        (f"the same as text or JSON: {safe(screen.twin())}", "text"),
        ("where everything of quark-tui lies: quark-tui paths", "text"),
        ("shift and the mouse select text for your terminal's own copy", "text"),
    ]
    return lines
