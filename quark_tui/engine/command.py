"""``command``: the exact command that a job would run now, what its digest covers, and what keeps it from running."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.approval import approval_digest
from quark_tui.core.command import Command
from quark_tui.core.finding import Finding, block, blocks
from quark_tui.core.job import Job
from quark_tui.core.ptq import manifest as manifests
from quark_tui.core.ptq import plan as planning
from quark_tui.core.ptq.argv import ptq_command
from quark_tui.core.text import clean, has_credentials
from quark_tui.engine import environment as envs
from quark_tui.engine.hint import hint
from quark_tui.engine.locate import Unreadable, open_job
from quark_tui.engine.situation import Situation, busy, gather, living_run, written_analysis, written_plan
from quark_tui.io import artifacts, atomic, host, jobs
from quark_tui.io.paths import absolute
from quark_tui.io.runs import evidence
from quark_tui.io.runs.reading import read_run
from quark_tui.io.target import Target

#: Facts about the environment that a command cannot run without; elsewhere they are advice.
_NEEDED = frozenset({"package_missing", "quark_cli_missing", "torch_gpu_mismatch"})
#: Files of the installed Quark that decide what a plan means.
_QUARK_FILES = (
    "quark/experimental/cli/main.py",
    "quark/experimental/cli/torch_llm_ptq.py",
    "quark/torch/quantization/config/template.py",
    "quark/torch/quantization/config/algo_configs.py",
)
_PREVIEWS_KEPT = 20
_NOTHING: dict[str, Any] = {"env": {}, "files": [], "versions": {}, "earlier_runs": [], "used_digests": []}


@dataclass(frozen=True, slots=True)
class Built:
    """A command as far as it can be made: ``command`` is None when the plan or quark-cli is missing. ``environment``
    are those of the findings that are about the target interpreter and this machine."""

    situation: Situation
    plan: dict[str, Any] | None
    command: Command | None
    subject: evidence.Subject | None
    findings: tuple[Finding, ...]
    environment: tuple[Finding, ...]

    def write_manifest(self, given: Mapping[str, Mapping[str, Any]], run_folder: str | None = None) -> None:
        """run_manifest.yaml with this exact command, for the job and for its run. Raises OSError or ArtifactProblem."""
        assert self.command is not None and self.plan is not None
        target = self.situation.asked.target
        inputs = {"python": target.executable if target else None, "quark_version": self.situation.asked.quark_version}
        blocked = sorted({finding.code for finding in self.findings if finding.level == "block"})
        value = manifests.manifest(
            self.situation.path,
            self.plan,
            self.command,
            checkpoints=given,
            blocked_by=blocked,
            inputs={key: item for key, item in inputs.items() if item is not None},
        )
        for folder in filter(None, (self.situation.path, run_folder)):
            artifacts.write(f"{folder}/run_manifest.yaml", value)


def checkpoints(job: Job) -> dict[str, dict[str, Any]]:
    """What is on record for Checkpoints 1 and 2."""
    return {name: one.to_json() for name, one in job.confirmations.items()}


def build(situation: Situation, environ: Mapping[str, str]) -> Built:
    """The command of the plan as it lies on disk, with everything that blocks it named."""
    findings: list[Finding] = []
    if wrong := written_analysis(situation):
        findings.append(
            block(
                "analysis_unconfirmed",
                "the analysis that this rests on is not confirmed",
                wrong,
                f"{hint('plan', situation.path)} shows its digest for Checkpoint 1 (the analysis)",
            )
        )
    plan, wrong = written_plan(situation)
    if wrong:
        findings.append(
            block(
                "plan_unconfirmed",
                "the plan that this rests on is not confirmed",
                wrong,
                f"{hint('plan', situation.path)} shows it as it is now, for Checkpoint 2 (the plan)",
            )
        )
    findings += situation.view.findings
    environment = _environment(situation, environ)
    findings += environment
    target = situation.asked.target
    command = subject = None
    shown = plan if plan is not None and not wrong else situation.view.plan
    if target is not None and target.quark_cli is not None and shown is not None:
        try:
            command = ptq_command(shown, target.quark_cli, situation.path, situation.asked.catalog, situation.around)
            command = _with_tools(command, os.path.dirname(target.quark_cli), environ)
        except WrongQuestion as problem:
            findings.append(block("command_impossible", clean(problem), "", "quark-tui plan shows what to decide"))
        else:
            subject = _subject(situation, target.quark_cli, shown.get("template_file"))
    if command is not None and any(has_credentials(item) for item in command.argv):
        findings.append(
            block(
                "credentials_in_argv",
                "an argument holds what looks like a credential, which every user of this host could read",
                "",
                "use a path without credentials",
            )
        )
    if alive := living_run(situation.path):
        findings.append(busy(alive))
    elif earlier := _earlier(situation.path):
        findings.append(earlier)
    return Built(situation, shown, command, subject, tuple(dict.fromkeys(findings)), tuple(environment))


def _earlier(path: str) -> Finding | None:
    """The run before: a second start needs a new approval, which names it."""
    for folder in reversed(jobs.run_folders(path)):
        state = read_run(folder)
        if state.process:
            ended = state.exit.words if state.exit else state.liveness_evidence
            return Finding(
                "info",
                "earlier_run",
                f"run {clean(state.id)} of this job was started before: {clean(ended)}",
                clean(state.folder),
                f"{hint('status', path)} says what became of it",
            )
    return None


def _environment(situation: Situation, environ: Mapping[str, str]) -> list[Finding]:
    """P-90: what is missing or does not fit surfaces before the approval, not after it."""
    if situation.asked.problem is not None:
        return [situation.asked.problem]
    target = situation.asked.target
    assert target is not None
    found = envs.python_findings(target) + envs.package_findings(target) + envs.gpu_findings(target, situation.seen)
    found += envs.tool_findings(target, host.tools(_tool_environ(target, environ))) + envs.lock_findings(
        target, host.build_locks(environ)
    )
    cpu = situation.view.plan is not None and situation.view.plan.get("device_strategy") == "cpu"
    kept = []
    for finding in found:
        if finding.code == "quark_needs_gpu":
            continue  # the plan says it, where it applies
        needed = finding.code in _NEEDED and not (finding.code == "torch_gpu_mismatch" and cpu)
        kept.append(replace(finding, level="block") if needed else finding)
    return kept


def _tool_environ(target: Target, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment as the command will have it."""
    if target.quark_cli is None:
        return environ
    return {**environ, **_path_with(os.path.dirname(target.quark_cli), environ)}


