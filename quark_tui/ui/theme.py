"""Themes as data: a flat file of words and colours → a Textual theme.

The files are read here without a YAML library: importing one costs Home more than everything else that it needs for its
first paint. What is read is a subset of YAML and means there what it means here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from textual.color import Color, ColorParseError
from textual.theme import Theme

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.finding import Finding
from quark_tui.core.text import clean, redact
from quark_tui.io import atomic
from quark_tui.io.settings import COMMAND_LINE, Settings

DARK: Final = "quark-dark"
ANSI: Final = "quark-ansi"
#: Every colour that a theme may set, with the value for one that leaves it out.
COLORS: Final[Mapping[str, str]] = {
    "background": "#121212",
    "foreground": "#d0d0d0",
    "strong": "#eeeeee",
    "muted": "#a8a8a8",
    "rule": "#444444",
    "cursor": "#303030",
    "accent": "#5fafff",
    "running": "#5fafff",
    "waiting": "#ffd75f",
    "ok": "#5fd787",
    "warning": "#ffaf5f",
    "failed": "#ff8787",
}
#: Every variable that a stylesheet may name. ``cursor-text-style`` is ``reverse`` where no colour can show the cursor.
DEFAULTS: Final[Mapping[str, str]] = {**COLORS, "cursor-text-style": "none"}
#: Names of our own; the others are Textual's.
_OWN = ("strong", "muted", "rule", "cursor", "running", "waiting", "ok", "failed")
_SWITCHES = ("dark", "ansi")
#: What Textual's own widgets need beside an ANSI theme. Its lists drop ``reverse`` where both colours are the default,
#: so that their cursor has colours, and a line below for where there are none.
_ANSI: Final[Mapping[str, str]] = {
    "ansi-background": "ansi_default",
    "ansi-foreground": "ansi_default",
    "border-blurred": "ansi_default",
    "block-cursor-foreground": "ansi_black",
    "block-cursor-background": "ansi_white",
    "block-cursor-text-style": "bold underline",
    "block-cursor-blurred-text-style": "underline",
    "scrollbar-background": "ansi_default",
    "scrollbar-background-hover": "ansi_default",
    "scrollbar-background-active": "ansi_default",
    "input-selection-background": "ansi_cyan",
    "input-selection-foreground": "ansi_black",
    "screen-selection-background": "ansi_cyan",
    "screen-selection-foreground": "ansi_black",
}
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
# Plain scalars; what YAML readers take for something else than text has to stand in quotes.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NO_TEXT = frozenset({"null", "yes", "no", "on", "off", "y", "n", "true", "false"})
_ENDING = re.compile(r"\s*(?:\s#.*)?")

#: Bytes of a theme file, and files of a person's that are looked at.
_MAX_BYTES: Final = 16 << 10
_MAX_FILES: Final = 200


class ThemeProblem(Exception):
    """A theme file cannot be used: what is wrong, with the line or the key."""


def flat_map(text: str) -> dict[str, str]:
    """The ``key: value`` lines of a flat YAML file, quotes removed. Raises ThemeProblem for anything else."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line.strip(" \t") or line.startswith("#"):
            continue
        key, colon, rest = line.partition(": ")
        if not colon or not key.isascii() or not key.isidentifier():
            raise ThemeProblem(f"line {number} is not KEY: VALUE")
        if key in found:
            raise ThemeProblem(f"line {number}: {key} stands twice")
        found[key] = _scalar(rest.lstrip(" "), f"line {number}: {key}")
    return found


def _scalar(text: str, where: str) -> str:
    quote = text[:1]
    if quote in ('"', "'"):
        value, closing, behind = text[1:].partition(quote)
        if not closing or not _ENDING.fullmatch(behind) or "\\" in value or not value.isprintable():
            raise ThemeProblem(f"{where}: a text in quotes on one line is wanted, without backslashes")
        return value
    if quote == "#":
        raise ThemeProblem(
            f'{where}: without quotes this is a comment; write "{clean(text.split()[0])[:20]}" in quotes'
        )
    plain = _PLAIN.match(text)
    reserved = plain and plain[0].lower() in _NO_TEXT and plain[0] not in ("true", "false")
    if not plain or reserved or not _ENDING.fullmatch(text, plain.end()):
        raise ThemeProblem(f"{where}: a word is wanted, or a text in quotes")
    return plain[0]


