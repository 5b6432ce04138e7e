"""What breaks if this is wrong: a result is called something that its files do not say."""

from __future__ import annotations

from typing import Any

import pytest

from quark_tui.core.answer import Answer
from quark_tui.core.finding import Finding
from quark_tui.ui.views import Row, edit_row, follow_up
from quark_tui.ui.views import result as view
from tests.support.results import (
    DIGEST,
    HOSTILE,
    accepted,
    failed,
    failure,
    follow_ups,
    number,
    status,
    verified,
)


def text(parts: list[tuple[str, str]]) -> str:
    return "".join(part for part, _ in parts)


def line(row: Row) -> str:
    return " ".join(cell for cell, _ in row.entry.cells).strip()


def by_key(rows: list[Row]) -> dict[str, Row]:
    found = {row.entry.key: row for row in rows}
    assert len(found) == len(rows), "two rows have one key: the cursor would jump"
    return found


@pytest.mark.parametrize(
    ("run", "output", "said"),
    [
        ("succeeded", "verified", "✓ VERIFIED  against the plan"),
        ("partial", "partial", "◐ PARTIAL  against the plan"),
        ("failed", "failed", "✗ FAILED  against the plan"),
        ("succeeded", "failed", "✗ FAILED  against the plan"),
        ("failed", "verified", "✗ FAILED  the run; its output: verified against the plan"),
        ("failed", "partial", "✗ FAILED  the run; its output: partial against the plan"),
        ("interrupted", "verified", "! INTERRUPTED  the run; its output: verified against the plan"),
        ("unknown", "failed", "? UNKNOWN  the run; its output: failed against the plan"),
        ("unknown", "unknown", "? UNKNOWN  what is there could not be judged against the plan"),
        ("failed", "unknown", "✗ FAILED  the run; its output: could not be judged"),
        ("running", "unknown", "» RUNNING  the run is still going: there is nothing to judge yet"),
        ("not_started", "failed", "◆ NOT STARTED  no run was started: there is nothing to judge yet"),
        ("unreadable", "verified", "✗ UNREADABLE  the run's record cannot be read"),
    ],
)
def test_the_first_line_keeps_run_and_output_apart(run: str, output: str, said: str) -> None:
    """P-99: neither an exit status nor a complete output alone makes a run a success."""
    assert text(view.headline(status(run), verified(output), False)) == said
    assert text(view.headline(status(run), verified(output), True)).isascii()


def test_without_an_answer_nothing_is_claimed() -> None:
    assert text(view.headline(status(), None, False)) == "looking at headers…"
    assert text(view.headline(None, verified(against="config"), False)) == "✓ VERIFIED  against its own configuration"


def test_witnesses_are_what_is_known_and_no_more() -> None:
    """P-96: measured numbers, none assumed."""
    assert text(view.witnesses(status())) == "1 min 2 s · peak 1.41 GB · exit 0"
    assert text(view.witnesses(status(numbers={"signal": number(9)}))) == "signal 9"
    assert text(view.witnesses(None)) == ""


def test_the_summary_counts_false_open_and_advisory_checks() -> None:
    assert view.summary(verified()) == "210 of 210 modules quantized · 3 files, 166 MB · 1 advice · the rest holds"
    undecided = Finding("medium", "index_matches_undecided", "m")
    assert view.summary(verified("partial", ("scales_present", "count_matches"), undecided, expected_modules=None)) == (
        "210 of an unknown number of modules quantized · 3 files, 166 MB · 2 checks not as planned · 1 check open"
        " · 1 advice"
    )
    assert view.summary(failed()[1]).startswith("modules quantized: unknown · no files · 2 checks not as planned")


def test_every_check_is_a_row_with_its_evidence_and_next_step() -> None:
    """P-96: each observation opens the evidence that it rests on."""
    rows = by_key(view.rows(status("partial"), verified("partial", ("scales_present",)), (), False))
    assert line(rows["check-weights_present"]) == "✓ holds weights present 1 weight file(s), 163 MB."
    assert line(rows["check-kv_consistent"]).startswith("– n/a ")
    assert line(rows["check-tokenizer_unchanged"]).startswith("! advice tokenizer unchanged")
    wrong = rows["check-scales_present"]
    assert line(wrong).startswith("✗ false scales present")
    assert [part for part, _ in wrong.detail] == [
        "scales_present is not so.  [scales_present]", "seen: this", "missing: that", "next: export again",
    ]  # fmt: skip
    assert "seen: this; missing: that" in wrong.copy
    assert view.first(list(rows.values())) == "check-scales_present"
    assert len([key for key in rows if key.startswith("check-") and key != "checks-title"]) == 16


