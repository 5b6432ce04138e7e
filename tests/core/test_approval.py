"""An approval covers exact commands and inputs, and every difference to it is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quark_tui.core.approval import approval_digest, what_differs
from quark_tui.core.command import Command

WORD = st.text(st.sampled_from("ab '\\→:"), max_size=3)
WORDS = st.lists(WORD, max_size=3).map(tuple)
COMMANDS = st.lists(
    st.builds(Command, WORDS, WORD, st.dictionaries(WORD, WORD, max_size=2), WORDS, WORDS, WORDS, WORD), max_size=2
)
INPUTS = st.fixed_dictionaries(
    {
        "env": st.dictionaries(WORD, st.one_of(st.none(), WORD), max_size=2),
        "files": st.lists(
            st.one_of(
                st.fixed_dictionaries({"path": WORD, "sha256": st.one_of(st.none(), WORD)}),
                st.fixed_dictionaries({"path": WORD, "stat": st.dictionaries(WORD, st.integers(0, 2), max_size=2)}),
            ),
            max_size=2,
        ),
        "versions": st.dictionaries(WORD, st.one_of(st.none(), WORD, st.integers(0, 1)), max_size=2),
    }
)
STATES = st.tuples(COMMANDS, INPUTS)
State = tuple[Sequence[Command], Mapping[str, Any]]

COMMAND = Command(("/bin/quark", "--x", "a b"), "/job", {"A": "1"}, ("B",), ("/model",), ("/out",), "quantize")
FACTS: dict[str, Any] = {
    "env": {"PATH": "/bin", "HF_HOME": None},
    "files": [{"path": "/m/config.json", "sha256": "aa"}, {"path": "/m/w", "stat": {"size": 1, "mtime_ns": 2}}],
    "versions": {"torch": "2.1"},
}


@settings(deadline=None)
@given(STATES, STATES)
def test_a_difference_is_named_exactly_when_the_digests_differ(was: State, now: State) -> None:
    """A mismatch is never refused without saying what it is, and nothing is said where there is none."""
    assert bool(what_differs(was, now)) == (approval_digest(*was) != approval_digest(*now))
    assert what_differs(was, was) == []


@settings(deadline=None)
@given(STATES, st.data())
def test_a_small_change_is_named_too(was: State, data: st.DataObject) -> None:
    inputs = dict(was[1])
    kind = data.draw(st.sampled_from(["env", "versions"]))
    name = data.draw(WORD)
    value = data.draw(st.one_of(st.none(), WORD))
    inputs[kind] = {**inputs[kind], name: value}
    now = (was[0], inputs)
    assert bool(what_differs(was, now)) == (approval_digest(*was) != approval_digest(*now))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"argv": ("/bin/quark", "--x", "a", "b")}, "command.argv: /bin/quark --x 'a b' → /bin/quark --x a b"),
        ({"cwd": "/other"}, "command.cwd: /job → /other"),
        ({"env_set": {"A": "2"}}, "command.env_set.A: 1 → 2"),
        ({"env_unset": ()}, "command.env_unset: ['B'] → []"),
        ({"reads": ("/model2",)}, "command.reads: ['/model'] → ['/model2']"),
        ({"writes": ("/o",)}, "command.writes: ['/out'] → ['/o']"),
    ],
)
def test_every_part_of_a_command_is_covered(change: dict[str, Any], line: str) -> None:
    assert what_differs(([COMMAND], FACTS), ([replace(COMMAND, **change)], FACTS)) == [line]


def test_the_parts_that_are_covered_are_all_that_decide_what_runs() -> None:
    # A new field of Command must be covered, or be named here as one that decides nothing.
    assert {field.name for field in fields(Command)} - {"purpose"} == set(COMMAND.digestible())
    assert what_differs(([COMMAND], FACTS), ([replace(COMMAND, purpose="x")], FACTS)) == []


@pytest.mark.parametrize(
    ("inputs", "lines"),
    [
        ({"env": {"PATH": "/sbin", "HF_HOME": None}}, ["environment PATH: /bin → /sbin"]),
        ({"env": {"PATH": "/bin", "HF_HOME": "x"}}, ["environment HF_HOME: not there → x"]),
        ({"env": {"PATH": "/bin"}}, ["environment HF_HOME (there): True → False"]),
        ({"env": {"HF_HOME": None, "PATH": "/bin"}}, None),
        ({"versions": {}}, ["version of torch: 2.1 → not there"]),
        ({"files": FACTS["files"][:1]}, ["/m/w: stat size 1 mtime_ns 2 → not there"]),
        (
            {"files": [{"path": "/m/config.json", "sha256": "bb"}, FACTS["files"][1]]},
            ["/m/config.json: sha256 aa → sha256 bb"],
        ),
        ({"files": FACTS["files"] + FACTS["files"][:1]}, ["/m/config.json (2): not there → sha256 aa"]),
        ({"more": 1}, ["more: not there → 1"]),
        ({"files": 5}, None),
        ({"env": None}, None),
    ],
)
def test_every_input_is_covered(inputs: dict[str, Any], lines: list[str] | None) -> None:
    found = what_differs(([COMMAND], FACTS), ([COMMAND], {**FACTS, **inputs}))
    assert found if lines is None else found == lines


def test_of_a_long_value_the_place_of_the_difference_is_shown() -> None:
    was = replace(COMMAND, argv=("x" * 5000 + "was" + "y" * 5000,))
    now = replace(COMMAND, argv=("x" * 5000 + "is" + "y" * 5000,))
    (line,) = what_differs(([was], FACTS), ([now], FACTS))
    assert "xwasy" in line and "xisy" in line and len(line) < 1000


def test_the_order_of_commands_decides() -> None:
    other = replace(COMMAND, cwd="/other")
    assert approval_digest([COMMAND, other], FACTS) != approval_digest([other, COMMAND], FACTS)
    assert approval_digest([COMMAND], FACTS) != approval_digest([COMMAND, COMMAND], FACTS)
