"""Facts about a model, each with the place that it was read from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quark_tui.core.finding import Finding
from quark_tui.core.model.config import (
    MOST_EXPERTS,
    MOST_LAYERS,
    MOST_SIZE,
    Reader,
    Taken,
    bounded,
    by_layer,
    flag,
    lookup,
    modalities,
    sections,
    stated,
    take,
    whole,
    word,
    words,
)

NOT_STATED = "not stated"
CONFIG = "config.json"

#: Facts without which no plan can rest on the analysis.
MATERIAL = ("model_type", "num_hidden_layers", "hidden_size")


@dataclass(frozen=True, slots=True)
class Fact:
    """``value`` is plain JSON data, None when unknown; ``source`` names file and key, or says why it is unknown.

    ``file``, ``key`` (dotted) and ``raw`` open what it was concluded from: what really stands there, as plain JSON of
    bounded size. They are None where no single key of a file says it. A correction by hand keeps them and, in ``was``,
    the former value.
    """

    value: Any
    source: str
    file: str | None = None
    key: str | None = None
    raw: Any = None
    corrected: bool = False
    was: Any = None

    def to_json(self) -> dict[str, Any]:
        """``from``, as answers call it, is the source."""
        told = {"value": self.value, "from": self.source, "file": self.file, "key": self.key, "raw": self.raw}
        return {**told, "corrected": True, "was": self.was} if self.corrected else told


#: name -> (spellings, reader). Spellings as found in published configurations; the first is the common one.
_NUMBERS: dict[str, tuple[tuple[str, ...], Reader]] = {
    "hidden_size": (("hidden_size", "n_embd", "d_model", "dim", "model_dim"), whole(1, MOST_SIZE)),
    "intermediate_size": (
        ("intermediate_size", "ffn_hidden_size", "ffn_dim", "d_ff", "n_inner", "ffn_config.ffn_hidden_size"),
        by_layer(whole(1, MOST_SIZE)),
    ),
    "moe_intermediate_size": (("moe_intermediate_size", "expert_ffn_hidden_size"), by_layer(whole(1, MOST_SIZE))),
    "num_attention_heads": (
        ("num_attention_heads", "n_head", "n_heads", "num_heads"),
        by_layer(whole(1, MOST_EXPERTS)),
    ),
    "num_key_value_heads": (
        ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "attn_config.kv_n_heads"),
        by_layer(whole(1, MOST_EXPERTS)),
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
            "n_experts",
            "num_moe_experts",
            "ffn_config.moe_num_experts",
            "moe_config.num_experts",
        ),
        by_layer(whole(0, MOST_EXPERTS)),
    ),
    "num_experts_per_tok": (
        (
            "num_experts_per_tok",
            "num_experts_per_token",
            "experts_per_token",
            "moe_top_k",
            "moe_topk",
            "moe_k",
            "top_k_experts",
            "num_selected_experts",
            "moe_router_topk",
            "n_activated_experts",
            "ffn_config.moe_top_k",
        ),
        by_layer(whole(0, MOST_EXPERTS)),
    ),
    "num_shared_experts": (
        (
            "num_shared_experts",
            "n_shared_experts",
            "num_shared_expert",
            "moe_num_shared_experts",
            "moe_config.num_shared_experts",
        ),
        by_layer(whole(0, MOST_EXPERTS)),
    ),
    "num_nextn_predict_layers": (
        (
            "num_nextn_predict_layers",
            "mtp_num_hidden_layers",
            "num_mtp_modules",
            "mtp_num_layers",
            "num_mtp_layers",
            "n_mtp_layers",
            "num_mtp_heads",
            "mtp_depth",
            "mtp_config.num_hidden_layers",
        ),
        whole(0, MOST_LAYERS),
    ),
}

LAYER_SPELLINGS = (
    "num_hidden_layers",
    "n_layer",
    "num_layers",
    "n_layers",
    "n_blocks",
    "num_blocks",
    "num_transformer_layers",
)
#: Beside an encoder these count the decoder alone.
DECODER_SPELLINGS = ("num_decoder_layers", "decoder_layers", "n_decoder_layers")
ENCODER_SPELLINGS = ("num_encoder_layers", "encoder_layers", "n_encoder_layers")
#: Lists with an entry for each block. Lists of indices and of repeated patterns (block_types) are none.
LAYER_LISTS = (
    "layers_block_type",
    "layer_types",
    "block_configs",
    "layer_block_types",
    "hybrid_layer_pattern",
    "mlp_layer_types",
    "attn_type_list",
    "attention_layers",
)
#: The same as a text with one letter for each block.
LAYER_TEXTS = ("hybrid_override_pattern",)

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
        return Fact(taken.value, f"config.json: {taken.place}", CONFIG, taken.place, bounded(taken.raw))
    if taken.place:
        return Fact(None, f"config.json: {taken.place} is not usable", CONFIG, taken.place, bounded(taken.raw))
    return Fact(None, NOT_STATED)


def _described(config: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(place, list or text) of what describes each block."""
    found: list[tuple[str, Any]] = []
    for place in stated(config, (*LAYER_LISTS, *LAYER_TEXTS)):
        kind = str if place.spelling in LAYER_TEXTS else list
        if isinstance(place.value, kind) and place.value:
            found.append((place.place, place.value))
    return found


