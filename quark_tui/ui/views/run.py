"""A look at a run in words: facts, the four truths, the command, and what a stop would do."""

from __future__ import annotations

import datetime
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Final

from quark_tui.core.answer import Answer
from quark_tui.core.command import Command
from quark_tui.core.finding import LEVELS, Finding
from quark_tui.core.text import cell_width, elide_end, elide_middle, human_bytes, human_duration
from quark_tui.ui.services import Sight
from quark_tui.ui.states import level_look, look
from quark_tui.ui.text import Part, exact, safe
from quark_tui.ui.views import finding_detail
from quark_tui.ui.views.tasks import advance

_SIGNALS: Final = ("INT", "TERM", "KILL")
#: What the engine's evidence for "alive" is in the status line; other evidence is shown as it is.
_SHORT: Final = {"alive.lock is held by the process itself": "its lock is held"}
#: Findings about a signal that was sent and what came of it.
STOPS: Final = ("stop_sent", "stop_not_heeded")
_SEPARATOR: Final[Part] = (" · ", "$muted")
_RUN_ID_CELLS: Final = 12


def alive(body: Mapping[str, Any]) -> bool:
    return bool(body["liveness"] == "alive")


def elapsed(body: Mapping[str, Any]) -> float | None:
    """Seconds from the start to the end, or to the moment of the look; None where that is not known."""
    recorded = _number(body, "elapsed_seconds")
    if isinstance(recorded, (int, float)):
        return float(recorded)
    started, changed, fresh = body["started_at"], body["updated_at"], body["fresh_seconds"]
    if fresh is None:
        return None
    try:
        since = datetime.datetime.fromisoformat(changed) - datetime.datetime.fromisoformat(started)
        return max(0.0, since.total_seconds() + float(fresh))
    except (TypeError, ValueError):
        return None


#: Cells for how long a run has lasted, at the right end of the line of facts: it ticks apart from the rest.
FOR: Final = 17


def facts(sight: Sight, later: float, width: int, ascii_only: bool) -> tuple[list[Part], list[Part]]:
    """Left and right end of the line of facts, ``later`` seconds after the look.

    While it lives: id, pid, start and for how long; afterwards the verdict first, then how it ended.
    """
    body = sight.status.body
    run = safe(os.path.basename(sight.folder))
    if not sight.folder:
        return [("no run was started yet", "$waiting")], []
    if alive(body):
        ran = elapsed(body)
        right: list[Part] = [(f"for {human_duration(None if ran is None else ran + later)}", "$foreground")]
        behind = [("pid ", "$muted"), (pid(body), "$foreground"), _SEPARATOR, ("started ", "$muted")]
        behind.append((_second(body["started_at"]), "$foreground"))
        used = sum(cell_width(text) for text, _ in behind) + len(" run  ·  ") + FOR
        name = elide_middle(run, max(_RUN_ID_CELLS, width - used))
        return [("run ", "$muted"), (name, "$foreground"), _SEPARATOR, *behind], right
    seen = look(safe(body["verdict"]))
    left: list[Part] = [(f"{seen.mark(ascii_only)} {seen.word}", f"bold ${seen.tone}")]
    for part in _end(body):
        left += [_SEPARATOR, part]
    used = sum(cell_width(text) for text, _ in left) + len(" run   ")
    if width - used < _RUN_ID_CELLS:
        return left, []
    return left, [("run ", "$muted"), (elide_middle(run, width - used), "$muted")]


def _end(body: Mapping[str, Any]) -> list[Part]:
    """How a run ended; an exit status is a witness like the others."""
    parts: list[Part] = []
    status, number = _number(body, "exit_status"), _number(body, "signal")
    if number is not None:
        parts.append((f"signal {signal_name(number)}", "$foreground"))
    elif status is not None:
        parts.append((f"exit status {safe(status)}", "$foreground"))
    else:
        parts.append(("no exit was recorded", "$muted"))
    if (ran := elapsed(body)) is not None and body["fresh_seconds"] is None:
        parts.append((f"after {human_duration(ran)}", "$foreground"))
    peak = _number(body, "peak_memory_bytes")
    if isinstance(peak, int):
        parts.append((f"peak memory {human_bytes(peak)}", "$foreground"))
    return parts


def _number(body: Mapping[str, Any], name: str) -> Any:
    return (body["numbers"].get(name) or {}).get("value")


def signal_name(number: Any) -> str:
    """``9 (KILL)``; the number alone where it has no name."""
    try:
        return f"{safe(number)} ({signal.Signals(number).name.removeprefix('SIG')})"
    except ValueError:
        return safe(number)


def pid(body: Mapping[str, Any]) -> str:
    """The number of the child's process."""
    return safe((body["process"] or {}).get("pid"))


def _second(moment: Any) -> str:
    """A time as it is written in the records (UTC), to the second."""
    said = safe(moment)
    whole, point, rest = said.partition(".")
    return f"{whole}Z" if point and rest.endswith("Z") else said


def note(sight: Sight, ascii_only: bool) -> list[Part]:
    """The finding that matters most, when it is more than a remark and is not in the status line; else nothing."""
    told = [one for one in sight.status.findings if one.code not in STOPS and one.level not in ("info", "low")]
    worst = max(told, key=lambda one: LEVELS.index(one.level), default=None)
    if worst is None:
        return []
    seen = level_look(worst.level)
    return [(f"{seen.mark(ascii_only)} {seen.word}: ", f"${seen.tone}"), (safe(worst.message), "$foreground")]


