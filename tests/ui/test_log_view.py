"""What breaks if this is wrong: a paused log runs away from its reader, or what a program wrote draws on the screen."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from quark_tui.core.logtext import Folder, Line
from quark_tui.core.text import cell_width, clean
from quark_tui.engine import progress
from quark_tui.engine.progress import LogReader
from quark_tui.ui import theme
from quark_tui.ui.widgets import log_view
from quark_tui.ui.widgets.log_view import LogView, cut, sure
from quark_tui.ui.widgets.search import LONGEST, MOST, Search

SIZE = (60, 12)


class Shown(App[None]):
    """A log view and nothing else; ``said`` are the words of its messages, ``painted`` the rows that it painted."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(theme.DEFAULTS)

    def compose(self) -> ComposeResult:
        yield LogView()

    def on_log_view_changed(self, message: LogView.Changed) -> None:
        assert message.control is self.view
        self.said.append(message.word)

    @property
    def view(self) -> LogView:
        return self.query_one(LogView)

    def rows(self) -> list[str]:
        strips = self.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


class Counting(LogView):
    """Counts the rows that are painted."""

    painted: list[int]

    def render_line(self, y: int):  # type: ignore[no-untyped-def]
        self.painted.append(y)
        return super().render_line(y)


def numbered(start: int, stop: int, width: int = 0) -> list[Line]:
    return [Line(f"line {number} ".ljust(width, "x").rstrip(), "", number) for number in range(start, stop)]


def folded(data: bytes) -> list[Line]:
    folder = Folder()
    return [*folder.feed(data), *folder.finish()]


async def marked(pilot: Pilot[None]) -> str:
    """The row under the cursor; there is exactly one."""
    await pilot.pause()
    app = pilot.app
    assert isinstance(app, Shown)
    found = [row for row in app.rows() if row.startswith("▸")]
    assert len(found) == 1, app.rows()
    return found[0].removeprefix("▸ ")


async def test_an_empty_log_says_so_and_keys_do_no_harm() -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        assert app.rows()[0].strip() == "nothing was written yet"
        await pilot.press("j", "k", "g", "G", "pageup", "pagedown", "ctrl+d", "ctrl+u", "h", "l", "0")
        app.view.search("x", regex=False, case=False)
        app.view.next_match(1)
        assert (app.view.following, app.view.current_line(), app.view.matches) == (True, None, 0)
        app.view.show([], "only a bar 3%")
        assert await marked(pilot) == "only a bar 3%"
        line = app.view.current_line()
        assert line is not None
        assert line.text == "only a bar 3%"


async def test_on_the_last_line_new_lines_scroll_and_the_unfinished_one_is_replaced() -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show(numbered(1, 31), "10%")
        assert await marked(pilot) == "10%"
        app.view.show([], "20%")
        assert await marked(pilot) == "20%"
        assert "10%" not in "\n".join(app.rows())
        app.view.show(numbered(31, 33), "")
        assert await marked(pilot) == "line 32"
        assert app.rows() == [f"  line {number}" for number in range(21, 32)] + ["▸ line 32"]
        assert (app.view.following, app.view.unseen, app.said) == (True, 0, [])


@pytest.mark.parametrize("key", ["k", "up", "g", "home", "pageup", "ctrl+u"])
async def test_a_move_up_pauses_and_the_view_stays_whatever_comes(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_view, "KEPT_LINES", 100)
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show(numbered(1, 81, width=200), "")
        await pilot.press("l", "l", key)
        assert (app.view.following, app.view.word) == (False, "PAUSED")
        before, line = app.rows(), app.view.current_line()
        for start in range(81, 2081, 50):
            app.view.show(numbered(start, start + 50, width=200), f"{start}%")
            await pilot.pause()
            assert app.rows() == before
        assert app.view.current_line() == line
        assert (app.view.unseen, app.view.word, app.said[-1]) == (2000, "PAUSED +2,000", "PAUSED +2,000")
        await pilot.press("G", "0")
        assert await marked(pilot) == "2031%"
        assert app.rows()[-2].startswith("  line 2080 xx")
        assert (app.view.following, app.view.unseen, app.said[-1]) == (True, 0, "FOLLOW")


