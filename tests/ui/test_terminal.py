"""What breaks if this is wrong: a terminal gets bytes it cannot show, or a run inherits what was for the screen."""

from __future__ import annotations

import pytest

from quark_tui.io.settings import Ascii, Color
from quark_tui.ui.terminal import Depth, apply, terminal

UTF8 = {"LANG": "en_US.UTF-8"}


@pytest.mark.parametrize(
    ("environ", "depth"),
    [
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "true"),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, "true"),
        ({"TERM": "xterm-direct"}, "true"),
        ({"TERM": "xterm-kitty"}, "true"),
        ({"TERM": "alacritty"}, "true"),
        ({"TERM": "vte-256color"}, "256"),
        ({"TERM": "xterm"}, "16"),
        ({"TERM": "screen"}, "16"),
        ({"TERM": "screen-256color", "STY": "1.pts", "COLORTERM": "truecolor"}, "256"),
        ({"TERM": "tmux-256color", "STY": "1.pts", "TMUX": "/t,1,0", "COLORTERM": "truecolor"}, "true"),
        ({"TERM": "linux", "COLORTERM": "truecolor"}, "16"),
        ({"TERM": "vt100", "COLORTERM": "truecolor"}, "none"),
        ({"TERM": "vt220"}, "none"),
        ({"TERM": "xterm-mono"}, "none"),
        ({}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "256"),
    ],
    ids=str,
)
def test_colours_are_what_the_terminal_can(environ: dict[str, str], depth: Depth) -> None:
    assert terminal(environ).colors == depth


@pytest.mark.parametrize(
    ("environ", "ascii_only"),
    [
        (UTF8, False),
        ({"LANG": "C.utf8"}, False),
        ({"LC_CTYPE": "UTF-8"}, False),
        ({"LANG": "de_DE.UTF-8@euro"}, False),
        ({}, False),
        ({"LANG": "", "LC_ALL": ""}, False),
        ({"LANG": "C"}, True),
        ({"LANG": "POSIX"}, True),
        ({"LANG": "de_DE"}, True),
        ({"LANG": "en_US.ISO-8859-1"}, True),
        ({"LANG": "ja_JP.eucJP"}, True),
        ({**UTF8, "LC_ALL": "C"}, True),
        ({**UTF8, "LC_CTYPE": "C"}, True),
        ({"LANG": "C", "LC_ALL": "en_US.UTF-8"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),  # as Python itself leaves it after LANG=C
        ({"LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, False),
        ({**UTF8, "TERM": "linux"}, True),
        ({**UTF8, "TERM": "vt100"}, True),
        ({**UTF8, "TERM": "vte"}, False),
    ],
    ids=str,
)
def test_ascii_where_the_locale_or_the_terminal_says_so(environ: dict[str, str], ascii_only: bool) -> None:
    environ = {"TERM": "xterm", **environ}
    assert terminal(environ).ascii is ascii_only
    assert terminal(environ, "on").ascii and not terminal(environ, "off").ascii


@pytest.mark.parametrize(
    ("color", "system"), [("true", "truecolor"), ("256", "256"), ("16", "standard"), ("none", "standard")]
)
@pytest.mark.parametrize("no_color", [{}, {"NO_COLOR": "1"}, {"NO_COLOR": ""}], ids=str)
def test_what_was_asked_for_stands_above_what_was_found(color: Color, system: str, no_color: dict[str, str]) -> None:
    found = terminal({"TERM": "vt100", **no_color}, color=color)
    environ = dict(no_color)
    apply(found, environ)
    assert (found.colors, environ["TEXTUAL_COLOR_SYSTEM"]) == (color, system)
    assert environ.get("NO_COLOR") == ("1" if color == "none" else None)
    assert found.own_palette is (color in ("16", "none"))


def test_only_this_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the mapping that is judged nor the process's own is touched before somebody applies the variables."""
    environ = {"TERM": "xterm", "NO_COLOR": ""}
    found = terminal(environ, mouse=False)
    assert environ == {"TERM": "xterm", "NO_COLOR": ""} and found.mouse is False
    copy = dict(environ)
    apply(found, copy)
    assert copy["TEXTUAL_ANIMATIONS"] == "none" and copy["TEXTUAL_SMOOTH_SCROLL"] == "0"
    assert copy["TEXTUAL_FPS"] == "30" and "NO_COLOR" not in copy


def test_somebody_s_own_frame_rate_is_kept() -> None:
    assert terminal({"TEXTUAL_FPS": "12"}).variables["TEXTUAL_FPS"] == "12"


@pytest.mark.parametrize("ascii_wish", ["auto", "on", "off"])
@pytest.mark.parametrize("color", ["auto", "true", "256", "16", "none"])
def test_textual_takes_every_value(ascii_wish: Ascii, color: Color) -> None:
    """A colour system that Rich does not know ends the program before it draws anything."""
    from rich.console import COLOR_SYSTEMS

    found = terminal({"TERM": "xterm"}, ascii_wish, color)
    assert found.variables["TEXTUAL_COLOR_SYSTEM"] in COLOR_SYSTEMS
