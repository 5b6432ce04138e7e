"""Model intake: everything that is known of a model before its weights are loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.finding import Finding, block
from quark_tui.core.model import risks
from quark_tui.core.model.analysis import analysis_json
from quark_tui.core.model.arithmetic import Count, conservative_estimate, linear_count
from quark_tui.core.model.config import bounded, differs, lookup, sections, shown
from quark_tui.core.model.facts import CORRECTABLE, MATERIAL, NOT_STATED, Fact, read_facts
from quark_tui.core.model.headers import Checkpoint, as_loaded
from quark_tui.core.model.inventory import Inventory, grouped
from quark_tui.core.model.names import NESTED_ROUTERS, Naming, build_inventory, layer_count
from quark_tui.core.model.quantized import Quantized, find_quantized
from quark_tui.core.model.remote_code import RemoteCode, find_remote_code
from quark_tui.core.text import clean


@dataclass(frozen=True, slots=True)
class JsonFile:
    """One JSON file of the model's folder. ``problem``: why ``data`` is None; ``note``: what was taken with reserve."""

    name: str
    data: Any | None
    problem: str
    sha256: str | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model's folder as read: JSON files, names with sizes in bytes, digests of Python files, weight headers.

    ``listing`` has the files at the top and ``.py`` files anywhere; ``listing_complete`` is False when it was cut.
    ``pointers`` names files at the top that are Git LFS pointers.
    """

    directory: str
    files: Mapping[str, JsonFile]
    listing: Mapping[str, int]
    python_files: Mapping[str, str]
    checkpoint: Checkpoint
    listing_complete: bool = True
    pointers: tuple[str, ...] = ()

    @property
    def config(self) -> Mapping[str, Any]:
        """config.json's object; empty when there is none."""
        file = self.files.get("config.json")
        return file.data if file is not None and isinstance(file.data, Mapping) else {}


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What the installed Quark's template for ``model_type`` says: default excludes and the layers of the KV cache."""

    model_type: str
    exclude: tuple[str, ...]
    kv_layers: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Intake:
    """What was found out about a model. ``linear_count`` None: it cannot be defended; ``count_basis`` says why.

    ``questions`` names the material facts that a person must state. The fields from ``source`` on are what it was
    concluded from, so that a correction concludes again.
    """

    directory: str
    facts: Mapping[str, Fact]
    remote_code: tuple[RemoteCode, ...]
    already_quantized: Mapping[str, str] | None
    inventory: Inventory
    linear_count: int | None
    count_basis: str
    findings: tuple[Finding, ...]
    questions: tuple[str, ...]
    source: ModelSource
    template: TemplateFacts | None = None
    catalog_known: bool = False
    transformers_version: str | None = None
    quark_version: str | None = None
    estimate: Count | None = None
    has_non_linear_experts: bool | None = None
    corrections: Mapping[str, Any] = field(default_factory=dict)


def examine(
    source: ModelSource,
    template: TemplateFacts | None,
    catalog_known: bool,
    transformers_version: str | None,
    quark_version: str | None = None,
) -> Intake:
    """Conclude from configuration and headers alone.

    ``template`` is that of the model's type, None without one; ``catalog_known`` False when the installed Quark's
    templates could not be read, so that a missing one means nothing. ``transformers_version``: the installed one, or
    None. ``quark_version``: the installed amd-quark or None; before 0.13 some routers are Linear of another name.
    """
    return _conclude(source, template, catalog_known, transformers_version, quark_version, {})


def corrected(intake: Intake, corrections: Mapping[str, Any], template: TemplateFacts | None = None) -> Intake:
    """``intake`` with facts set by hand, and everything that rests on them concluded again.

    Values may be typed or text as it was given on a command line. A fact keeps its former value in its source.
    ``template`` replaces the former one, for a corrected model_type. Raises WrongQuestion for an unknown key or a value
    of the wrong type.
    """
    taken = dict(intake.corrections)
    for key, value in corrections.items():
        taken[key] = _correction(key, value)
    return _conclude(
        intake.source,
        template or intake.template,
        intake.catalog_known,
        intake.transformers_version,
        intake.quark_version,
        taken,
    )