async def test_what_is_no_longer_kept_is_said_where_the_kept_lines_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_view, "KEPT_LINES", 100)
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show(numbered(1, 81), "")
        await pilot.press("g")
        app.view.show(numbered(81, 1001), "")
        assert await marked(pilot) == "line 1"
        await pilot.press("j")
        assert await marked(pilot) == "quark-tui: 900 lines before this are no longer kept here"
        assert app.view.current_line() is None
        assert app.rows()[1] == "  line 901"
        await pilot.press("j")
        assert await marked(pilot) == "line 901"
        await pilot.resize_terminal(40, 30)
        assert await marked(pilot) == "line 901"


async def test_a_resize_while_lines_are_held_shows_no_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_view, "KEPT_LINES", 100)
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show(numbered(1, 81), "")
        await pilot.press("g")
        app.view.show(numbered(81, 1001), "")
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        assert all(app.rows()), app.rows()


async def test_very_long_lines_are_kept_by_their_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_view, "KEPT_CHARACTERS", 10_000)
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(20):
            app.view.show([Line("y" * 4_000, "", 1)], "")
        await pilot.press("g")
        assert "18 lines before" in await marked(pilot)
        app.view.show([Line("z" * 40_000, "", 1)], "")
        await pilot.press("G")
        assert (await marked(pilot)).startswith("zzz")


async def test_the_wheel_pauses_and_comes_back_at_the_end() -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show(numbered(1, 51), "")
        await pilot.pause()
        wheel = [None, app.view, 1, 1, 0, 0, 0, False, False, False]
        app.view.post_message(events.MouseScrollUp(*wheel))  # type: ignore[arg-type]
        await pilot.pause()
        assert app.rows()[0] == "  line 36"
        assert (app.view.following, app.said) == (False, ["PAUSED"])
        app.view.show(numbered(51, 52), "")
        await pilot.pause()
        assert app.rows()[0] == "  line 36"
        for _ in range(2):
            app.view.post_message(events.MouseScrollDown(*wheel))  # type: ignore[arg-type]
        await pilot.pause()
        assert await marked(pilot) == "line 51"
        assert app.view.following


async def test_a_click_sets_the_cursor_and_pages_keep_its_place() -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show(numbered(1, 101), "")
        await pilot.click(LogView, offset=(3, 4))
        assert await marked(pilot) == "line 93"
        await pilot.press("pageup")
        assert await marked(pilot) == "line 82"
        await pilot.press("ctrl+d")
        assert await marked(pilot) == "line 87"
        await pilot.press("g", "pageup")
        assert await marked(pilot) == "line 1"
        await pilot.press("pagedown", *["pagedown"] * 9)
        assert await marked(pilot) == "line 100"
        assert app.view.following


async def test_only_what_changed_is_painted() -> None:
    app = Shown()
    view = Counting()
    app.compose = lambda: iter([view])  # type: ignore[method-assign]
    view.painted = []
    async with app.run_test(size=SIZE) as pilot:

        async def painted(*change: object) -> list[int]:
            await pilot.pause()
            view.painted.clear()
            view.show(*change)  # type: ignore[arg-type]
            await pilot.pause()
            return sorted(view.painted)

        await painted(numbered(1, 41), "1%")
        assert await painted([], "2%") == [11]
        assert await painted([], "2%") == []
        assert await painted(numbered(41, 46), "3%") == list(range(12))
        await pilot.press("pageup")
        assert await painted(numbered(46, 96), "4%") == []
        assert app.said[-1] == "PAUSED +50"
        await pilot.pause()
        view.painted.clear()
        await pilot.press("k")
        await pilot.pause()
        assert len(set(view.painted)) <= 2


async def test_levels_have_tones_and_remarks_of_ours_are_muted() -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show(
            [
                Line("remark", "", 0),
                Line("[QUARK-INFO]: a", "info", 1),
                Line("[QUARK-WARNING]: b", "warning", 2),
                Line("[QUARK-ERROR]: c", "error", 3),
                Line("end", "", 4),
            ],
            "",
        )
        await pilot.pause()
        tones = [app.view.render_line(y)._segments[0].style.color.name for y in range(4)]  # type: ignore[union-attr]
        colours = app.get_css_variables()
        assert tones == [colours[name].lower() for name in ("muted", "foreground", "warning", "failed")]


def pieces(view: LogView, y: int) -> tuple[list[str], list[str]]:
    """The reversed pieces of a row, and those of them that are the current match."""
    segments = [one for one in view.render_line(y) if one.style is not None and one.style.reverse]
    return [one.text for one in segments], [one.text for one in segments if one.style.bold and one.style.underline]  # type: ignore[union-attr]


