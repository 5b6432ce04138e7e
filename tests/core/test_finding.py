"""Findings: the words that refuse, and the words that AMD's artifacts have for them."""

from __future__ import annotations

import pytest

from quark_tui.core.finding import LEVELS, REFUSALS, Finding, artifact_severity, block, blocks


@pytest.mark.parametrize("level", LEVELS)
def test_only_block_refuses(level: str) -> None:
    finding = Finding(level, "code", "message")  # type: ignore[arg-type]
    assert blocks([finding]) == (level == "block")
    assert blocks([Finding("info", "a", "b"), finding]) == (level == "block")


def test_nothing_found_blocks_nothing() -> None:
    assert not blocks([])


def test_levels_in_the_words_of_an_artifact() -> None:
    """AMD's lists know low, medium and high."""
    assert [artifact_severity(level) for level in LEVELS] == ["low", "low", "medium", "high", "high"]


def test_a_finding_has_the_keys_of_the_envelope() -> None:
    found = block("no_space", "full", "df", "make room")
    assert found.to_json() == {
        "level": "block", "code": "no_space", "message": "full", "evidence": "df", "next_step": "make room"
    }  # fmt: skip
    assert found == Finding("block", "no_space", "full", "df", "make room")
    assert found.code in REFUSALS


def test_refusal_codes_are_words() -> None:
    assert all(code.isidentifier() and code == code.lower() for code in REFUSALS)
