"""model_analysis.json: the artifact of Checkpoint 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quark_tui.core.finding import artifact_severity
from quark_tui.core.model.facts import MATERIAL

if TYPE_CHECKING:
    from quark_tui.core.model.intake import Intake

#: Optional facts that are added under their own names where they are known.
_EXTRA = (
    "architectures", "num_hidden_layers", "hidden_size", "intermediate_size", "moe_intermediate_size", "num_experts",
    "num_experts_per_tok", "num_shared_experts", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
    "max_position_embeddings", "dtype", "tie_word_embeddings", "num_nextn_predict_layers", "modalities", "source_kind",
    "weight_bytes", "parameters",
)  # fmt: skip


def analysis_json(intake: Intake, trust_remote_code: bool | None = None) -> dict[str, Any] | None:
    """model_analysis.json as plain data; None while the model type or the layer count is unknown.

    ``trust_remote_code`` is the person's decision, left out before there is one. What is unknown is left out. A count
    that cannot be defended is a labelled conservative estimate, and the status is then partial.
    """
    model_type, layers = intake.facts["model_type"].value, intake.facts["num_hidden_layers"].value
    if model_type is None or layers is None:
        return None
    model: dict[str, Any] = {"model_path": intake.directory, "model_type": model_type}
    if trust_remote_code is not None:
        model["trust_remote_code"] = trust_remote_code
    version = intake.facts["transformers_version"].value
    if version is not None:
        model["transformers_version"] = version
    for name in _EXTRA:
        fact = intake.facts.get(name)
        if fact is not None and fact.value is not None:
            model[name] = fact.value
    if intake.remote_code:
        model["remote_code"] = [
            {key: value for key, value in code.to_json().items() if value is not None} for code in intake.remote_code
        ]
    if intake.already_quantized:
        model["already_quantized"] = dict(intake.already_quantized)
    estimated = intake.linear_count is None
    count, basis = intake.linear_count, intake.count_basis
    if count is None:
        estimate = intake.estimate
        count = estimate.linear if estimate is not None and estimate.linear is not None else 0
        basis = f"{estimate.basis}; {intake.count_basis}" if estimate is not None else intake.count_basis
    targets: dict[str, Any] = {
        "linear_layer_count": count,
        "count_basis": basis,
        "count_is_estimate": estimated,
        "exclude_defaults": list(intake.template.exclude) if intake.template else [],
        "exclude_defaults_source": intake.template.source if intake.template else "unknown: no template was read",
    }
    if intake.has_non_linear_experts is not None:
        targets["has_non_linear_experts"] = intake.has_non_linear_experts
    complete = (
        intake.template is not None and not estimated and all(intake.facts[name].value is not None for name in MATERIAL)
    )
    return {
        "analysis_status": "complete" if complete else "partial",
        "model": model,
        "quantization_targets": targets,
        "sources": {
            name: fact.source
            for name, fact in intake.facts.items()
            if fact.value is not None and name in (*_EXTRA, "model_type")
        },
        "risks": [
            {
                "severity": artifact_severity(finding.level),
                "message": finding.message,
                "code": finding.code,
                **({"evidence": finding.evidence} if finding.evidence else {}),
                **({"recovery_hint": finding.next_step} if finding.next_step else {}),
            }
            for finding in intake.findings
        ],
    }
