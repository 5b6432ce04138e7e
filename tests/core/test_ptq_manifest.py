"""The manifest and the schemas of plan and manifest."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from quark_tui.core.ptq.argv import ptq_command
from quark_tui.core.ptq.manifest import CHECKPOINTS, manifest, observed
from tests.support.ptq import catalog, machine, view

SCHEMAS = Path(__file__).parents[2] / "schemas"


def valid(name: str, data: Any) -> bool:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).is_valid(data)


def made() -> tuple[dict[str, Any], dict[str, Any]]:
    plan = view("output_dir=/jobs/j/out").plan
    assert plan is not None
    command = ptq_command(plan, "/env/bin/quark-cli", "/jobs/j", catalog(), machine())
    return plan, manifest("/jobs/j", plan, command, checkpoints={"plan": {"digest": "d", "via": "cli"}})


def test_manifest_has_its_parts() -> None:
    """P-85, P-86, P-87, P-88, P-89: workflow, inputs, outputs, four checkpoints, four steps with what they produce."""
    plan, data = made()
    assert valid("run_manifest", data)
    assert data["workflow"] == "quark-torch-ptq"
    assert data["inputs"]["model_path"] == "/models/m"
    assert [entry["id"] for entry in data["checkpoints"]] == [name for name, _ in CHECKPOINTS]
    assert len(data["checkpoints"]) == 4 and all(entry["reason"] for entry in data["checkpoints"])
    assert [entry["passed"] for entry in data["checkpoints"]] == [False, True, False, False]
    assert [step["kind"] for step in data["steps"]] == ["analyze", "plan", "generate", "run"]
    assert [step["produces"] for step in data["steps"]] == [
        ["/jobs/j/model_analysis.json"],
        ["/jobs/j/quant_plan.json"],
        ["/jobs/j/run_manifest.yaml"],
        ["/jobs/j/out"],
    ]
    assert data["steps"][3]["command"].startswith("/env/bin/quark-cli torch-llm-ptq --model_dir /models/m")
    assert data["outputs"]["output_dir"] == plan["output_dir"]


def test_observing_keeps_the_recorded_command() -> None:
    """P-97: what was recorded is kept, what was observed is added, and observing again replaces it."""
    _, data = made()
    before = copy.deepcopy(data)
    seen = observed(
        data,
        "succeeded",
        [{"path": "/jobs/j/out/config.json", "size": 12}],
        {"status": 0, "run_id": "1"},
        {"verdict": "verified", "checks": []},
        {"result": {"accepted_at": "2024-01-01T00:00:00Z"}},
    )
    assert data == before
    assert valid("run_manifest", seen)
    for key in ("command", "argv", "cwd", "env_set", "env_unset", "produces"):
        assert seen["steps"][3][key] == before["steps"][3][key]
    assert seen["steps"][3]["status"] == "succeeded"
    assert seen["checkpoints"][3]["passed"] and not before["checkpoints"][3]["passed"]
    again = observed(seen, "partial", verification={"verdict": "partial"})
    assert [step["kind"] for step in again["steps"]] == ["analyze", "plan", "generate", "run", "validate"]
    assert again["outputs"]["files"] == [] and "observed" not in again["steps"][3]


def test_plans_fit_their_schema() -> None:
    """P-64, P-66: what is built fits."""
    for plan in (
        view(),
        view("exclude_layers=[]", "kv_cache_scheme=fp8", "algorithm=awq", overrides=("lm_head=int8",)),
        view("device_strategy=none", confirmed=True),
    ):
        assert valid("quant_plan", json.loads(json.dumps(plan.plan)))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("global_scheme", None),
        ("global_scheme", "--x"),
        ("exclude_layers", None),
        ("exclude_layers", ["-x"]),
        ("exclude_layers_source", "both"),
        ("layer_quant_config", {"*a": 1}),
        ("layer_quant_config", {"-a": "fp8"}),
        ("requires_confirmation", "yes"),
        ("evaluation_intent", "all"),
        ("num_calib_data", 0),
        ("model", {"model_type": "llama"}),
        ("devices", [-1]),
    ],
)
def test_damaged_plans_do_not_fit(key: str, value: Any) -> None:
    """P-101: a damaged artifact is seen."""
    plan = view().plan
    assert plan is not None
    assert not valid("quant_plan", {**plan, key: value})


@pytest.mark.parametrize(
    "change",
    [
        {"workflow": "quark-torch-llm-ptq"},
        {"steps": []},
        {"checkpoints": []},
        {"outputs": {}},
        {"inputs": None},
        {"blocked_by": [1]},
        {"steps": [{"name": "x", "kind": "run"}] * 4},
        {"steps": [{"name": "x", "kind": "install"}] * 4},
    ],
)
def test_damaged_manifests_do_not_fit(change: dict[str, Any]) -> None:
    """P-101: a damaged artifact is seen."""
    assert not valid("run_manifest", {**made()[1], **change})
