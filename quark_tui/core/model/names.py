"""From tensor names on disk to the modules that exist when Quark quantizes.

Names at run time are those of transformers 5 after Quark replaced fused experts by one Linear module a projection.
Measured: equal to ``named_modules()`` for tiny models of llama, qwen2, qwen3_moe, mixtral, gpt_oss, deepseek_v3, phi3,
gemma2, opt and gpt2 (transformers 5.2, Quark 0.12.post1), and to the counts of five large published models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from quark_tui.core.model.arithmetic import NOT_LINEAR
from quark_tui.core.model.headers import Checkpoint, Tensor
from quark_tui.core.model.inventory import Inventory, Module, ModuleKind
from quark_tui.core.text import clean

#: Beyond these no real model goes; a header that claims more is not followed.
MOST_EXPERTS_OF_A_TENSOR = 8_192
MOST_MODULES = 2_000_000

_FLOATS = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"})
_EMBEDDING = re.compile(
    r"^(?:wte|wpe|shared|emb|embed|embeddings?|embed_(?!out\b)\w+|\w+_embed(?:ding)?s?(?:_table)?|relative_attention_bias)$"
)
_EMBEDDING_NOT = re.compile(r"proj|dense|linear|hidden|_out$")
_HEADS = frozenset({"lm_head", "embed_out", "output_layer", "output_projection"})
_MTP = re.compile(r"^(?:model\.)?mtp(?:_\w+)?\.|^mtp\d*\.")
_LAYER = re.compile(r"^(.*?\b(?:layers|h|blocks|layer))\.(\d+)\.")
_NOT_DECODER = re.compile(r"vision|visual|audio|encoder|image|mtp|adapter|projector|tower|resampler")
_EXPERT = re.compile(r"^(.*\bexperts)\.(\d+)\.(w1|w2|w3)$")
_W = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}

#: Model types whose experts transformers 5 fuses and renames from w1, w3, w2 while loading.
_RENAMED = frozenset({"mixtral", "minimax", "minimax_m2", "phimoe", "lfm2_moe"})
#: Model types whose fused 3-D experts Quark unfuses (transformers 5.2's ``use_experts_implementation``).
_UNFUSED_ELSEWHERE = """deepseek_v2 deepseek_v3 dots1 ernie4_5_moe exaone_moe flex_olmo glm4_moe glm4_moe_lite glm4v_moe
glm_moe_dsa gpt_oss hunyuan_v1_moe jamba olmoe qwen2_moe qwen3_5_moe qwen3_5_moe_text qwen3_moe qwen3_next
qwen3_omni_moe qwen3_vl_moe solar_open"""
_UNFUSED = _RENAMED.union(_UNFUSED_ELSEWHERE.split())
#: Model types whose router is a plain Linear (measured with transformers 5.2).
_LINEAR_ROUTERS = frozenset({"afmoe", "aria_text", "deepseek_v2", "jamba"})
#: Model types whose router Quark before 0.13 replaces by a module with a plain Linear named ``linear`` in it (measured
#: with 0.12.post1); 0.13 replaces it by a subclass of Linear under the router's own name.
NESTED_ROUTERS = frozenset({"gpt_oss", "qwen3_moe"})
#: Last parts of names of buffers, which are no parameters.
_BUFFERS = frozenset({"e_score_correction_bias", "inv_freq", "masked_bias"})
#: Model types whose fused expert tensors are (experts, in, out) on disk.
_TRANSPOSED = frozenset({"gpt_oss", "qwen3_vl_moe"})


class _Unknown(Exception):
    """Run-time names cannot be told; the text says why."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What decides about names besides the tensors. ``layers`` and ``hidden_size`` None when unknown.

    ``own_code``: the folder brings its own model classes. ``causal``: the architecture has an output head.
    ``wrapper``: the language model sits in a multimodal wrapper. ``mtp_layers``: layers for multi-token prediction,
    which transformers does not load. ``nested_routers``: Quark before 0.13, see NESTED_ROUTERS.
    """

    model_type: str | None
    layers: int | None = None
    hidden_size: int | None = None
    vocab_size: int | None = None
    own_code: bool = False
    causal: bool = True
    wrapper: bool = False
    mtp_layers: int = 0
    nested_routers: bool = False


def layer_count(names: Iterable[str], mtp_layers: int = 0) -> tuple[int, str] | None:
    """(layers, prefix) of the decoder that the tensor names show, without ``mtp_layers``; None when they show none."""
    groups: dict[str, tuple[int, int]] = {}
    for name in names:
        match = _LAYER.match(name)
        if match and not _NOT_DECODER.search(match.group(1)) and len(match.group(2)) < 7:
            tensors, highest = groups.get(match.group(1), (0, -1))
            groups[match.group(1)] = tensors + 1, max(highest, int(match.group(2)))
    if not groups:
        return None
    prefix, (_, highest) = max(groups.items(), key=lambda item: (item[1][0], item[0]))
    count = highest + 1 - mtp_layers
    return (count, prefix) if count > 0 else None


def build_inventory(checkpoint: Checkpoint, naming: Naming) -> Inventory:
    """The modules of a checkpoint by their run-time names; ``known`` is False with the reason where that is not sure.

    A two-dimensional floating-point ``.weight`` is Linear unless its name is an embedding's, it is a router beside
    experts, or the architecture's projections are known to be of another class. Routers are listed as such; whether an
    exclude pattern counts them depends on the class that Quark gives them. With ``nested_routers`` those of
    NESTED_ROUTERS are Linear, one step below the router's name.
    """
    if not checkpoint.shards:
        return Inventory(False, "no safetensors headers: names cannot be read")
    unsound = [shard for shard in checkpoint.shards if shard.problem]
    if unsound:
        return Inventory(False, f"{clean(unsound[0].name)}: {clean(unsound[0].problem)}")
    if checkpoint.index_problem or checkpoint.index_disagreements():
        return Inventory(False, clean((checkpoint.index_disagreements() or [checkpoint.index_problem])[0]))
    if naming.model_type is None:
        return Inventory(False, "the model type is unknown, so it is unknown how names on disk relate to run time")
    notes: list[str] = []
    try:
        modules = list(_modules(checkpoint, naming, notes))
    except _Unknown as reason:
        return Inventory(False, str(reason))
    return Inventory(
        True, "; ".join([f"safetensors headers of {len(checkpoint.shards)} files", *notes]), tuple(modules)
    )


def _modules(checkpoint: Checkpoint, naming: Naming, notes: list[str]) -> Iterator[Module]:
    tensors = _loaded(checkpoint.tensors, naming, notes)
    owners: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        owner, _, last = name.rpartition(".")
        if not owner or not name.isprintable():
            raise _Unknown(f"a tensor is named {clean(name[:80])!r}, which names no module")
        owners.setdefault(owner, {})[last] = tensor
    if naming.wrapper:
        _check_wrapper(owners)
    elif (
        naming.causal
        and not naming.own_code
        and any(re.match(r"(?:layers|h|decoder\.layers)\.\d+\.", o) for o in owners)
    ):
        raise _Unknown("names lack the prefix that a causal language model has at run time (saved from the base model)")
    names = _renamed(owners, naming, notes)
    with_experts = {re.sub(r"\.experts\b.*$", "", name) for name in names if re.search(r"\.experts(?:\.|$)", name)}
    total = routers = 0
    head = False
    for name, parts in names.items():
        for module in _of_owner(name, parts, with_experts, owners, naming):
            total += 1
            if total > MOST_MODULES:
                raise _Unknown(f"more than {MOST_MODULES} modules")
            head = head or module.name.rpartition(".")[2] in _HEADS
            routers += module.kind == "router"
            yield module
    if naming.causal and not head and not naming.own_code:
        tables = [p["weight"].shape for name, p in names.items() if _is_embedding(name) and "weight" in p]
        tables = [shape for shape in tables if len(shape) == 2]
        if tables:
            table = max(tables, key=lambda shape: (shape[0] == naming.vocab_size, shape[0]))
            notes.append("lm_head has no tensor of its own (tied to the embedding) and is a Linear at run time")
            yield Module("lm_head", "linear", table, 0)
    if routers:
        notes.append(f"{routers} routers, which are no plain Linear in transformers 5")


def _loaded(tensors: Mapping[str, Tensor], naming: Naming, notes: list[str]) -> dict[str, Tensor]:
    """The tensors that transformers loads: without those of multi-token prediction."""
    kept: dict[str, Tensor] = {}
    dropped = 0
    shown = layer_count(tensors)
    prefix = shown[1] if shown else ""
    for name, tensor in tensors.items():
        match = _LAYER.match(name)
        beyond = (
            naming.mtp_layers > 0
            and naming.layers is not None
            and match is not None
            and match.group(1) == prefix
            and len(match.group(2)) < 7
            and naming.layers <= int(match.group(2)) < naming.layers + naming.mtp_layers
        )
        if beyond or _MTP.match(name):
            dropped += 1
        else:
            kept[name] = tensor
    if dropped:
        notes.append(f"{dropped} tensors of multi-token prediction left out: transformers does not load them")
    return kept


def _check_wrapper(owners: Mapping[str, object]) -> None:
    """A wrapper's names are those of run time only in the layout that transformers itself writes since 4.52."""
    decoders = {
        m.group(1) for owner in owners if (m := _LAYER.match(owner + ".")) and not _NOT_DECODER.search(m.group(1))
    }
    if not decoders or any(not prefix.startswith("model.language_model.") for prefix in decoders):
        raise _Unknown(
            "the language model sits in a multimodal wrapper, whose names on disk can differ from those at run time"
        )