def truths(sight: Sight, later: float, room: int, ascii_only: bool) -> list[Part]:
    """Alive, fresh, advancing, decided: apart, in ``room`` cells. What gives way first is the evidence."""
    body = sight.status.body
    told, evidence = safe(body["liveness"], "no run yet"), _evidence(body)
    known = told if told != "unknown" else "unknown whether it runs"
    fresh = body["fresh_seconds"]
    when = "" if fresh is None else f"changed {human_duration(float(fresh) + later)} ago"
    seen = look(safe(body["verdict"]))
    verdict: Part = (f"{seen.mark(ascii_only)} {seen.word}", f"${seen.tone}")
    stop = next((safe(one.message) for one in sight.status.findings if one.code in STOPS), "")
    long, short = advance(body["tasks"]), advance(body["tasks"], unit=False)
    proof = f" ({evidence})" if evidence else ""
    made: list[Part] = []
    for first, where in ((known + proof, long), (known + proof, short), (known, long), (known, short)):
        made = _joined((stop, "$warning"), (first, "$foreground"), (when, "$muted"), (where, "$foreground"), verdict)
        if sum(cell_width(text) for text, _ in made) <= room:
            return made
    used = sum(cell_width(text) for text, _ in made)
    where = elide_end(short, max(1, cell_width(short) - used + room))
    return _joined((stop, "$warning"), (known, "$foreground"), (when, "$muted"), (where, "$foreground"), verdict)


def _evidence(body: Mapping[str, Any]) -> str:
    said = safe(body["liveness_evidence"], "")
    return _SHORT.get(said, said.partition(", recorded by")[0])


def _joined(*parts: Part) -> list[Part]:
    line: list[Part] = []
    for part in parts:
        if part[0]:
            line += [_SEPARATOR, part]
    return line[1:]


def command_detail(command: Command, folder: str) -> tuple[Part, ...]:
    """The argv one option a line, then what else decides the run."""
    lines: list[Part] = []
    for number, (option, values) in enumerate(command.option_lines()):
        lines.append((f"{'' if number == 0 else '  '}{exact(f'{option} {values}'.rstrip())}", "strong"))
    lines.append(("", "text"))
    lines.append((f"working directory  {exact(command.cwd)}", "text"))
    lines += [(f"variable set  {exact(f'{name}={value}')}", "text") for name, value in command.env_set.items()]
    lines += [(f"variable unset  {exact(name)}", "text") for name in command.env_unset]
    lines += [(f"writes  {exact(path)}", "text") for path in command.writes]
    lines.append((f"as recorded in {exact(folder)}/run.json", "muted"))
    return tuple(lines)


def next_signal(stops: Sequence[str]) -> str:
    """The signal that comes next in the order INT, TERM, KILL, after those that were sent."""
    sent = [_SIGNALS.index(one) for one in stops if one in _SIGNALS]
    return _SIGNALS[min(max(sent) + 1, len(_SIGNALS) - 1)] if sent else _SIGNALS[0]


_EFFECTS: Final = {
    "INT": "It asks quark-cli to end: what it wrote for its own use is cleaned up. A signal can be swallowed; "
    "whether this one was heeded is shown on the status line. If it is not, TERM is next.",
    "TERM": "INT was sent and is not heeded. "
    "TERM ends the process group, without the clean-up that INT leaves time for.",
    "KILL": "The signals before were not heeded. KILL ends the process group at once: nothing is cleaned up.",
}
_LISTED: Final = 10


def stop_detail(answer: Answer) -> tuple[Part, ...]:
    """What the signal of ``answer`` would reach, do and leave."""
    body = answer.body
    parts: list[Part] = []
    for one in answer.findings:
        if one.code != "not_sent":
            parts += [(text, _weight(one, tone)) for text, tone in finding_detail(one)]
    targets = body["targets"]
    if targets:
        parts.append((f"signal {safe(body['signal'])} goes to", "muted"))
        parts += [(f"  {safe(one['pid'])}  {safe(one['command'])}", "strong") for one in targets[:_LISTED]]
        if len(targets) > _LISTED:
            parts.append((f"  and {len(targets) - _LISTED} more of the same process group", "text"))
        parts.append((_EFFECTS.get(body["signal"], ""), "text"))
    else:
        parts.append((safe(body["next"]), "strong"))
    remains = body["remains"]
    if not remains:
        parts.append(("the output folder holds no file now", "muted"))
        return tuple(parts)
    count = f"{len(remains)} file{'s' if len(remains) > 1 else ''}"
    parts.append((f"what is there stays, nothing is deleted: {count} in the output folder", "muted"))
    parts += [(f"  {safe(one['path'])}  {human_bytes(one['size'])}", "text") for one in remains[:_LISTED]]
    if len(remains) > _LISTED:
        parts.append((f"  and {len(remains) - _LISTED} more", "text"))
    return tuple(parts)


def _weight(one: Finding, tone: str) -> str:
    return "warning" if tone == "text" and one.level in ("medium", "high", "block") else tone


def pace(sight: Sight | None, wide_log: bool) -> float | None:
    """Seconds until the next look; None where nothing is to be expected any more. ``sight`` is None for a failed look.

    A log that has the whole width costs more bytes to repaint than a pane beside the tree.
    """
    if sight is None:
        return 2.0
    body = sight.status.body
    if alive(body):
        return 0.5 if wide_log else 0.3
    if body["liveness"] == "unknown":
        return 2.0
    return 5.0 if body["scope"] == "job" else None
