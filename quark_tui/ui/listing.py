"""What Home shows, as plain values: the answer of ``sessions`` made safe for a screen. No Textual here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quark_tui.core.text import clean, redact
from quark_tui.ui.states import Look, look

#: Characters of a foreign string that are looked at; a screen shows far fewer.
_LOOKED_AT = 500


@dataclass(frozen=True, slots=True)
class Row:
    """One job or process; every text is one safe line. ``key`` is the path itself, for finding the row again."""

    key: str
    look: Look
    workflow: str
    model: str
    where: str
    path: str
    liveness: str
    started: str
    name: str = ""

    @property
    def haystack(self) -> str:
        """What a filter looks in."""
        return f"{self.look.word} {self.workflow} {self.model} {self.where} {self.path}".lower()


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that one look found. ``selected`` is the key that the cursor should go to, None to leave it."""

    rows: tuple[Row, ...] = ()
    selected: str | None = None
    roots: tuple[str, ...] = ()
    hint: str = ""
    problems: tuple[str, ...] = ()


def safe(value: Any, unknown: str = "") -> str:
    """Foreign text on one line without control characters and credentials; ``unknown`` for None."""
    if value is None:
        return unknown
    said = redact(clean(str(value)[: 2 * _LOOKED_AT]))
    return said if len(said) <= _LOOKED_AT else said[: _LOOKED_AT - 1] + "…"


def row(session: Mapping[str, Any]) -> Row:
    """A row of the answer of ``sessions``."""
    return Row(
        key=session["path"],
        look=look(safe(session["verdict"], "unknown")),
        workflow=safe(session["kind"], "unknown"),
        model=safe(session["model"], "unknown"),
        where=safe(session["stage"], ""),
        path=safe(session["path"]),
        liveness="no run yet" if session["liveness"] is None else f"liveness {safe(session['liveness'])}",
        started=safe(session["started_at"], ""),
        name=safe(session.get("name") or os.path.basename(str(session["path"]).rstrip("/"))),
    )


def read_listing(path: str | None) -> Listing:
    """Known jobs, running processes, and what ``path`` (absolute, or None) is. Reads only; plain JSON only.

    Never raises: what cannot be read is said in ``problems``.
    """
    try:
        return _read(path)
    except Exception as error:
        kind = f"{type(error).__name__}: {error}"
        return Listing(problems=(f"the jobs cannot be listed: {safe(kind)}",))


def _read(path: str | None) -> Listing:
    job, root, hint = (None, None, "") if path is None else _meaning(path)
    sessions, problems = _sessions([where for where in (job, root) if where])
    rows = tuple(row(session) for session in sessions)
    selected = job
    if root is not None:
        inside = [one.key for one in rows if one.key == root or one.key.startswith(root.rstrip("/") + "/")]
        selected = inside[0] if inside else None
        hint = "" if inside else _hint(root)
    return Listing(rows, selected, (safe(root),) if root else (), hint, problems)


def _sessions(roots: Sequence[str]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The rows of ``sessions`` as far as plain JSON and locks tell them, and what could not be read.

    The command itself also verifies what ended unverified, from schemas and headers; Home says "to be verified".
    """
    from quark_tui.engine.listing import listed

    rows, problems = listed(roots)
    return rows, tuple(f"{safe(path)}: job.json cannot be read: {safe(why)}" for path, why in problems)


def _meaning(path: str) -> tuple[str | None, str | None, str]:
    """(job, folder to search, hint) of a path that a person named."""
    from quark_tui.io import jobs

    if jobs.is_job(path):
        return path, None, ""
    if os.path.isfile(f"{path}/run.json"):
        owner = jobs.job_of(path)
        return owner, None, "" if owner else f"{safe(path)} is a run without its job: quark-tui status tells its state"
    if os.path.isdir(path):
        return None, path, ""
    return None, None, f"{safe(path)} is no folder: a job, a run or a folder of jobs can be opened"


def _hint(folder: str) -> str:
    if os.path.isfile(f"{folder}/config.json"):
        return f"a job on this model: n. {safe(folder)} holds a model"
    return f"a job in it: n. no job is below {safe(folder)}"