def _renamed(owners: Mapping[str, dict[str, Tensor]], naming: Naming, notes: list[str]) -> dict[str, dict[str, Tensor]]:
    renames = naming.model_type in _RENAMED
    on_disk_style = any("block_sparse_moe" in name or _EXPERT.match(name) for name in owners)
    if renames and on_disk_style and naming.own_code:
        raise _Unknown(
            "experts are named w1, w2, w3 or block_sparse_moe on disk; they keep those names with the folder's own code"
            " and get others with that of transformers"
        )
    if not renames or not on_disk_style:
        return dict(owners)
    notes.append("experts renamed as transformers 5 does (block_sparse_moe to mlp, w1, w3, w2 to gate, up, down)")
    names: dict[str, dict[str, Tensor]] = {}
    for name, parts in owners.items():
        new = re.sub(r"\.block_sparse_moe\b", ".mlp", name)
        match = _EXPERT.match(new)
        if match:
            new = f"{match.group(1)}.{match.group(2)}.{_W[match.group(3)]}"
        elif naming.model_type == "phimoe" and new.endswith(".mlp.gate"):
            new = new.removesuffix("gate") + "router"
        names.setdefault(new, {}).update(parts)
    return names


def _is_embedding(name: str) -> bool:
    last = name.rpartition(".")[2]
    return bool(_EMBEDDING.match(last)) and not _EMBEDDING_NOT.search(last)


