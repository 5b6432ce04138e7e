"""Estimates against real exports."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quark_tui.core.model.inventory import Inventory, Module
from quark_tui.io.checkpoint import read_checkpoint
from tests.support.ptq import analysis, view

EXPORTS = {"llama_fp8_kv": ("global_scheme=fp8", "kv_cache_scheme=fp8"), "llama_mxfp4": ("global_scheme=mxfp4",)}


@pytest.fixture(scope="module")
def shared_folder() -> Path:
    folder = Path(os.environ.get("QUARK_TUI_SHARED", Path(__file__).parents[3] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no corpus at {folder} (QUARK_TUI_SHARED)")
    return folder


def inventory(model: Path) -> Inventory:
    """The modules of a plain llama by its headers."""
    modules = []
    for name, tensor in read_checkpoint(model).tensors.items():
        module = name.removesuffix(".weight")
        kind = "embedding" if "embed" in module else "other" if len(tensor.shape) == 1 else "linear"
        modules.append(Module(module, kind, tensor.shape, tensor.elements))  # type: ignore[arg-type]
    return Inventory(True, "headers", tuple(modules))


def test_estimates_are_within_two_percent(shared_folder: Path) -> None:
    modules = inventory(shared_folder / "data/models/llama")
    for name, sets in EXPORTS.items():
        estimated = view(*sets, inventory=modules, model=analysis()).estimate.output_bytes
        real = (shared_folder / "data/exports" / name / "model.safetensors").stat().st_size
        assert estimated is not None
        assert abs(estimated - real) <= 0.02 * real, (name, estimated, real)
        print(f"{name}: estimated {estimated}, real {real}")
    print(f"{len(EXPORTS)} exports")
