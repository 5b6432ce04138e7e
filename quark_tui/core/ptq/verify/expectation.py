"""What an output folder is held against: a confirmed plan, or the folder's own ``quantization_config``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from quark_tui.core.ptq.verify.layout import SCHEMES, LayerSpec, parse_layer
from quark_tui.core.ptq.verify.patterns import Patterns
from quark_tui.core.text import clean


@dataclass(frozen=True, slots=True)
class QuantizationConfig:
    """``quantization_config`` as far as it can be understood; ``problems`` names what cannot be.

    ``method`` is quant_method, None when there is no such configuration; ``where`` the key that it was found under.
    ``kv_group`` is export.kv_cache_group, None when there is no such key.
    """

    method: str | None = None
    where: str = ""
    global_spec: LayerSpec | None = None
    global_given: bool = False
    layers: Mapping[str, LayerSpec | None] = field(default_factory=dict)
    types: tuple[LayerSpec, ...] = ()
    excludes: tuple[str, ...] = ()
    kv_patterns: tuple[str, ...] = ()
    kv_group: tuple[str, ...] | None = None
    min_kv_scale: float = 0.0
    weight_format: str = ""
    version: str = ""
    problems: tuple[str, ...] = ()


def _strings(value: Any, name: str, problems: list[str]) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    problems.append(f"{name} is no list of names")
    return ()


def _mapping(value: Any, name: str, problems: list[str]) -> Mapping[str, Any]:
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    problems.append(f"{name} is no map")
    return {}


def parse_config(config: Mapping[str, Any], other: Any = None) -> QuantizationConfig:
    """The quantization that a config.json (and hf_quant_config.json, ``other``) tells of.

    Looked for at the top, then inside a multimodal model's text_config, then under compression_config.
    """
    text = config.get("text_config")
    places = [
        ("quantization_config", config.get("quantization_config")),
        ("text_config.quantization_config", text.get("quantization_config") if isinstance(text, dict) else None),
        ("compression_config", config.get("compression_config")),
    ]
    where, found = next(((name, value) for name, value in places if value is not None), ("", None))
    if found is None:
        if isinstance(other, dict) and other:
            producer = other.get("producer")
            name = producer.get("name") if isinstance(producer, dict) else None
            return QuantizationConfig(name if isinstance(name, str) else "modelopt", "hf_quant_config.json")
        return QuantizationConfig()
    if not isinstance(found, dict):
        return QuantizationConfig("unknown", where, problems=(f"{where} is no map",))
    method = found.get("quant_method")
    if not isinstance(method, str):
        if where == "compression_config":
            method = "compressed-tensors"
        elif "global_quant_config" in found:
            return QuantizationConfig("unknown", where, problems=(f"{where} names no quant_method",))
        else:
            method = "unknown"
    if method != "quark":
        return QuantizationConfig(method, where)
    return _quark(found, where)


def _quark(found: Mapping[str, Any], where: str) -> QuantizationConfig:
    problems: list[str] = []
    given = found.get("global_quant_config")
    spec = parse_layer(given)
    if given is not None and spec is None:
        problems.append("global_quant_config cannot be understood")
    layers: dict[str, LayerSpec | None] = {}
    for pattern, value in _mapping(found.get("layer_quant_config"), "layer_quant_config", problems).items():
        layers[pattern] = parse_layer(value)
        if layers[pattern] is None:
            problems.append(f"layer_quant_config of {clean(pattern)[:80]} cannot be understood")
    types = _mapping(found.get("layer_type_quant_config"), "layer_type_quant_config", problems)
    kv = _mapping(found.get("kv_cache_quant_config"), "kv_cache_quant_config", problems)
    export = _mapping(found.get("export"), "export", problems)
    smallest = export.get("min_kv_scale")
    # Versions before kv_cache_quant_config told of the KV cache by outputs in layer_quant_config alone.
    cache = kv if "kv_cache_quant_config" in found else [name for name, spec in layers.items() if spec and spec.outputs]
    group = _strings(export.get("kv_cache_group"), "export.kv_cache_group", problems)
    return QuantizationConfig(
        "quark",
        where,
        spec,
        given is not None,
        layers,
        tuple(spec for spec in map(parse_layer, types.values()) if spec),
        _strings(found.get("exclude"), "exclude", problems),
        tuple(cache),
        group if "kv_cache_group" in export else None,
        float(smallest) if isinstance(smallest, float) else 0.0,
        export["weight_format"] if isinstance(export.get("weight_format"), str) else "",
        found["version"] if isinstance(found.get("version"), str) else "",
        tuple(problems[:20]),
    )


@dataclass(frozen=True, slots=True)
class Rule:
    """What decides for one module: its pattern (None: the global scheme) and the specifications that would all do.

    ``specs`` is empty when the module is to stay as it is or nothing is known about its scheme.
    """

    excluded: bool
    pattern: str | None
    scheme: str
    specs: tuple[LayerSpec, ...]


class Expectation:
    """Exclude over overrides (exact names, then first match in order) over the global scheme."""

    __slots__ = (
        "_layers",
        "_types",
        "against",
        "evaluation",
        "excludes",
        "global_known",
        "kv_asked",
        "overrides",
        "scheme",
        "scheme_spec",
        "unknown_schemes",
    )  # fmt: skip

    def __init__(
        self,
        against: Literal["plan", "config"],
        scheme: str,
        scheme_spec: LayerSpec | None,
        excludes: Patterns,
        layers: Mapping[str, tuple[str, LayerSpec | None]],
        order: tuple[str, ...],
        *,
        types: tuple[LayerSpec, ...] = (),
        kv_asked: bool = False,
        evaluation: bool = False,
        unknown_schemes: tuple[str, ...] = (),
        loose: bool = False,
    ) -> None:
        self.against = against
        self.scheme = scheme
        self.scheme_spec = scheme_spec
        self.excludes = excludes
        self.overrides = Patterns(order, loose=loose)
        self.kv_asked = kv_asked
        self.evaluation = evaluation
        self.unknown_schemes = unknown_schemes
        self._layers = dict(layers)
        self._types = types

    def rule(self, name: str) -> Rule:
        excluded = self.excludes.first(name)
        if excluded is not None:
            return Rule(True, excluded, "", ())
        patterns = self.overrides.all(name)
        if not patterns:
            specs = (*self._types, *((self.scheme_spec,) if self.scheme_spec else ()))
            return Rule(False, None, self.scheme, specs)
        scheme = self._layers[patterns[0]][0]
        # A plan's order decides. A configuration is written with sorted keys and has lost the order: each may be it.
        chosen = patterns[:1] if self.against == "plan" else patterns
        found = [spec for spec in (self._layers[pattern][1] for pattern in chosen) if spec is not None]
        return Rule(False, patterns[0], scheme, tuple(found))

    def override_spec(self, pattern: str) -> LayerSpec | None:
        return self._layers[pattern][1] if pattern in self._layers else None

    def override_scheme(self, pattern: str) -> str:
        return self._layers[pattern][0] if pattern in self._layers else ""


def from_config(config: QuantizationConfig) -> Expectation:
    """A bare folder: its own configuration is what it promises."""
    layers = {pattern: (f"layer_quant_config {pattern}", spec) for pattern, spec in config.layers.items()}
    return Expectation(
        "config",
        "global_quant_config",
        config.global_spec,
        Patterns(config.excludes, loose=True),
        layers,
        tuple(layers),
        types=config.types,
        kv_asked=bool(config.kv_patterns),
        loose=True,
    )


def from_plan(plan: Mapping[str, Any], config: QuantizationConfig, *, run_time_names: bool) -> Expectation:
    """A confirmed plan. ``run_time_names``: patterns will be held against run-time names, exactly as Quark does."""
    scheme = plan.get("global_scheme")
    scheme = scheme if isinstance(scheme, str) else ""
    given = plan.get("layer_quant_config")
    schemes = (
        {k: v for k, v in given.items() if isinstance(k, str) and isinstance(v, str)} if isinstance(given, dict) else {}
    )
    listed = plan.get("layer_order")
    order = [name for name in listed if isinstance(name, str) and name in schemes] if isinstance(listed, list) else []
    order += [name for name in schemes if name not in order]
    layers = {pattern: (schemes[pattern], SCHEMES.get(schemes[pattern])) for pattern in order}
    excludes = plan.get("exclude_layers")
    patterns = [item for item in excludes if isinstance(item, str)] if isinstance(excludes, list) else config.excludes
    unknown = tuple(name for name in dict.fromkeys([scheme, *schemes.values()]) if name not in SCHEMES)
    kv = plan.get("kv_cache_scheme")
    return Expectation(
        "plan",
        scheme,
        SCHEMES.get(scheme),
        Patterns(patterns, loose=not run_time_names),
        layers,
        tuple(order),
        kv_asked=isinstance(kv, str) and kv not in ("", "none"),
        evaluation=plan.get("evaluation_intent") in ("smoke", "full"),
        unknown_schemes=unknown,
        loose=not run_time_names,
    )
