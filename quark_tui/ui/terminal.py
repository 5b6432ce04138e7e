"""What the terminal can show, and the variables that make Textual keep to it. No Textual here.

Textual reads its variables once, when it is imported: they are set before that. They are for this process alone and
must never reach a child. Whoever starts one (a run, a probe, a pager) passes a copy of the environment that was taken
*before* :func:`apply`; else a run would see NO_COLOR and TEXTUAL_* that no person set, and its digest would differ from
the plain twin's.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from quark_tui.io.settings import Ascii, Color

Depth: TypeAlias = Literal["true", "256", "16", "none"]

#: Frames a second: a key is answered within one, and the first screen waits for some (at 15 it takes 1.1 times as
#: long). What goes over a slow line is bounded by how often a log is shown, not by this.
_FRAMES: Final = "30"
_SYSTEMS: Final[Mapping[Depth, str]] = {"true": "truecolor", "256": "256", "16": "standard", "none": "standard"}
# Terminals with 24-bit colour whose names do not say so; COLORTERM is lost over SSH, TERM is not.
_TRUE_COLOR: Final = ("alacritty", "contour", "foot", "ghostty", "kitty", "wezterm", "xterm-ghostty", "xterm-kitty")


@dataclass(frozen=True, slots=True)
class Terminal:
    """``ascii`` is true when no byte above 0x7f may be sent. ``variables`` are for :func:`apply`; None means unset."""

    ascii: bool
    colors: Depth
    mouse: bool
    variables: Mapping[str, str | None]

    @property
    def own_palette(self) -> bool:
        """The terminal's own colours are used: ``App(ansi_color=True)``, and the theme that is made for them."""
        return self.colors in ("16", "none")


def terminal(environ: Mapping[str, str], ascii: Ascii = "auto", color: Color = "auto", mouse: bool = True) -> Terminal:
    """What to send to the terminal that ``environ`` tells of; ``auto`` means what it can, else what was asked for.

    A colour depth that was asked for stands above NO_COLOR, as that convention wants it.
    """
    colors = _depth(environ) if color == "auto" else color
    variables: dict[str, str | None] = {
        "TEXTUAL_ANIMATIONS": "none",
        "TEXTUAL_FPS": environ.get("TEXTUAL_FPS") or _FRAMES,
        "TEXTUAL_SMOOTH_SCROLL": "0",
        "TEXTUAL_COLOR_SYSTEM": _SYSTEMS[colors],
        # Textual obeys this variable even when it is empty.
        "NO_COLOR": "1" if colors == "none" else None,
    }
    return Terminal(_is_ascii(environ) if ascii == "auto" else ascii == "on", colors, mouse, variables)


def apply(found: Terminal, environ: MutableMapping[str, str]) -> None:
    """Set and unset ``found.variables`` in ``environ``, before Textual is imported."""
    for name, value in found.variables.items():
        if value is None:
            environ.pop(name, None)
        else:
            environ[name] = value


def _depth(environ: Mapping[str, str]) -> Depth:
    term = environ.get("TERM", "").strip().lower()
    if environ.get("NO_COLOR") or _is_vt(term) or term in ("", "dumb", "unknown") or term.endswith(("-m", "-mono")):
        return "none"
    if term == "linux":
        return "16"
    # GNU screen hands on the COLORTERM of the terminal around it, and shows no such colours.
    inside_screen = "STY" in environ and "TMUX" not in environ
    if not inside_screen and environ.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return "true"
    if term.endswith("-direct") or term in _TRUE_COLOR:
        return "true"
    return "256" if "256color" in term else "16"


def _is_ascii(environ: Mapping[str, str]) -> bool:
    term = environ.get("TERM", "").strip().lower()
    return term == "linux" or _is_vt(term) or not _shows_utf8(environ)


def _is_vt(term: str) -> bool:
    """vt100 and its kin, which show neither colours nor our glyphs; vte is another family."""
    return term.startswith("vt") and term[2:3].isdigit()


def _shows_utf8(environ: Mapping[str, str]) -> bool:
    """What the locale says of the terminal. One that nobody named says nothing: so it is inside most containers, and
    the terminals around them show UTF-8."""
    named = {name: environ.get(name, "").strip() for name in ("LC_ALL", "LC_CTYPE", "LANG")}
    if _is_c(named["LANG"]) and not named["LC_ALL"] and named["LC_CTYPE"] in ("C.UTF-8", "C.utf8", "UTF-8"):
        # A Python that starts under LANG=C writes this LC_CTYPE itself (PEP 538); the terminal is none the wiser.
        return False
    locale = named["LC_ALL"] or named["LC_CTYPE"] or named["LANG"]
    if not locale:
        return True
    charset = locale.partition("@")[0].rpartition(".")[2].lower().replace("-", "").replace("_", "")
    return charset == "utf8"


def _is_c(locale: str) -> bool:
    return locale in ("C", "POSIX")
