"""Folding raw bytes into lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.logtext import MAX_LINE, Folder, Line

RECORD = b"\x1b[32m\n[QUARK-INFO]: Loading model ...\x1b[0m\n"


def fold(*chunks: bytes) -> list[Line]:
    folder = Folder()
    lines: list[Line] = []
    for chunk in chunks:
        lines += folder.feed(chunk)
    return lines + folder.finish()


def texts(*chunks: bytes) -> list[str]:
    return [line.text for line in fold(*chunks)]


def test_a_record_is_one_line_with_its_level_and_physical_number() -> None:
    assert fold(RECORD) == [Line("[QUARK-INFO]: Loading model ...", "info", 2)]
    assert fold(RECORD)[0].message == "Loading model ..."


def test_a_record_under_a_terminal_is_the_same() -> None:
    assert fold(RECORD.replace(b"\n", b"\r\n")) == fold(RECORD)


def test_levels() -> None:
    for colour, name, level in (
        (b"33", b"WARNING", "warning"),
        (b"31", b"ERROR", "error"),
        (b"34", b"DEBUG", "debug"),
        (b"35", b"CRITICAL", "error"),
    ):
        raw = b"\x1b[" + colour + b"m\n[QUARK-" + name + b"]: x\x1b[0m\nplain\n"
        assert [line.level for line in fold(raw)] == [level, ""]
    assert [line.level for line in fold(b"WARNING:root:x\nINFO:httpx:GET\nW1130 15:35:46.383000 1 a.py] x\nx\n")] == [
        "warning",
        "info",
        "warning",
        "",
    ]


def test_lines_of_a_coloured_record_share_its_level_until_the_reset() -> None:
    raw = b"\x1b[33m\n[QUARK-WARNING]: \nMoE EXPERT\nmore\x1b[0m\nTraceback\n"
    assert [(line.text, line.level) for line in fold(raw)] == [
        ("[QUARK-WARNING]:", "warning"),
        ("MoE EXPERT", "warning"),
        ("more", "warning"),
        ("Traceback", ""),
    ]


def test_a_record_without_colour_does_not_run_on() -> None:
    assert [line.level for line in fold(b"[QUARK-ERROR]: bad\nplain\n")] == ["error", ""]


def test_the_last_segment_of_a_bar_wins() -> None:
    assert texts(b"\rLoading: 0%\rLoading: 50%\rLoading: 100%\nnext\n") == ["Loading: 100%", "next"]


def test_a_cleared_bar_keeps_its_last_text_and_crlf_its_line() -> None:
    assert texts(b"\rbar 9/9\r          \r\nnext\r\r\n") == ["bar 9/9", "next"]


def test_a_bar_before_a_record_keeps_its_text() -> None:
    raw = b"\rFreezing:   3%|x| 38/1237 [..]\x1b[32m\n[QUARK-INFO]: Elapsed: 1 s.\x1b[0m\n"
    assert texts(raw) == ["Freezing:   3%|x| 38/1237 [..]", "[QUARK-INFO]: Elapsed: 1 s."]


def test_nested_bars_that_move_the_cursor_up_are_one_line() -> None:
    inner = b"".join(b"\n\rcolumns: %d%%\x1b[A" % percent for percent in (0, 10, 20))
    assert texts(b"outer" + inner + b"\rcolumns: 100%\ndone\n") == ["outer", "columns: 100%", "done"]


def test_a_traceback_behind_a_nested_bar_is_seen() -> None:
    assert texts(b"\n\rcolumns: 5%\x1b[ATraceback (most recent call last):\n") == [
        "",
        "Traceback (most recent call last):",
    ]


def test_pending_is_the_live_bar() -> None:
    folder = Folder()
    folder.feed(RECORD + b"\rLoading: 0%\rLoading: 4")
    assert folder.pending == "Loading: 4"
    folder.feed(b"2%\r")
    assert folder.pending == "Loading: 42%"
    folder.feed(b"\n")
    assert folder.pending == ""


def test_half_an_escape_is_not_shown() -> None:
    folder = Folder()
    folder.feed(b"text\x1b[3")
    assert folder.pending == "text"


def test_no_control_sequence_survives() -> None:
    """Clipboard writes, titles, screen clears, bidi overrides, C1 codes."""
    raw = b"a\x1b]52;c;ZXZpbA==\x07b\x1b]0;t\x1b\\c\x1b[2Jd\x1bPq\x1b\\e\x07\xc2\x9b1m\xe2\x80\xae\x00f\n"
    assert texts(raw) == ["abcde\\x07\\x9b1m\\u202ef"]


def test_an_unfinished_title_escape_hides_nothing() -> None:
    assert texts(b"\x1b]0;Error: disk full\nnext\n") == ["0;Error: disk full", "next"]


def test_only_escapes_are_no_line_and_empty_lines_stay() -> None:
    assert texts(b"\x1b[0m\n\n\x1b[32m\r\nx") == ["", "x"]


def test_bytes_that_are_no_utf8() -> None:
    assert texts(b"\xff\xe2\x96\n\xe2\x96\x88\n") == ["��", "█"]


def test_an_endless_line_is_cut_with_a_note_and_costs_no_memory() -> None:
    folder = Folder()
    for _ in range(40):
        assert folder.feed(b"x" * 1_000_000) == []
        assert len(folder.pending) < MAX_LINE + 60
    (line,) = folder.feed(b"\n")
    assert line.text == "x" * MAX_LINE + f" … {40_000_000 - MAX_LINE} more characters"
    assert folder.feed(b"y\n") == [Line("y", "", 2)]


def test_an_endless_bar_costs_no_memory() -> None:
    folder = Folder()
    for number in range(50):
        folder.feed(b"".join(b"\rstep %d" % (number * 1000 + i) for i in range(1000)))
        assert sum(len(piece) for piece in folder._segment) < 100
    assert folder.pending == "step 49999"


_PIECES = st.sampled_from(
    [
        b"\r",
        b"\n",
        b"\x1b",
        b"\x1b[",
        b"\x1b[32m",
        b"\x1b[0m",
        b"\x1b[A",
        b"\x1b[2A",
        b"\x1b[G",
        b"\x1b]0;t",
        b"\x07",
        b"\x1b\\",
        b"[QUARK-INFO]: text",
        b"[QUARK-ERROR]: bad",
        "█▏é".encode(),
        b"\xe2\x96",
        b"\xed\xa0\x80",
        b"\xff",
        b"\0",
        b"\t",
        b" ",
        b"bar: 5%|",
        b"A",
    ]
)
_LOGS = st.lists(st.one_of(_PIECES, st.binary(max_size=6)), max_size=40).map(b"".join)


@given(_LOGS, st.data())
def test_how_the_bytes_are_cut_never_matters(raw: bytes, data: st.DataObject) -> None:
    """The same lines and the same pending text for any split into chunks."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    whole, parts = Folder(), Folder()
    expected = whole.feed(raw)
    found: list[Line] = []
    for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        found += parts.feed(raw[begin:end])
        assert isinstance(parts.pending, str)  # looking does not change anything
    assert found == expected
    assert parts.pending == whole.pending
    assert parts.finish() == whole.finish()


@given(_LOGS)
def test_byte_by_byte_is_the_same(raw: bytes) -> None:
    assert fold(*(raw[i : i + 1] for i in range(len(raw)))) == fold(raw)


@given(st.binary(max_size=300))
def test_every_line_is_safe_to_show(raw: bytes) -> None:
    for line in fold(raw):
        assert line.text.isprintable()


@given(st.lists(st.text(alphabet="abc .:|%", max_size=8), max_size=10))
def test_plain_lines_are_kept_in_order_with_their_numbers(rows: list[str]) -> None:
    lines = fold("".join(f"{row}\n" for row in rows).encode())
    assert [(line.text, line.number) for line in lines] == [(row.rstrip(), n) for n, row in enumerate(rows, 1)]