def _correction(key: str, value: Any) -> Any:
    reader = CORRECTABLE.get(key)
    if reader is None:
        raise WrongQuestion(
            f"{clean(str(key)[:80])!r} is no fact that can be corrected; these can: {', '.join(CORRECTABLE)}"
        )
    given = value
    if isinstance(value, str):
        if key == "tie_word_embeddings":
            value = {"true": True, "false": False}.get(value.strip().lower(), value)
        elif key == "architectures":
            value = _listed(value)
    read, remark = reader(value)
    if read is None:
        raise WrongQuestion(f"{key}: {shown(given)} {remark}")
    return read


def _listed(text: str) -> Any:
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _conclude(
    folder: ModelSource,
    template: TemplateFacts | None,
    catalog_known: bool,
    installed: str | None,
    quark_version: str | None,
    corrections: Mapping[str, Any],
) -> Intake:
    loaded, left = as_loaded(folder.checkpoint)
    source = replace(folder, checkpoint=loaded)
    config = source.config
    facts, remarks = read_facts(config)
    mtp = facts["num_nextn_predict_layers"].value or 0
    remarks["num_hidden_layers"] += _layers_of_headers(facts, source, mtp)
    for name, value in corrections.items():
        old = facts.get(name, Fact(None, NOT_STATED))
        was = "not stated" if old.value is None else f"{shown(old.value)} from {old.source}"
        facts[name] = replace(old, value=value, source=f"corrected by hand, was {was}", corrected=True, was=old.value)
        remarks.pop(name, None)
    findings = [*_file_findings(source), *(finding for found in remarks.values() for finding in found)]
    model_type: str | None = facts["model_type"].value
    layers: int | None = facts["num_hidden_layers"].value

    data = {name: file.data for name, file in source.files.items() if file.data is not None}
    remote_code = find_remote_code(data, source.python_files)
    already = find_quantized(data, source.checkpoint)
    own_code = any(
        code.file == "config.json" and code.stopped_by_flag and "AutoConfig" not in code.key for code in remote_code
    )
    wrapper = bool(facts["modalities"].value) or bool(facts["text_sections"].value)
    quark = risks.version(quark_version)
    nested_routers = quark is not None and quark < (0, 13, 0)
    inventory = build_inventory(
        source.checkpoint,
        Naming(
            model_type,
            layers,
            facts["hidden_size"].value,
            facts["vocab_size"].value,
            own_code,
            any(risks.CAUSAL.search(name) for name in facts["architectures"].value or ()),
            wrapper,
            facts["num_nextn_predict_layers"].value or 0,
            nested_routers,
        ),
    )
    count, estimate = _count(config, facts, inventory, wrapper, nested_routers)
    before = count
    if "linear_count" in corrections:
        was = "not known" if before.linear is None else f"{before.linear} from {before.basis}"
        count = Count(corrections["linear_count"], f"corrected by hand, was {was}")
    facts["linear_count"] = Fact(count.linear, count.basis)
    if "linear_count" in corrections:
        facts["linear_count"] = Fact(count.linear, count.basis, corrected=True, was=before.linear)
    weight_bytes = _weight_facts(facts, source, inventory)
    facts["source_kind"] = Fact("local", source.directory)

    fused = any(
        len(tensor.shape) >= 3 and re.search(r"\.experts\b", name)
        for shard in source.checkpoint.shards
        for name, tensor in shard.tensors.items()
    )
    if template is not None and template.model_type != model_type:
        template = None
    findings += _type_findings(facts, template, catalog_known)
    findings += risks.tokenizer(source.listing, remote_code)
    findings += risks.pointers([name for name in source.pointers if name not in source.files])
    findings += risks.weights(source.checkpoint, source.listing)
    findings += risks.passed_by(left)
    findings += risks.adapter(source.listing, bool(source.checkpoint.shards))
    findings += risks.remote(remote_code)
    findings += risks.quantized(already, model_type, config)
    findings += risks.transformers(facts, model_type, installed)
    findings += risks.architecture(facts, remote_code)
    findings += risks.generation(data.get("generation_config.json"))
    if already is None:
        findings += risks.stored_type(facts, source.checkpoint)
    findings += risks.structure(fused, facts["num_nextn_predict_layers"].value or 0, source.checkpoint)
    findings += risks.size(count.linear, weight_bytes, facts["num_experts"].value)
    if wrapper:
        findings.append(
            Finding(
                "low",
                "multimodal",
                "the language model is a part of a larger one; only its modules are meant to be quantized",
                f"config.json: {', '.join([*facts['modalities'].value, *facts['text_sections'].value])}",
                "Check the default excludes for the other parts.",
            )
        )
    return Intake(
        source.directory,
        facts,
        remote_code,
        already.to_json() if already else None,
        inventory,
        count.linear,
        count.basis,
        tuple(findings),
        tuple(name for name in MATERIAL if facts[name].value is None),
        folder,
        template,
        catalog_known,
        installed,
        quark_version,
        estimate,
        _non_linear_experts(facts, fused, source.checkpoint),
        dict(corrections),
    )


