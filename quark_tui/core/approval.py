"""What one approval covers: exact commands and everything that decides what they do.

``inputs`` is ``{"env": {NAME: value}, "files": [{"path", "sha256" or "stat"}], "versions": {NAME: version}}``. The
launcher and the supervisor each collect it themselves, from the present files and environment, and the digests have to
meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quark_tui.core.command import Command
from quark_tui.core.digest import differences, digest

#: Characters of one side of a difference; longer values are cut around the place where they part.
_SHOWN = 400
_BEFORE = 120


def approval_digest(commands: Sequence[Command], inputs: Mapping[str, Any]) -> str:
    """The digest that a person approves: sha256 over the commands and the inputs, in order."""
    return digest("approval", _covered(commands, inputs))


def _covered(commands: Sequence[Command], inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"commands": [command.digestible() for command in commands], "inputs": inputs}


class _Named:
    """What was covered, by the names that a person knows it by; a name that comes again gets a number."""

    def __init__(self, commands: Sequence[Command], inputs: Mapping[str, Any]) -> None:
        self.entries: dict[str, Any] = {}
        for number, command in enumerate(commands, 1):
            label = "command" if len(commands) == 1 else f"command {number}"
            for key, value in command.digestible().items():
                self._add(f"{label}.{key}", command.shell if key == "argv" else value)
        for kind, held in inputs.items():
            if kind == "env" and isinstance(held, Mapping):
                for name, value in held.items():
                    self._add(f"environment {name}", value)
            elif kind == "versions" and isinstance(held, Mapping):
                for name, value in held.items():
                    self._add(f"version of {name}", value)
            elif kind == "files" and isinstance(held, Sequence) and all(_is_file(entry) for entry in held):
                for entry in held:
                    self._add(entry["path"], _show({key: value for key, value in entry.items() if key != "path"}))
            else:
                self._add(kind, held)

    def _add(self, name: str, value: Any) -> None:
        unique, number = name, 1
        while unique in self.entries:
            number += 1
            unique = f"{name} ({number})"
        self.entries[unique] = value


def _is_file(entry: Any) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("path"), str)


def what_differs(
    was: tuple[Sequence[Command], Mapping[str, Any]], now: tuple[Sequence[Command], Mapping[str, Any]]
) -> list[str]:
    """Each difference between two approvable states as ``name: was → is``; empty exactly when their digests are equal.

    Values are shown as they are: whoever prints a line cleans and redacts it.
    """
    before, after = _covered(*was), _covered(*now)
    if not differences(before, after):
        return []
    found = differences(_Named(*was).entries, _Named(*now).entries)
    return [f"{name}: {_pair(old, new)}" for name, old, new in found or differences(before, after)]


def _pair(old: Any, new: Any) -> str:
    left, right = _show(old), _show(new)
    if left == right:  # values of different types can look the same
        left, right = f"{left} ({type(old).__name__})", f"{right} ({type(new).__name__})"
    same = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    return f"{_cut(left, same)} → {_cut(right, same)}"


def _cut(text: str, at: int) -> str:
    """``text``, or the part of a long one around ``at``."""
    if len(text) <= _SHOWN:
        return text
    start = min(max(0, at - _BEFORE), len(text) - _SHOWN)
    return ("… " if start else "") + text[start : start + _SHOWN] + (" …" if start + _SHOWN < len(text) else "")


def _show(value: Any) -> str:
    if value is None:
        return "not there"
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_show(item)}" for key, item in value.items()) or "nothing"
    return str(value)
