"""Hand-made answers of the checkpoints before a run, in the shape that the engine gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quark_tui.core.answer import Answer
from quark_tui.core.command import Command
from quark_tui.core.finding import Finding
from quark_tui.engine.review import Review

JOB = "/home/somebody/jobs/demo"
MODEL = "/home/somebody/models/smollm2-135m"
TARGET = "/home/somebody/venvs/quark"
ANALYSIS_DIGEST, PLAN_DIGEST, DIGEST = "a1" * 32, "b2" * 32, "6f2c91d0" * 8
WHEN = {"confirmed_at": "2026-01-02T03:04:05Z", "via": "screen"}

_PLAN: tuple[tuple[str, Any, Any, str], ...] = (
    ("global_scheme", "fp8", None, "FP8 e4m3 weights and static activations, per tensor"),
    ("kv_cache_scheme", None, None, "not asked for"),
    ("layer_quant_config", {"*o_prj": "int8"}, {}, "chosen by hand"),
    ("exclude_layers", ["lm_head"], ["lm_head"], "llama template of Quark 0.12.post1"),
    ("algorithm", None, None, "not asked for: round to nearest"),
    ("dataset", "pileval", "pileval", "default of quark-cli 0.12.post1"),
    ("num_calib_data", 128, 512, "a quick look"),
    ("seq_len", 512, 512, "default of quark-cli 0.12.post1"),
    ("batch_size", 1, 1, "default of quark-cli 0.12.post1"),
    ("device_strategy", "cpu", None, "chosen by hand"),
    ("devices", [], None, "what the strategy implies"),
    ("output_dir", f"{JOB}/out", f"{JOB}/out", "the job's own folder"),
    ("evaluation_intent", "none", "none", "stop at the quantized output"),
    ("trust_remote_code", False, False, "safer unless the model needs it"),
)
_FACTS: tuple[tuple[str, Any, str], ...] = (
    ("model_type", "llama", "config.json: model_type"),
    ("architectures", ["LlamaForCausalLM"], "config.json: architectures"),
    ("num_hidden_layers", 30, "config.json: num_hidden_layers"),
    ("hidden_size", 576, "config.json: hidden_size"),
    ("num_experts", None, "not stated"),
    ("dtype", "bfloat16", "config.json: dtype"),
    ("tie_word_embeddings", True, "config.json: tie_word_embeddings"),
    ("max_position_embeddings", 8192, "config.json: max_position_embeddings"),
    ("parameters", 134_515_008, "weight headers"),
)
COMMAND = Command(
    (
        f"{TARGET}/bin/quark-cli", "torch-llm-ptq", "--model_dir", MODEL, "--output_dir", f"{JOB}/out",
        "--quant_scheme", "fp8", "--num_calib_data", "128", "--device", "cpu", "--no_trust_remote_code",
        "--skip_evaluation",
    ),
    JOB,
    {"QUARK_LOG_LEVEL": "info", "CUDA_VISIBLE_DEVICES": ""},
    purpose="quantize to fp8",
    writes=(f"{JOB}/out", f"{TARGET}/lib/python3.11/site-packages/quark/experimental/cli/torch_llm/llm_ptq"),
)  # fmt: skip


def environment(*found: Finding, **more: Any) -> Answer:
    """What one look found of the interpreter and the machine."""
    packages: dict[str, Any] = {
        name: {"version": version, "location": f"{TARGET}/lib/python3.11/site-packages"}
        for name, version in (("amd-quark", "0.12.post1"), ("torch", "2.13.0"), ("transformers", "5.2.0"))
    }
    body = {
        "interpreter": {"executable": f"{TARGET}/bin/python", "prefix": TARGET, "version": "3.11.7", "supported": True},
        "packages": {**packages, "vllm": None},
        "torch": {"version": "2.13.0+cpu", "backend": "cpu", "cuda": None, "hip": None},
        "gpus": [],
        "gpu_verdict": "no_gpu",
        "gpu_evidence": "no tool and no device in sysfs",
        "driver": None,
        "compute": {"mode": "undecided", "ready": False, "reasons": ["no GPU was seen"]},
        **more,
    }
    return Answer("environment", body, tuple(found))


def analysis(*found: Finding, confirmed: bool = False, **more: Any) -> Answer:
    body = {
        "path": MODEL,
        "analysis": {"analysis_status": "complete"},
        "facts": {name: {"value": value, "from": source} for name, value, source in _FACTS},
        "remote_code": [],
        "already_quantized": None,
        "inventory": {
            "known": True,
            "source": "safetensors headers of 1 files",
            "linear_count": 211,
            "groups": [
                {"pattern": "model.layers.*.self_attn.q_proj", "count": 30, "parameters": 9_953_280},
                {"pattern": "lm_head", "count": 1, "parameters": 28_311_552},
            ],
        },
        "questions": [],
        "digest": ANALYSIS_DIGEST,
        "confirmed": confirmed,
        **(WHEN if confirmed else {"confirmed_at": None, "via": None}),
        **more,
    }
    return Answer("analysis", body, tuple(found))


def plan(*found: Finding, confirmed: bool = False, analysis_confirmed: bool = True, **more: Any) -> Answer:
    rows = [
        {"key": key, "value": value, "default": default, "reason": reason, "changed": value != default}
        for key, value, default, reason in _PLAN
    ]
    body = {
        "path": JOB,
        "plan": {},
        "rows": rows,
        "patterns": [
            {
                "kind": "override", "pattern": "*o_prj", "scheme": "int8", "matches": 0, "effective": 0,
                "shadowed_by": None,
            }
        ],
        "estimate": {"output_bytes": 163_000_000, "peak_memory_bytes": 1_300_000_000, "basis": "shapes and scheme"},
        "schemes": [
            {"name": "fp8", "summary": "FP8 e4m3", "advice": "MI300 and newer", "exportable": True},
            {"name": "int4_wo_128", "summary": None, "advice": None, "exportable": None},
        ],
        "analysis_digest": ANALYSIS_DIGEST,
        "analysis_confirmed": analysis_confirmed,
        "plan_confirmed": confirmed,
        "digest": PLAN_DIGEST,
        "refused": False,
        **(WHEN if confirmed else {"confirmed_at": None, "via": None}),
        **more,
    }  # fmt: skip
    return Answer("plan", body, tuple(found), 1 if any(one.level == "block" for one in found) else 0)


def command(*found: Finding, shown: Command | None = COMMAND, **more: Any) -> Answer:
    blocked = sorted({one.code for one in found if one.level == "block"})
    body = {
        "path": JOB,
        "commands": [shown.to_json()] if shown else [],
        "blocked": blocked,
        "digest": None if blocked else DIGEST,
        "digest_inputs": {
            "env": {"HOME": "/home/somebody", "HF_TOKEN": "set"},
            "files": [
                {"path": f"{JOB}/quant_plan.json", "sha256": "c3" * 32},
                {"path": f"{MODEL}/model.safetensors", "stat": "size=269060552, mtime_ns=1, header_sha256=d4"},
            ],
            "versions": {"amd-quark": "0.12.post1", "torch": "2.13.0", "datasets": None},
            "earlier_runs": [],
            "used_digests": [],
        },
        "estimate": {"output_bytes": 163_000_000, "peak_memory_bytes": 1_300_000_000, "basis": "shapes and scheme"},
        "available": {"output_bytes": 52_000_000_000, "memory_bytes": 22_000_000_000},
        "remote_code": [],
        "expected_files": [f"{JOB}/out/{name}" for name in ("config.json", "model.safetensors", "tokenizer.json")],
        "holders": [],
        **more,
    }
    return Answer("command", body, tuple(found), 1 if blocked else 0)


def review(passed: int = 0, blocking: Sequence[Finding] = ()) -> Review:
    """What a job shows after ``passed`` of Checkpoints 1 and 2."""
    return Review(
        analysis(confirmed=passed >= 1),
        plan(*blocking, confirmed=passed >= 2, analysis_confirmed=passed >= 1),
        command(*blocking),
        environment(),
    )