def test_a_check_that_could_not_be_made_is_neither_true_nor_inapplicable() -> None:
    rows = by_key(
        view.rows(status(), verified("unknown", (), Finding("medium", "index_matches_undecided", "m")), (), True)
    )
    assert line(rows["check-index_matches"]).startswith("[??] open")


def test_files_and_numbers_say_where_they_come_from() -> None:
    """P-96: shards, configuration and tokenizer files with their sizes; an exit status is a witness only."""
    numbers = {**status().body["numbers"], "perplexity": number(38.21, "the log's own line", False)}
    rows = by_key(view.rows(status(numbers=numbers), verified(), (), False))
    assert line(rows["file-1"]).split() == ["model.safetensors", "162,939,128"]
    assert rows["file-1"].copy == "/jobs/demo/out/model.safetensors"
    assert line(rows["number-exit_status"]) == "exit status 0  (a witness only)"
    assert line(rows["number-perplexity"]) == "perplexity 38.21  (a witness only)"
    assert ("from: the log's own line", "muted") in rows["number-perplexity"].detail
    assert line(rows["number-peak_memory_bytes"]) == "peak memory 1.41 GB (1,410,000,000 bytes)"


def test_a_failed_run_begins_with_its_class_the_lines_and_the_smallest_change() -> None:
    """P-99: the diagnostics of a failed run are kept and shown first."""
    rows = view.rows(*failed(), (), False)
    assert [line(row) for row in rows[:5]] == [
        "why the run did not succeed",
        "✗ failed memory A GPU ran out of memory while calibrating.",
        "evidence torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB",
        "evidence exit status 1",
        "smallest change Halve the batch size: 8 → 4.",
    ]
    assert view.first(rows) == "failure"
    whole = "\n".join(part for part, _ in rows[1].detail)
    for kept in ("Traceback (most recent call last):", "quark-cli torch-llm-ptq", "amd-quark: 0.12", "peak memory"):
        assert kept in whole
    assert not [row for row in rows if "[failure_memory]" in str(row.detail)], "the class is said once"


def test_a_run_that_ended_with_0_and_a_partial_output_has_no_class_of_failure() -> None:
    ended = status("partial", failure=failure(code="no_failure", kind="unknown"))
    assert "failure" not in by_key(view.rows(ended, verified("partial", ("count_matches",)), (), False))


def test_other_findings_are_shown_once() -> None:
    extra = Finding("high", "manifest_not_written", "could not be recorded", "read-only", "see to it")
    rows = view.rows(status("succeeded", extra), verified("verified", (), extra), (extra,), False, "not accepted")
    assert line(rows[0]) == "not accepted"
    assert [row.entry.key for row in rows if "manifest" in row.entry.key] == [
        "refused-0-manifest_not_written", "finding-0-manifest_not_written",
    ]  # fmt: skip
    assert view.manifest(status(), verified("verified", (), extra))[0] == (
        "run_manifest.yaml was not updated: read-only"
    )
    assert view.manifest(status(), verified())[0] == "run_manifest.yaml updated"
    assert "left as it is" in view.manifest(status(scope="run"), verified())[0]


@pytest.mark.parametrize(
    ("told", "output", "reason"),
    [
        (status(), verified(), ""),
        (status("partial"), verified("partial"), ""),
        (status("failed"), verified(), ""),
        (status(), verified("failed"), "the result is failed"),
        (status(), verified("unknown"), "the result is unknown"),
        (status(accepted=accepted()), verified(), "it is accepted 2026-01-02T03:04:05Z via screen already"),
        (status(scope="run"), verified(), "only a run folder is open here"),
        (status("running", liveness="alive"), verified(), "the run is still going"),
        (status(), None, "not been looked at"),
        (None, verified(), "not been looked at"),
        (status(), verified(digest=None), "there is no digest"),
    ],
)
def test_what_cannot_be_accepted_says_why(told: Answer | None, output: Answer | None, reason: str) -> None:
    """P-98: only a verified or partial result of a job can be accepted, once."""
    said = view.unacceptable(told, output)
    assert (reason in said) if reason else said == ""


