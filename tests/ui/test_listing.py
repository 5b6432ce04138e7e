"""What breaks if this is wrong: a path that a person names opens the wrong thing, or a damaged job ends the program."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.job import Job
from quark_tui.io import jobs
from quark_tui.ui.listing import read_listing, row

from .conftest import session


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QUARK_TUI_STATE", str(tmp_path / "state"))


def make(folder: Path) -> Path:
    (folder / ".quark-tui" / "runs").mkdir(parents=True)
    jobs.write_job(str(folder), Job("ptq", "2026-01-01T00:00:00Z", "/m/model", f"{folder}/out", None))
    return folder


def keys(path: Path | None) -> list[str]:
    return [one.key for one in read_listing(str(path) if path else None).rows if "/jobs/" in one.key]


def test_known_jobs_are_listed_without_a_path(tmp_path: Path) -> None:
    known = make(tmp_path / "jobs" / "known")
    make(tmp_path / "jobs" / "unknown")
    jobs.register(str(known))
    assert keys(None) == [str(known)]


def test_a_job_is_selected_also_when_nobody_knew_it(tmp_path: Path) -> None:
    job = make(tmp_path / "jobs" / "a")
    assert (keys(job), read_listing(str(job)).selected) == ([str(job)], str(job))


def test_a_run_selects_its_job(tmp_path: Path) -> None:
    job = make(tmp_path / "jobs" / "a")
    run = job / ".quark-tui" / "runs" / "1"
    run.mkdir()
    (run / "run.json").write_text("{}")
    assert read_listing(str(run)).selected == str(job)


def test_a_run_without_its_job_and_a_file_get_a_hint(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    assert "quark-tui status" in read_listing(str(tmp_path)).hint
    assert "no folder" in read_listing(str(tmp_path / "run.json")).hint


def test_a_folder_of_jobs_is_a_root_and_its_first_job_is_selected(tmp_path: Path) -> None:
    job = make(tmp_path / "jobs" / "a")
    found = read_listing(str(tmp_path / "jobs"))
    assert (found.selected, found.roots, found.hint) == (str(job), (str(tmp_path / "jobs"),), "")


def test_a_damaged_job_is_a_row_and_a_problem(tmp_path: Path) -> None:
    job = make(tmp_path / "jobs" / "a")
    (job / ".quark-tui" / "job.json").write_bytes(b"\xff{")
    found = read_listing(str(tmp_path / "jobs"))
    assert [one.look.word for one in found.rows if one.key == str(job)] == ["unreadable"]
    assert len(found.problems) == 1


def test_what_cannot_be_listed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[str]:
        raise RuntimeError("\x1b[2J")

    monkeypatch.setattr(jobs, "known", broken)
    assert read_listing(None).problems == (r"the jobs cannot be listed: RuntimeError: \x1b[2J",)


@given(st.text(), st.text(), st.one_of(st.none(), st.text()))
def test_a_row_holds_no_control_character(word: str, name: str, other: str | None) -> None:
    made = row(session(name, word, liveness=other, stage=other, started_at=other, kind=name))
    texts = (made.look.word, made.workflow, made.model, made.where, made.path, made.liveness, made.started)
    assert not {unicodedata.category(char) for text in texts for char in text} & {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"}


def test_a_huge_name_costs_no_more_than_what_is_shown() -> None:
    assert len(row(session("x" * 50_000_000, "running")).model) == 500