async def test_matches_are_reversed_and_the_current_one_stands_out() -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show([*numbered(1, 30), Line("Alpha beta alpha", "", 30), *numbered(31, 60)], "pending alpha")
        app.view.search("ALPHA", regex=False, case=False)
        assert await marked(pilot) == "Alpha beta alpha"
        assert (app.view.matches, app.view._state[2], app.view.following) == (2, 2, False)
        row = app.rows().index("▸ Alpha beta alpha")
        assert pieces(app.view, row) == (["Alpha", "alpha"], ["alpha"])
        app.view.next_match(-1)
        assert pieces(app.view, row) == (["Alpha", "alpha"], ["Alpha"])
        app.view.next_match(1)
        assert pieces(app.view, row) == (["Alpha", "alpha"], ["alpha"])
        app.view.show([Line("alpha too", "", 60)], "")
        app.view.next_match(1)
        assert await marked(pilot) == "alpha too"
        assert not app.view.following
        app.view.next_match(1)
        assert await marked(pilot) == "Alpha beta alpha"
        app.view.next_match(-1)
        assert await marked(pilot) == "alpha too"
        app.view.search("ALPHA", regex=False, case=True)
        assert app.view.matches == 0
        app.view.search("", regex=False, case=True)
        assert (app.view.sought, app.view.matches, app.view.problem) == ("", 0, "")


async def test_a_match_far_to_the_right_is_brought_into_view() -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show([Line("z" * 500 + "needle" + "z" * 500, "", 1), Line("漢" * 300 + "needle", "", 2)], "")
        for direction in (1, 1, -1):
            app.view.search("needle", regex=False, case=True)
            app.view.next_match(direction)
            assert "needle" in await marked(pilot)
        await pilot.press("0")
        assert "needle" not in "".join(app.rows())


@pytest.mark.parametrize("query", ["(", "[a", "a{2,1}", "(?P<", "\\", "(" * 300, "x" * (LONGEST + 1), "(?<=a+)b"])
async def test_what_is_no_pattern_is_said(query: str) -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show(numbered(1, 10), "")
        app.view.search(query, regex=True, case=False)
        await pilot.pause()
        assert app.view.problem
        assert clean(app.view.problem) == app.view.problem
        assert app.view.matches == 0
        app.view.next_match(1)
        if len(query) <= LONGEST:
            app.view.show([Line(f"was {query} here", "", 10)], "")
            app.view.search(query, regex=False, case=False)
            assert (app.view.problem, app.view.matches) == ("", 1)


@pytest.mark.parametrize("query", ["(a+)+$", "(a|a)*$", "(.*)*x", "(a|aa)+$"])
async def test_a_pattern_that_would_run_for_years_is_given_up(query: str) -> None:
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show([Line("a" * 200 + "!", "", 1)], "")
        app.view.search(query, regex=True, case=True)
        assert "given up" in app.view.problem
        app.view.search("a!", regex=True, case=True)
        assert (app.view.problem, app.view.matches) == ("", 1)
        app.view.reset()
        app.view.search(query, regex=True, case=True)
        assert app.view.problem == ""
        app.view.show([Line("a" * 200 + "!", "", 1)], "")
        assert "given up" in app.view.problem
        await pilot.pause()


async def test_matches_go_with_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_view, "KEPT_LINES", 50)
    app = Shown()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show(numbered(1, 41), "")
        app.view.search("line", regex=False, case=True)
        await pilot.press("g")
        app.view.show(numbered(41, 1041), "")
        assert app.view.matches == 50 + 12
        assert pieces(app.view, 0)[0] == ["line"]
        await pilot.press("G")
        assert app.view.matches == 50
        app.view.next_match(-1)
        app.view.search("^$|x*", regex=True, case=True)
        assert app.view.matches == 0


HOSTILE = [
    b"\x1b[2J\x1b[Hcleared\x1b]52;c;QUJD\x07\x1b]0;title\x1b\\",
    b"nul\0nul \x07bell \x08\x7f \xc2\x9b2J c1",
    "שלום \u202eright to left\u202c مرحبا".encode(),
    b"w" * 300,
    b"m" * (1 << 20),
    "漢字かな交じり文".encode() * 40,
    "e\u0301a\u0308".encode() * 60,
    ("z" + "\u0301" * 200).encode() * 3,
    "👩‍👩‍👧 👍🏽 🇩🇪 ⚠️ ✈️".encode() * 20,
    "निहोन्गो ภาษาไทย தமிழ்".encode() * 10,
    b"\xff\xfe\x80 not utf-8",
    "\u2028\u2029\u200b\ufeff\u00ad\u3164|".encode(),
    b"[bold]markup[/] [link='x'] [/nothing]",
]


