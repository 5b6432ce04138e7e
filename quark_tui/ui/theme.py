"""Themes as data: ``themes/NAME.yaml`` → a Textual theme.

The built-in files are flat maps of words and colours, read here without a YAML library: importing one costs Home more
than everything else that it needs for its first paint.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from textual.color import Color, ColorParseError
from textual.theme import Theme

#: Every colour that a stylesheet may name, with the value for a theme that leaves it out.
DEFAULTS: Final[Mapping[str, str]] = {
    "background": "#121212",
    "foreground": "#d0d0d0",
    "strong": "#eeeeee",
    "muted": "#949494",
    "rule": "#444444",
    "cursor": "#303030",
    "accent": "#5fafff",
    "running": "#5fafff",
    "waiting": "#ffd75f",
    "ok": "#5fd787",
    "warning": "#ffaf5f",
    "failed": "#ff8787",
}
#: Names of our own; the others are Textual's.
_OWN = ("strong", "muted", "rule", "cursor", "running", "waiting", "ok", "failed")


class ThemeProblem(Exception):
    """A theme file cannot be used: what is wrong, with the line or the colour."""


def flat_map(text: str) -> dict[str, str]:
    """The ``key: value`` lines of a flat YAML file, quotes removed. Raises ThemeProblem for anything else."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        value = value.strip()
        if value[:1] == '"':
            value, closing, rest = value[1:].partition('"')
            colon = colon if closing and not rest.strip() else ""
        if not colon or not value or key != key.strip() or not key.isidentifier():
            raise ThemeProblem(f"line {number} is not KEY: VALUE")
        found[key] = value
    return found


def theme(data: Mapping[str, str]) -> Theme:
    """A theme whose every colour parses: Textual takes a wrong one silently and fails when it is applied.

    Raises ThemeProblem for a missing name, an unknown key or a value that is no colour.
    """
    colours = {key: value for key, value in data.items() if key not in ("name", "dark")}
    if not data.get("name"):
        raise ThemeProblem("name is missing")
    if unknown := sorted(colours.keys() - DEFAULTS.keys()):
        raise ThemeProblem(f"unknown key {unknown[0]}")
    for key, value in colours.items():
        try:
            Color.parse(value)
        except ColorParseError:
            raise ThemeProblem(f"{key} is no colour") from None
    every = {**DEFAULTS, **colours}
    return Theme(
        name=data["name"],
        primary=every["accent"],
        accent=every["accent"],
        warning=every["warning"],
        error=every["failed"],
        success=every["ok"],
        foreground=every["foreground"],
        background=every["background"],
        surface=every["background"],
        panel=every["cursor"],
        dark=data.get("dark", "true") == "true",
        variables={name: every[name] for name in _OWN},
    )


def built_in(folder: Path) -> list[Theme]:
    """The themes of ``folder`` that can be read, dark first; none when the folder cannot be read."""
    themes = []
    for name in ("dark", "light"):
        try:
            themes.append(theme(flat_map((folder / f"{name}.yaml").read_text(encoding="utf-8"))))
        except (OSError, ValueError, ThemeProblem):
            continue
    return themes
