"""How the app looks in this terminal: themes, colours, characters, mouse; decided before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from textual.theme import Theme

from quark_tui.core.finding import Finding
from quark_tui.io.paths import config_folder, data_folder
from quark_tui.io.settings import Settings
from quark_tui.ui import theme as reader
from quark_tui.ui.terminal import Terminal


@dataclass(frozen=True, slots=True)
class Appearance:
    """``themes`` are all that can be chosen, ``theme`` is the name of the chosen one; ``findings`` say what was wrong
    with a setting or a theme file."""

    themes: tuple[Theme, ...]
    theme: str
    ascii_only: bool = False
    own_palette: bool = False
    mouse: bool = True
    findings: tuple[Finding, ...] = field(default=())


def plain() -> Appearance:
    """The built-in themes in a terminal that can do everything."""
    built = tuple(reader.built_in(data_folder("themes")))
    return Appearance(built, built[0].name if built else "")


def appearance(settings: Settings, terminal: Terminal, findings: Sequence[Finding]) -> Appearance:
    """By what was set and what the terminal can. Raises WrongQuestion for an unknown theme on the command line."""
    built = reader.built_in(data_folder("themes"))
    mine, broken = reader.own(config_folder() / "themes", [one.name for one in built])
    every = (*built, *mine)
    name, told = reader.choose(settings, [one.name for one in every], terminal.own_palette)
    return Appearance(every, name, terminal.ascii, terminal.own_palette, terminal.mouse, (*findings, *broken, *told))
