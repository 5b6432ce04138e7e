"""Reading tracebacks out of a log: frames, message lines, and the chain that ended the program."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quark_tui.core.logtext import Line
from quark_tui.core.ptq.failure.values import RaisedError
from quark_tui.core.ptq.phases import parse_bar

_MAX_MESSAGE_LINES = 200
_HEADER = re.compile(r"(?:Exception Group )?Traceback \(most recent call last\):\s*$")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
EXCEPTION = re.compile(r"((?:[A-Za-z_][\w]*\.){0,12}[A-Za-z_]\w*)(?::\s?(.*))?$", re.DOTALL)
_RANK = re.compile(r"\[rank\d{1,6}\]:\s?")

# What may stand behind the last traceback without being part of its message.
_BEHIND = re.compile(
    r"\[QUARK-[A-Z]+\]: |Exception ignored in|\[?[IWEF]\d{4,8} \d\d:\d\d:\d\d|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL):\w"
    r"|\[transformers\] |Command exited with non-zero status|\tCommand being timed|    Command being timed"
    r"|(?:real|user|sys)\s+\d+m[\d.]+s|Script done on |slurmstepd: |srun: error|\S+\.py:\d+: \w*Warning: |Killed$"
)


def _plain(line: Line) -> str:
    return _RANK.sub("", line.text, count=1) if line.text.startswith("[rank") else line.text


def tracebacks_of(lines: Sequence[Line]) -> list[RaisedError]:
    """Every traceback, with frames and message. One that Python reports as ignored is left out."""
    found: list[RaisedError] = []
    index = 0
    while index < len(lines):
        if "Traceback (most" not in lines[index].text or not _HEADER.search(lines[index].text):
            index += 1
            continue
        ignored = index > 0 and lines[index - 1].text.startswith("Exception ignored in")
        error = _read_error(lines, index)
        if not ignored:
            found.append(error)
        index = max(index + 1, error.end)
    return found


def _read_error(lines: Sequence[Line], start: int) -> RaisedError:
    index = start + 1
    frames: list[str] = []
    grouped = lines[start].text.lstrip().startswith("+ ")
    while index < len(lines):
        text = _ungroup(_plain(lines[index]), grouped)
        if text and not text.startswith(" "):
            break
        frames.append(text)
        index += 1
    first = index
    while index < len(lines) and index - first < _MAX_MESSAGE_LINES:
        text = _ungroup(_plain(lines[index]), grouped)
        if index > first and (
            _HEADER.search(text) or text.startswith(_CHAINED) or _BEHIND.match(text) or parse_bar(text) is not None
        ):
            break
        index += 1
    end = index
    while end > first + 1 and not lines[end - 1].text.strip():
        end -= 1
    message = tuple(lines[first:end])
    text = "\n".join(_ungroup(_plain(line), grouped) for line in message)
    match = EXCEPTION.match(text)
    return RaisedError(start, end, match.group(1) if match else "", text, message, tuple(frames))


def _ungroup(text: str, grouped: bool) -> str:
    return re.sub(r"^\s*\| ?", "", text) if grouped else text


def last_chain(lines: Sequence[Line], errors: Sequence[RaisedError]) -> tuple[RaisedError, ...]:
    """The chained tracebacks at the end of the log; empty when the program went on after the last one."""
    if not errors:
        return ()
    last = errors[-1]
    for line in lines[last.end :]:
        if (line.starts_record and line.level in ("info", "debug")) or parse_bar(line.text) is not None:
            return ()
    chain = [last]
    for earlier in reversed(errors[:-1]):
        between = [line.text for line in lines[earlier.end : chain[0].start] if line.text.strip()]
        if not any(_plain_text(text).startswith(_CHAINED) for text in between):
            break
        chain.insert(0, earlier)
    return tuple(chain)


def _plain_text(text: str) -> str:
    return _RANK.sub("", text, count=1).lstrip(" |")
