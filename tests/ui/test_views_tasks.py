"""What breaks if this is wrong: the tree says another state than the files, or a title draws on the screen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.text import cell_width, clean
from quark_tui.ui.states import task_look
from quark_tui.ui.views.run import elapsed, facts, next_signal, pace, truths
from quark_tui.ui.views.tasks import advance, counted, done, nodes, row, standing, standing_key
from tests.support.sights import BAR, CALIBRATING, failed, sight, verified

STATES = ("pending", "active", "done", "failed", "skipped", "interrupted", "[odd]")
PROGRESS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"done": st.integers(0, 10**20), "total": st.one_of(st.none(), st.integers(0, 10**20)), "unit": st.text()}
    ),
)


def task_of(children: Any) -> Any:
    return st.fixed_dictionaries(
        {
            "key": st.one_of(st.sampled_from(["a", "a.b", "b", "#2"]), st.text()),
            "title": st.text(),
            "state": st.one_of(st.sampled_from(STATES), st.text()),
            "detail": st.text(),
            "reason": st.text(),
            "from": st.one_of(st.sampled_from(["log", ""]), st.text()),
            "progress": PROGRESS,
            "children": children,
        }
    )


TREES = st.lists(task_of(st.lists(task_of(st.lists(task_of(st.just([])), max_size=2)), max_size=3)), max_size=5)


@given(TREES, st.integers(0, 130), st.booleans(), st.booleans())
def test_any_tree_gives_safe_rows_with_keys_of_their_own(
    tasks: list[Any], width: int, ascii_only: bool, unfolded: bool
) -> None:
    folds = {node.key: True for node in nodes(tasks, {})} if unfolded else {}
    shown = nodes(tasks, folds)
    rows = [row(node, width, ascii_only) for node in shown]
    assert len({one.entry.key for one in rows}) == len(rows)
    assert len([node for node in shown if node.depth == 0]) == len(tasks)
    for one in rows:
        for text, tone in (*one.entry.cells, *one.detail):
            assert text == clean(text)
            assert tone.isidentifier()
        assert one.copy.replace("\n", "").isprintable()
    assert all(text == clean(text) for text in (advance(tasks), done(tasks), *(counted(one) for one in tasks)))
    assert standing_key(tasks, shown) in {None, *(node.key for node in shown)}


@given(TREES.filter(bool), st.integers(60, 130))
def test_a_row_fits_its_width_and_says_its_state_in_words_where_it_has_no_count(tasks: list[Any], width: int) -> None:
    for node in nodes(tasks, {}):
        node.task["state"] = "done"
        text = "".join(cell for cell, _ in row(node, width, False).entry.cells)
        assert cell_width(text) == width or counted(node.task)
        assert "done" in text


def test_every_state_is_a_glyph_and_a_word() -> None:
    for state in STATES[:-1]:
        task = {**sight(CALIBRATING).status.body["tasks"][0], "state": state}
        text = "".join(cell for cell, _ in row(nodes([task], {})[0], 33, False).entry.cells)
        assert task_look(state).glyph in text
        assert task_look(state).word in text


def tree(log: bytes) -> list[Any]:
    return list(sight(log).status.body["tasks"])


def test_what_is_done_is_folded_what_goes_on_is_open_and_a_choice_is_kept() -> None:
    tasks = tree(CALIBRATING + BAR)
    keys = [node.key for node in nodes(tasks, {})]
    assert "quantize.calibrate" in keys
    assert "load.model" not in keys
    chosen = [node.key for node in nodes(tasks, {"load": True, "quantize": False})]
    assert "load.model" in chosen
    assert "quantize.calibrate" not in chosen


def test_counts_say_how_far_it_is() -> None:
    tasks = tree(CALIBRATING + BAR)
    assert advance(tasks) == "Calibrate 31 of 128 batches"
    assert advance(tasks, unit=False) == "Calibrate 31 of 128"
    assert [one["key"] for one in standing(tasks)] == ["quantize", "calibrate"]
    folded = nodes(tasks, {"quantize": False})
    assert standing_key(tasks, folded) == "quantize"
    assert standing_key(tasks, nodes(tasks, {})) == "quantize.calibrate"
    at = next(node for node in nodes(tasks, {}) if node.key == "quantize.calibrate")
    assert "".join(cell for cell, _ in row(at, 26, False).entry.cells).endswith("Calibrate    31 of 128")
    failed_at = {**at.task, "state": "failed"}
    text = "".join(cell for cell, _ in row(nodes([failed_at], {})[0], 60, False).entry.cells)
    assert text.endswith("failed at 31 of 128 batches")


def test_what_only_the_log_knows_says_so() -> None:
    tasks = tree(CALIBRATING)
    load = next(node for node in nodes(tasks, {}) if node.key == "load")
    shown = row(load, 50, False)
    assert "(log)" in "".join(cell for cell, _ in shown.entry.cells)
    assert any("decides no verdict" in text for text, _ in shown.detail)
    analysis = row(nodes(tasks, {})[0], 50, False)
    assert "(log)" not in "".join(cell for cell, _ in analysis.entry.cells)


def test_how_long_it_runs_follows_from_its_records() -> None:
    assert elapsed(sight(CALIBRATING).status.body) == pytest.approx(123.0)
    assert elapsed(verified().status.body) == 61.9
    for wrong in ({"started_at": None}, {"updated_at": "yesterday"}, {"started_at": 7}):
        assert elapsed(sight(CALIBRATING, **wrong).status.body) is None


def test_an_exit_status_of_zero_is_never_called_a_success() -> None:
    """P-99: the verdict comes from what is on disk; the exit status stands beside it."""
    left, _ = facts(sight(liveness="finished", verdict="partial", verify="partial", exit_status=0), 0, 118, False)
    text = "".join(part for part, _ in left)
    assert "partial" in text
    assert "exit status 0" in text
    assert "succe" not in text


@pytest.mark.parametrize("width", [36, 50, 76, 116, 200])
def test_the_four_truths_fit_and_none_is_lost(width: int) -> None:
    for seen in (sight(CALIBRATING + BAR), verified(), failed()):
        parts = truths(seen, 0, width, False)
        text = "".join(part for part, _ in parts)
        assert cell_width(text) <= max(width, 60)
        assert seen.status.body["liveness"] in text
        assert text.split(" ")[-1] in ("running", "succeeded", "failed")


def test_signals_come_in_their_order() -> None:
    assert [next_signal(sent) for sent in ((), ("INT",), ("INT", "TERM"), ("INT", "KILL"), ("[x]",))] == [
        "INT", "TERM", "KILL", "KILL", "INT",
    ]  # fmt: skip


def test_nothing_is_looked_at_for_ever_that_cannot_change() -> None:
    assert pace(sight(), False) is not None
    assert pace(sight(liveness="finished", verdict="failed", scope="run"), False) is None
    assert (pace(sight(liveness="finished", verdict="failed"), False) or 0) >= 5
    assert pace(None, False) is not None
