"""Patterns against module names: Quark's own order of precedence, and fnmatch as the oracle."""

from __future__ import annotations

import fnmatch

from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.model.inventory import Module
from quark_tui.core.ptq.patterns import Names, assign, did_you_mean, is_glob
from tests.support.ptq import llama, moe

_NAMES = st.lists(st.text("ab.01²٣_]\n", max_size=8), max_size=12)
_PATTERN = st.text("ab.01²٣_*?[]!-", max_size=7)


def names(*texts: str) -> Names:
    return Names([Module(text, "linear", (8, 8), 64) for text in texts])


@given(_NAMES, _PATTERN)
def test_matching_is_fnmatch_on_every_name(texts: list[str], pattern: str) -> None:
    expected = tuple(index for index, text in enumerate(texts) if fnmatch.fnmatchcase(text, pattern))
    assert names(*texts).matching(pattern) == expected


@given(_NAMES, st.lists(_PATTERN, max_size=4), st.lists(_PATTERN, max_size=4, unique=True))
def test_assignment_is_the_loop_that_quark_runs(texts: list[str], exclude: list[str], overrides: list[str]) -> None:
    """P-57: what each pattern decides is known before the run."""
    exclude = list(dict.fromkeys(exclude))
    result = assign(names(*texts), exclude, overrides)
    counts = dict.fromkeys(exclude, 0)
    for index, text in enumerate(texts):
        exact = [pattern for pattern in exclude if not is_glob(pattern) and pattern == text]
        globs = [pattern for pattern in exclude if is_glob(pattern) and fnmatch.fnmatchcase(text, pattern)]
        by = (exact + globs)[:1]
        if by:
            counts[by[0]] += 1
        assert [exclude[result.excluded[index]]] == by if by else result.excluded[index] == -1
        chosen = [p for p in overrides if p == text and not is_glob(p)] + [
            p for p in overrides if fnmatch.fnmatchcase(text, p)
        ]
        if by or not chosen:
            assert result.overridden[index] == -1
        else:
            assert overrides[result.overridden[index]] == chosen[0]
    assert list(result.exclude_counts) == list(counts.values())


def test_measured_examples() -> None:
    found = Names.of(llama(6))
    assert found.matching("LM_HEAD") == ()
    assert found.matching("model.layers.0") == ()  # the whole name, no prefix
    assert len(found.matching("*.[01].mlp.*")) == 6
    assert len(found.matching("*self_attn*")) == 24
    exclude = assign(Names.of(llama(2)), ["lm_head", "*.0.self_attn.*", "*zzz*", "*self_attn*"], [])
    assert exclude.exclude_counts == (1, 4, 0, 4)


def test_meant_patterns_match_something() -> None:
    found = Names.of(llama())
    assert did_you_mean("*o_prj", found) == ("*o_proj", 2)
    assert did_you_mean("*dwn_proj", found) == ("*down_proj", 2)
    assert did_you_mean("model.layers.0", found) == ("model.layers.0.*", 7)
    assert did_you_mean("self_attn", found) == ("*self_attn*", 8)
    assert did_you_mean("LM_HEAD", found) == ("lm_head", 1)
    assert did_you_mean("*zzzzqqqq*", found) is None


@given(_PATTERN)
def test_a_suggestion_never_matches_nothing(pattern: str) -> None:
    found = Names.of(moe())
    near = did_you_mean(pattern, found)
    assert near is None or len(found.matching(near[0])) == near[1] > 0


def test_norms_cannot_be_hit() -> None:
    assert not Names.of(llama()).matching("*norm*")


def test_stars_in_a_row_end() -> None:
    found = names("a" * 300 + "b")
    assert found.matching("*a" * 100 + "*c") == ()
    assert found.matching("*a" * 100 + "*b") == (0,)
