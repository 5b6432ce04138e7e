"""The verdict of a run, row by row, and which sent signal ended it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quark_tui.core.run import STOP_SIGNALS, Exit, HostIdentity, ended_by_stop, verdict


def ended(status: int | None = None, signal: int | None = None, stopped_by: str | None = None) -> Exit:
    return Exit(status, signal, "2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z", 1, "supervisor", stopped_by)


@pytest.mark.parametrize(
    ("exit", "liveness", "written", "verified", "told"),
    [
        # no exit record
        (None, None, False, None, (None, "not_started")),
        (None, "alive", False, None, ("alive", "running")),
        (None, "alive", True, "verified", ("alive", "running")),
        (None, "dead", True, None, ("dead", "unknown")),
        (None, "dead", True, "verified", ("dead", "unknown")),
        (None, "dead", False, None, ("dead", "interrupted")),
        (None, "unknown", False, None, ("unknown", "unknown")),
        (None, "unknown", True, "verified", ("unknown", "unknown")),
        # status 0: what verify says
        (ended(0), None, True, "verified", ("finished", "succeeded")),
        (ended(0), None, True, "partial", ("finished", "partial")),
        (ended(0), None, False, "failed", ("finished", "failed")),
        (ended(0), None, True, "unknown", ("finished", "unknown")),
        (ended(0), None, True, None, ("finished", "unknown")),
        # a signal that was sent and not heeded ended nothing
        (ended(0, stopped_by="INT"), None, True, "verified", ("finished", "succeeded")),
        # another status, also with a complete output
        (ended(1), None, True, "verified", ("finished", "failed")),
        (ended(137), None, False, None, ("finished", "failed")),
        (ended(-1), "alive", False, None, ("finished", "failed")),
        # a signal that our stop sent and that ended it
        (ended(None, 2, "INT"), None, True, "verified", ("finished", "interrupted")),
        (ended(130, None, "INT"), None, False, None, ("finished", "interrupted")),
        (ended(None, 15, "TERM"), None, False, None, ("finished", "interrupted")),
        (ended(None, 9, "KILL"), None, False, "failed", ("finished", "interrupted")),
        # another signal
        (ended(None, 9), None, False, None, ("finished", "failed")),
        (ended(None, 11), None, True, "verified", ("finished", "failed")),
        # the record is stronger than what the lock says
        (ended(0), "alive", True, "verified", ("finished", "succeeded")),
        (ended(None, 9), "unknown", True, None, ("finished", "failed")),
    ],
)
def test_the_table(
    exit: Exit | None, liveness: Any, written: bool, verified: str | None, told: tuple[Any, str]
) -> None:
    assert verdict(exit, liveness, written, verified) == told


@settings(deadline=None)
@given(
    st.one_of(st.none(), st.builds(ended, st.integers(-1, 255)), st.builds(ended, st.none(), st.integers(1, 64))),
    st.sampled_from([None, "alive", "dead", "finished", "unknown"]),
    st.booleans(),
    st.sampled_from([None, "verified", "partial", "failed", "unknown"]),
)
def test_success_needs_an_exit_of_zero_and_a_verified_output(
    exit: Exit | None, liveness: Any, written: bool, verified: str | None
) -> None:
    """P-99: exit status alone is never success, nor is an output."""
    word = verdict(exit, liveness, written, verified)[1]
    assert (word == "succeeded") == (exit is not None and exit.status == 0 and verified == "verified")
    assert (word == "running") == (exit is None and liveness == "alive")


@pytest.mark.parametrize(
    ("status", "signal", "sent", "by"),
    [
        (None, 2, {"INT"}, "INT"),
        (130, None, {"INT"}, "INT"),
        (None, 15, {"INT", "TERM"}, "TERM"),
        (143, None, {"INT", "TERM"}, "TERM"),
        (None, 9, {"INT", "TERM", "KILL"}, "KILL"),
        (137, None, {"INT", "KILL"}, "KILL"),
        (None, 2, {"INT", "TERM", "KILL"}, "INT"),
        (None, 9, {"INT"}, None),
        (None, 2, set(), None),
        (0, None, {"INT", "TERM", "KILL"}, None),
        (1, None, {"INT"}, None),
        (None, None, {"INT"}, None),
        (2, None, {"INT"}, None),
    ],
)
def test_which_sent_signal_ended_it(status: int | None, signal: int | None, sent: set[str], by: str | None) -> None:
    assert ended_by_stop(status, signal, sent) == by


@settings(deadline=None)
@given(
    st.one_of(st.none(), st.integers(0, 255)),
    st.one_of(st.none(), st.integers(1, 64)),
    st.sets(st.sampled_from([*STOP_SIGNALS, "HUP", "x"])),
)
def test_only_a_sent_signal_is_named(status: int | None, signal: int | None, sent: set[str]) -> None:
    assert ended_by_stop(status, signal, sent) in {None, *(sent & set(STOP_SIGNALS))}


@settings(deadline=None)
@given(st.integers(0, 255), st.sampled_from([None, "INT"]), st.sampled_from([None, True, False]))
def test_an_exit_record_is_read_back(status: int, stopped: str | None, oom: bool | None) -> None:
    exit = Exit(status, None, "a", "b", 5, "guard", stopped, oom)
    assert Exit.from_json(json.loads(json.dumps(exit.to_json()))) == exit


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"status": 0, "signal": 9},
        {"status": None, "signal": None},
        {"status": "0"},
        {"status": True},
        {"signal": 1.0},
    ],
)
def test_a_record_that_says_no_end_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Exit.from_json(record)


def test_wrong_types_in_a_record_become_unknown() -> None:
    exit = Exit.from_json({"status": 0, "peak_memory_bytes": "1", "stopped_by": 5, "oom_kill": "yes"})
    assert (exit.peak_memory_bytes, exit.stopped_by, exit.oom_kill) == (None, None, None)


def test_ends_in_words() -> None:
    assert ended(3).words == "exit status 3"
    assert ended(None, 9).words == "ended by signal 9 (SIGKILL)"
    assert ended(None, 63).words == "ended by signal 63 (unnamed)"


def test_a_host_is_read_back() -> None:
    host = HostIdentity("h", "m", None, "n")
    assert HostIdentity.from_json(host.to_json()) == host
    assert HostIdentity.from_json({"name": "h"}) == HostIdentity("h", None, None, None)
