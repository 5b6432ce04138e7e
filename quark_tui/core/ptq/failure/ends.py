"""Ends that no traceback explains: signals, an exit status alone, a sentence on the last lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quark_tui.core.logtext import Line
from quark_tui.core.ptq.failure.advice import environment, memory, plan
from quark_tui.core.ptq.failure.quotes import matching_lines, quote, quoted
from quark_tui.core.ptq.failure.rules import by_rule, supporting
from quark_tui.core.ptq.failure.tracebacks import EXCEPTION
from quark_tui.core.ptq.failure.values import Case, Failure, RaisedError
from quark_tui.core.ptq.phases import parse_bar
from quark_tui.core.text import clean, redact

_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    15: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
}

_OOM_KILL = re.compile(
    r"(?i)oom[-_ ]?kill|out of memory: killed|memory cgroup out of memory|oom_reaper|detected \d+ oom"
    r"|killed process \d+.*rss"
)

_ARGPARSE = re.compile(
    r"^\S*quark-cli\b.{0,80}?: error: |^usage: \S*quark-cli|^\S+(?: [a-z-]+)?: error: (?:argument|unrecognized"
    r"|the following|Unknown)"
)

_FATAL = re.compile(r"terminate called|what\(\):|Fatal Python error|Memory access fault by GPU|core dumped|Bus error")


def by_signal(lines: Sequence[Line], signal: int, case: Case, last: RaisedError | None, whole: str) -> Failure:
    """The cause of an end by a signal."""
    name = _SIGNALS.get(signal, f"signal {signal}")
    ours = case.context.stopped_by
    ended = f"The process was ended by {name} ({signal})."
    if signal == 9 and not ours:
        words = matching_lines(lines[-400:], _OOM_KILL)
        if case.context.kernel_word and _OOM_KILL.search(case.context.kernel_word):
            words = (*words, f"kernel: {redact(clean(case.context.kernel_word.strip()))}")
        if words:
            advice = memory.memory(case, "")
            return Failure(
                "memory", ended, (*words, f"signal {signal}"), advice[0], whole, advice[1], "oom_killed", case.phase
            )
    if signal in (1, 2, 3, 15) or ours:
        who = "This program's stop sent it." if ours else "This program did not send it."
        return interrupted(case, last, whole, f"{ended} {who}", f"signal {signal} ({name})")
    if signal == 25:
        advice = plan.disk(case, "")
        return Failure(
            "export",
            ended,
            (f"signal {signal}: a file grew beyond the limit",),
            advice[0],
            whole,
            advice[1],
            "file_size_limit",
            case.phase,
        )
    fatal = matching_lines(lines[-400:], _FATAL)
    for line in reversed(lines[-400:]):
        if _FATAL.search(line.text):
            found = by_rule(RaisedError(0, 0, "", line.text.strip(), (line,), ()), case)
            if found is not None:
                return Failure(
                    found[0],
                    f"{ended}\n{clean(line.text.strip())}",
                    (quote(line), f"signal {signal}"),
                    found[2][0],
                    whole,
                    found[2][1],
                    found[1],
                    case.phase,
                )
    if signal == 9:
        step = (
            "Who sent it is not known. Look in the kernel log and the container's or scheduler's events for a memory "
            "kill or a time limit before anything is changed. Back to Checkpoint 3."
        )
    else:
        step = (
            "A crash of native code. Look at the kernel log and the devices, and at the versions of torch and the "
            f"driver, before anything is changed. {environment.versions(case)} Back to Checkpoint 3."
        )
    return Failure("unknown", ended, (*fatal, f"signal {signal} ({name})"), step, whole, 3, "killed", case.phase)


def interrupted(case: Case, last: RaisedError | None, whole: str, message: str, extra: str = "") -> Failure:
    """An end that somebody wanted; ``extra`` is more evidence."""
    evidence = (quoted(last) if last is not None and last.type == "KeyboardInterrupt" else ()) + (
        (extra,) if extra else ()
    )
    before = case.phase not in ("export", "evaluate")
    left = (
        "Before the export nothing is written." if before else "What was written stays; verify says what it is worth."
    )
    return Failure(
        "interrupted",
        message,
        evidence,
        f"{left} A run cannot be continued: the same plan needs a new approval. Back to Checkpoint 3.",
        whole,
        3,
        "interrupted",
        case.phase,
    )


def after_zero(case: Case, whole: str) -> Failure:
    """What exit status 0 proves: nothing, or that the output is missing."""
    if case.context.output_missing:
        return Failure(
            "export",
            "The process ended with 0, but the expected output is not there.",
            ("exit status 0", "the output folder lacks the expected files"),
            "This is no success. Read the log for where the export went (a relative output_dir lands inside Quark's "
            "installation), inspect the output folder, and plan an absolute output_dir. Back to Checkpoint 2.",
            whole,
            2,
            "output_missing",
            case.phase,
        )
    return Failure(
        "unknown",
        "The process ended with 0.",
        ("exit status 0",),
        "Let verify look at the output; the exit status alone proves nothing.",
        whole,
        None,
        "no_failure",
        case.phase,
    )


def without_traceback(lines: Sequence[Line], status: int | None, case: Case, whole: str) -> Failure:
    """The cause of an end whose log holds no traceback, as far as its last lines tell."""
    tail = lines[-400:]
    ended = "How the process ended is not known." if status is None else f"The process ended with exit status {status}."
    end = () if status is None else (f"exit status {status}",)
    for line in reversed(tail):
        text = line.text.strip()
        if _ARGPARSE.search(text) and ": error: " in text:
            advice = plan.arguments(case, text)
            return Failure(
                "configuration",
                redact(clean(text)),
                (quote(line), *end),
                advice[0],
                whole,
                advice[1],
                "arguments",
                case.phase,
            )
    # One line of plain text may be a whole exception (the caller's tail began behind the traceback), or a sentence.
    for line in reversed(tail):
        text = line.text.strip()
        if line.starts_record or parse_bar(text) is not None:
            break  # the program went on after anything that stands before
        if not re.match(
            r"(?:[\w.]+(?:Error|Exception|Interrupt|Exit)\b|AMD Quark |\S+: line \d+: |\S*python\S*: )", text
        ):
            continue
        match = EXCEPTION.match(text)
        error = RaisedError(0, 0, match.group(1) if match else "", text, (line,), ())
        if error.type == "KeyboardInterrupt":
            return interrupted(case, error, whole, "The process was interrupted (SIGINT).")
        found = by_rule(error, case)
        if found is not None:
            return Failure(
                found[0],
                redact(clean(text)),
                (quote(line), *end, *supporting(lines, case, found[1])),
                found[2][0],
                whole,
                found[2][1],
                found[1],
                case.phase,
            )
        break
    words = matching_lines(tail, _OOM_KILL)
    if words:
        advice = memory.memory(case, "")
        return Failure("memory", ended, (*words, *end), advice[0], whole, advice[1], "oom_killed", case.phase)
    last = next((line for line in reversed(tail) if line.text.strip()), None)
    evidence = (*((quote(last),) if last else ()), *end)
    where = f" The last phase seen was {case.phase}." if case.phase else ""
    return Failure(
        "unknown",
        f"{ended} The log holds no error.{where}",
        evidence,
        "Nothing proves a cause. Read the end of the log and the kernel's and scheduler's events before anything is "
        "changed. Back to Checkpoint 3.",
        whole,
        3,
        "unrecognised",
        case.phase,
    )
