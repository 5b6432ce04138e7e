"""What a plan needs to know about the machine and about paths; gathered outside, plain values here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from quark_tui.core.text import clean

Backend = Literal["cuda", "rocm"]


@dataclass(frozen=True, slots=True)
class OutputState:
    """The output folder as it is now. ``resolved`` follows symlinks of what exists; ``parent_writable`` is about the
    folder itself when it exists, else about the nearest ancestor that does. Unknown is None."""

    path: str
    exists: bool = False
    empty: bool | None = None
    is_dir: bool | None = None
    parent_exists: bool = True
    parent_writable: bool | None = True
    resolved: str = ""


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """A template file as Quark 0.13 reads it; ``problem`` says why it cannot be used ("" when it can)."""

    model_type: str | None = None
    problem: str = ""
    exclude: tuple[str, ...] = ()
    kv_layers: tuple[str, ...] = ()
    algorithms: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``visible``: physical indices of the GPUs within the inherited mask; ``gpu_backend``: what torch was built for;
    ``prefix``: the target interpreter's prefix; bytes are free disk at the output and memory of the machine;
    ``inherited``: device masks that the environment already has. Unknown is None."""

    quark_version: str | None = None
    gpu_count: int | None = None
    gpu_backend: Backend | None = None
    visible: tuple[int, ...] | None = None
    prefix: str = ""
    free_bytes: int | None = None
    memory_bytes: int | None = None
    output: OutputState = field(default_factory=lambda: OutputState(""))
    model_dir: str = ""
    model_resolved: str = ""
    template_file: TemplateFile | None = None
    inherited: Mapping[str, str] = field(default_factory=dict)

    @property
    def quark_needs_gpu_for_cpu(self) -> bool | None:
        """True when this Quark cannot run with ``--device cpu``; None when its version is unknown.

        Measured: 0.12.post1 runs the stock command on a machine without GPU, 0.13 always fails there.
        """
        release = release_of(self.quark_version)
        return None if release is None else release >= (0, 13)

    @property
    def usable_gpus(self) -> int | None:
        """GPUs that a run may use: those within the mask, else those of the machine."""
        return len(self.visible) if self.visible is not None else self.gpu_count


def release_of(version: str | None) -> tuple[int, int] | None:
    """(major, minor) of a version text, or None."""
    found = re.match(r"\s*v?(\d{1,6})\.(\d{1,6})", version or "")
    return (int(found[1]), int(found[2])) if found else None


_TEMPLATE_KEYS = frozenset(["model_type", "kv_layers_name", "q_layer_name", "exclude_layers_name", "algorithm_configs"])


def template_file(data: Any) -> TemplateFile:
    """The template file of parsed JSON ``data``, judged by the rules of Quark 0.13 (source).

    ``model_type`` is required, lists are lists of texts, and other keys are refused, ``gate_up_layers_name`` among them
    although it is documented there.
    """
    if not isinstance(data, Mapping):
        return TemplateFile(problem="the template file holds no JSON object")
    model_type = data.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        return TemplateFile(problem="the template file names no model_type")
    unknown = [key for key in data if key not in _TEMPLATE_KEYS]
    if unknown:
        return TemplateFile(model_type, f"the template file has a key that Quark refuses: {clean(unknown[0])}")
    query = data.get("q_layer_name", "")
    if not isinstance(query, str) and not (isinstance(query, list) and all(isinstance(item, str) for item in query)):
        return TemplateFile(model_type, "q_layer_name of the template file is no text and no list of texts")
    lists: dict[str, tuple[str, ...]] = {}
    for key in ("exclude_layers_name", "kv_layers_name"):
        value = data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            return TemplateFile(model_type, f"{key} of the template file is no list of texts")
        lists[key] = tuple(value)
    algorithms = data.get("algorithm_configs", {})
    if not isinstance(algorithms, Mapping):
        return TemplateFile(model_type, "algorithm_configs of the template file is no map")
    return TemplateFile(
        model_type,
        "",
        lists["exclude_layers_name"],
        lists["kv_layers_name"],
        frozenset(str(name).lower() for name in algorithms),
    )
