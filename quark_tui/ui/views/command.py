"""The exact command and everything that its digest covers, as rows: what Checkpoint 3 approves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.command import Command
from quark_tui.core.text import cell_width, human_bytes
from quark_tui.ui.text import Part, exact, safe, value_text, wrapped
from quark_tui.ui.views import Row, findings, title
from quark_tui.ui.widgets.row_list import Column, Entry

#: The last row that has to be seen before the command can be approved.
LAST = "digest"


_NAME, _BESIDE = 22, 3


def layout(width: int) -> Sequence[Column]:
    """Name and value."""
    return Column("", _NAME), Column("", max(0, width - _NAME - _BESIDE))


def whole(rows: Sequence[Row], width: int) -> list[Row]:
    """``rows`` for a list of ``width`` cells with nothing shortened: what does not fit goes on in lines of its own."""
    room = max(10, width - _NAME - _BESIDE)
    shown: list[Row] = []
    for row in rows:
        entry = row.entry
        if entry.span:
            shown += _wrapped_span(row, width - 1)
            continue
        (name, name_tone), (value, tone) = entry.cells
        if cell_width(name) > _NAME:
            shown.append(Row(replace(entry, cells=((name, name_tone),), span=True), row.detail, row.copy))
            lines = wrapped(value, room) if value else []
        else:
            first, *lines = wrapped(value, room)
            shown.append(Row(replace(entry, cells=((name, name_tone), (first, tone))), row.detail, row.copy))
        for number, line in enumerate(lines):
            shown.append(Row(Entry(f"{entry.key}+{number}", (("", name_tone), (line, tone)), passive=entry.passive)))
    return shown


def _wrapped_span(row: Row, width: int) -> list[Row]:
    entry = row.entry
    (head, head_tone), *others = entry.cells
    tone = others[0][1] if others else head_tone
    first, *lines = wrapped(head + "".join(text for text, _ in others), width)
    cells = ((head, head_tone), (first[len(head) :], tone)) if first.startswith(head) else ((first, head_tone),)
    shown = [Row(replace(entry, cells=cells), row.detail, row.copy)]
    return shown + [
        Row(Entry(f"{entry.key}+{number}", ((f"  {line}", tone),), span=True, passive=entry.passive))
        for number, line in enumerate(lines)
    ]


def rows(answer: Answer, ascii_only: bool) -> list[Row]:
    """What blocks first, then the command, what it touches, and last what the digest rests on."""
    body = answer.body
    blocking = [one for one in answer.findings if one.level == "block"]
    shown = findings(blocking, ascii_only, prefix="blocking")
    if shown:
        shown.append(title("gap", ""))
    decided: list[Row] = []
    for number, raw in enumerate(body["commands"], 1):
        decided += _command(Command.from_json(raw), number, len(body["commands"]))
    if body["commands"]:
        decided += _resources(body)
        decided += _remote_code(body["remote_code"])
    shown += map(_spelled, decided) if ascii_only else decided
    others = findings((one for one in answer.findings if one.level != "block"), ascii_only, prefix="other")
    shown += others
    digest = body["digest"]
    inputs = body["digest_inputs"]
    covers = (
        f"covers all of this, {len(inputs['files'])} files, {len(inputs['env'])} variables, "
        f"{len(inputs['versions'])} versions"
    )
    words = safe(digest) if digest else "none: what blocks comes first"
    shown.append(
        Row(
            Entry(LAST, (("digest", "strong"), (words, "text" if digest else "waiting"))),
            ((words, "text"), (covers, "muted")),
            words,
        )
    )
    return shown + _covered(inputs)


def _spelled(row: Row) -> Row:
    """Where only ASCII is drawn, other letters as escapes: two paths that differ must not look the same."""
    plain = {"→": "->", "·": "-"}
    cells = []
    for text, tone in row.entry.cells:
        for glyph, sign in plain.items():
            text = text.replace(f" {glyph} ", f" {sign} ")
        cells.append((text.encode("ascii", "backslashreplace").decode(), tone))
    return replace(row, entry=replace(row.entry, cells=tuple(cells)))


def _pair(key: str, name: str, value: str, *more: Part, tone: str = "text") -> Row:
    return Row(Entry(key, ((name, "strong"), (value, tone))), ((f"{name}: {value}", "text"), *more), value)


def _command(command: Command, number: int, of: int) -> list[Row]:
    counted = f"command {number} of {of}: " if of > 1 else ""
    shown = [title(f"title-{number}", f"{counted}{safe(command.purpose)}")]
    for at, (option, values) in enumerate(command.option_lines()):
        name, value = exact(option), exact(values)
        key = f"argv.{number}.{at}"
        if at == 0:
            words = f"{name} {value}".rstrip()
            shown.append(Row(Entry(key, ((words, "strong"),), span=True), ((words, "text"),), words))
        else:
            detail = ((f"{name} {value}".rstrip(), "text"),)
            shown.append(
                Row(Entry(key, ((f"  {name}", "strong"), (value, "text"))), detail, f"{name} {value}".rstrip())
            )
    shown.append(_pair(f"cwd.{number}", "in", exact(command.cwd)))
    for name, value in command.env_set.items():
        shown.append(_pair(f"set.{number}.{safe(name)}", "sets", f"{exact(name)}={exact(value)}"))
    for name in command.env_unset:
        shown.append(_pair(f"unset.{number}.{safe(name)}", "unsets", exact(name)))
    for at, path in enumerate(command.writes):
        shown.append(_pair(f"writes.{number}.{at}", "writes", exact(path)))
    return shown


def _resources(body: Mapping[str, Any]) -> list[Row]:
    estimate, there = body["estimate"], body["available"]
    basis: Part = (safe(estimate["basis"]), "muted")
    holders = body["holders"]
    if holders is None:
        held = "who else holds a GPU is unknown"
    else:
        held = (
            ", ".join(f"GPU {safe(one['gpu'])} by pid {safe(one['pid'])}" for one in holders) or "nobody that was seen"
        )
    expected = [safe(path) for path in body["expected_files"]]
    return [
        _pair("size", "output", _of(estimate["output_bytes"], there["output_bytes"], "free"), basis),
        _pair("memory", "peak memory", _of(estimate["peak_memory_bytes"], there["memory_bytes"], "here"), basis),
        _pair("holders", "devices held", held),
        _pair("expected", "should appear", ", ".join(_names(expected)), *((path, "muted") for path in expected)),
        _pair("time", "not known", "how long it takes: nothing to base it on yet", tone="waiting"),
    ]


def _of(needed: int | None, available: int | None, word: str) -> str:
    return f"about {human_bytes(needed)}, {human_bytes(available)} {word}"


def _names(paths: Sequence[str]) -> list[str]:
    return [path.rpartition("/")[2] for path in paths]


def _remote_code(found: Sequence[Mapping[str, Any]]) -> list[Row]:
    if not found:
        return [_pair("code", "remote code", "none in this model, its tokenizer or processor")]
    shown = []
    for number, one in enumerate(found):
        stopped = bool(one["stopped_by_flag"])
        told = "stopped by --no_trust_remote_code" if stopped else "NOT stopped by --no_trust_remote_code: it can run"
        words = f"{exact(one['file'])} {exact(one['key'])} → {exact(one['target'])}"
        shown.append(
            _pair(
                f"code.{number}",
                "remote code" if stopped else "CODE THAT RUNS",
                f"{words} · {told} · sha256 {safe(one['sha256'])}",
                tone="text" if stopped else "failed",
            )
        )
    return shown


def _covered(inputs: Mapping[str, Any]) -> list[Row]:
    """Everything that the digest rests on besides the command: for whoever wants to see it."""
    shown = [title("title-env", "variables that the digest covers")]
    for name, value in inputs["env"].items():
        shown.append(_pair(f"env.{safe(name)}", safe(name), "unset" if value is None else exact(value)))
    shown.append(title("title-files", "files that the digest covers"))
    for number, one in enumerate(inputs["files"]):
        mark = one.get("sha256") or one.get("stat")
        path = exact(one["path"])
        shown.append(_pair(f"file.{number}", path.rpartition("/")[2], value_text(mark), (path, "muted"), tone="muted"))
    shown.append(title("title-versions", "versions"))
    for name, value in inputs["versions"].items():
        shown.append(_pair(f"version.{safe(name)}", safe(name), "missing" if value is None else safe(value)))
    return shown
