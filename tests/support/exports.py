"""Small output folders as quark-cli leaves them, made by hand: one tensor table and one configuration a scheme.

The tables are written out from observed exports and do not use the code under test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.safetensors import Entry, write_safetensors

Table = dict[str, tuple[str, tuple[int, ...]]]
Spec = dict[str, Any]


def _stage(dtype: str, qscheme: str, **more: Any) -> Spec:
    base = {
        "block_size": None, "ch_axis": None, "dtype": dtype, "group_size": None, "is_dynamic": False,
        "is_scale_quant": False, "observer_cls": "Observer", "qscheme": qscheme, "round_method": "half_even",
        "scale_format": None, "scale_type": "float", "symmetric": True,
    }  # fmt: skip
    return {**base, **more}


def _layer(weight: Any, inputs: Any = None, outputs: Any = None) -> Spec:
    return {"bias": None, "input_tensors": inputs, "output_tensors": outputs, "target_device": None, "weight": weight}


def _int4_group(size: int) -> Callable[[int, int], Table]:
    return lambda out, inner: {
        "weight": ("I32", (inner, out // 8)),
        "weight_scale": ("BF16", (inner // size, out)),
        "weight_zero_point": ("I32", (inner // size, out // 8)),
    }


def _int4_channel(out: int, inner: int) -> Table:
    return {
        "weight": ("I32", (out, inner // 8)),
        "weight_scale": ("BF16", (out,)),
        "weight_zero_point": ("I32", (out // 8,)),
    }


def _fp4(size: int, scale: str = "U8", **more: tuple[str, tuple[int, ...]]) -> Callable[[int, int], Table]:
    return lambda out, inner: {
        "weight": ("U8", (out, inner // 2)),
        "weight_scale": (scale, (out, inner // size)),
        **more,
    }


def _fp6(out: int, inner: int) -> Table:
    return {"weight": ("U8", (out, inner * 3 // 4)), "weight_scale": ("U8", (out, inner // 32))}


_E4M3 = _stage("fp8_e4m3", "per_tensor")
_GLOBAL: dict[str, tuple[str, tuple[int, ...]]] = {"weight_scale_2": ("F32", ()), "input_scale_2": ("F32", ())}


def _group(
    dtype: str, size: int, scale_format: str | None, dynamic: bool = False, symmetric: bool | None = None
) -> Spec:
    return _stage(
        dtype,
        "per_group",
        group_size=size,
        ch_axis=-1,
        scale_format=scale_format,
        is_dynamic=dynamic,
        symmetric=symmetric,
    )


def _mx(dtype: str, other: str | None = None, size: int = 32, scale_format: str = "e8m0") -> Spec:
    inputs = None if other is None else _group(other, size, scale_format, True)
    return _layer(_group(dtype, size, scale_format), inputs)


def _global_scale(size: int, second: str) -> Spec:
    def stages(dynamic: bool) -> list[Spec]:
        return [_group("fp4", size, "float32", dynamic), _stage(second, "per_tensor", is_scale_quant=True)]

    return _layer(stages(False), stages(True))


def _int4(dtype: str, size: int | None, wa: bool = False) -> Spec:
    symmetric = dtype == "int4"
    if size is None:
        return _layer(_stage(dtype, "per_channel", ch_axis=0, symmetric=symmetric))
    inputs = _group(dtype, size, None, True, symmetric) if wa else None
    return _layer(_group(dtype, size, None, False, symmetric), inputs)


#: scheme → (tensors of a Linear by (out, in), its layer configuration)
SCHEMES: dict[str, tuple[Callable[[int, int], Table], Spec]] = {
    **{f"{d}_wo_{g}": (_int4_group(g), _int4(d, g)) for d in ("int4", "uint4") for g in (32, 64, 128)},
    **{f"{d}_wo_per_channel": (_int4_channel, _int4(d, None)) for d in ("int4", "uint4")},
    "int4_wa_64": (_int4_group(64), _int4("int4", 64, True)),
    "int8": (
        lambda out, inner: {
            "weight": ("I8", (out, inner)), "weight_scale": ("F32", ()), "weight_zero_point": ("I8", ()),
            "input_scale": ("F32", ()), "input_zero_point": ("I8", ()),
        },
        _layer(_stage("int8", "per_tensor"), _stage("int8", "per_tensor")),
    ),
    "fp8": (
        lambda out, inner: {
            "weight": ("F8_E4M3", (out, inner)), "weight_scale": ("BF16", ()), "input_scale": ("BF16", ()),
        },
        _layer(_E4M3, _E4M3),
    ),
    "ptpc_fp8": (
        lambda out, inner: {"weight": ("F8_E4M3", (out, inner)), "weight_scale": ("BF16", (out,))},
        _layer(
            _stage("fp8_e4m3", "per_channel", ch_axis=0), _stage("fp8_e4m3", "per_channel", ch_axis=1, is_dynamic=True)
        ),
    ),
    "mxfp4": (_fp4(32), _mx("fp4", "fp4")),
    "mxfp4_weight_only": (_fp4(32), _mx("fp4")),
    "mxfp6_e3m2": (_fp6, _mx("fp6_e3m2", "fp6_e3m2")),
    "mxfp6_e2m3": (_fp6, _mx("fp6_e2m3", "fp6_e2m3")),
    "mxfp4_mxfp6_e2m3": (_fp4(32), _mx("fp4", "fp6_e2m3")),
    "mxfp4_fp8": (_fp4(32, input_scale=("BF16", ())), _layer(_group("fp4", 32, "e8m0"), _E4M3)),
    "amdfp4": (_fp4(16), _mx("fp4", "fp4", 16, "e5m3")),
    "amdfp4_g32": (_fp4(32), _mx("fp4", "fp4", 32, "e5m3")),
    "int4_fp8": (
        lambda out, inner: {
            "weight": ("I32", (out, inner // 8)), "weight_scale": ("F32", ()), "weight_scale_2": ("F32", (out,)),
            "weight_zero_point_2": ("I32", (out // 8,)),
        },
        _layer([_E4M3, _stage("int4", "per_channel", ch_axis=0)], _stage("fp8_e4m3", "per_tensor", is_dynamic=True)),
    ),
    "nvfp4": (_fp4(16, "F8_E4M3", **_GLOBAL), _global_scale(16, "fp8_e4m3")),
    "fp4_block16_scale_e4m3": (_fp4(16, "F8_E4M3", **_GLOBAL), _global_scale(16, "fp8_e4m3")),
    "amdfp4_global16": (_fp4(16, **_GLOBAL), _global_scale(16, "fp8_e5m3")),
    "amdfp4_global32": (_fp4(32, **_GLOBAL), _global_scale(32, "fp8_e5m3")),
}  # fmt: skip

HIDDEN, INNER, VOCAB, LAYERS = 128, 256, 64, 2


def llama_linears(layers: int = LAYERS) -> dict[str, tuple[int, int]]:
    """Linear names of a small llama with their (out, in), lm_head last."""
    found: dict[str, tuple[int, int]] = {}
    for number in range(layers):
        at = f"model.layers.{number}"
        for name, out in (("q_proj", HIDDEN), ("k_proj", 64), ("v_proj", 64), ("o_proj", HIDDEN)):
            found[f"{at}.self_attn.{name}"] = (out, HIDDEN)
        for name in ("gate_proj", "up_proj"):
            found[f"{at}.mlp.{name}"] = (INNER, HIDDEN)
        found[f"{at}.mlp.down_proj"] = (HIDDEN, INNER)
    found["lm_head"] = (VOCAB, HIDDEN)
    return found


@dataclass
class Recipe:
    """A folder to be: change what you like, then :meth:`write`."""

    tensors: dict[str, Entry] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    tokenizer: dict[str, Any] = field(default_factory=dict)

    @property
    def quantization(self) -> dict[str, Any]:
        found: dict[str, Any] = self.config["quantization_config"]
        return found

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        write_safetensors(folder / "model.safetensors", self.tensors)
        (folder / "config.json").write_text(json.dumps(self.config))
        for name, value in self.tokenizer.items():
            (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))
        return folder


def recipe(
    scheme: str = "fp8",
    *,
    linears: Mapping[str, tuple[int, int]] | None = None,
    exclude: Sequence[str] = ("lm_head",),
    overrides: Mapping[str, tuple[str, Sequence[str]]] | None = None,
    kv: bool = False,
    extra: Mapping[str, Entry] | None = None,
) -> Recipe:
    """An export of ``scheme``. ``overrides`` maps a pattern to (scheme, the modules that it reaches)."""
    linears = llama_linears() if linears is None else linears
    by_module = {name: other for _, (other, names) in (overrides or {}).items() for name in names}
    tensors: dict[str, Entry] = {
        "model.embed_tokens.weight": ("BF16", (VOCAB, HIDDEN)),
        "model.norm.weight": ("BF16", (HIDDEN,)),
    }
    for name, (out, inner) in linears.items():
        if name in exclude:
            tensors[f"{name}.weight"] = ("BF16", (out, inner))
        else:
            table = SCHEMES[by_module.get(name, scheme)][0](out, inner)
            tensors.update({f"{name}.{suffix}": entry for suffix, entry in table.items()})
        if kv and name.endswith(("k_proj", "v_proj")):
            tensors[f"{name}.output_scale"] = ("BF16", ())
    for number in range(LAYERS):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{number}.{norm}.weight"] = ("BF16", (HIDDEN,))
    tensors.update(extra or {})
    layers = {pattern: SCHEMES[other][1] for pattern, (other, _) in (overrides or {}).items()}
    cache = (
        {pattern: {**SCHEMES[scheme][1], "output_tensors": _E4M3} for pattern in ("*k_proj", "*v_proj")} if kv else {}
    )
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "vocab_size": VOCAB, "tie_word_embeddings": False,
        "quantization_config": {
            "algo_config": None, "exclude": list(exclude),
            "export": {
                "kv_cache_group": list(cache), "min_kv_scale": 0.0, "pack_method": "reorder",
                "weight_format": "real_quantized", "weight_merge_groups": None,
            },
            "global_quant_config": SCHEMES[scheme][1], "kv_cache_post_rope": False, "kv_cache_quant_config": cache,
            "layer_quant_config": dict(sorted({**layers, **cache}.items())), "layer_type_quant_config": {},
            "quant_method": "quark", "quant_mode": "eager_mode", "softmax_quant_spec": None, "version": "0.13",
        },
    }  # fmt: skip
    tokenizer = {
        "tokenizer.json": {"version": "1.0", "truncation": None, "padding": None, "model": {"vocab": {"a": 0}}},
        "tokenizer_config.json": {"pad_token": "<pad>", "tokenizer_class": "TokenizersBackend"},
    }
    return Recipe(tensors, json.loads(json.dumps(config)), tokenizer)


def plain(linears: Mapping[str, tuple[int, int]] | None = None) -> Recipe:
    """The source of :func:`recipe`: nothing quantized, no quantization_config."""
    every = llama_linears() if linears is None else linears
    made = recipe(linears=every, exclude=tuple(every))
    del made.config["quantization_config"]
    return made
