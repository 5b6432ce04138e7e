"""The canonical form tells every two values apart, and differences names what differs."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quark_tui.core.digest import canonical, differences, digest

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=[]), max_size=4),
    st.binary(max_size=4),
)
KEYS = st.text(max_size=2)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


def same(left: Any, right: Any) -> bool:
    """Equal in type, value and order: what the canonical form has to tell, written the plain way."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return repr(left) == repr(right)
    return bool(left == right)


@settings(deadline=None)
@given(PLAIN, PLAIN)
def test_different_values_have_different_forms_and_equal_ones_the_same(left: Any, right: Any) -> None:
    assert (canonical(left) == canonical(right)) == same(left, right)
    assert canonical(left) == canonical(copy.deepcopy(left))


@settings(deadline=None)
@given(st.lists(PLAIN, max_size=4), st.lists(PLAIN, max_size=4))
def test_differences_is_empty_exactly_when_the_forms_agree(left: list[Any], right: list[Any]) -> None:
    for one, other in ((left, right), ({"a": left}, {"a": right}), (dict(enumerated(left)), dict(enumerated(right)))):
        assert (differences(one, other) == []) == same(one, other)


def enumerated(values: list[Any]) -> list[tuple[str, Any]]:
    return [(f"k{number}", value) for number, value in enumerate(values)]


@settings(deadline=None)
@given(st.dictionaries(KEYS, PLAIN, min_size=1, max_size=4), st.data())
def test_one_changed_leaf_is_named_and_nothing_else(value: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(value)))
    new = data.draw(SCALARS)
    changed = {**value, key: new}
    found = differences(value, changed)
    if same(value[key], new):
        assert found == []
    else:
        assert [name for name, _, _ in found] == [key or ""]


@pytest.mark.parametrize(
    ("left", "right"),
    [(True, 1), (False, 0), (1, 1.0), ("", None), ("1", 1), (b"a", "a"), ([], {}), ([[]], []), (0.0, -0.0),
     ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (["ab"], ["a", "b"]), ([1, [2]], [[1], 2]), ("i1:1", 1), ({"a": None}, {}),
     ("\ud800", "\\ud800"), (10**5000, 10**5000 + 1), (-(10**5000), 10**5000)],
    ids=range(17),
)  # fmt: skip
def test_near_misses_are_told_apart(left: object, right: object) -> None:
    assert canonical(left) != canonical(right)
    assert differences(left, right) and differences({"x": [left]}, {"x": [right]})


def test_the_form_is_fixed() -> None:
    # An approval that was written down must still fit after an upgrade that does not change the version tag.
    value = {"a": [None, True, False, 12, 1.5, "é", b"\0"], "b": {}}
    assert canonical(value) == b"d2:s1:al7:ntfi2:12r3:1.5s2:\xc3\xa9b1:\x00s1:bd0:"
    assert canonical((1, 2)) == canonical([1, 2])
    assert digest("plan", value) != digest("analysis", value)
    assert digest("x", None) == "015545c22525aea472905a691f8ea46711aa1ae584b64e70fb1eb3f1aae4f97d"


def test_leaves_are_named_with_their_paths() -> None:
    was = {"a": {"b": 1, "c": [1, 2]}, "gone": 1, "none": None, "x": {"p": 1, "q": 2}}
    now = {"a": {"b": 2, "c": [1, 3]}, "x": {"q": 2, "p": 1}, "new": "n"}
    assert differences(was, now) == [
        ("a.b", 1, 2),
        ("a.c", [1, 2], [1, 3]),
        ("gone", 1, None),
        ("none (there)", True, False),
        ("x (order)", ["p", "q"], ["q", "p"]),
        ("new", None, "n"),
    ]


def test_depth_exhausts_nothing() -> None:
    lists: list[Any] = []
    maps: dict[str, Any] = {}
    other: dict[str, Any] = {"end": 1}
    for _ in range(50_000):
        lists, maps, other = [lists], {"k": maps}, {"k": other}
    assert canonical(lists).startswith(b"l1:l1:") and len(digest("x", maps)) == 64
    assert differences(maps, other) and differences(maps, maps) == []


@pytest.mark.parametrize("value", [{1: 2}, {"a": {None: 1}}, object(), {1, 2}, bytearray(b"a"), 1j])
def test_what_is_not_plain_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical(value)
