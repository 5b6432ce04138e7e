"""Counts of Linear modules from configuration arithmetic, for architectures whose blocks are known.

Measured: the modules of type ``torch.nn.Linear`` of each architecture on the meta device (transformers 5.2), experts
counted one by one as Quark 0.12.post1 and 0.13 unfuse them. Routers are no Linear unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quark_tui.core.model.config import lookup

#: Linear modules in each decoder layer, plus one output head.
_DENSE = {
    7: """llama code_llama mistral ministral3 qwen2 qwen3 gemma gemma2 gemma3_text olmo olmo2 olmo3 granite cohere
    cohere2 ernie4_5 exaone4 seed_oss smollm3 stablelm bitnet cwm diffllama helium vaultgemma""",
    6: "starcoder2 gpt_neo phi glm glm4 apertus arcee jais2 nanochat opt xglm gptj biogpt",
    4: "phi3 gpt_neox mpt bloom persimmon codegen gpt_bigcode",
}
PER_LAYER = {name: count for count, names in _DENSE.items() for name in names.split()}

#: Architectures whose projections are no ``torch.nn.Linear``: Conv1D (GPT-2 and kin), or a subclass, which Quark
#: passes by.
NOT_LINEAR = {
    "gpt2": "Conv1D",
    "gpt-sw3": "Conv1D",
    "openai-gpt": "Conv1D",
    "imagegpt": "Conv1D",
    "decision_transformer": "Conv1D",
    "falcon": "FalconLinear, a subclass of Linear",
}

#: Experts on top of four attention projections: all layers, three projections an expert.
_PLAIN_MOE = frozenset({"mixtral", "minimax_m2", "olmoe", "flex_olmo", "phimoe"})
#: DeepSeek kin: dense first layers, shared experts. Value: (latent attention, further Linear in attention, router is
#: Linear).
_DEEPSEEK_KIN = {
    "deepseek_v2": (True, 0, True),
    "deepseek_v3": (True, 0, False),
    "kimi_k2": (True, 0, False),
    "glm4_moe": (False, 0, False),
    "glm4_moe_lite": (True, 0, False),
    "glm_moe_dsa": (True, 3, False),
}


@dataclass(frozen=True, slots=True)
class Count:
    """``linear`` is None when the configuration cannot settle it; ``basis`` says how it was reached, or why not."""

    linear: int | None
    basis: str


def _number(section: Mapping[str, Any], key: str, default: int) -> int | None:
    value = lookup(section, key)
    if value is None:
        return default
    return value if type(value) is int and 0 <= value <= 10**9 else None


def linear_count(model_type: str, section: Mapping[str, Any], layers: int, experts: int | None) -> Count:
    """Linear modules of a causal language model of ``model_type`` with ``layers`` layers and ``experts`` experts.

    ``section`` is the configuration that describes it. The output head is counted, tied or not.
    """
    if model_type in NOT_LINEAR:
        return Count(
            1, f"configuration arithmetic: the blocks of {model_type} are {NOT_LINEAR[model_type]}; 1 output head"
        )
    if model_type in PER_LAYER and (experts or 0) > 1:
        return Count(None, f"{experts} experts are stated, and the known blocks of {model_type} have none")
    if model_type in PER_LAYER:
        each = PER_LAYER[model_type]
        total, text = layers * each + 1, f"{layers} layers × {each} + 1 output head"
        if model_type == "opt":
            width, embedded = lookup(section, "hidden_size"), lookup(section, "word_embed_proj_dim")
            if embedded is not None and embedded != width:
                total, text = total + 2, text + " + 2 embedding projections"
        return Count(total, f"configuration arithmetic: {text}")
    if model_type in _PLAIN_MOE and experts:
        each = 4 + 3 * experts
        return Count(
            layers * each + 1,
            f"configuration arithmetic: {layers} layers × (4 + {experts} experts × 3) + 1 output head, experts unfused",
        )
    if model_type == "gpt_oss" and experts:
        return Count(
            layers * (4 + 2 * experts) + 1,
            f"configuration arithmetic: {layers} layers × (4 + {experts} experts × 2) + 1 output head, experts unfused",
        )
    if model_type in ("qwen2_moe", "qwen3_moe") and experts:
        return _qwen_moe(model_type, section, layers, experts)
    if model_type in _DEEPSEEK_KIN and experts:
        return _deepseek(model_type, section, layers, experts)
    if experts:
        return Count(None, f"how many of the modules of {model_type} with {experts} experts are Linear is not known")
    return Count(None, f"the blocks of {model_type} are not known")


def _qwen_moe(model_type: str, section: Mapping[str, Any], layers: int, experts: int) -> Count:
    step, dense = _number(section, "decoder_sparse_step", 1), section.get("mlp_only_layers")
    if not step or (dense is not None and not (isinstance(dense, list) and all(type(n) is int for n in dense))):
        return Count(None, "decoder_sparse_step or mlp_only_layers is not usable")
    only = set(dense or ())
    sparse = sum((layer + 1) % step == 0 and layer not in only for layer in range(layers))
    shared = 4 if model_type == "qwen2_moe" else 0
    total = layers * 4 + sparse * (3 * experts + shared) + (layers - sparse) * 3 + 1
    each = 3 * experts + shared
    text = f"{layers} layers × 4 + {sparse} sparse × {each} + {layers - sparse} dense × 3 + 1 output head"
    return Count(total, f"configuration arithmetic: {text}, experts unfused")


def _deepseek(model_type: str, section: Mapping[str, Any], layers: int, experts: int) -> Count:
    latent, further, router = _DEEPSEEK_KIN[model_type]
    first, shared = _number(section, "first_k_dense_replace", 0), _number(section, "n_shared_experts", 0)
    if first is None or shared is None or _number(section, "moe_layer_freq", 1) != 1:
        return Count(None, "first_k_dense_replace, n_shared_experts or moe_layer_freq is not usable")
    attention = (4 if section.get("q_lora_rank") is None else 5) if latent else 4
    attention += further
    dense = min(first, layers)
    sparse = layers - dense
    each = 3 * experts + (3 if shared else 0) + (1 if router else 0)
    total = layers * attention + dense * 3 + sparse * each + 1
    text = f"{layers} layers × {attention} + {dense} dense × 3 + {sparse} sparse × {each} + 1 output head"
    return Count(total, f"configuration arithmetic: {text}, experts unfused, without MTP layers")


def conservative_estimate(layers: int) -> Count:
    """A floor for an unknown decoder, for a schema that wants a number: 4 Linear modules a layer.

    4 is what the leanest attention blocks have (fused query-key-value, output, up, down). It is an estimate.
    """
    return Count(
        4 * layers, f"conservative estimate, not counted: at least 4 Linear modules in each of {layers} layers"
    )
