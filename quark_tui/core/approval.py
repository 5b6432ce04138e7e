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


def approval_digest(commands: Sequence[Command], inputs: Mapping[str, Any]) -> str:
    """The digest that a person approves: sha256 over the commands and the inputs, in order."""
    return digest("approval", {"commands": [command.digestible() for command in commands], "inputs": inputs})


def _by_name(commands: Sequence[Command], inputs: Mapping[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for number, command in enumerate(commands, 1):
        label = "command" if len(commands) == 1 else f"command {number}"
        for key, value in command.digestible().items():
            named[f"{label}.{key}"] = " ".join(value) if key == "argv" else value
    for name, value in inputs["env"].items():
        named[f"environment {name}"] = value
    for entry in inputs["files"]:
        named[entry["path"]] = _show({key: value for key, value in entry.items() if key != "path"})
    for name, value in inputs["versions"].items():
        named[f"version of {name}"] = value
    return named


def what_differs(
    was: tuple[Sequence[Command], Mapping[str, Any]], now: tuple[Sequence[Command], Mapping[str, Any]]
) -> list[str]:
    """Each difference between two approvable states as ``name: was → is``; empty when their digests are equal."""
    lines = []
    for name, before, after in differences(_by_name(*was), _by_name(*now)):
        lines.append(f"{name}: {_show(before)} → {_show(after)}")
    return lines


def _show(value: Any) -> str:
    if value is None:
        return "not there"
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_show(item)}" for key, item in value.items()) or "nothing"
    text = str(value)
    return text if len(text) <= 400 else f"{text[:200]} … {text[-190:]}"
