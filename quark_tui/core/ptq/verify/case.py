"""One folder held against one expectation: every module judged once, for all checks to look at."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from quark_tui.core.model.headers import Tensor
from quark_tui.core.model.inventory import Inventory
from quark_tui.core.ptq.verify.evidence import Export, TokenizerFile
from quark_tui.core.ptq.verify.expectation import Expectation, QuantizationConfig, Rule
from quark_tui.core.ptq.verify.layout import Judgement, judge
from quark_tui.core.ptq.verify.modules import StoredModule, is_embedding, linear_weights, stored_modules
from quark_tui.core.ptq.verify.patterns import align
from quark_tui.core.text import clean


@dataclass(frozen=True, slots=True)
class Judged:
    """A quantized module with its rule and what its tensors say; ``override`` when not the global scheme decides."""

    module: StoredModule
    rule: Rule
    judgement: Judgement
    override: bool


@dataclass(frozen=True, slots=True)
class Source:
    """What is known of the model that was quantized: its tokenizer files, the expected size of the weights in bytes."""

    tokenizer: tuple[TokenizerFile, ...] | None = None
    estimate_bytes: int | None = None
    metric: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """``expected`` is None when it cannot be told which modules should be quantized.

    ``foreign`` names another method's quantization, which is not judged; ``names`` tells where names come from.
    """

    export: Export
    config: QuantizationConfig
    expectation: Expectation
    source: Source
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    modules: Mapping[str, StoredModule] = field(default_factory=dict)
    quantized: tuple[str, ...] = ()
    expected: tuple[str, ...] | None = None
    absent: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    judged: tuple[Judged, ...] = ()
    rules: Mapping[str, Rule] = field(default_factory=dict)
    embeddings: tuple[str, ...] = ()
    names: str = "the headers of the folder"
    foreign: str = ""

    @property
    def seen(self) -> bool:
        return bool(self.tensors)

    @property
    def blind(self) -> bool:
        """True when a part of the weights could not be looked into, so that what is not there cannot be told."""
        return bool(self.export.unreadable) or self.export.refused

    @property
    def document(self) -> Mapping[str, Any]:
        return self.export.config.data if isinstance(self.export.config.data, dict) else {}


def build(
    export: Export,
    config: QuantizationConfig,
    expectation: Expectation,
    source: Source,
    inventory: Inventory | None,
) -> Case:
    """Sort the folder's modules and judge the quantized ones."""
    tensors = export.checkpoint.tensors
    modules = stored_modules(tensors)
    sure, unsure = linear_weights(modules.values())
    quantized = tuple(name for name, module in modules.items() if module.quantized)
    features: dict[str, tuple[int, int]] = {}
    names = "the headers of the folder"
    linears: Collection[str] = [name for name in modules if name in sure]
    run_names: dict[str, str] = {}
    absent: list[str] = []
    embeddings = [name for name, module in modules.items() if is_embedding(module)]
    if inventory is not None and inventory.known and inventory.linears:
        wanted = [module.name for module in inventory.linears]
        found = align(wanted, modules)
        # Linears that are mostly strangers to the source are another naming, not a loss: then only headers can tell.
        strangers = sure.difference(found.values())
        if len(strangers) * 2 <= len(sure):
            names = inventory.source
            run_names = {stored: name for name, stored in found.items()}
            linears = [found[name] for name in wanted if name in found]
            # Convolutions take the global scheme as well, though no inventory lists them among the Linears.
            linears += [name for name in quantized if len(modules[name].parts["weight"].shape) == 4]
            absent = [name for name in wanted if name not in found]
            unsure = set()
            features = {
                found[module.name]: (module.weight[0], module.weight[1])
                for module in inventory.linears
                if module.name in found and len(module.weight) == 2
            }
    foreign = ""
    if expectation.against == "config" and config.method not in (None, "quark"):
        foreign = clean(config.method or "")[:60]
    rules = {name: expectation.rule(run_names.get(name, name)) for name in {*linears, *quantized, *unsure, *embeddings}}
    rules.update({name: expectation.rule(name) for name in absent})
    missing = [name for name in absent if not rules[name].excluded]
    promised = expectation.scheme_spec is not None or bool(expectation.overrides) or expectation.against == "plan"
    knows = modules or (expectation.against == "plan" and absent)
    expected: tuple[str, ...] | None = None
    if promised and knows and not foreign and config.method != "unknown":
        expected = (*(name for name in linears if _wanted(rules[name], expectation)), *missing)
    known = set(linears)
    judged = [
        _judge(modules[name], rules[name], expectation, features.get(name))
        for name in quantized
        if not rules[name].excluded and not foreign
    ]
    return Case(
        export,
        config,
        expectation,
        source,
        tensors=tensors,
        modules=modules,
        quantized=quantized,
        expected=expected,
        absent=tuple(missing),
        excluded=tuple(name for name in modules if name in known and rules[name].excluded),
        unsure=tuple(name for name in modules if name in unsure and not rules[name].excluded),
        judged=tuple(judged),
        rules=rules,
        embeddings=tuple(embeddings),
        names=names,
        foreign=foreign,
    )


def _wanted(rule: Rule, expectation: Expectation) -> bool:
    if rule.excluded:
        return False
    if rule.specs:
        return any(spec.weight for spec in rule.specs)
    # A plan's scheme that is not known here still wants its modules quantized; a configuration without one does not.
    return expectation.against == "plan"


def _judge(module: StoredModule, rule: Rule, expectation: Expectation, features: tuple[int, int] | None) -> Judged:
    judgements = [judge(spec, module.parts, features) for spec in rule.specs]
    fits = [one for one in judgements if not one.contradictions]
    best = (sorted(fits, key=lambda one: len(one.missing)) or judgements or [Judgement()])[0]
    override = rule.pattern is not None
    common = expectation.scheme_spec
    if override and expectation.against == "config" and common is not None:
        # KV cache quantization repeats the global scheme under its own patterns: no override of anything.
        override = any((spec.weight, spec.inputs) != (common.weight, common.inputs) for spec in rule.specs)
    return Judged(module, rule, best, override)