def _is_router(name: str, with_experts: set[str], model_type: str | None) -> bool:
    parent, _, last = name.rpartition(".")
    if model_type in _LINEAR_ROUTERS:
        return False
    if last in ("gate", "router"):
        return parent in with_experts
    return parent.rpartition(".")[2] in ("gate", "router") and parent.rpartition(".")[0] in with_experts


def _of_owner(
    name: str,
    parts: Mapping[str, Tensor],
    with_experts: set[str],
    owners: Mapping[str, dict[str, Tensor]],
    naming: Naming,
) -> Iterator[Module]:
    """The modules of one owner of tensors: itself, or one a projection and expert where it holds fused experts."""
    fused = {last: t for last, t in parts.items() if len(t.shape) >= 3 and name.rpartition(".")[2] == "experts"}
    if fused or (".experts" in name and any(len(t.shape) >= 3 and last == "weight" for last, t in parts.items())):
        yield from _unfused(name, parts, fused, naming)
        return
    weight = parts.get("weight")
    count = sum(tensor.elements for last, tensor in parts.items() if last not in _BUFFERS)
    if weight is None:
        if any(last in ("qweight", "weight_packed") or last.endswith("_blocks") for last in parts):
            raise _Unknown(
                "weights are packed by an earlier quantization: their shapes do not tell those of the modules"
            )
        first = next(iter(parts.values()))
        yield Module(name, "other", first.shape, count)
        return
    kind: ModuleKind = "other"
    if _is_embedding(name) and len(weight.shape) == 2:
        kind = "embedding"
    elif len(weight.shape) == 2:
        if weight.dtype not in _FLOATS:
            raise _Unknown(
                f"{clean(name)} is stored as {clean(weight.dtype)}: packed by an earlier quantization, so its shape"
                " is not the module's"
            )
        if _is_router(name, with_experts, naming.model_type):
            kind = "router"
            if naming.nested_routers and naming.model_type in NESTED_ROUTERS:
                name, kind = f"{name}.linear", "linear"
        elif not _other_class(name, owners, naming.model_type):
            kind = "linear"
    # Scales of an earlier float quantization are no parameters of the module that quantization starts from.
    count = sum(t.elements for last, t in parts.items() if "scale" not in last and last not in _BUFFERS)
    yield Module(name, kind, weight.shape, count)