def _layers(config: Mapping[str, Any], mtp: int) -> tuple[Fact, list[Finding]]:
    """The count of hidden layers: stated as a number, or the length of what describes each block.

    An encoder's and a decoder's layers are two facts that may differ. A list may also describe the ``mtp`` layers.
    """
    both = has_encoder(config)
    spellings = LAYER_SPELLINGS if both else (*LAYER_SPELLINGS, *DECODER_SPELLINGS)
    number = take(config, "num_hidden_layers", spellings, whole(1, MOST_LAYERS), synonyms=True)
    findings = list(number.findings)
    if both and number.value is None and not number.place:
        number = take(config, "num_hidden_layers", DECODER_SPELLINGS, whole(1, MOST_LAYERS))
        findings += number.findings
    lists = _described(config)
    if number.value is not None:
        for place, value in lists:
            if not both and len(value) not in (number.value, number.value + mtp):
                findings.append(
                    Finding(
                        "medium",
                        "config_disagrees",
                        f"{number.place} says {number.value} layers, {place} describes {len(value)};"
                        " the number is used",
                        f"config.json: {number.place}, {place}",
                        "Check which is right; set num_hidden_layers by hand when the analysis is confirmed.",
                    )
                )
        return _fact(number), findings
    for place, value in lists:
        if len(value) <= MOST_LAYERS:
            return Fact(len(value), f"config.json: length of {place}", CONFIG, place, bounded(value)), findings
    return _fact(number), findings


def has_encoder(config: Mapping[str, Any]) -> bool:
    """Whether the configuration describes an encoder beside the decoder."""
    if isinstance(config.get("is_encoder_decoder"), bool):
        return bool(config["is_encoder_decoder"])
    encoder, decoder = (
        next(stated(config, names, nested=False), None) for names in (ENCODER_SPELLINGS, DECODER_SPELLINGS)
    )
    return encoder is not None and decoder is not None


def read_facts(config: Mapping[str, Any]) -> tuple[dict[str, Fact], dict[str, list[Finding]]]:
    """Facts that config.json alone states, and by fact what is badly stated.

    model_type and architectures count at the top level only: a nested one names a part, not the model. An expert count
    of 0 is a model without experts. Spellings: as found in published configurations and in transformers 5.
    """
    facts: dict[str, Fact] = {}
    findings: dict[str, list[Finding]] = {}

    def put(name: str, taken: Taken) -> None:
        facts[name] = _fact(taken)
        findings[name] = list(taken.findings)

    put("model_type", take(config, "model_type", ("model_type",), word, nested=False))
    put("architectures", take(config, "architectures", ("architectures",), words, nested=False))
    mtp = take(config, "num_nextn_predict_layers", *_NUMBERS["num_nextn_predict_layers"]).value or 0
    facts["num_hidden_layers"], findings["num_hidden_layers"] = _layers(config, mtp)
    for name, (spellings, reader) in _NUMBERS.items():
        put(name, take(config, name, spellings, reader, synonyms=name == "num_experts"))
    put("dtype", take(config, "dtype", ("dtype", "torch_dtype"), _dtype))
    put("tie_word_embeddings", take(config, "tie_word_embeddings", ("tie_word_embeddings",), flag))
    put("transformers_version", take(config, "transformers_version", ("transformers_version",), word))
    put("is_encoder_decoder", take(config, "is_encoder_decoder", ("is_encoder_decoder",), flag, nested=False))
    if facts["is_encoder_decoder"].value is None and has_encoder(config):
        facts["is_encoder_decoder"] = Fact(True, "config.json: it counts layers of an encoder and of a decoder")
    facts["modalities"] = _sections_fact(config, modalities(config), "no modality section")
    facts["text_sections"] = _sections_fact(config, [name for name, _ in sections(config)], "no nested text section")
    return facts, findings


def _sections_fact(config: Mapping[str, Any], names: list[str], none: str) -> Fact:
    if not names:
        return Fact(names, f"config.json: {none}")
    listed = ", ".join(names)
    return Fact(
        names, f"config.json: {listed}", CONFIG, listed, bounded({name: lookup(config, name) for name in names})
    )


def _dtype(value: Any) -> tuple[Any, str]:
    match = _DTYPE.match(value) if isinstance(value, str) and len(value) < 64 else None
    return (match.group(1), "") if match else (None, "is no type name")