def test_accepting_says_what_is_taken() -> None:
    """P-98: verdict, what is not as planned, meaning, digest."""
    output = verified("partial", ("scales_present",))
    ended = status("failed", numbers={"exit_status": number(1)})
    said = "\n".join(part for part, _ in view.acceptance(ended, output, "~/out", False))
    for part in (
        "✗ FAILED  the run; its output: partial against the plan", "output: ~/out", "✗ scales present (false)",
        "! tokenizer unchanged (advice)", "the run itself did not end well", "6f2c 91d0 6f2c 91d0 …",
        "run_manifest.yaml",
    ):  # fmt: skip
        assert part in said
    assert "did not end well" not in str(view.acceptance(status(), output, "", False))


def test_what_was_accepted_is_told_from_what_is_there_now() -> None:
    assert not view.accepted_other(status(accepted=accepted()), verified())
    assert view.accepted_other(status(accepted=accepted("0" * 64)), verified())
    assert view.accepted(status()) == ""


def test_follow_ups_name_their_checkpoint_and_the_first_possible_one_is_recommended() -> None:
    """P-98: bounded follow-ups, each with the checkpoint that it returns to."""
    rows = follow_up.rows(follow_ups(), False)
    assert [line(row) for row in rows] == [
        "◆ recommended halve the batch size: 8 → 4 2 plan",
        "· possible run the same plan again 3 command",
        "· possible correct a fact of the analysis 1 analysis",
    ]
    assert ("sets output_dir = /jobs/demo/out-2", "text") in rows[0].detail
    blocked = follow_up.rows(follow_ups(False, "the run is alive"), True)
    assert line(blocked[0]).startswith("[XX] not now")
    assert blocked[0].detail[0] == ("not now: the run is alive", "failed")


def test_hostile_text_is_escaped_wherever_it_stands() -> None:
    bad = Finding("high", HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    check = {"code": HOSTILE, "ok": False, "message": HOSTILE, "evidence": HOSTILE}
    output = verified(
        HOSTILE, (), bad, path=HOSTILE, files=[{"path": HOSTILE, "size": 1}], checks=[check], digest=HOSTILE
    )
    error = failure(
        kind=HOSTILE, code=HOSTILE, message=HOSTILE, evidence=[HOSTILE], whole_error=HOSTILE, next_step=HOSTILE,
        command=[HOSTILE], versions={HOSTILE: HOSTILE}, resources={HOSTILE: [HOSTILE]}, checkpoint=HOSTILE,
    )  # fmt: skip
    given = {"digest": HOSTILE, "confirmed_at": HOSTILE, "via": HOSTILE}
    told = status(
        HOSTILE,
        bad,
        failure=error,
        accepted=given,
        numbers={HOSTILE: number(HOSTILE, HOSTILE), "signal": number(HOSTILE)},
    )
    rows = view.rows(told, output, (bad,), False, "refused")
    said: list[Any] = [row.entry.cells for row in rows] + [row.detail for row in rows] + [row.copy for row in rows]
    said += [view.headline(told, output, False), view.witnesses(told), view.summary(output), view.accepted(told)]
    said += [view.manifest(told, output), view.unacceptable(status(HOSTILE), output), view.short_digest(HOSTILE)]
    said += [view.acceptance(told, output, "x", False)]
    decision = {"key": HOSTILE, "value": {HOSTILE: HOSTILE}, "default": [HOSTILE], "reason": HOSTILE}
    scheme = {"name": HOSTILE, "summary": HOSTILE, "advice": HOSTILE, "exportable": True}
    said += [edit_row.facts(decision), [one.cells for one in edit_row.choices([scheme], False)]]
    flat = "".join(_strings(said)).replace("\n", "")
    assert flat.isprintable()
    assert "\u202e" not in flat


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for one in value for text in _strings(one)]


@pytest.mark.parametrize(
    ("key", "value", "typed"),
    [
        ("global_scheme", "fp8", "fp8"), ("global_scheme", None, ""), ("kv_cache_scheme", None, "none"),
        ("exclude_layers", ["lm_head", "[1, 2]"], '["lm_head", "[1, 2]"]'),
        ("layer_quant_config", {"*q": "int8"}, '{"*q": "int8"}'),
        ("seq_len", 64, "64"), ("trust_remote_code", False, "no"),
    ],
)  # fmt: skip
def test_a_value_stands_in_the_form_as_it_can_be_set(key: str, value: Any, typed: str) -> None:
    from quark_tui.core.ptq.wishes import ROWS, parse_set

    assert edit_row.typed({"key": key, "value": value}) == typed
    if typed:
        parse_set(key, typed)
    assert set(edit_row._TAKES) == set(ROWS)


def test_the_digest_is_the_one_that_was_answered() -> None:
    assert view.short_digest(DIGEST) == "6f2c 91d0 6f2c 91d0 …"
    assert view.short_digest("") == ""
