"""Milliseconds that a model's intake takes in a running process: its files read, and everything concluded."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.model.intake import examine, model_answer
from quark_tui.io.intake import read_model
from tests.support.models import LLAMA, Shapes, write_safetensors

#: Milliseconds that no model may exceed.
BUDGET = 20.0


def intake_ms(count: int = 7) -> dict[str, float]:
    """Median milliseconds by folder, of ``count`` readings each after a first one: hand-made folders, and the real
    configurations of the corpus where there is one. Folders that are no model are left out."""
    with tempfile.TemporaryDirectory() as made:
        folders = [*_hand_made(Path(made)), *_corpus()]
        taken = {folder.name: _median(folder, count) for folder in folders}
    return {name: value for name, value in taken.items() if value is not None}


def _median(folder: Path, count: int) -> float | None:
    seconds = []
    for _ in range(count + 1):
        begun = time.perf_counter()
        try:
            model_answer(examine(read_model(folder), None, False, "5.2.0"))
        except WrongQuestion:
            return None
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds[1:]) * 1000


def _hand_made(root: Path) -> list[Path]:
    """A small model in one file, a configuration alone, and a mixture of experts in shards with an index."""
    experts = {**LLAMA, "model_type": "qwen3_moe", "num_experts": 16, "num_hidden_layers": 4}
    return [
        _folder(root / "dense", LLAMA, [_dense(2)]),
        _folder(root / "configuration-alone", LLAMA, []),
        _folder(root / "experts", experts, [_experts(layer, 16) for layer in range(4)]),
    ]


def _dense(layers: int) -> Shapes:
    names = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.up_proj")
    blocks = {f"model.layers.{layer}.{name}.weight": (8, 8) for layer in range(layers) for name in names}
    return {"model.embed_tokens.weight": (32, 8), **blocks, "lm_head.weight": (32, 8)}


def _experts(layer: int, experts: int) -> Shapes:
    names = ("gate_proj", "up_proj", "down_proj")
    place = f"model.layers.{layer}.mlp"
    each = {f"{place}.experts.{number}.{name}.weight": (8, 8) for number in range(experts) for name in names}
    return {f"{place}.gate.weight": (experts, 8), **each}


def _folder(folder: Path, config: dict[str, Any], shards: Sequence[Shapes]) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    single = len(shards) == 1
    names = [
        "model.safetensors" if single else f"model-{number:05}-of-{len(shards):05}.safetensors"
        for number in range(1, len(shards) + 1)
    ]
    for name, shapes in zip(names, shards, strict=True):
        write_safetensors(folder / name, shapes)
    if len(shards) > 1:
        where = {tensor: name for name, shapes in zip(names, shards, strict=True) for tensor in shapes}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    return folder


def _corpus() -> list[Path]:
    shared = Path(os.environ.get("QUARK_TUI_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    root = shared / "data" / "configs"
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def main() -> int:
    taken = intake_ms()
    worst = max(taken, key=lambda name: taken[name])
    middle = statistics.median(taken.values())
    print(f"intake of {len(taken)} models: median {middle:.2f} ms, most {taken[worst]:.2f} ms ({worst})")
    return 1 if taken[worst] > BUDGET else 0


if __name__ == "__main__":
    sys.exit(main())
