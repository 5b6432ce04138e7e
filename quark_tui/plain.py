"""Answers as plain text: what a screen says, for people who read a line at a time."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.command import Command
from quark_tui.core.finding import LEVELS
from quark_tui.core.text import cell_width, clean, human_bytes, human_duration, pad, redact

_STATE_GLYPH = {"pending": "·", "active": "▸", "done": "✓", "failed": "✗", "skipped": "–", "interrupted": "!"}
_CHECK_GLYPH = {True: "✓", False: "✗", None: "–"}
_SAYS_NEXT = frozenset({"plan", "command", "status", "verify"})
_ADVISORY = frozenset({"tokenizer_unchanged", "size_plausible"})
_LEVEL_GLYPH = {"info": "i", "low": "·", "medium": "!", "high": "!!", "block": "✗"}


def safe(value: Any) -> str:
    """Foreign text on one line, without control characters and credentials; None is the word unknown."""
    return "unknown" if value is None else redact(clean(value))


def table(rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset(), indent: str = "  ") -> list[str]:
    """Columns aligned by terminal cells; ``right`` names those that hold numbers."""
    cells = [list(row) for row in rows]
    if not cells:
        return []
    widths = [max(cell_width(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        (
            indent
            + "  ".join(
                pad(text, width, right=i in right) for i, (text, width) in enumerate(zip(row, widths, strict=True))
            )
        ).rstrip()
        for row in cells
    ]


def render(answer: Answer) -> str:
    """The whole answer: its body, the findings by weight, and the command that comes next."""
    lines = _RENDERERS.get(answer.command, _generic)(answer.body)
    if answer.findings:
        lines.append("")
    for finding in sorted(answer.findings, key=lambda one: -LEVELS.index(one.level)):
        lines.append(f"{_LEVEL_GLYPH[finding.level]} {finding.level}: {safe(finding.message)}  [{finding.code}]")
        lines += [f"    {safe(line)}" for line in finding.evidence.splitlines()]
        if finding.next_step:
            lines.append(f"    next: {safe(finding.next_step)}")
    if answer.body.get("next") and answer.command in _SAYS_NEXT:
        lines += ["", f"next: {safe(answer.body['next'])}"]
    return "\n".join(lines)


def _generic(body: Mapping[str, Any], indent: str = "") -> list[str]:
    lines: list[str] = []
    for key, value in body.items():
        if isinstance(value, Mapping):
            lines.append(f"{indent}{safe(key)}:")
            lines += _generic(value, indent + "  ") or [f"{indent}  (none)"]
        elif isinstance(value, list):
            lines.append(f"{indent}{safe(key)}:" + ("" if value else " none"))
            for item in value:
                if isinstance(item, Mapping):
                    inner = _generic(item, indent + "    ")
                    lines += [f"{indent}  - {inner[0].strip()}", *inner[1:]] if inner else []
                else:
                    lines.append(f"{indent}  - {safe(item)}")
        elif isinstance(value, bool):
            lines.append(f"{indent}{safe(key)}: {'yes' if value else 'no'}")
        else:
            lines.append(f"{indent}{safe(key)}: {safe(value)}")
    return lines


def _env(body: Mapping[str, Any]) -> list[str]:
    interpreter, torch = body["interpreter"], body["torch"]
    lines = ["interpreter"]
    lines += table((name, _value(value)) for name, value in interpreter.items())
    lines.append("packages")
    lines += table(
        (name, safe(one["version"]) if one else "missing", safe(one["location"]) if one else "")
        for name, one in body["packages"].items()
    )
    lines.append("torch, read from its files")
    built = torch["backend"] not in (None, "unknown")
    lines += table(
        (name, "none" if built and value is None and name in ("cuda", "hip") else _value(value))
        for name, value in torch.items()
    )
    lines.append(f"GPUs: {safe(body['gpu_verdict'])} ({safe(body['gpu_evidence'])}), driver {safe(body['driver'])}")
    for gpu in body["gpus"]:
        used = f"{human_bytes(gpu['memory_used'])} of {human_bytes(gpu['memory_total'])} used"
        lines.append(
            f"  {safe(gpu['index'])} {safe(gpu['name'])} {safe(gpu['arch'])}, {used} (from {safe(gpu['source'])})"
        )
    container = body["container"]
    lines.append(f"kernel {safe(body['kernel'])}")
    inside = f"{_value(container['inside'])} ({safe(container['evidence'])})"
    lines.append(f"in a container: {inside}, image {safe(container['image'])}")
    lines.append("variables")
    lines += table((name, "unset" if value is None else safe(value)) for name, value in body["env_vars"].items())
    lines.append("tools")
    lines += table((name, "absent" if path is None else safe(path)) for name, path in body["tools"].items())
    lines.append(f"quark-cli: {safe(body['quark_cli']) if body['quark_cli'] else 'missing'}")
    compute = body["compute"]
    lines.append(f"compute: {safe(compute['mode'])}, ready: {_value(compute['ready'])}")
    return lines + [f"  {safe(reason)}" for reason in compute["reasons"]]


def _model(body: Mapping[str, Any]) -> list[str]:
    lines = ["facts"]
    lines += table((name, _value(fact["value"]), safe(fact["from"])) for name, fact in body["facts"].items())
    inventory = body["inventory"]
    lines.append(f"linear modules: {safe(inventory['linear_count'])}  ({safe(inventory['source'])})")
    lines += table(
        ((safe(group["pattern"]), str(group["count"]), f"{group['parameters']:,}") for group in inventory["groups"]),
        frozenset({1, 2}),
    )
    quantized = body["already_quantized"]
    lines.append(
        "already quantized: " + (f"{safe(quantized['method'])}, {safe(quantized['evidence'])}" if quantized else "no")
    )
    lines += _remote_code(body["remote_code"])
    if body["analysis"] is None:
        lines.append("analysis: cannot be written yet, a material fact is unknown")
    else:
        lines.append(f"analysis: {safe(body['analysis']['analysis_status'])}")
    return lines


def _remote_code(found: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["remote code: " + ("" if found else "none named in the configuration files")]
    for code in found:
        stopped = "stopped" if code["stopped_by_flag"] else "NOT stopped"
        lines.append(
            f"  {safe(code['file'])} {safe(code['key'])} → {safe(code['target'])}  "
            f"({stopped} by --no_trust_remote_code, sha256 {safe(code['sha256'])})"
        )
    return lines


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{safe(key)}={safe(item)}" for key, item in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(safe(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return safe(value)


def _row_value(value: Any) -> str:
    return "none" if value is None else _value(value)


def _plan(body: Mapping[str, Any]) -> list[str]:
    if body["refused"]:
        return ["refused: nothing was changed, none of the settings of this call was kept"]
    rows = [("  DECISION", "VALUE", "WHY")]
    rows += [
        (f"{'●' if row['changed'] else ' '} {row['key']}", _row_value(row["value"]), safe(row["reason"] or ""))
        for row in body["rows"]
    ]
    lines = table(rows, indent="")
    if body["patterns"]:
        lines += ["", "patterns"]
        lines += table(
            (
                pattern["kind"],
                safe(pattern["pattern"]),
                _row_value(pattern["scheme"]),
                f"matches {safe(pattern['matches'])}",
                f"decides {safe(pattern['effective'])}",
                f"hidden by {safe(pattern['shadowed_by'])}" if pattern["shadowed_by"] else "",
            )
            for pattern in body["patterns"]
        )
    if body["plan"] is None and body["schemes"]:
        lines += ["", "schemes of the installed Quark (hardware is advice; whether a kernel exists is not known here)"]
        lines += table(
            (safe(one["name"]), safe(one["summary"]), safe(one["advice"] or ""))
            for one in body["schemes"]
            if one["exportable"] is not False
        )
    estimate = body["estimate"]
    lines += [
        "",
        f"estimated output {human_bytes(estimate['output_bytes'])}, peak memory "
        f"{human_bytes(estimate['peak_memory_bytes'])} ({safe(estimate['basis'])})",
        f"analysis digest {safe(body['analysis_digest'])}",
        f"plan digest     {safe(body['digest'])}",
    ]
    return lines


def _command(body: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for number, raw in enumerate(body["commands"], 1):
        command = Command.from_json(raw)
        lines.append(f"command {number} of {len(body['commands'])}: {safe(command.purpose)}")
        lines += [f"  {safe(option)} {safe(values)}".rstrip() for option, values in command.option_lines()]
        lines.append(f"  in {safe(command.cwd)}")
        lines += [f"  sets {safe(name)}={safe(value)}" for name, value in command.env_set.items()]
        lines += [f"  unsets {safe(name)}" for name in command.env_unset]
        lines += [f"  writes {safe(path)}" for path in command.writes]
        lines += ["  as shell text:", f"  {safe(command.shell)}"]
    estimate, available, inputs = body["estimate"], body["available"], body["digest_inputs"]
    lines.append(
        f"estimated output {human_bytes(estimate['output_bytes'])} ({human_bytes(available['output_bytes'])} free), "
        f"peak memory {human_bytes(estimate['peak_memory_bytes'])} ({human_bytes(available['memory_bytes'])} here); "
        "time is not known: nothing to base it on"
    )
    lines += _remote_code(body["remote_code"])
    lines += [f"expected: {', '.join(safe(path) for path in body['expected_files'])}"]
    if body["holders"] is None:
        lines.append("who else holds a GPU is not known")
    else:
        lines += [f"GPU {safe(one['gpu'])} is also held by pid {safe(one['pid'])}" for one in body["holders"]]
    lines.append(
        f"the digest covers the command, {len(inputs['files'])} files, {len(inputs['env'])} variables, "
        f"{len(inputs['versions'])} versions"
    )
    lines.append("nothing has been created, downloaded or started")
    blocked = body["blocked"]
    lines.append(f"blocked: {', '.join(map(safe, blocked))}" if blocked else f"digest {body['digest']}")
    return lines


def _tasks(tasks: Iterable[Mapping[str, Any]], indent: str = "  ") -> list[str]:
    lines = []
    for task in tasks:
        progress = task["progress"]
        extra = [safe(task["detail"])] if task["detail"] else []
        if progress:
            total = "" if progress["total"] is None else f" of {progress['total']}"
            extra.append(f"{progress['done']}{total} {safe(progress['unit'])}")
        if task["reason"]:
            extra.append(safe(task["reason"]))
        if task["from"]:
            extra.append(f"(from {safe(task['from'])})")
        state = f"{_STATE_GLYPH[task['state']]} {task['state']:<11}"
        lines.append(f"{indent}{state} {safe(task['title'])}  {'; '.join(extra)}".rstrip())
        lines += _tasks(task["children"], indent + "    ")
    return lines


def _status(body: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{safe(body['verdict'])}  {safe(body['kind'])} {safe(body['scope'])}  {safe(body['path'])}",
        f"  liveness {_row_value(body['liveness'])}: {safe(body['liveness_evidence'])}",
        f"  stage {_row_value(body['stage'])}",
    ]
    if body["fresh_seconds"] is not None:
        lines.append(f"  changed {human_duration(body['fresh_seconds'])} ago")
    if body["process"]:
        pid, host, started = (safe(body["process"][key]) for key in ("pid", "host", "started"))
        lines.append(f"  pid {pid} on {host}, started {started}")
    lines += _tasks(body["tasks"])
    for name, number in body["numbers"].items():
        mark = "" if number["authoritative"] else ", not authoritative"
        lines.append(f"  {safe(name)}: {safe(number['value'])} (from {safe(number['from'])}{mark})")
    for path in filter(None, body["files"].values()):
        lines.append(f"  {safe(path)}")
    for item in body["advice"]:
        lines.append(f"  advice: {safe(item['action'])}: {safe(item['why'])}")
    return lines


def _new(body: Mapping[str, Any]) -> list[str]:
    if body["job"] is None:
        return ["refused: no job was made"]
    return [f"job {safe(body['job'])}", f"next: {shlex.join(['quark-tui', 'plan', safe(body['job'])])}"]


def _confirm(body: Mapping[str, Any]) -> list[str]:
    if body["confirmed_at"] is None:
        return [f"refused: the {safe(body['checkpoint'])} is not confirmed"]
    return [
        f"{safe(body['checkpoint'])} confirmed at {safe(body['confirmed_at'])} via {safe(body['via'])}",
        f"digest {safe(body['digest'])}",
        f"next: {safe(body['next'])}",
    ]


def _run(body: Mapping[str, Any]) -> list[str]:
    if body["pid"] is None:
        return ["refused: nothing was started, the approval was not used"]
    return [
        f"started run {safe(body['run_id'])}, pid {safe(body['pid'])}, approved via {safe(body['via'])}",
        f"folder {safe(body['run_folder'])}",
        "it goes on without this program or this terminal",
        f"next: {shlex.join(['quark-tui', 'status', safe(body['run_folder']), '--follow'])}",
    ]


def _accept(body: Mapping[str, Any]) -> list[str]:
    if body["accepted_at"] is None:
        return ["refused: the result is not accepted"]
    what = f"the {safe(body['verdict'])} result of run {safe(body['run_id'])} in {safe(body['output_dir'])}"
    return [f"accepted {what} at {safe(body['accepted_at'])} via {safe(body['via'])}"]


def _check_glyph(check: Mapping[str, Any]) -> str:
    return "!" if check["ok"] is False and check["code"] in _ADVISORY else _CHECK_GLYPH[check["ok"]]


def progress(body: Mapping[str, Any]) -> str:
    """One line for a run that is followed: where it stands now."""
    active = next((task for task in body["tasks"] if task["state"] == "active"), None)
    if active is None:
        return f"{safe(body['verdict'])}: {_row_value(body['stage'])}"
    inner = next((child for child in active["children"] if child["state"] == "active"), active)
    counts = inner["progress"] or active["progress"]
    done = ""
    if counts:
        total = "" if counts["total"] is None else f" of {counts['total']}"
        done = f", {counts['done']}{total} {safe(counts['unit'])}"
    return f"{safe(body['verdict'])}: {safe(inner['title'])}{done}"


def _verify(body: Mapping[str, Any]) -> list[str]:
    lines = [f"{body['verdict'].upper()} against the {safe(body['against'])}"]
    lines += table((_check_glyph(check), check["code"], safe(check["message"])) for check in body["checks"])
    lines.append(f"  modules quantized {safe(body['quantized_modules'])} of {safe(body['expected_modules'])} expected")
    lines += table(((safe(file["path"]), f"{file['size']:,}") for file in body["files"]), frozenset({1}))
    lines.append(f"digest {safe(body['digest'])}")
    return lines


def _sessions(body: Mapping[str, Any]) -> list[str]:
    rows = [("STATE", "WORKFLOW", "MODEL", "WHERE IT STANDS", "PATH")]
    rows += [
        (safe(one["verdict"]), safe(one["kind"]), safe(one["model"]), _row_value(one["stage"]), safe(one["path"]))
        for one in body["sessions"]
    ]
    lines = table(rows, indent="") if body["sessions"] else ["no jobs and no running quark processes were found"]
    return [*lines, f"looked in: {', '.join(map(safe, body['roots'])) or 'known jobs and running processes'}"]


_RENDERERS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "env": _env,
    "model": _model,
    "new": _new,
    "confirm": _confirm,
    "run": _run,
    "accept": _accept,
    "plan": _plan,
    "command": _command,
    "status": _status,
    "verify": _verify,
    "sessions": _sessions,
}
