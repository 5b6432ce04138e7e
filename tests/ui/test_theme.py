"""What breaks if this is wrong: a theme file stops the program at start, or is read otherwise than YAML means it."""

from __future__ import annotations

import contextlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color

from quark_tui.io.paths import data_folder
from quark_tui.ui import theme as themes

FILES = sorted(data_folder("themes").glob("*.yaml"))


def test_dark_and_light_are_there() -> None:
    assert [one.name for one in themes.built_in(data_folder("themes"))] == ["quark-dark", "quark-light"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_small_reader_reads_what_yaml_reads(path: object) -> None:
    text = path.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    meant = {
        key: str(value).lower() if isinstance(value, bool) else value for key, value in yaml.safe_load(text).items()
    }
    assert themes.flat_map(text) == meant


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_text_colour_is_readable_on_both_of_its_backgrounds(path: object) -> None:
    data = themes.flat_map(path.read_text(encoding="utf-8"))  # type: ignore[attr-defined]
    assert data.keys() == {"name", "dark", *themes.DEFAULTS}

    def luminance(colour: Color) -> float:
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.normalized]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for ground in ("background", "cursor"):
        for name in data.keys() - {"name", "dark", "background", "cursor", "rule"}:
            one, other = sorted(luminance(Color.parse(data[key])) for key in (ground, name))
            assert (other + 0.05) / (one + 0.05) >= 4, f"{name} on {ground}"


@pytest.mark.parametrize(
    "text", ["name", "name:", 'name: "x', 'name: "x" y', "  name: x", "- a: b", "a b: c"], ids=repr
)
def test_what_is_not_flat_is_refused(text: str) -> None:
    with pytest.raises(themes.ThemeProblem, match="line 1"):
        themes.flat_map(text)


@pytest.mark.parametrize(
    ("data", "word"), [({}, "name"), ({"name": "x", "ok": "no colour"}, "ok"), ({"name": "x", "odd": "#fff"}, "odd")]
)
def test_a_wrong_theme_is_refused_before_it_is_applied(data: dict[str, str], word: str) -> None:
    with pytest.raises(themes.ThemeProblem, match=word):
        themes.theme(data)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(themes.ThemeProblem):
        themes.theme(themes.flat_map(text))
