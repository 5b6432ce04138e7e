"""Which modules a model has, as far as names and shapes tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

ModuleKind = Literal["linear", "router", "embedding", "other"]


@dataclass(frozen=True, slots=True)
class Module:
    """One module with a weight, by the name that it has at run time (what Quark's patterns are matched against).

    ``weight`` is (out_features, in_features) for a linear module, the weight's shape otherwise.
    """

    name: str
    kind: ModuleKind
    weight: tuple[int, ...]
    parameters: int


@dataclass(frozen=True, slots=True)
class Inventory:
    """``known`` is False when names cannot be told; ``source`` says where they come from, or why not."""

    known: bool
    source: str
    modules: tuple[Module, ...] = ()

    @property
    def linears(self) -> tuple[Module, ...]:
        return tuple(module for module in self.modules if module.kind == "linear")

    @property
    def parameters(self) -> int:
        return sum(module.parameters for module in self.modules)


def grouped(modules: Sequence[Module]) -> list[dict[str, Any]]:
    """Modules whose names differ only in numbers, as {pattern, count, parameters}, in first-seen order."""
    groups: dict[str, dict[str, Any]] = {}
    for module in modules:
        pattern = ".".join("*" if part.isdigit() else part for part in module.name.split("."))
        group = groups.setdefault(pattern, {"pattern": pattern, "count": 0, "parameters": 0})
        group["count"] += 1
        group["parameters"] += module.parameters
    return list(groups.values())
