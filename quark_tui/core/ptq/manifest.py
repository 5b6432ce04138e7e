"""``run_manifest.yaml``: what is to be run, what it rests on, the checkpoints, and later what was observed."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quark_tui.core.command import Command

WORKFLOW = "quark-torch-ptq"

#: The four checkpoints in order: id and what a person is asked there.
CHECKPOINTS: tuple[tuple[str, str], ...] = (
    ("analysis", "the model analysis is right before a plan rests on it"),
    ("plan", "every decision of the plan is wanted before a command is made from it"),
    ("execution", "this exact command may run; nothing was created, downloaded or started before"),
    ("result", "the verified output is what was asked for"),
)

#: Files that every export was seen to hold (0.12.post1 and 0.13), whatever the scheme.
EXPECTED_FILES = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)


def manifest(
    job_dir: str,
    plan: Mapping[str, Any],
    command: Command,
    expected_files: Iterable[str] = EXPECTED_FILES,
    checkpoints: Mapping[str, Mapping[str, Any]] | None = None,
    blocked_by: Sequence[str] = (),
    inputs: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest of a job in ``job_dir``.

    ``checkpoints`` maps an id of :data:`CHECKPOINTS` to what is on record for it (digest, confirmed_at, via);
    ``blocked_by`` are codes that keep the command from running; ``inputs`` adds to the recorded inputs.
    """
    given = checkpoints or {}
    model = plan.get("model")
    output = plan.get("output_dir")
    entries: list[dict[str, Any]] = []
    for name, reason in CHECKPOINTS:
        record = {key: value for key, value in given.get(name, {}).items() if key not in ("id", "reason")}
        entries.append({"id": name, "reason": reason, "passed": bool(record), **copy.deepcopy(record)})
    analysis, quant_plan, own = (
        f"{job_dir.rstrip('/')}/{name}" for name in ("model_analysis.json", "quant_plan.json", "run_manifest.yaml")
    )
    result: dict[str, Any] = {
        "workflow": WORKFLOW,
        "inputs": {
            "model_path": model.get("model_path") if isinstance(model, Mapping) else None,
            "model_type": model.get("model_type") if isinstance(model, Mapping) else None,
            "model_analysis": analysis,
            "quant_plan": quant_plan,
            **copy.deepcopy(dict(inputs or {})),
        },
        "outputs": {"output_dir": output, "expected_files": list(expected_files)},
        "checkpoints": entries,
        "blocked_by": list(blocked_by),
        "steps": [
            {"name": "Analyze the model", "kind": "analyze", "produces": [analysis]},
            {"name": "Plan the quantization", "kind": "plan", "produces": [quant_plan]},
            {"name": "Generate the manifest", "kind": "generate", "produces": [own]},
            {
                "name": "Run the quantization",
                "kind": "run",
                "command": command.shell,
                "argv": list(command.argv),
                "cwd": command.cwd,
                "env_set": dict(command.env_set),
                "env_unset": list(command.env_unset),
                "produces": [output] if isinstance(output, str) else [],
            },
        ],
    }
    # What is not known is left out: the contract has no null here.
    result["inputs"] = {key: value for key, value in result["inputs"].items() if value is not None}
    return result


def observed(
    manifest: Mapping[str, Any],
    status: str,
    files: Iterable[Mapping[str, Any]] = (),
    run: Mapping[str, Any] | None = None,
    verification: Mapping[str, Any] | None = None,
    checkpoints: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """``manifest`` with what was observed; the recorded command and everything else in it stays as it was.

    ``status`` is the run's verdict; ``files`` are ``{path, size}`` of the output; ``run`` holds exit status or signal,
    times and run id; ``verification`` the verdict and the checks. A step ``validate`` is added once; observing again
    replaces what was observed before.
    """
    result = copy.deepcopy(dict(manifest))
    outputs = result.get("outputs")
    outputs = dict(outputs) if isinstance(outputs, Mapping) else {}
    outputs["files"] = [dict(file) for file in files]
    outputs["status"] = status
    result["outputs"] = outputs
    steps = [step for step in result.get("steps", []) if isinstance(step, dict) and step.get("kind") != "validate"]
    for step in steps:
        if step.get("kind") == "run":
            step["status"] = status
            step.pop("observed", None)
            if run is not None:
                step["observed"] = copy.deepcopy(dict(run))
    if verification is not None:
        steps.append(
            {"name": "Verify the output", "kind": "validate", "produces": [], **copy.deepcopy(dict(verification))}
        )
    result["steps"] = steps
    for entry in result.get("checkpoints", []):
        record = (checkpoints or {}).get(entry.get("id", "")) if isinstance(entry, dict) else None
        if record:
            entry.update({key: copy.deepcopy(value) for key, value in record.items() if key not in ("id", "reason")})
            entry["passed"] = True
    return result
