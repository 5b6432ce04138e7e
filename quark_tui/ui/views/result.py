"""What ``verify`` and ``status`` say of a run that is over, as rows and lines: the verdict, and what it rests on.

The verdict comes from the files. The exit status is one witness of several and stands there as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from quark_tui.core.answer import Answer
from quark_tui.core.finding import Finding
from quark_tui.core.text import elide_middle, human_bytes, human_duration, pad
from quark_tui.engine.status import ADVISORY
from quark_tui.ui.states import Look, check_look, look
from quark_tui.ui.text import Part, safe, value_text
from quark_tui.ui.views import Row, findings, title
from quark_tui.ui.widgets.row_list import Column, Entry

_WORD, _NAME = 11, 20
_FILE, _SIZE = 40, 18
#: Lines of a whole error, and lines of evidence that stand as rows of their own.
_ERROR_LINES, _EVIDENCE = 200, 4
#: A check that could not be made: neither true nor false.
_OPEN: Final = Look("?", "[??]", "open", "warning")
_WORDS: Final = {"true": "holds", "does not apply": "n/a"}
_AGAINST: Final = {"plan": "the plan", "config": "its own configuration"}
#: Verdicts of a run that its output alone decides.
_BY_OUTPUT: Final = ("succeeded", "verified")
_ALONE: Final = {
    "running": "the run is still going: there is nothing to judge yet",
    "not_started": "no run was started: there is nothing to judge yet",
    "unreadable": "the run's record cannot be read",
}
_WITNESS: Final = "one witness of several: it decides no verdict by itself"


def layout(width: int) -> Sequence[Column]:
    """State, name, what was seen."""
    return Column("", _WORD), Column("", _NAME), Column("", max(0, width - _WORD - _NAME - 5))


# The first lines.


def headline(status: Answer | None, verified: Answer | None, ascii_only: bool) -> list[Part]:
    """The verdict as glyph and word, with what it was held against."""
    if verified is None:
        return [("looking at headers…", "$muted")]
    run = status.body["verdict"] if status is not None else None
    output = verified.body["verdict"]
    against = f"against {_AGAINST.get(verified.body['against'], 'its own configuration')}"
    if run in _ALONE:
        return [*_verdict(run, ascii_only), (f"  {_ALONE[run]}", "$foreground")]
    if run is None or run in _BY_OUTPUT or run == output:
        rest = f"what is there could not be judged {against}" if output == "unknown" else against
        return [*_verdict(output, ascii_only), (f"  {rest}", "$foreground")]
    # The run ended in another way than its output looks.
    rest = "could not be judged" if output == "unknown" else f"{safe(output)} {against}"
    return [*_verdict(run, ascii_only), (f"  the run; its output: {rest}", "$foreground")]


def _verdict(word: str, ascii_only: bool) -> list[Part]:
    shown = look(safe(word))
    return [(f"{shown.mark(ascii_only)} {shown.word.upper()}", f"bold ${shown.tone}")]


def witnesses(status: Answer | None) -> list[Part]:
    """Elapsed time, peak memory, exit status or signal; what is not known is left out."""
    numbers = _numbers(status)
    elapsed, peak = numbers.get("elapsed_seconds"), numbers.get("peak_memory_bytes")
    texts = [
        "" if elapsed is None else human_duration(elapsed),
        "" if peak is None else f"peak {human_bytes(peak)}",
        *(f"{word} {safe(numbers[name])}" for name, word in (("exit_status", "exit"), ("signal", "signal"))
          if numbers.get(name) is not None),
    ]  # fmt: skip
    return [(" · ".join(filter(None, texts)), "$muted")]


def _numbers(status: Answer | None) -> dict[str, Any]:
    return {name: one["value"] for name, one in status.body["numbers"].items()} if status is not None else {}


def summary(verified: Answer) -> str:
    """How many modules, files and checks, in a line."""
    body = verified.body
    done, wanted, files = body["quantized_modules"], body["expected_modules"], body["files"]
    looks = [_look(check, verified) for check in body["checks"]]
    wrong = sum(one.tone == "failed" for one in looks)
    advice = sum(one.word == "advice" for one in looks)
    unmade = sum(one is _OPEN for one in looks)
    size = human_bytes(sum(one["size"] for one in files))
    return " · ".join(
        filter(
            None,
            (
                "modules quantized: unknown" if done is None else f"{done} of {_count(wanted)} modules quantized",
                f"{_plural(len(files), 'file')}, {size}" if files else "no files",
                f"{_plural(wrong, 'check')} not as planned" if wrong else "",
                f"{_plural(unmade, 'check')} open" if unmade else "",
                f"{advice} advice" if advice else "",
                "" if wrong or unmade else "the rest holds" if advice else "every check that applies holds",
            ),
        )
    )


def _count(number: Any) -> str:
    return "an unknown number of" if number is None else str(number)


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def accepted(status: Answer | None) -> str:
    """``accepted 2026-… via screen``; "" while it was not."""
    given = status.body.get("accepted") if status is not None else None
    return f"accepted {safe(given['confirmed_at'])} via {safe(given['via'])}" if given else ""


def accepted_other(status: Answer | None, verified: Answer | None) -> bool:
    """Whether what was accepted is not what is on disk now."""
    given = status.body.get("accepted") if status is not None else None
    return bool(given and verified is not None and verified.body["digest"] not in (None, given["digest"]))


def manifest(status: Answer | None, verified: Answer | None) -> Part:
    """What became of run_manifest.yaml at this look."""
    if verified is None or status is None:
        return "", "$muted"
    for one in verified.findings:
        if one.code == "manifest_not_written":
            return f"run_manifest.yaml was not updated: {safe(one.evidence)}", "$warning"
    if status.body["scope"] != "job":
        return "run_manifest.yaml is left as it is: a run by itself", "$muted"
    return ("run_manifest.yaml updated" if status.body["liveness"] == "finished" else "", "$muted")


def unacceptable(status: Answer | None, verified: Answer | None) -> str:
    """Why this result cannot be accepted now; "" when it can."""
    if status is not None and status.body["scope"] != "job":
        return "only a run folder is open here: a result is accepted on its job"
    if done := accepted(status):
        return f"it is {done} already"
    if verified is None or status is None:
        return "the output has not been looked at yet"
    run, output = status.body["verdict"], verified.body["verdict"]
    if run in ("running", "not_started"):
        return _ALONE[run]
    if output not in ("verified", "partial"):
        return f"the result is {safe(output)}: only a verified or partial one can be accepted"
    return "" if verified.body["digest"] else "there is no digest of what was seen"


# The rows.


def rows(
    status: Answer | None,
    verified: Answer | None,
    refused: Iterable[Finding],
    ascii_only: bool,
    refused_title: str = "",
) -> list[Row]:
    """What was refused, why the run failed, the checks, the files, the numbers, and what else was found."""
    shown: list[Row] = []
    if turned_down := findings(refused, ascii_only, prefix="refused"):
        shown += [title("refused-title", refused_title), *turned_down, _gap("refused")]
    if failure := _failure_of(status):
        shown += [*_failure(failure, ascii_only), _gap("failure")]
    if verified is not None:
        shown += [title("checks-title", "checks")] if shown else []
        shown += _checks(verified, ascii_only)
        shown += [_gap("files"), title("files-title", "files"), *_files(verified)]
    if status is not None and status.body["numbers"]:
        shown += [_gap("numbers"), title("numbers-title", "numbers"), *_number_rows(status)]
    if rest := findings(_other(status, verified), ascii_only):
        shown += [_gap("findings"), title("findings-title", "findings"), *rest]
    return shown


def _failure_of(status: Answer | None) -> Mapping[str, Any] | None:
    """What a run that failed by itself left to be said; not of one whose output alone is not as it should be."""
    failure = status.body.get("failure") if status is not None else None
    return failure if failure and failure.get("code") != "no_failure" else None


def first(shown: Sequence[Row]) -> str | None:
    """The key of the first row that says what is wrong, else of the first row that the cursor can be on."""
    entries = [row.entry for row in shown if not row.entry.passive]
    wrong = [one for one in entries if any(tone == "failed" for _, tone in one.cells)]
    return next((one.key for one in (*wrong, *entries)), None)


def _gap(key: str) -> Row:
    return title(f"gap-{key}", "")


def _check_words(code: str) -> str:
    return safe(code).replace("_", " ")


def _look(check: Mapping[str, Any], verified: Answer) -> Look:
    if check["ok"] is None and any(one.code == f"{check['code']}_undecided" for one in verified.findings):
        return _OPEN
    return check_look(check["ok"], check["code"] in ADVISORY)


def _checks(verified: Answer, ascii_only: bool) -> list[Row]:
    steps = {one.code.removesuffix("_undecided"): one.next_step for one in verified.findings}
    shown = []
    for check in verified.body["checks"]:
        state, words, message = _look(check, verified), _check_words(check["code"]), safe(check["message"])
        tone = {"ok": "text", "muted": "muted"}.get(state.tone, "strong")
        cells = (
            (f"{state.mark(ascii_only)} {_WORDS.get(state.word, state.word)}", state.tone),
            (words, tone),
            (message, "muted" if state.tone == "muted" else "text"),
        )
        detail: list[Part] = [(f"{message}  [{safe(check['code'])}]", "text")]
        detail += [
            (safe(part), "muted") for line in check["evidence"].splitlines() for part in line.split("; ") if part
        ]
        if step := safe(steps.get(check["code"], "")):
            detail.append((f"next: {step}", "strong"))
        copy = "\n".join((f"{words}: {message}", safe(check["evidence"])))
        shown.append(Row(Entry(f"check-{safe(check['code'])}", cells), tuple(detail), copy))
    return shown


def _files(verified: Answer) -> list[Row]:
    files, folder = verified.body["files"], safe(verified.body["path"])
    if not files:
        entry = Entry("file-none", (("no files", "muted"),), span=True)
        return [Row(entry, ((f"nothing was seen in {folder}", "text"),), folder)]
    shown = []
    for number, one in enumerate(files):
        path, size = safe(one["path"]), one["size"]
        name = path.removeprefix(folder).lstrip("/") or path
        cells = (
            (pad(elide_middle(name, _FILE), _FILE), "text"),
            (pad(f"{size:,}", _SIZE, right=True), "text"),
        )
        detail: tuple[Part, ...] = ((path, "text"), (f"{size:,} bytes ({human_bytes(size)})", "muted"))
        shown.append(Row(Entry(f"file-{number}", cells, span=True), detail, path))
    return shown


def _number_rows(status: Answer) -> list[Row]:
    shown = []
    for name, one in status.body["numbers"].items():
        words = safe(name).removesuffix("_bytes").removesuffix("_seconds").replace("_", " ")
        value, source = _number(name, one["value"]), safe(one["from"])
        witness = name in ("exit_status", "signal") or not one["authoritative"]
        cells = (("", "text"), (words, "text"), (f"{value}  (a witness only)" if witness else value, "text"))
        detail: list[Part] = [(f"{words}: {value}", "text"), (f"from: {source}", "muted")]
        if witness:
            detail.append((_WITNESS, "muted"))
        shown.append(Row(Entry(f"number-{safe(name)}", cells), tuple(detail), f"{words}: {value}"))
    return shown


def _number(name: str, value: Any) -> str:
    if name.endswith("_bytes") and type(value) is int:
        return f"{human_bytes(value)} ({value:,} bytes)" if value >= 1000 else human_bytes(value)
    if name.endswith("_seconds") and isinstance(value, (int, float)):
        return human_duration(value)
    return value_text(value)


def _failure(failure: Mapping[str, Any], ascii_only: bool) -> list[Row]:
    """The class of the failure, the lines that prove it, the smallest change; the whole record is in its detail."""
    state, kind = look("failed"), safe(failure.get("kind")).replace("_", " ")
    evidence = [safe(line) for line in failure.get("evidence") or () if str(line).strip()]
    message = safe(failure.get("message"), "") or "what ended it is not known"
    step = safe(failure.get("next_step"), "")
    detail: list[Part] = [(f"{message}  [{safe(failure.get('code'), kind)}]", "text")]
    detail += [(line, "muted") for line in evidence]
    if step:
        detail.append((f"next: {step}", "strong"))
    detail += _record(failure)
    copy = "\n".join((message, *evidence, f"next: {step}" if step else ""))
    cells = ((f"{state.mark(ascii_only)} failed", "failed"), (kind, "strong"), (message, "text"))
    shown = [title("failure-title", "why the run did not succeed"), Row(Entry("failure", cells), tuple(detail), copy)]
    for number, line in enumerate(evidence[:_EVIDENCE]):
        entry = Entry(f"failure-evidence-{number}", (("", "text"), ("evidence", "muted"), (line, "muted")))
        shown.append(Row(entry, ((line, "text"), ("a line that the class of the failure rests on", "muted")), line))
    if step:
        back = _checkpoint(failure.get("checkpoint"))
        told = (step, "strong"), (f"{back}b lists it with what else can follow", "muted")
        entry = Entry("failure-change", (("", "text"), ("smallest change", "strong"), (step, "strong")))
        shown.append(Row(entry, told, step))
    return shown


def _checkpoint(number: Any) -> str:
    return f"it goes back to Checkpoint {number}; " if number in (1, 2, 3) else ""


def _record(failure: Mapping[str, Any]) -> list[Part]:
    """Whole error, command, versions and resources of the run."""
    parts: list[Part] = []
    if error := str(failure.get("whole_error") or ""):
        lines = error.splitlines()
        cut = [f"… {len(lines) - _ERROR_LINES} lines before"] if len(lines) > _ERROR_LINES else []
        parts += [("", "text"), ("the whole error", "strong")]
        parts += [(safe(line), "muted") for line in (*cut, *lines[-_ERROR_LINES:])]
    if command := failure.get("command"):
        parts += [("", "text"), ("command", "strong"), (" ".join(safe(word) for word in command), "muted")]
    for name in ("versions", "resources"):
        if known := {key: value for key, value in (failure.get(name) or {}).items() if value is not None}:
            parts += [("", "text"), (name, "strong")]
            parts += [(f"{safe(key).replace('_', ' ')}: {value_text(value)}", "muted") for key, value in known.items()]
    return parts


def _other(status: Answer | None, verified: Answer | None) -> list[Finding]:
    """Findings that no row above says already."""
    said = {check["code"] for check in verified.body["checks"]} if verified is not None else set()
    failed = _failure_of(status) is not None
    found: dict[tuple[str, str], Finding] = {}
    for answer in (verified, status):
        for one in answer.findings if answer is not None else ():
            told = one.code.removesuffix("_undecided") in said or (failed and one.code.startswith("failure_"))
            if not told:
                found.setdefault((one.code, one.message), one)
    return list(found.values())


# Accepting it.


def acceptance(status: Answer | None, verified: Answer, output: str, ascii_only: bool) -> list[Part]:
    """What a person takes by accepting: verdict, what is not as planned, what it means, the digest. ``output`` is the
    folder as it is shown."""
    body = verified.body
    parts: list[Part] = [("".join(text for text, _ in headline(status, verified, ascii_only)), "strong")]
    parts += [(summary(verified), "text"), (f"output: {output}", "text")]
    for check in body["checks"]:
        state = _look(check, verified)
        if state.tone in ("failed", "warning"):
            words = f"{_check_words(check['code'])} ({state.word}): {safe(check['message'])}"
            parts.append((f"{state.mark(ascii_only)} {words}", state.tone))
    if _numbers(status).get("exit_status") not in (0, None) or _numbers(status).get("signal") is not None:
        parts.append(("! the run itself did not end well; its output would be accepted all the same", "warning"))
    parts += [("", "text"), *((text, "text") for text in _MEANS), ("", "text")]
    parts += [
        (f"digest  {short_digest(body['digest'])}", "strong"),
        ("        it covers the files, headers, configuration, tokenizer and every check", "muted"),
    ]
    return parts


_MEANS: Final = (
    "Accepting takes exactly this output as the result of the job. The digest, the time and via: screen are recorded "
    "in the job and in run_manifest.yaml; no file of the output is changed.",
    "After that this job takes no follow-up: further work on this model is a new job.",
)


def short_digest(digest: Any) -> str:
    """The first 16 digits in groups of four."""
    text = safe(digest)
    return " ".join(text[start : start + 4] for start in range(0, min(16, len(text)), 4)) + (
        " …" if len(text) > 16 else ""
    )


__all__ = [
    "acceptance", "accepted", "accepted_other", "first", "headline", "layout", "manifest",
    "rows", "short_digest", "summary", "unacceptable", "witnesses",
]  # fmt: skip
