"""Facts about a model, each with the place that it was read from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quark_tui.core.finding import Finding
from quark_tui.core.model.config import (
    MODALITY_SECTIONS,
    MOST_EXPERTS,
    MOST_LAYERS,
    MOST_SIZE,
    Reader,
    Taken,
    flag,
    sections,
    stated,
    take,
    whole,
    word,
    words,
)

NOT_STATED = "not stated"

#: Facts without which no plan can rest on the analysis.
MATERIAL = ("model_type", "num_hidden_layers", "hidden_size")


@dataclass(frozen=True, slots=True)
class Fact:
    """``value`` is plain JSON data, None when unknown; ``source`` names file and key, or says why it is unknown."""

    value: Any
    source: str


#: name -> (spellings, reader). Spellings as found in published configurations; the first is the common one.
_NUMBERS: dict[str, tuple[tuple[str, ...], Reader]] = {
    "hidden_size": (("hidden_size", "n_embd", "d_model", "dim", "model_dim"), whole(1, MOST_SIZE)),
    "intermediate_size": (
        ("intermediate_size", "ffn_hidden_size", "ffn_dim", "d_ff", "n_inner", "ffn_config.ffn_hidden_size"),
        whole(1, MOST_SIZE),
    ),
    "moe_intermediate_size": (("moe_intermediate_size", "expert_ffn_hidden_size"), whole(1, MOST_SIZE)),
    "num_attention_heads": (("num_attention_heads", "n_head", "n_heads", "num_heads"), whole(1, MOST_EXPERTS)),
    "num_key_value_heads": (
        ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "attn_config.kv_n_heads"),
        whole(1, MOST_EXPERTS),
    ),
    "head_dim": (("head_dim", "attention_head_dim", "kv_channels", "d_kv"), whole(1, MOST_SIZE)),
    "vocab_size": (("vocab_size", "padded_vocab_size"), whole(1, MOST_SIZE)),
    "max_position_embeddings": (
        ("max_position_embeddings", "max_seq_len", "n_positions", "seq_length", "max_sequence_length", "n_ctx"),
        whole(1, MOST_SIZE),
    ),
    "num_experts": (
        (
            "num_experts",
            "num_local_experts",
            "n_routed_experts",
            "moe_num_experts",
            "num_routed_experts",
            "ffn_config.moe_num_experts",
            "moe_config.num_experts",
        ),
        whole(0, MOST_EXPERTS),
    ),
    "num_experts_per_tok": (
        ("num_experts_per_tok", "experts_per_token", "moe_top_k", "moe_topk", "top_k_experts", "ffn_config.moe_top_k"),
        whole(0, MOST_EXPERTS),
    ),
    "num_nextn_predict_layers": (
        ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_num_layers", "num_mtp_layers"),
        whole(0, MOST_LAYERS),
    ),
}

LAYER_SPELLINGS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_decoder_layers", "n_blocks")
LAYER_LISTS = ("layers_block_type", "layer_types", "block_configs", "layer_block_types", "hybrid_layer_pattern")

#: What a person may correct by hand, with the reader of its values.
CORRECTABLE: dict[str, Reader] = {
    **{name: reader for name, (_, reader) in _NUMBERS.items()},
    "model_type": word,
    "architectures": words,
    "dtype": word,
    "transformers_version": word,
    "tie_word_embeddings": flag,
    "num_hidden_layers": whole(1, MOST_LAYERS),
    "linear_count": whole(0, MOST_SIZE),
}

_DTYPE = re.compile(r"^(?:torch\.)?([a-z][a-z0-9_]*)$")


def _fact(taken: Taken) -> Fact:
    if taken.value is not None:
        return Fact(taken.value, f"config.json: {taken.place}")
    return Fact(None, f"config.json: {taken.place} is not usable" if taken.place else NOT_STATED)


def _layers(config: Mapping[str, Any]) -> tuple[Fact, list[Finding]]:
    """The count of hidden layers: stated as a number, or the length of a list that describes each block."""
    number = take(config, "num_hidden_layers", LAYER_SPELLINGS, whole(1, MOST_LAYERS), synonyms=True)
    findings = list(number.findings)
    lists = [place for place in stated(config, LAYER_LISTS) if isinstance(place.value, list) and place.value]
    if number.value is not None:
        for place in lists:
            if len(place.value) != number.value:
                findings.append(
                    Finding(
                        "medium",
                        "config_disagrees",
                        f"{number.place} says {number.value} layers, {place.place} describes {len(place.value)};"
                        " the number is used",
                        f"config.json: {number.place}, {place.place}",
                        "Check which is right; set num_hidden_layers by hand when the analysis is confirmed.",
                    )
                )
        return _fact(number), findings
    for place in lists:
        if len(place.value) <= MOST_LAYERS:
            return Fact(len(place.value), f"config.json: length of {place.place}"), findings
    return _fact(number), findings


def read_facts(config: Mapping[str, Any]) -> tuple[dict[str, Fact], dict[str, list[Finding]]]:
    """Facts that config.json alone states, and by fact what is badly stated.

    model_type and architectures count at the top level only: a nested one names a part, not the model. An expert count
    of 0 is a model without experts. Spellings: as found in 43 published configurations and in transformers 5.
    """
    facts: dict[str, Fact] = {}
    findings: dict[str, list[Finding]] = {}

    def put(name: str, taken: Taken) -> None:
        facts[name] = _fact(taken)
        findings[name] = list(taken.findings)

    put("model_type", take(config, "model_type", ("model_type",), word, nested=False))
    put("architectures", take(config, "architectures", ("architectures",), words, nested=False))
    facts["num_hidden_layers"], findings["num_hidden_layers"] = _layers(config)
    for name, (spellings, reader) in _NUMBERS.items():
        put(name, take(config, name, spellings, reader, synonyms=name == "num_experts"))
    put("dtype", take(config, "dtype", ("dtype", "torch_dtype"), _dtype))
    put("tie_word_embeddings", take(config, "tie_word_embeddings", ("tie_word_embeddings",), flag))
    put("transformers_version", take(config, "transformers_version", ("transformers_version",), word))
    put("is_encoder_decoder", take(config, "is_encoder_decoder", ("is_encoder_decoder",), flag, nested=False))
    present = [name for name, _ in sections(config, MODALITY_SECTIONS)]
    facts["modalities"] = Fact(present, "config.json: " + (", ".join(present) if present else "no modality section"))
    nested = [name for name, _ in sections(config)]
    facts["text_sections"] = Fact(nested, "config.json: " + (", ".join(nested) if nested else "no nested text section"))
    return facts, findings


def _dtype(value: Any) -> tuple[Any, str]:
    match = _DTYPE.match(value) if isinstance(value, str) and len(value) < 64 else None
    return (match.group(1), "") if match else (None, "is no type name")
