"""The modules that a folder's tensors belong to, and what can be said of them from names and shapes alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quark_tui.core.model.headers import Tensor
from quark_tui.core.ptq.verify.layout import LOW_BIT
from quark_tui.core.ptq.verify.patterns import group_of

_KINDS = tuple(
    f"{what}_{kind}{stage}"
    for what in ("weight", "input", "output", "bias")
    for kind in ("scale", "zero_point")
    for stage in ("", "_2", "_3")
)
_SUFFIXES = frozenset({"weight", "bias", *_KINDS, *(f"_{name}" for name in _KINDS)})
#: One-element float tensors with these endings are read; everything else is left alone.
SCALARS = tuple(f".{what}_scale{stage}" for what in ("weight", "input", "output") for stage in ("", "_2", "_3"))

_EMBEDDING = re.compile(
    r"(?i)(?:embed_?(?:tokens|positions|in|ding)?(?:_per_layer)?|.*_embed|.*embed_tokens.*|.*embeddings?(?:_table)?"
    r"|wte|wpe|shared|relative_attention_bias)\Z"
)
_ROUTER = frozenset({"gate", "router", "wg"})
_LINEAR = re.compile(
    r"(?i)(?:.*proj(?:_?[a-z0-9]+)?|.*_proj_.*|fc_?\d*|c_fc|c_attn|c_proj|dense.*|.*linear.*|.*qkv.*|query.*|key|value"
    r"|[qkvow]\d?|w[qkvoi](?:_?\d)?|lm_head|.*head|embed_out|score|classifier|output|out)\Z"
)


@dataclass(frozen=True, slots=True)
class StoredModule:
    """A module as the headers show it: ``parts`` maps weight, bias, weight_scale, … to tensors."""

    name: str
    parts: Mapping[str, Tensor]

    @property
    def weight(self) -> Tensor | None:
        return self.parts.get("weight")

    @property
    def quantized(self) -> bool:
        """True when the weight is stored in a low-bit type."""
        return self.weight is not None and self.weight.dtype in LOW_BIT

    @property
    def scaled(self) -> bool:
        return "weight_scale" in self.parts

    @property
    def last(self) -> str:
        return self.name.rpartition(".")[2]


def stored_modules(tensors: Mapping[str, Tensor]) -> dict[str, StoredModule]:
    """All modules that own a weight or a scale, by name, in the headers' order."""
    parts: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        module, _, suffix = name.rpartition(".")
        if suffix in _SUFFIXES:
            parts.setdefault(module, {})[suffix] = tensor
    return {name: StoredModule(name, found) for name, found in parts.items()}


def is_embedding(module: StoredModule) -> bool:
    """By name: an embedding table, which Quark leaves alone unless an override matches it."""
    return bool(_EMBEDDING.match(module.last)) and module.last != "embed_out"


def is_router(module: StoredModule) -> bool:
    """By name: a mixture's router. Most are no Linear or a subclass of it, and are never quantized."""
    return any(part in _ROUTER for part in module.name.split(".")[-2:])


def linear_weights(modules: Iterable[StoredModule]) -> tuple[set[str], set[str]]:
    """(names that are Linear, names that may be) of modules with a two-dimensional or packed weight.

    A float weight counts as a Linear when its name is one that Linears have, or when the same module of another layer,
    or a module of the same last name, is quantized. Embeddings and routers are told by name.
    """
    everything = list(modules)
    packed = [module for module in everything if module.quantized]
    groups, lasts = {group_of(module.name) for module in packed}, {module.last for module in packed}
    sure, unsure = {module.name for module in packed}, set()
    for module in everything:
        weight = module.weight
        if module.quantized or weight is None or len(weight.shape) != 2 or is_embedding(module):
            continue
        if group_of(module.name) in groups:
            sure.add(module.name)
        elif is_router(module):
            continue
        elif module.last in lasts or _LINEAR.match(module.last):
            sure.add(module.name)
        else:
            unsure.add(module.name)
    return sure, unsure
