"""What breaks if this is wrong: a theme file stops the program at start, is read otherwise than YAML means it, or has
words in it that nobody can read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.app import App, ComposeResult
from textual.color import Color
from textual.widgets import Input, Static

from quark_tui.core.answer import WrongQuestion
from quark_tui.io import atomic
from quark_tui.io.paths import data_folder
from quark_tui.io.settings import COMMAND_LINE, Options, resolve
from quark_tui.ui import theme as themes

FILES = sorted(data_folder("themes").glob("*.yaml"))
COLOURED = [path for path in FILES if path.stem != "ansi"]
TONES = sorted(themes.COLORS.keys() - {"background", "cursor", "rule"})


def shown(color: str) -> Color:
    return Color.parse(color)


def shown_in_256(color: str) -> Color:
    """What a terminal with 256 colours gets: the index that Rich picks."""
    picked = RichColor.parse(color).downgrade(ColorSystem.EIGHT_BIT)
    return Color(*picked.get_truecolor())


def contrast(one: Color, other: Color) -> float:
    def luminance(color: Color) -> float:
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def read(path: Path) -> dict[str, str]:
    return themes.flat_map(path.read_text(encoding="utf-8"))


def test_dark_light_and_the_terminal_s_own_are_there() -> None:
    found = themes.built_in(data_folder("themes"))
    assert [one.name for one in found] == ["quark-dark", "quark-light", "quark-ansi"]
    assert [(one.dark, one.ansi) for one in found] == [(True, False), (False, False), (True, True)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_small_reader_reads_what_yaml_reads_and_the_schema_allows_it(path: Path) -> None:
    meant = yaml.safe_load(path.read_text(encoding="utf-8"))
    schema = atomic.read_json(str(data_folder("schemas") / "theme.schema.json"))
    jsonschema.validate(meant, schema)
    assert schema["properties"].keys() == {"name", "dark", "ansi", *themes.COLORS}
    assert read(path) == {key: str(value).lower() if isinstance(value, bool) else value for key, value in meant.items()}
    assert meant.keys() >= themes.COLORS.keys()


@pytest.mark.parametrize("as_shown", [shown, shown_in_256], ids=["24 bit", "256"])
@pytest.mark.parametrize("path", COLOURED, ids=lambda path: path.name)
def test_every_tone_is_readable_on_both_of_its_backgrounds(path: Path, as_shown: Callable[[str], Color]) -> None:
    data = read(path)
    for ground in ("background", "cursor"):
        for tone in TONES:
            assert contrast(as_shown(data[ground]), as_shown(data[tone])) >= 4.5, f"{tone} on {ground}"


@pytest.mark.parametrize("as_shown", [shown, shown_in_256], ids=["24 bit", "256"])
@pytest.mark.parametrize("path", COLOURED, ids=lambda path: path.name)
def test_background_cursor_and_rule_stay_apart(path: Path, as_shown: Callable[[str], Color]) -> None:
    data = read(path)
    for one, other in (("background", "cursor"), ("background", "rule"), ("cursor", "rule")):
        assert contrast(as_shown(data[one]), as_shown(data[other])) >= 1.2, f"{one}, {other}"


def test_what_a_theme_leaves_out_is_as_in_the_dark_one() -> None:
    assert {key: value for key, value in read(data_folder("themes") / "dark.yaml").items() if key in themes.COLORS} == (
        themes.COLORS
    )


@pytest.mark.parametrize(
    "text",
    [
        "name", "name:", 'name: "x', 'name: "x" y', "  name: x", "- a: b", "a b: c", "a:b", "name: #fff", "name: a b",
        'name: "a\\n"', "name: 1", "name: yes", "name: |", "name: 'it''s'", "é: x", "name: a#b", 'name: "a\x1b"', "---",
        "name: [a]",
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_not_flat_is_refused(text: str) -> None:
    with pytest.raises(themes.ThemeProblem, match="line 1"):
        themes.flat_map(text)


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(themes.ThemeProblem, match="line 3: ok stands twice"):
        themes.flat_map('ok: "#fff"\n# again\nok: "#000"')


WORDS = st.text(st.sampled_from("aby.-_ #'\"\\:1,\t"), max_size=8)


@given(st.lists(st.tuples(st.sampled_from(["ok", "name", "a b", "#x"]), st.sampled_from(["", '"', "'"]), WORDS)))
def test_what_is_read_means_the_same_to_yaml(lines: list[tuple[str, str, str]]) -> None:
    text = "\n".join(f"{key}: {quote}{value}{quote}" for key, quote, value in lines)
    try:
        found = themes.flat_map(text)
    except themes.ThemeProblem:
        return
    assert found == (yaml.load(text, Loader=yaml.BaseLoader) or {})


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({}, "name"),
        ({"name": "Über"}, "name"),
        ({"name": "../x"}, "name"),
        ({"name": "x", "ok": "no colour"}, "ok"),
        ({"name": "x", "ok": "#12121280"}, "ok"),
        ({"name": "x", "ok": "transparent"}, "ok"),
        ({"name": "x", "ok": "auto 50%"}, "ok"),
        ({"name": "x", "ok": "ansi_red"}, "ok"),
        ({"name": "x", "ok": "ansi_pink", "ansi": "true"}, "ok"),
        ({"name": "x", "odd": "#fff"}, "odd"),
        ({"name": "x", "dark": "maybe"}, "dark"),
        ({"name": "x", "ansi": "1"}, "ansi"),
    ],
)
def test_a_wrong_theme_is_refused_before_it_is_applied(data: dict[str, str], word: str) -> None:
    with pytest.raises(themes.ThemeProblem, match=word):
        themes.theme(data)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(themes.ThemeProblem):
        themes.theme(themes.flat_map(text))


@given(st.one_of(st.text(), st.text(st.sampled_from("rgbhsla(),.%0123456789 #abcdef_ni"), max_size=20)), st.booleans())
def test_any_colour_is_taken_or_refused(value: str, ansi: bool) -> None:
    with contextlib.suppress(themes.ThemeProblem):
        made = themes.theme({"name": "x", "ok": value, "ansi": str(ansi).lower()})
        made.to_color_system().generate()


# --- a person's own themes -------------------------------------------------------------------------------------------

OWN = 'name: {}\ndark: false\nbackground: "#fafafa"\nok: green  # a name\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "themes").mkdir()
    return tmp_path / "themes"


def test_own_themes_are_read_and_each_broken_one_is_told(folder: Path) -> None:
    (folder / "a.yaml").write_text("\ufeff" + OWN.format("paper"))
    (folder / "b.yaml").write_text('name: odd\nok: "no colour"\n')
    (folder / "c.yaml").write_text(OWN.format("quark-dark"))
    (folder / "d.yaml").write_text(OWN.format("paper"))
    (folder / "e.yaml").write_bytes(b"name: \xff")
    (folder / "f.yaml").write_text("# " + "x" * 20_000)
    (folder / "g.yaml").mkdir()
    os.mkfifo(folder / "h.yaml")
    (folder / "i.yaml").symlink_to("nowhere")
    (folder / "j.yaml").write_text(OWN.format("last"))
    (folder / "k.yaml\x1b[2J.yaml").write_text("ok")
    (folder / "notes.txt").write_text("no theme")
    found, findings = themes.own(folder, ["quark-dark"])
    assert [one.name for one in found] == ["paper", "last"] and found[0].background == "#fafafa"
    words = ["ok is no colour", "called quark-dark", "called paper", "UTF-8", "bytes", "regular", "regular", "No such"]
    for finding, letter, word in zip(findings, "bcdefghi", words, strict=False):
        assert finding.message.startswith(f"{folder}/{letter}.yaml: ") and word in finding.message
    assert len(findings) == 9 and "\x1b" not in findings[-1].message
    assert all(one.level == "low" and one.next_step for one in findings)


def test_no_folder_is_no_theme_and_no_finding(tmp_path: Path) -> None:
    assert themes.own(tmp_path / "none", []) == ([], ())


def test_a_folder_of_many_is_not_read_to_its_end(folder: Path) -> None:
    for number in range(203):
        (folder / f"{number:03}.yaml").write_text(OWN.format(f"t{number}"))
    found, (finding,) = themes.own(folder, [])
    assert len(found) == 200 and "203 files" in finding.message


NAMES = ["quark-dark", "quark-light", "quark-ansi", "paper"]


@pytest.mark.parametrize(
    ("source", "wanted", "own_palette", "chosen", "told"),
    [
        (None, None, False, "quark-dark", 0),
        (None, None, True, "quark-ansi", 0),
        ("file", "paper", False, "paper", 0),
        ("file", "quark-light", True, "quark-light", 0),
        ("remembered", "quark-light", False, "quark-light", 0),
        ("remembered", "quark-light", True, "quark-ansi", 0),
        ("file", "gone\x1b[2J", False, "quark-dark", 1),
        ("remembered", "gone", False, "quark-dark", 1),
        ("the environment", "gone", True, "quark-ansi", 1),
    ],
)
def test_which_theme_begins(source: str | None, wanted: str | None, own_palette: bool, chosen: str, told: int) -> None:
    settings = resolve(*([(source, Options(theme=wanted))] if source else []))
    name, findings = themes.choose(settings, NAMES, own_palette)
    assert (name, len(findings)) == (chosen, told)
    assert all(source in one.evidence and "\x1b" not in one.message for one in findings if source)


def test_a_wrong_name_on_the_command_line_is_a_wrong_question() -> None:
    with pytest.raises(WrongQuestion, match="no theme nope; there are quark-dark"):
        themes.choose(resolve((COMMAND_LINE, Options(theme="nope"))), NAMES, False)


# --- in Textual ------------------------------------------------------------------------------------------------------


class Shown(App[None]):
    """Every variable that a stylesheet may name, in use."""

    CSS = "".join(
        f"#{name} {{ color: ${name}; background: $background; border: solid $rule; }}\n" for name in themes.COLORS
    ) + ("#row { color: $ok; background: $cursor; text-style: $cursor-text-style; height: 1; }")

    def __init__(self, ansi_color: bool | None) -> None:
        super().__init__(ansi_color=ansi_color)
        for one in themes.built_in(data_folder("themes")):
            self.register_theme(one)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(themes.DEFAULTS)

    def compose(self) -> ComposeResult:
        yield Static("row", id="row")
        for name in themes.COLORS:
            yield Static(name, id=name)
        yield Input("text")


@pytest.mark.parametrize("name", ["quark-dark", "quark-light", "quark-ansi", "textual-dark", "ansi-light"])
async def test_each_theme_can_be_applied_and_left_again(name: str) -> None:
    app = Shown(None)
    async with app.run_test(size=(80, 50)) as pilot:
        for theme in (name, "quark-dark", name):
            app.theme = theme
            await pilot.pause()
        (row,) = [s for s in app.screen._compositor.render_strips()[0] if "row" in s.text]
        assert row.style is not None and row.style.reverse is (name == "quark-ansi" or None)


async def test_a_line_that_a_widget_draws_itself_gets_the_reverse_too() -> None:
    class Drawn(Static):
        COMPONENT_CLASSES: ClassVar[set[str]] = {"drawn--cursor"}

    class Drawing(Shown):
        CSS = Shown.CSS + ".drawn--cursor { background: $cursor; text-style: $cursor-text-style; }"

        def compose(self) -> ComposeResult:
            yield Drawn(id="drawn")

    app = Drawing(None)
    async with app.run_test() as pilot:
        for name, reverse in (("quark-ansi", True), ("quark-dark", False)):
            app.theme = name
            await pilot.pause()
            style = app.query_one(Drawn).get_component_rich_style("drawn--cursor", partial=True)
            assert bool(style.reverse) is reverse


@pytest.mark.parametrize("no_color", [False, True], ids=["16", "none"])
async def test_the_terminal_s_own_palette_is_all_that_is_sent(monkeypatch: pytest.MonkeyPatch, no_color: bool) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    app = Shown(True)
    app.theme = "quark-ansi"
    async with app.run_test(size=(80, 50)) as pilot:
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        styles = [one.style for strip in strips for one in strip if one.style]
        colours = {one for style in styles for one in (style.color, style.bgcolor) if one is not None}
        assert all(one.triplet is None for one in colours)
        assert no_color is not any(not one.is_default for one in colours)