def _path_with(folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """torch calls ninja by name when it loads a compiled extension; the one of the target's environment comes first
    where that environment is not the active one."""
    present = environ.get("PATH", os.defpath)
    return {} if folder in present.split(os.pathsep) else {"PATH": f"{folder}{os.pathsep}{present}"}


def _with_tools(command: Command, folder: str, environ: Mapping[str, str]) -> Command:
    return replace(command, env_set={**command.env_set, **_path_with(folder, environ)})


def _subject(situation: Situation, quark_cli: str, template: Any) -> evidence.Subject:
    target = situation.asked.target
    assert target is not None
    files = [situation.file("model_analysis.json"), situation.file("quant_plan.json"), quark_cli]
    if isinstance(template, str):
        files.append(template)
    if target.quark_root:
        files += [f"{target.quark_root}/{name}" for name in _QUARK_FILES]
    return evidence.Subject(
        files=tuple(files),
        model=situation.job.model,
        interpreter=target.executable or target.asked,
        search_path=target.search_path,
        runs=f"{situation.path}/.quark-tui/runs",
    )


def command(path: str, environ: Mapping[str, str]) -> Answer:
    """Raises WrongQuestion when there is no job at ``path`` or one of another workflow."""
    try:
        where, job = open_job(path)
        situation = gather(where, job, environ)
    except Unreadable as problem:
        return _impossible(absolute(path), problem.finding)
    return answered(build(situation, environ), environ)


def answered(built: Built, environ: Mapping[str, str]) -> Answer:
    """What ``command`` says of it; what its digest stands for is remembered. Raises OSError when that cannot be."""
    situation, where = built.situation, built.situation.path
    inputs = evidence.collect(built.subject, environ) if built.subject else _NOTHING
    blocked = sorted({finding.code for finding in built.findings if finding.level == "block"})
    digest = None
    if built.command is not None and not blocked:
        digest = approval_digest([built.command], inputs)
        remember(where, digest, built.command, inputs, built.subject)
    body = {
        "path": where,
        "commands": [built.command.to_json()] if built.command else [],
        "blocked": blocked,
        "digest": digest,
        "digest_inputs": inputs,
        "estimate": situation.view.estimate.to_json(),
        "available": {
            "output_bytes": situation.around.free_bytes,
            "memory_bytes": situation.around.memory_bytes,
        },
        "remote_code": [code.to_json() for code in situation.intake.remote_code],
        "expected_files": [
            f"{planning.output_dir(situation.wishes, situation.job.output)}/{name}" for name in manifests.EXPECTED_FILES
        ],
        "next": None if digest is None else hint("run", where, "--approve", digest),
        "holders": _holders(situation.seen["gpus"]),
    }
    return Answer("command", body, built.findings, 1 if blocks(built.findings) else 0)


def _impossible(where: str, finding: Finding) -> Answer:
    nothing: dict[str, Any] = {
        "path": where,
        "commands": [],
        "blocked": [finding.code],
        "digest": None,
        "digest_inputs": _NOTHING,
        "estimate": {"output_bytes": None, "peak_memory_bytes": None, "basis": "nothing can be estimated"},
        "available": {"output_bytes": None, "memory_bytes": None},
        "remote_code": [],
        "expected_files": [],
        "holders": [],
    }
    return Answer("command", nothing, (finding,), 1)


def _holders(gpus: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """Who else holds the GPUs; None when nobody could tell."""
    if any(gpu.get("holders") is None for gpu in gpus):
        return None
    return [{"gpu": gpu["index"], **holder} for gpu in gpus for holder in gpu["holders"]]


def _preview(job: str, digest: str) -> str:
    return f"{job}/.quark-tui/previews/{digest}.json"


def remember(
    job: str, digest: str, shown: Command, inputs: Mapping[str, Any], subject: evidence.Subject | None
) -> None:
    """Keep what a digest stood for, so that a later difference can be named. Only the newest few are kept."""
    folder = f"{job}/.quark-tui/previews"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    kept = {"command": shown.to_json(), "inputs": inputs, "subject": subject.to_json() if subject else None}
    atomic.write_json(_preview(job, digest), kept)
    entries = sorted(os.scandir(folder), key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
    for entry in entries[_PREVIEWS_KEPT:]:
        os.unlink(entry.path)


def remembered(job: str, digest: str) -> tuple[Command, dict[str, Any]] | None:
    """What ``digest`` stood for when it was shown; None when it was never shown here."""
    try:
        kept = _kept(job, digest)
        inputs = {name: kept["inputs"][name] for name in _NOTHING}
        return Command.from_json(kept["command"]), inputs
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remembered_subject(job: str, digest: str) -> evidence.Subject | None:
    """Where the inputs of ``digest`` were looked up; None when it was never shown here."""
    try:
        return evidence.Subject.from_json(_kept(job, digest)["subject"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _kept(job: str, digest: str) -> dict[str, Any]:
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise ValueError("no digest")
    return atomic.read_json(_preview(job, digest))