def _file_findings(source: ModelSource) -> list[Finding]:
    found = []
    for name, file in source.files.items():
        if file.problem:
            found.append(
                Finding(
                    "medium",
                    "file_unreadable",
                    f"{clean(name)} {clean(file.problem)}",
                    clean(name),
                    "Get the file anew.",
                )
            )
        elif file.note:
            found.append(Finding("low", "file_note", f"{clean(name)} {clean(file.note)}", clean(name), ""))
    if not source.listing_complete:
        found.append(
            Finding(
                "low", "listing_cut", "the folder has so many entries that not all were looked at", source.directory, ""
            )
        )
    return found


def _layers_of_headers(facts: dict[str, Fact], source: ModelSource, mtp: int) -> list[Finding]:
    """Fill or compare the layer count with what the tensor names show."""
    checkpoint = source.checkpoint
    if not checkpoint.sound or checkpoint.index_disagreements():
        return []
    stated: int | None = facts["num_hidden_layers"].value
    shown_by = layer_count(name for shard in checkpoint.shards for name in shard.tensors)
    if shown_by is None or facts["is_encoder_decoder"].value:
        return []
    seen, prefix = shown_by
    if stated is None:
        if not facts["num_hidden_layers"].source.startswith("config.json"):
            shards = checkpoint.shards
            facts["num_hidden_layers"] = Fact(
                max(1, seen - mtp),
                f"weight headers: {clean(prefix)}.0 to {clean(prefix)}.{seen - 1}",
                clean(shards[0].name) if len(shards) == 1 else None,
                clean(f"{prefix}.{seen - 1}") if len(shards) == 1 else None,
            )
        return []
    if stated <= seen <= stated + mtp:
        return []
    return [
        Finding(
            "high",
            "layers_disagree",
            f"the configuration says {stated} layers, the weights hold {seen}",
            f"{facts['num_hidden_layers'].source}; weight headers: {clean(prefix)}.*",
            "Check which is right; set num_hidden_layers by hand when the analysis is confirmed.",
        )
    ]


def _count(
    config: Mapping[str, Any], facts: Mapping[str, Fact], inventory: Inventory, wrapper: bool, nested_routers: bool
) -> tuple[Count, Count | None]:
    """(defended count, estimate where there is none)."""
    if inventory.known:
        return Count(len(inventory.linears), inventory.source), None
    model_type, layers, experts = (facts[name].value for name in ("model_type", "num_hidden_layers", "num_experts"))
    if model_type is None or layers is None:
        return Count(None, "the model type or the layer count is unknown"), None
    told = facts["num_experts"]
    if (experts is None and told.key) or (not told.corrected and told.key and differs(lookup(config, told.key))):
        return Count(None, "the configuration does not settle how many experts each layer has"), conservative_estimate(
            layers
        )
    section: Mapping[str, Any] = config
    if not wrapper:
        count = linear_count(model_type, section, layers, experts)
        if count.linear is not None and nested_routers and model_type in NESTED_ROUTERS and experts:
            basis = f"{count.basis}, + {layers} routers (Quark before 0.13)"
            count = Count(count.linear + layers, basis)
        return count, (None if count.linear is not None else conservative_estimate(layers))
    reason = Count(None, f"the configuration does not settle the modules of the wrapper {clean(model_type)}")
    for name, text in sections(config):
        inner = text.get("model_type")
        if isinstance(inner, str):
            inner_count = linear_count(inner, text, layers, experts)
            if inner_count.linear is None:
                inner_count = linear_count(inner.removesuffix("_text"), text, layers, experts)
            if inner_count.linear is not None:
                basis = (
                    f"conservative estimate, the language model in {name} alone ({clean(inner)}): {inner_count.basis}"
                )
                return reason, Count(inner_count.linear, basis)
    return reason, conservative_estimate(layers)