@pytest.mark.parametrize("width", [80, 120, 7, 3, 2, 1])
async def test_hostile_lines_are_text_within_the_edges(width: int) -> None:
    app = Shown()
    async with app.run_test(size=(width, 30)) as pilot:
        app.view.show(folded(b"\n".join([*(line[:24] + b" a " + line[:24] for line in HOSTILE), *HOSTILE])), "")
        for keys in [()], ["l"], ["l", "l", "l"], ["0", "k", "k"]:
            if keys != [()]:
                await pilot.press(*keys)
            app.view.search("a", regex=False, case=False)
            await pilot.pause()
            for y in range(30):
                text = "".join(segment.text for segment in app.view.render_line(y))
                assert cell_len(text) == cell_width(text) == width, ascii(text)
                assert clean(text, keep="") == text, ascii(text)
        assert not {char for char in "".join(app.rows()) if ord(char) < 32 or 0x7F <= ord(char) < 0xA0}


async def test_long_lines_say_that_they_go_on() -> None:
    app = Shown()
    async with app.run_test(size=(20, 4)) as pilot:
        app.view.show([Line("0123456789" * 3, "", 1), Line("short", "", 2), Line("0123456789" * 3, "", 3)], "")
        await pilot.pause()
        assert app.rows()[:3] == ["  01234567890123456…", "  short", "▸ 01234567890123456…"]
        await pilot.press("l")
        assert app.rows()[:3] == ["  …9012345678901234…", "  …", "▸ …9012345678901234…"]
        await pilot.press("l", "l", "l", "l")
        assert app.rows()[0] == "  …7890123456789"
        await pilot.press("h", "h", "h")
        assert app.rows()[1] == "  short"


TEXT = st.text(st.sampled_from("ab漢é\u0301\u0308🙂\u0939\u093f👍\U0001f3fd"), max_size=40)


@given(TEXT, st.integers(0, 60), st.integers(0, 30))
def test_a_cut_fits_and_misses_nothing_at_its_edges(text: str, left: int, room: int) -> None:
    text = clean(text)  # as every line is: no mark stands without the character that carries it
    part = cut(text, left, room)
    shown = f"{part.lead}{text[part.start : part.stop]}{part.tail}"
    assert cell_width(shown) == part.cells <= room
    assert part.tail.endswith("…") or part.stop == len(text) or room <= len(part.lead)
    if not left and cell_width(text) <= room and room:
        assert shown == text
    rest = text[part.start : part.stop]
    assert not rest or part.start == 0 or cell_width(rest[0])


@given(st.text(max_size=30))
def test_what_is_painted_is_as_wide_as_everybody_thinks(text: str) -> None:
    shown = sure(text)
    assert cell_len(shown) == cell_width(shown)
    assert clean(shown) == shown


BATCHES = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["", "1%", "漢字 2%"])), max_size=8)
MOVES = st.lists(st.sampled_from(["k", "pageup", "g", "ctrl+u", "l", "j", "ctrl+d", "wheel"]), min_size=1, max_size=6)


@settings(max_examples=40)
@given(MOVES, BATCHES, st.integers(1, 90))
async def test_a_paused_view_shows_the_same_lines_after_any_appends(
    moves: list[str], batches: Iterable[tuple[int, str]], first: int
) -> None:
    kept, log_view.KEPT_LINES = log_view.KEPT_LINES, 40
    try:
        app = Shown()
        async with app.run_test(size=(30, 8)) as pilot:
            count = itertools.count(1)
            app.view.show([Line(f"{next(count)} {'wide 漢' * 9}", "", 1) for _ in range(first)], "")
            for move in moves:
                if move == "wheel":
                    app.view._wheel(events.MouseScrollUp(app.view, 1, 1, 0, 0, 0, False, False, False), -1)
                else:
                    await pilot.press(move)
            await pilot.pause()
            paused, before, line = not app.view.following, app.rows(), app.view.current_line()
            for lines, pending in batches:
                app.view.show([Line(f"{next(count)} {'wide 漢' * 9}", "", 1) for _ in range(lines)], pending)
                await pilot.pause()
                if paused:
                    full = [row for row in before if row]
                    assert app.rows()[: len(full)] == full
                    assert app.view.current_line() == line
                else:
                    assert app.view.following
                assert sum(row.startswith("▸") for row in app.rows()) == 1
    finally:
        log_view.KEPT_LINES = kept


