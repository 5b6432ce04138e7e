"""What breaks if this is wrong: bytes that the terminal cannot show, or columns that shift."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import ControlType, Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.color import Color
from textual.containers import VerticalScroll
from textual.widgets import Checkbox, DataTable, Input, ProgressBar, Select, Static, Tree

from quark_tui.ui import ascii as ascii_module
from quark_tui.ui.ascii import AsciiFilter, to_ascii

BLACK = Color.parse("black")
# Marks, wide characters, joiners and selectors more often than chance would bring them.
AWKWARD = st.text(st.one_of(st.characters(), st.sampled_from("aé…─█\u0301\u200d\ufe0f\u20e3👩🐍☺漢שא\x00\x1b\xad")))


@given(AWKWARD)
def test_any_text_becomes_ascii_of_the_same_cells(text: str) -> None:
    drawn = to_ascii(text)
    assert drawn.isascii()
    assert cell_len(drawn) == cell_len(text)


@given(
    st.lists(st.tuples(AWKWARD, st.sampled_from([None, Style(bold=True), Style(link="https://é"), Style(link="x")])))
)
def test_any_segments_keep_their_cells_and_their_styles(parts: list[tuple[str, Style | None]]) -> None:
    before = [Segment(text, style) for text, style in parts]
    after = AsciiFilter().apply(before, BLACK)
    assert [one.cell_length for one in after] == [one.cell_length for one in before]
    for old, new in zip(before, after, strict=True):
        assert new.text.isascii() and (new.style is None or (new.style.link or "").isascii())
        assert (new.style and new.style.bold) == (old.style and old.style.bold)


def test_each_known_glyph_is_one_cell_and_becomes_one_character() -> None:
    for code, drawn in ascii_module._TABLE.items():
        glyph = chr(code)
        assert cell_len(glyph) == 1, unicodedata.name(glyph)
        assert len(drawn) == 1 and drawn.isascii() and drawn.isprintable(), unicodedata.name(glyph)


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("┌─┬┐│├┤└┘╭╮╰╯┼━┃╸", "+-+" + "+|++" + "++" + "++++" + "+-|-"),
        ("═║╔╗╬", "=|+++"),
        ("╱╲╳", "/\\X"),
        ("▁▂▃▄▅▆▇█", "_.-=+*%#"),
        ("▊▎▏▌▐▕", "||||||"),
        ("▸ ✓ ✗ ◆ » ◐ ▾ – · … → ● ↑ ↓ ↵ × ┄", "> + x * > % v - . ~ > * ^ v < x -"),
        ("100 µs ≤ 3 °", "100 us < 3 o"),
        ("naïve", "na?ve"),
        ("漢字", "????"),
        ("e\u0301", "e"),
        ("👩\u200d👩", "??"),
        ("plain [x] ~", "plain [x] ~"),
    ],
)
def test_what_things_look_like(text: str, drawn: str) -> None:
    assert to_ascii(text) == drawn


def test_control_segments_stay_control_segments() -> None:
    bell = Segment("\x07", None, [(ControlType.BELL,)])
    assert AsciiFilter().apply([bell], BLACK) == [bell]


def test_what_one_filter_made_is_found_again_by_the_next() -> None:
    assert AsciiFilter() == AsciiFilter() and hash(AsciiFilter()) == hash(AsciiFilter())
    assert AsciiFilter() != AsciiFilter(enabled=False)


class Everything(App[None]):
    """Widgets with borders, guides, bars, marks and arrows of Textual's own."""

    CSS = "Static { border: round red; } #t { border: tall red; } #h { border: hkey red; } #o { border: outer red; }"

    def get_line_filters(self) -> list[object]:  # type: ignore[override]
        return [*super().get_line_filters(), AsciiFilter()]

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            for name in "tho":
                yield Static("… ✓ naïve 漢", id=name, markup=False)
            yield Checkbox("→")
            yield Input("•", placeholder="…")
            yield Select([("▾", 1)])
            yield ProgressBar(total=7)
            table: DataTable[str] = DataTable()
            table.add_columns("á", "b")
            table.add_row("…", "█")
            yield table
            tree: Tree[None] = Tree("◆")
            tree.root.expand().add("a").add_leaf("b")
            yield tree


async def test_nothing_that_textual_draws_escapes_it() -> None:
    app = Everything()
    async with app.run_test(size=(40, 30)) as pilot:
        app.query_one(ProgressBar).advance(3)
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        shown = "\n".join(segment.text for strip in strips for segment in strip)
        assert shown.isascii(), sorted({char for char in shown if not char.isascii()})
        assert all(strip.cell_length == 40 == sum(one.cell_length for one in strip) for strip in strips)
