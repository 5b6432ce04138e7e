"""job.json: what is written is what its schema wants and what is read back."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quark_tui.core.job import WORKFLOWS, Confirmation, Job
from quark_tui.io.paths import data_folder

SCHEMA = json.loads((data_folder("schemas") / "job.schema.json").read_text())
CHECK = jsonschema.Draft202012Validator(SCHEMA)

TEXT = st.text(max_size=5)
DIGEST = st.text(st.sampled_from("0123456789abcdef"), min_size=64, max_size=64)
CONFIRMED = st.builds(Confirmation, DIGEST, TEXT, st.sampled_from(["screen", "cli"]))
PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=5,
)
JOBS = st.builds(
    Job,
    st.sampled_from(WORKFLOWS),
    TEXT,
    st.one_of(st.none(), TEXT),
    TEXT,
    st.one_of(st.none(), TEXT),
    st.dictionaries(TEXT, PLAIN, max_size=3),
    st.dictionaries(TEXT, PLAIN, max_size=3),
    st.dictionaries(st.sampled_from(["analysis", "plan"]), CONFIRMED, max_size=2),
    st.lists(DIGEST, max_size=3).map(tuple),
    st.one_of(st.none(), CONFIRMED),
    st.dictionaries(TEXT, PLAIN, max_size=3),
)


@settings(deadline=None)
@given(JOBS)
def test_a_job_is_valid_and_comes_back_the_same(job: Job) -> None:
    written = json.loads(json.dumps(job.to_json()))
    CHECK.validate(written)
    assert Job.from_json(written) == job
    assert list(Job.from_json(written).wishes) == list(job.wishes)


@pytest.mark.parametrize(
    "change",
    [
        {"workflow": "ptq2"},
        {"schema": "quark-tui.job.v2"},
        {"target": {}},
        {"wishes": []},
        {"confirmations": {"other": {"digest": "0" * 64, "confirmed_at": "", "via": "cli"}}},
        {"confirmations": {"plan": {"digest": "0" * 63, "confirmed_at": "", "via": "cli"}}},
        {"confirmations": {"plan": {"digest": "0" * 64, "confirmed_at": "", "via": "mail"}}},
        {"used_digests": ["x"]},
        {"accepted": True},
        {"model": 5},
    ],
)
def test_what_no_job_can_hold_is_refused_by_the_schema(change: dict[str, Any]) -> None:
    sound = Job("ptq", "2025-01-01T00:00:00Z", "/m", "/o", None).to_json()
    CHECK.validate(sound)
    assert not CHECK.is_valid({**sound, **change})


@pytest.mark.parametrize("missing", sorted(SCHEMA["required"]))
def test_every_key_that_is_read_is_required(missing: str) -> None:
    sound = Job("ptq", "2025-01-01T00:00:00Z", "/m", "/o", None).to_json()
    del sound[missing]
    assert not CHECK.is_valid(sound)
