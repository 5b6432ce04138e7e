"""Task trees: their invariants, what a failure skips, and what changed between two."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quark_tui.core.tasks import STATES, Progress, State, Task, changed, problems, skip_after_failure

KEY = st.sampled_from("abcdef")
LEAF = st.builds(
    Task,
    KEY,
    st.just("t"),
    st.sampled_from(STATES),
    st.sampled_from(["", "d"]),
    st.sampled_from(["", "why"]),
    st.just(""),
    st.sampled_from([None, Progress(1, 2, "x")]),
)


def tree_of(task: Task, children: list[Task]) -> Task:
    return replace(task, children=tuple({child.key: child for child in children}.values()))


TREES = st.lists(st.builds(tree_of, LEAF, st.lists(LEAF, max_size=3)), max_size=5, unique_by=lambda task: task.key)


def chain(*states: State) -> list[Task]:
    return [Task(f"k{number}", f"Task {number}", state, reason="why") for number, state in enumerate(states)]


@pytest.mark.parametrize(
    ("tree", "running", "said"),
    [
        (chain("done", "active", "pending"), True, ""),
        (chain("done", "failed", "skipped"), False, ""),
        (chain("done", "interrupted", "pending"), False, ""),
        ([], True, ""),
        (chain("active", "active"), True, "more than one active"),
        (chain("done", "active"), False, "although nothing runs"),
        (chain("failed", "pending"), False, "k1 is pending after a failed task"),
        (chain("failed", "failed"), False, "k1 is failed after a failed task"),
        ([Task("a", "A", "skipped")], False, "without a reason"),
        ([Task("a", "A"), Task("a", "A")], False, "share a key"),
        ([Task("a", "A", "skipped", reason="r", children=(Task("b", "B", "active"),))], True, "a.b is active"),
        ([Task("a", "A", "active", children=(Task("b", "B"), Task("b", "B")))], True, "children of a share a key"),
    ],
)
def test_each_broken_invariant_is_said(tree: list[Task], running: bool, said: str) -> None:
    found = problems(tree, running=running)
    assert said in " ".join(found) if said else found == []


@settings(deadline=None)
@given(TREES)
def test_after_a_failure_the_rest_is_skipped_with_the_reason(tree: list[Task]) -> None:
    result = skip_after_failure(tree)
    failed = next((number for number, task in enumerate(tree) if task.state == "failed"), len(tree))
    assert list(result[: failed + 1]) == tree[: failed + 1]
    assert [task.key for task in result] == [task.key for task in tree]
    for task in result[failed + 1 :]:
        assert task.state == "skipped" and task.reason and task.progress is None
        assert all(child.state in ("skipped", "done", "failed") for child in task.children)
    assert not [text for text in problems(result, running=False) if "after a failed task" in text]
    assert skip_after_failure(result) == result


def test_the_reason_names_the_failed_task() -> None:
    result = skip_after_failure(chain("done", "failed", "pending"))
    assert result[2].reason == "not reached: Task 1 failed"


def test_what_was_not_needed_anyway_keeps_its_own_reason() -> None:
    tree = [*chain("failed"), Task("e", "E", "skipped", reason="not asked for")]
    assert skip_after_failure(tree)[1].reason == "not asked for"


@settings(deadline=None)
@given(TREES, TREES)
def test_changed_names_exactly_the_keys_that_differ(old: list[Task], new: list[Task]) -> None:
    def flat(tree: list[Task]) -> dict[str, Task]:
        found = {}
        for task in tree:
            found[task.key] = replace(task, children=())
            found.update({f"{task.key}.{child.key}": child for child in task.children})
        return found

    before, after = flat(old), flat(new)
    got = changed(old, new)
    assert len(got) == len(set(got))
    assert set(got) == {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert changed(old, old) == []


def test_json_has_the_words_of_the_contract() -> None:
    task = Task("load", "Load", "active", "d", "r", "log", Progress(1, None, "shards"), (Task("model", "Model"),))
    assert list(task.to_json()) == ["key", "title", "state", "detail", "reason", "from", "progress", "children"]
    assert task.to_json()["progress"] == {"done": 1, "total": None, "unit": "shards"}
    assert task.to_json()["from"] == "log" and task.to_json()["children"][0]["key"] == "model"
