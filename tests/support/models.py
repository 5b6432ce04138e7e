"""Model folders made by hand: configurations, and weight headers without weights."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from quark_tui.core.model.headers import DTYPE_BITS, Checkpoint, Shard, Tensor
from quark_tui.core.model.intake import JsonFile, ModelSource

Shapes = Mapping[str, tuple[int, ...]]

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 2,
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 32,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def checkpoint(shapes: Shapes, dtypes: Mapping[str, str] | None = None, name: str = "model.safetensors") -> Checkpoint:
    """A checkpoint of one sound shard with these tensors; BF16 unless ``dtypes`` says otherwise."""
    tensors = {}
    at = 0
    for tensor, shape in shapes.items():
        dtype = (dtypes or {}).get(tensor, "BF16")
        end = at + math.prod(shape) * DTYPE_BITS[dtype] // 8
        tensors[tensor] = Tensor(tensor, dtype, shape, at, end)
        at = end
    return Checkpoint("/model", (Shard(name, at, 8, tensors, "0" * 64),) if shapes else ())


def source(
    config: Mapping[str, Any],
    shapes: Shapes | None = None,
    *,
    dtypes: Mapping[str, str] | None = None,
    files: Mapping[str, Any] | None = None,
    python_files: Mapping[str, str] | None = None,
    listing: tuple[str, ...] = ("tokenizer.json",),
) -> ModelSource:
    """A model's folder as it would have been read."""
    data = {"config.json": config, **(files or {})}
    return ModelSource(
        "/model",
        {name: JsonFile(name, value, "", "0" * 64) for name, value in data.items()},
        {**dict.fromkeys((*data, *listing), 1), **dict.fromkeys(python_files or (), 1)},
        dict(python_files or {}),
        checkpoint(shapes or {}, dtypes),
    )


def write_safetensors(path: Path, shapes: Shapes, dtype: str = "BF16") -> None:
    """A sound safetensors file of zeros."""
    header: dict[str, Any] = {}
    at = 0
    for name, tensor in checkpoint(shapes, dict.fromkeys(shapes, dtype)).tensors.items():
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [tensor.start, tensor.end]}
        at = tensor.end
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(at))


def decoder(
    layers: int, hidden: int, inner: int, kv: int, vocab: int, *, dense: range | None = None, head: bool = True
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Attention of a llama-like decoder, with a feed-forward in the ``dense`` layers (all by default)."""
    yield "model.embed_tokens.weight", (vocab, hidden)
    for layer in range(layers):
        base = f"model.layers.{layer}"
        yield f"{base}.self_attn.q_proj.weight", (hidden, hidden)
        yield f"{base}.self_attn.k_proj.weight", (kv, hidden)
        yield f"{base}.self_attn.v_proj.weight", (kv, hidden)
        yield f"{base}.self_attn.o_proj.weight", (hidden, hidden)
        yield f"{base}.input_layernorm.weight", (hidden,)
        if dense is None or layer in dense:
            yield from feed_forward(f"{base}.mlp", hidden, inner)
    yield "model.norm.weight", (hidden,)
    if head:
        yield "lm_head.weight", (vocab, hidden)


def feed_forward(base: str, hidden: int, inner: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{base}.gate_proj.weight", (inner, hidden)
    yield f"{base}.up_proj.weight", (inner, hidden)
    yield f"{base}.down_proj.weight", (hidden, inner)


def llama(layers: int = 2, *, head: bool = True) -> dict[str, tuple[int, ...]]:
    """The tensors of :data:`LLAMA`."""
    return dict(decoder(layers, 8, 16, 4, 32, head=head))