def theme(data: Mapping[str, str]) -> Theme:
    """A theme whose every colour parses: Textual takes a wrong one silently and fails when it is applied.

    Raises ThemeProblem for a missing or impossible name, an unknown key, a switch that is neither true nor false, and a
    value that is no opaque colour.
    """
    if not _NAME.fullmatch(data.get("name", "")):
        raise ThemeProblem("name: a short name of a-z, 0-9, dots and dashes is wanted")
    for switch in _SWITCHES:
        if data.get(switch, "true") not in ("true", "false"):
            raise ThemeProblem(f"{switch}: true or false is wanted")
    ansi = data.get("ansi") == "true"
    colors = {key: value for key, value in data.items() if key not in ("name", *_SWITCHES)}
    if unknown := sorted(colors.keys() - COLORS.keys()):
        raise ThemeProblem(f"{clean(unknown[0])[:40]}: there is no such key")
    for key, value in colors.items():
        _check_color(key, value, ansi)
    every = {**DEFAULTS, **colors}
    if ansi and every["cursor"] == every["background"]:
        every["cursor-text-style"] = "reverse"
    return Theme(
        name=data["name"],
        primary=every["accent"],
        secondary=every["accent"],
        accent=every["accent"],
        warning=every["warning"],
        error=every["failed"],
        success=every["ok"],
        foreground=every["foreground"],
        background=every["background"],
        surface=every["background"],
        panel=every["cursor"],
        boost=every["background"] if ansi else None,
        dark=data.get("dark", "true") == "true",
        ansi=ansi,
        variables={
            **(_ANSI if ansi else _cursor(every)),
            **{name: every[name] for name in (*_OWN, "cursor-text-style")},
        },
    )


def _cursor(every: Mapping[str, str]) -> dict[str, str]:
    """Lists of Textual's own mark their cursor as ours do, not with shades that 256 colours cannot show."""
    return {
        "block-cursor-foreground": every["strong"],
        "block-cursor-background": every["cursor"],
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-foreground": every["strong"],
        "block-cursor-blurred-background": every["cursor"],
        "block-cursor-blurred-text-style": "none",
        "border-blurred": every["rule"],
        "scrollbar": every["rule"],
        "scrollbar-background": every["background"],
    }


def _check_color(key: str, value: str, ansi: bool) -> None:
    try:
        color = Color.parse(value)
    except (ColorParseError, ValueError, TypeError):
        raise ThemeProblem(f"{key} is no colour") from None
    if color.a != 1 or color.auto:
        raise ThemeProblem(f"{key}: an opaque colour is wanted")
    if color.ansi is not None and not ansi:
        raise ThemeProblem(f"{key}: the terminal's own colours need the line ansi: true")


def _read(path: str) -> Theme:
    try:
        return theme(flat_map(atomic.read_bytes(path, _MAX_BYTES).decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise ThemeProblem(f"not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise ThemeProblem(error.strerror or type(error).__name__) from None
    except ValueError as error:
        raise ThemeProblem(str(error)) from None


def built_in(folder: Path) -> list[Theme]:
    """The themes of ``folder`` that can be read, dark first; none when the folder cannot be read."""
    themes = []
    for name in ("dark", "light", "ansi"):
        try:
            themes.append(_read(str(folder / f"{name}.yaml")))
        except ThemeProblem:
            continue
    return themes


def own(folder: Path, taken: Iterable[str]) -> tuple[list[Theme], tuple[Finding, ...]]:
    """A person's themes, ``folder``/*.yaml by name, and a finding for each file that is not used.

    A name in ``taken``, or one that an earlier file has, is not replaced. Nothing is read when there is no such folder.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(one.name for one in entries if one.name.endswith(".yaml"))
    except (FileNotFoundError, NotADirectoryError):
        return [], ()
    except OSError as error:
        return [], (_unusable(str(folder), error.strerror or type(error).__name__),)
    themes: list[Theme] = []
    findings: list[Finding] = []
    used = set(taken)
    for name in names[:_MAX_FILES]:
        path = str(folder / name)
        try:
            one = _read(path)
            if one.name in used:
                raise ThemeProblem(f"name: another theme is called {one.name}")
        except ThemeProblem as problem:
            findings.append(_unusable(path, str(problem)))
            continue
        used.add(one.name)
        themes.append(one)
    if len(names) > _MAX_FILES:
        findings.append(_unusable(str(folder), f"{len(names)} files, the first {_MAX_FILES} are looked at"))
    return themes, tuple(findings)


def _unusable(path: str, why: str) -> Finding:
    where = redact(clean(path))
    return Finding(
        "low", "theme_unusable", f"{where}: {clean(why)}", where, "correct the file; the other themes can be used"
    )


def choose(settings: Settings, names: Sequence[str], own_palette: bool) -> tuple[str, tuple[Finding, ...]]:
    """The name of the theme to begin with, out of ``names``, and what was wrong with the one that was asked for.

    Without a wish it is the dark one, or with ``own_palette`` the one of the terminal's own colours. So it is with a
    remembered theme there: it was picked where there were more colours. Raises WrongQuestion for an unknown name on
    the command line.
    """
    wanted, source = settings.theme, settings.source["theme"]
    usual = ANSI if own_palette else DARK
    if wanted is None or (own_palette and source == "remembered"):
        return usual, ()
    if wanted in names:
        return wanted, ()
    said = redact(clean(wanted))[:80]
    if source == COMMAND_LINE:
        raise WrongQuestion(f"quark-tui: there is no theme {said}; there are {', '.join(names)}")
    finding = Finding(
        "low",
        "theme_missing",
        f"there is no theme {said}; {usual} is shown",
        f"named by {source}",
        f"name one of {', '.join(names)}",
    )
    return usual, (finding,)