def _weight_facts(facts: dict[str, Fact], source: ModelSource, inventory: Inventory) -> int | None:
    """Put weight_bytes and parameters; sizes in bytes."""
    checkpoint = source.checkpoint
    weight_bytes: int | None = None
    where = NOT_STATED
    opens: tuple[str, str, Any] | tuple[()] = ()
    if checkpoint.sound and not checkpoint.index_disagreements():
        weight_bytes, where = checkpoint.data_bytes, "weight headers"
    elif checkpoint.other_weights and not checkpoint.shards:
        weight_bytes, where = sum(checkpoint.other_weights.values()), "file sizes"
    for name, file in source.files.items():
        if name.endswith(".index.json"):
            total = lookup(file.data, "metadata.total_size")
            if type(total) is int and 0 < total < 2**60 and (weight_bytes is None or where == "file sizes"):
                weight_bytes, where = total, f"{name}: metadata.total_size"
                opens = (clean(name), "metadata.total_size", bounded(total))
    facts["weight_bytes"] = Fact(weight_bytes, where, *opens)
    if inventory.known:
        facts["parameters"] = Fact(inventory.parameters, "weight headers")
    else:
        facts["parameters"] = Fact(None, inventory.source)
    return weight_bytes


def _non_linear_experts(facts: Mapping[str, Fact], fused: bool, checkpoint: Checkpoint) -> bool | None:
    """True: fused expert tensors; False: none, by headers or because there are no experts; None: cannot be told."""
    if fused:
        return True
    if checkpoint.sound:
        return False
    experts = facts["num_experts"]
    return False if experts.value == 0 or experts.source == NOT_STATED else None


def _type_findings(facts: Mapping[str, Fact], template: TemplateFacts | None, catalog_known: bool) -> list[Finding]:
    found = []
    model_type = facts["model_type"]
    if model_type.value is None:
        found.append(
            block(
                "model_type_unknown",
                "the model type is unknown",
                f"config.json: model_type, {model_type.source}",
                "Set model_type when the analysis is confirmed, or correct config.json.",
            )
        )
    elif template is None and catalog_known:
        found.append(
            Finding(
                "high",
                "template_missing",
                f"the installed Quark has no template for the model type {clean(model_type.value)}",
                model_type.source,
                "Give a template_file in the plan, or use a Quark version that has one.",
            )
        )
    elif template is None:
        found.append(
            Finding(
                "medium",
                "template_unknown",
                "whether the installed Quark has a template for this model type is not known: no Quark was read",
                model_type.source,
                "Name the target interpreter with --python.",
            )
        )
    if facts["num_hidden_layers"].value is None:
        found.append(
            block(
                "layer_count_unknown",
                "the count of hidden layers is unknown",
                facts["num_hidden_layers"].source,
                "Set num_hidden_layers when the analysis is confirmed.",
            )
        )
    if facts["is_encoder_decoder"].value:
        found.append(
            Finding(
                "medium",
                "encoder_decoder",
                "an encoder-decoder model: quark-cli torch-llm-ptq loads causal language models",
                facts["is_encoder_decoder"].source,
                "Check that the architecture has a template.",
            )
        )
    return found


def model_answer(intake: Intake) -> dict[str, Any]:
    """The body of ``model``: analysis, facts, remote_code, already_quantized, inventory."""
    return {
        "analysis": analysis_json(intake),
        "facts": {name: fact.to_json() for name, fact in intake.facts.items()},
        "remote_code": [code.to_json() for code in intake.remote_code],
        "already_quantized": dict(intake.already_quantized) if intake.already_quantized else None,
        "inventory": {
            "known": intake.inventory.known,
            "source": intake.inventory.source,
            "linear_count": intake.linear_count,
            "count_basis": intake.count_basis,
            "groups": grouped(intake.inventory.modules),
        },
    }


__all__ = [
    "Intake",
    "JsonFile",
    "ModelSource",
    "Quantized",
    "RemoteCode",
    "TemplateFacts",
    "analysis_json",
    "corrected",
    "examine",
    "model_answer",
]
