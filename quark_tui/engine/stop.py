"""``stop``: one signal to one run's process group, asked for each time; what remains is named, nothing is deleted."""

from __future__ import annotations

import json
import os
import stat

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding
from quark_tui.core.run import MAX_STOPS, STOP_FILES, STOP_SIGNALS
from quark_tui.core.text import clean, redact
from quark_tui.engine.hint import hint
from quark_tui.engine.locate import locate
from quark_tui.io.paths import can_be_path
from quark_tui.io.runs import launcher, process
from quark_tui.io.runs.reading import RunState
from quark_tui.io.runs.supervisor import utc_now


def stop(path: str, name: str, yes: bool) -> Answer:
    """Send ``name`` (INT, TERM or KILL) to the run at ``path``; without ``yes`` only say what would be sent.

    TERM and KILL only after an INT is on record: INT is what lets quark-cli and its helpers clean up.
    """
    place = locate(path)
    state = place.newest
    if state is None:
        raise WrongQuestion(f"quark-tui stop: {clean(place.path)} has no run")
    started = state.process or {}
    pid, ticks = started.get("pid"), started.get("start_ticks")
    findings: list[Finding] = []
    targets: list[dict[str, object]] = []
    sent = False
    next_step = "nothing runs: nothing to stop"
    if state.liveness == "alive" and isinstance(pid, int) and isinstance(ticks, int):
        targets = [_described(member) for member in process.group_members(pid)] or [_described(pid)]
        earlier = {str(record.get("signal")) for record in state.stops}
        if name != "INT" and "INT" not in earlier and (not yes or _can_record(state.folder)):
            findings.append(
                Finding(
                    "block",
                    "int_first",
                    f"{name} is sent only after an INT is on record",
                    "an interrupted quark-cli still cleans up after itself; a killed one cannot",
                    hint("stop", place.path, "--yes"),
                )
            )
            next_step = "ask it to stop with INT first"
        elif not yes:
            findings.append(
                Finding("info", "not_sent", "nothing was sent", "--yes is what sends it", "ask again with --yes")
            )
            next_step = hint("stop", place.path, "--signal", name, "--yes")
        else:
            try:
                _record(state.folder, name)
            except OSError as error:
                # A full disk is a reason to stop a run, not one to let it go on.
                findings.append(
                    Finding(
                        "medium",
                        "stop_not_recorded",
                        "that the signal is yours could not be written down: the run's end will not be told as stopped",
                        f"{clean(state.folder)}/stops.jsonl: {clean(error.strerror or error)}",
                        "make room, or ask again later",
                    )
                )
            sent = process.signal_group(pid, ticks, STOP_SIGNALS[name])
            following = {"INT": "TERM", "TERM": "KILL", "KILL": "KILL"}[name]
            next_step = (
                "status tells whether it was heeded; if it was not: "
                + hint("stop", place.path, "--signal", following, "--yes")
                if sent
                else "it had ended before the signal came"
            )
    elif state.liveness == "alive":
        findings.append(
            Finding(
                "block",
                "process_unknown",
                "it runs, but which process it is cannot be read, so nothing is signalled",
                clean(state.problem) or "run.json names no process",
                "quark-tui sessions lists running quark processes with their pids",
            )
        )
        next_step = "find the process by hand"
    elif state.liveness == "unknown":
        findings.append(
            Finding(
                "block",
                "liveness_unknown",
                "whether it runs cannot be told from here, so nothing is signalled",
                state.liveness_evidence,
                "ask on the host that it started on",
            )
        )
        next_step = "stop it on the host that it started on"
    remains = _remains(state)
    return Answer(
        "stop",
        {"signal": name, "targets": targets, "remains": remains, "sent": sent, "next": next_step},
        tuple(findings),
        exit=1 if any(finding.level == "block" for finding in findings) else 0,
    )


def _can_record(folder: str) -> bool:
    """False where not even an INT could be put on record: then the order INT, TERM, KILL cannot be asked for."""
    try:
        room = os.statvfs(folder).f_bavail > 0 and os.access(folder, os.W_OK)
    except OSError:
        return False
    for name in STOP_FILES:
        try:
            info = os.lstat(f"{folder}/{name}")
        except OSError:
            if room:
                return True
            continue
        if room and stat.S_ISREG(info.st_mode) and info.st_size <= MAX_STOPS:
            return True
    return False


def _described(pid: int) -> dict[str, object]:
    argv = process.command_line(pid)
    return {"pid": pid, "command": None if argv is None else redact(clean(" ".join(argv)))}


def _record(folder: str, name: str) -> None:
    """Before the signal goes out: the supervisor has to know whose it was. Raises OSError when no record can be made.

    A torn last line is closed first; where stops.jsonl is no file to append to, a second one takes its place.
    """
    line = "\n" + json.dumps({"signal": name, "sent_at": utc_now(), "by": launcher.who()}) + "\n"
    _append(folder, line.encode())


def _append(folder: str, line: bytes) -> None:
    trouble: OSError | None = None
    for file in STOP_FILES:
        try:
            descriptor = os.open(
                f"{folder}/{file}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o600
            )
        except OSError as error:
            trouble = error
            continue
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_STOPS:
                trouble = OSError(0, f"{file} cannot take another line")
                continue
            os.write(descriptor, line)
            os.fsync(descriptor)
            return
        except OSError as error:
            trouble = error
        finally:
            os.close(descriptor)
    assert trouble is not None
    raise trouble


def _remains(state: RunState) -> list[dict[str, object]]:
    """Files in the run's output folder: a partial export is named, never deleted."""
    about = state.run.get("about")
    output = about.get("output_dir") if isinstance(about, dict) else None
    return left_behind(output) if isinstance(output, str) else []


def left_behind(output: str, limit: int = 1000) -> list[dict[str, object]]:
    """``{path, size}`` of up to ``limit`` files under the output folder; none where it can be no path."""
    found: list[dict[str, object]] = []
    if not can_be_path(output):
        return found
    for parent, _, names in os.walk(output):
        for name in sorted(names):
            path = f"{parent}/{name}"
            try:
                found.append({"path": path, "size": os.stat(path).st_size})
            except OSError:
                continue
            if len(found) >= limit:
                return found
    return found
