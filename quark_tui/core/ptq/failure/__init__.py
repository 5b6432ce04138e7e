"""What a failed torch-llm-ptq run says about its cause.

A class is named only where lines of the log, the exit or the caller's facts prove it; otherwise it is ``unknown``. A
next step is the smallest bounded change, with its side effect and the checkpoint that it leads back to; never a blind
retry, never a change of the installed quark-cli.

``tracebacks`` reads the log, ``rules`` class what was raised, ``ends`` class what ended without a traceback,
``advice`` says what to do, ``quotes`` and ``places`` give the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from quark_tui.core.logtext import Folder, Line
from quark_tui.core.ptq.failure.advice import plan
from quark_tui.core.ptq.failure.ends import after_zero, by_signal, interrupted, without_traceback
from quark_tui.core.ptq.failure.places import phase_evidence, phase_of
from quark_tui.core.ptq.failure.quotes import matching_lines, message_of, quoted, whole_error
from quark_tui.core.ptq.failure.rules import by_phase, by_rule, supporting
from quark_tui.core.ptq.failure.tracebacks import last_chain, tracebacks_of
from quark_tui.core.ptq.failure.values import Case, Failure, FailureContext, Kind
from quark_tui.core.ptq.phases import Phases

__all__ = ["Failure", "FailureContext", "Kind", "classify"]

_MAX_LINES = 20_000

# Block formats that are calibrated but for which no export exists (quark-cli 0.13, measured).
_UNEXPORTABLE = re.compile(r"dtype=<?Dtype\.(?:mx|mx6|mx9|bfp16)\b")


def classify(
    log: Sequence[Line] | str,
    status: int | None,
    signal: int | None = None,
    context: FailureContext | None = None,
) -> Failure:
    """The cause of a run's end, as far as ``log`` (folded lines, or text), its end and ``context`` prove one.

    ``status`` is the exit status, ``signal`` the number of the signal that ended it; None is unknown. A shell's 128 + N
    for a signal is read as that signal. Raises nothing for any content; the work is bounded by the last 20,000 lines.
    """
    facts = context or FailureContext()
    lines = list(_fold(log) if isinstance(log, str) else log)[-_MAX_LINES:]
    if signal is None and status is not None and status in (129, 130, 134, 135, 136, 137, 139, 143):
        signal = status - 128
    phases = Phases()
    phases.feed(lines)
    report = phases.report()
    errors = tracebacks_of(lines)
    chain = last_chain(lines, errors)
    last = chain[-1] if chain else None
    frames = "\n".join(last.frames) if last else ""
    phase = phase_of(frames) or facts.phase or report.current
    case = Case(facts, report, phase, frames, chain)
    whole = whole_error(lines, chain)

    # A process that failed may crash, or be killed, while it ends: the traceback at the end of its log is the cause.
    crashed = signal in (6, 7, 9, 11) and not facts.stopped_by and last is not None and last.type != "KeyboardInterrupt"
    if signal is not None and not crashed:
        return by_signal(lines, signal, case, last, whole)
    if last is not None and last.type == "KeyboardInterrupt":
        return interrupted(case, last, whole, "The process was interrupted (SIGINT).")
    if status == 0:
        return after_zero(case, whole)
    if last is None:
        return without_traceback(lines, status, case, whole)
    # The last exception decides; an earlier one of its chain speaks only where the last says nothing.
    for error in reversed(chain):
        found = by_rule(error, case)
        if found is not None:
            kind, code, advice = found
            shown = (last,) if error is last else (error, last)
            return Failure(
                kind,
                message_of(last),
                tuple(text for item in shown for text in quoted(item)) + supporting(lines, case, code),
                advice[0],
                whole,
                advice[1],
                code,
                phase,
            )
    kind, advice = by_phase(case)
    code = "unrecognised" if kind == "unknown" else f"{kind}_error"
    place = phase_evidence(case) if kind != "unknown" else ()
    if kind == "export" and (schemes := matching_lines(lines, _UNEXPORTABLE)):
        code, advice, place = "scheme_not_exportable", plan.not_exportable(case, ""), (*place, *schemes)
    return Failure(kind, message_of(last), (*quoted(last), *place), advice[0], whole, advice[1], code, phase)


def _fold(text: str) -> list[Line]:
    folder = Folder()
    return [*folder.feed(text.encode("utf-8", "surrogatepass")), *folder.finish()]