def _other_class(name: str, owners: Mapping[str, dict[str, Tensor]], model_type: str | None) -> bool:
    """True for two-dimensional weights whose class is known not to be exactly Linear."""
    parent, _, last = name.rpartition(".")
    if last == "out_proj" and "in_proj_weight" in owners.get(parent, {}):
        return True  # torch.nn.MultiheadAttention has a Linear subclass there
    return model_type in NOT_LINEAR and last not in _HEADS


def _unfused(name: str, parts: Mapping[str, Tensor], fused: Mapping[str, Tensor], naming: Naming) -> Iterator[Module]:
    model_type = naming.model_type
    if model_type not in _UNFUSED or not fused:
        raise _Unknown(
            f"{clean(name)} holds fused 3-D expert tensors, and whether Quark unfuses those of"
            f" {clean(model_type)} is not known"
        )
    gate_up, down = _expert_shape(fused, "gate_up_proj"), _expert_shape(fused, "down_proj")
    if gate_up is None or down is None:
        raise _Unknown(f"{clean(name)} holds fused expert tensors of an unknown layout")
    experts = gate_up[0]
    if experts != down[0] or not 0 < experts <= MOST_EXPERTS_OF_A_TENSOR:
        raise _Unknown(f"{clean(name)}: {experts} and {down[0]} experts")
    if "gate_up_proj_blocks" not in fused and _transposed(gate_up, naming):
        gate_up, down = (experts, gate_up[2], gate_up[1]), (experts, down[2], down[1])
    gate_up_bias, down_bias = ("gate_up_proj_bias" in parts), ("down_proj_bias" in parts)
    _, two, width = gate_up
    _, out, inner = down
    for expert in range(experts):
        base = f"{name}.{expert}"
        if model_type == "gpt_oss":
            yield Module(f"{base}.gate_up_proj", "linear", (two, width), two * width + two * gate_up_bias)
        else:
            half = two // 2
            yield Module(f"{base}.gate_proj", "linear", (half, width), half * width + half * gate_up_bias)
            yield Module(
                f"{base}.up_proj", "linear", (two - half, width), (two - half) * width + (two - half) * gate_up_bias
            )
        yield Module(f"{base}.down_proj", "linear", (out, inner), out * inner + out * down_bias)


def _expert_shape(fused: Mapping[str, Tensor], which: str) -> tuple[int, int, int] | None:
    """(experts, rows, columns) of a fused tensor; MXFP4 blocks (experts, out, groups, 16 bytes) hold 32 values each."""
    blocks = fused.get(f"{which}_blocks")
    if blocks is not None and len(blocks.shape) == 4:
        return blocks.shape[0], blocks.shape[1], blocks.shape[2] * blocks.shape[3] * 2
    tensor = fused.get(which)
    if tensor is None or len(tensor.shape) != 3 or tensor.dtype not in _FLOATS:
        return None
    return tensor.shape[0], tensor.shape[1], tensor.shape[2]


def _transposed(gate_up: tuple[int, int, int], naming: Naming) -> bool:
    """Whether fused experts are (experts, in, out); the hidden size tells unless both sides equal it."""
    width = naming.hidden_size
    if width is not None and (gate_up[1] == width) != (gate_up[2] == width):
        return gate_up[1] == width
    return naming.model_type in _TRANSPOSED