def logged(folder: Path, data: bytes, mode: str = "ab") -> None:
    with (folder / "output.log").open(mode) as file:
        file.write(data)


def texts(lines: Iterable[Line]) -> list[str]:
    return [line.text for line in lines]


def test_a_take_hands_over_each_line_once_and_hides_credentials(tmp_path: Path) -> None:
    reader = LogReader(str(tmp_path))
    reader.read()
    assert reader.take() == ([], "")
    assert reader.problem
    logged(tmp_path, b"one\nhttps://me:S3CRET@host/x\nhf_ABCDEFGHIJ")
    reader.read()
    lines, pending = reader.take()
    assert (texts(lines), pending, reader.problem) == (["one", "https://***@host/x"], "hf_ABCDEFGHIJ", "")
    logged(tmp_path, b"KLMNOPQRST0123")
    reader.read()
    assert reader.take() == ([], "***")
    logged(tmp_path, b"\nthree")
    reader.read()
    assert texts(reader.finished())[-2:] == ["hf_ABCDEFGHIJKLMNOPQRST0123", "three"]
    assert (texts(reader.take()[0]), reader.take()) == (["***", "three"], ([], ""))
    assert texts(reader.finished())[-1] == "three"


def test_a_take_says_what_it_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_TAIL", 1000)
    monkeypatch.setattr(progress, "_BEHIND", 5000)
    logged(tmp_path, b"".join(b"%09d\n" % number for number in range(1000)))
    reader = LogReader(str(tmp_path))
    reader.read()
    lines, _ = reader.take(limit=10)
    assert (lines[0].number, lines[0].text) == (
        0,
        "quark-tui: 9 kB (9,000 bytes) and 90 lines before this are not shown here; output.log has them",
    )
    assert texts(lines[1:]) == [f"{number:09}" for number in range(990, 1000)]
    logged(tmp_path, b"torn")
    reader.read()
    logged(tmp_path, b"".join(b"%09d\n" % number for number in range(1000)))
    reader.read()
    lines, _ = reader.take()
    assert [line.number for line in lines].count(0) == 1
    assert "9 kB (9,000 bytes)" in lines[0].text
    assert (lines[1].text, lines[-1].text, len(lines)) == ("torn", "000000999", 102)


def test_a_glance_is_the_end_and_takes_nothing_away(tmp_path: Path) -> None:
    logged(tmp_path, b"".join(b"%09d\n" % number for number in range(10_000)) + b"https://me:S3CRET@host")
    reader = LogReader(str(tmp_path))
    lines, pending = reader.glance()
    assert (lines[0].number, lines[-1].text, pending) == (0, "000009999", "https://***@host")
    assert f"{100_022 - 32_768 + 10 - (100_022 - 32_768) % 10:,} bytes" in lines[0].text
    reader.read()
    assert len(reader.take(limit=20_000)[0]) == 10_000


@pytest.mark.parametrize("case", [True, False])
@given(st.text("aAbKk\u212aſ\u0130ß.", min_size=1, max_size=3), st.text("aAbKk\u212aſ\u0130ß. ", max_size=20))
def test_counted_is_what_is_marked(case: bool, query: str, text: str) -> None:
    search = Search()
    search.start(query, regex=False, case=case, lines=[(0, text)])
    assert search.found.get(0, 0) == search.total == len(search.spans(text))
    for start, stop in search.spans(text):
        found = text[start:stop]
        assert found == query or ((not case and found.casefold() == query.casefold()) or found.lower() == query.lower())


def test_a_letter_that_is_everywhere_is_found_and_its_matches_are_bounded() -> None:
    search = Search()
    search.start("x", regex=False, case=False, lines=[(number, "xX " * 40) for number in range(20_000)])
    assert (search.problem, search.total) == ("", 1_600_000)
    search.start("y", regex=True, case=True, lines=[(0, "y" * 60_000)])
    assert (search.total, len(search.spans("y" * 60_000))) == (MOST, MOST)


def test_a_log_that_grows_while_it_is_read_does_not_hold_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged(tmp_path, b"x\n" * 1000)
    real = progress.read_range
    calls = itertools.count()

    def growing(path: str, start: int, length: int) -> object:
        if next(calls) < 5000:
            logged(tmp_path, b"more\n" * 200)
        return real(path, start, length)

    monkeypatch.setattr(progress, "read_range", growing)
    monkeypatch.setattr(progress, "_STEP", 500)
    reader = LogReader(str(tmp_path))
    reader.read()
    reader.read()
    assert next(calls) < 1000
