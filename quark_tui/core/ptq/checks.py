"""What is wrong with a plan: scheme, algorithm, calibration, compute, template. Patterns and the output have their own.

Every check takes the resolved :class:`Draft` and yields :class:`Issue` values. An issue knows which rows or patterns it
is about, so that a change is refused for what it did and not for what was wrong before.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quark_tui.core.finding import Finding, Level
from quark_tui.core.model.inventory import Inventory
from quark_tui.core.ptq.analysis import fact, integer, quantized_already
from quark_tui.core.ptq.catalog import Catalog
from quark_tui.core.ptq.patterns import Assignment, Names
from quark_tui.core.ptq.schemes import SchemeFacts, facts_for, group_size
from quark_tui.core.ptq.surroundings import Surroundings, release_of
from quark_tui.core.text import clean, elide_end, human_bytes

#: Data sets whose loader ignores ``--batch_size`` (source, 0.12.post1 and 0.13).
_OWN_BATCHES = ("ultrachat", "pileval_for_awq_benchmark")
#: A choice of the command line whose loader is not implemented (source and run, 0.13).
_NOT_IMPLEMENTED_DATASETS = frozenset({"ScienceQA"})
#: Listed with a configuration, and dies with a KeyError all the same (run, 0.13).
_BROKEN_ALGORITHMS = {(0, 13): frozenset({"autoround"})}


@dataclass(frozen=True, slots=True)
class Issue:
    """A finding and what it is about: row keys, ``layer_quant_config:PATTERN``, ``exclude_layers:PATTERN``.

    ``incomplete`` marks a decision that is still to be made: it keeps the plan from being confirmed and refuses no
    change.
    """

    finding: Finding
    about: frozenset[str]
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan with every value resolved, and what it does to each module.

    ``values`` has every row; ``names`` the modules that patterns can hit; ``hits`` the scheme of each module of
    ``names`` or None where it stays as it is; ``template_exclude`` the template's own list.
    """

    values: Mapping[str, Any]
    overrides: Sequence[tuple[str, str]]
    exclude: Sequence[str]
    explicit: bool
    template_exclude: Sequence[str]
    kv_layers: Sequence[str]
    model_type: str | None
    analysis: Mapping[str, Any]
    inventory: Inventory
    names: Names
    assignment: Assignment
    hits: Sequence[str | None]
    catalog: Catalog
    around: Surroundings
    reasons: Mapping[str, str]
    defaults: Mapping[str, Any]

    @property
    def quark(self) -> str:
        """Where the catalogue comes from, for evidence."""
        version = clean(self.catalog.quark_version or "of unknown version")
        return f"amd-quark {version} ({clean(self.catalog.source)})" if self.catalog.source else f"amd-quark {version}"

    def facts(self, name: str | None) -> SchemeFacts | None:
        scheme = None if name is None else self.catalog.scheme(name)
        return None if scheme is None else facts_for(scheme)

    @property
    def used_schemes(self) -> list[str]:
        """The global scheme and those of the overrides, each once."""
        first = self.values["global_scheme"]
        return list(dict.fromkeys(([first] if first else []) + [scheme for _, scheme in self.overrides]))


def shown(value: object, cells: int = 100) -> str:
    """A foreign value as it may stand in a message."""
    return elide_end(clean(value), cells)


def issue(
    level: Level,
    code: str,
    about: str | Iterable[str],
    message: str,
    evidence: str = "",
    next_step: str = "",
    incomplete: bool = False,
) -> Issue:
    keys = frozenset([about] if isinstance(about, str) else about)
    return Issue(Finding(level, code, message, evidence, next_step), keys, incomplete)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that ``word`` was probably meant to be; case is looked through first."""
    names = [name for name in known if isinstance(name, str)]
    folded = {name.lower(): name for name in names}
    if word.lower() in folded:
        return folded[word.lower()]
    near = difflib.get_close_matches(word[:200], names, n=1, cutoff=0.5)
    return near[0] if near else None


def _meant(word: str, known: Iterable[str]) -> str:
    near = nearest(word, known)
    return f"; did you mean {shown(near)}?" if near and near != word else ""


def check_model(draft: Draft) -> Iterator[Issue]:
    """model_type_unknown, template_missing, and the gpt_oss trap."""
    path = draft.values["template_file"]
    about = frozenset({"template_file"})
    if draft.model_type is None:
        yield issue(
            "block",
            "model_type_unknown",
            "model",
            "the model type is not known, so no template can be chosen",
            "the confirmed analysis has no model.model_type",
            "state model_type when the analysis is confirmed",
        )
        return
    kind = shown(draft.model_type)
    if path is not None:
        given = draft.around.template_file
        if not path.startswith("/"):
            yield issue(
                "block",
                "path_not_absolute",
                about,
                f"template_file is not absolute: {shown(path)}",
                "quark-cli changes its working directory before it reads files",
                "give the whole path",
            )
        elif draft.catalog.options and "--template_file" not in draft.catalog.options:
            yield issue(
                "block",
                "template_missing",
                about,
                "the installed quark-cli has no --template_file",
                draft.quark,
                "clear template_file, or install an amd-quark that has the option (0.13 does)",
            )
        elif given is None or given.problem:
            why = given.problem if given is not None else "it was not looked at"
            yield issue(
                "block",
                "template_missing",
                about,
                f"the template file cannot be used: {shown(why, 300)}",
                shown(path, 300),
                "correct the file, or clear template_file",
            )
        elif given.model_type != draft.model_type:
            yield issue(
                "block",
                "template_missing",
                about,
                f"the template file is for {shown(given.model_type)}, the model is {kind}",
                shown(path, 300),
                "quark-cli refuses a template of another model type: correct model_type in the file",
            )
    elif draft.model_type not in draft.catalog.templates:
        has_option = "--template_file" in draft.catalog.options
        yield issue(
            "block",
            "template_missing",
            "template_file",
            f"the installed Quark has no template for model type {kind}"
            + _meant(draft.model_type, draft.catalog.templates),
            f"{draft.quark}: {len(draft.catalog.templates)} templates",
            "give a template file (template_file)" if has_option else "another amd-quark may have one",
        )
    method = fact(draft.analysis, "already_quantized")
    if method is not None and draft.model_type != "gpt_oss":
        name = method.get("method") if isinstance(method, Mapping) else method
        yield issue(
            "high",
            "source_quantized",
            "model",
            f"the source is quantized already ({shown(name)})",
            "run with 0.13: quantizing a Quark export again fails when it is written",
            "start from the unquantized model",
        )
    if draft.model_type == "gpt_oss" and not quantized_already(draft.analysis):
        yield issue(
            "high",
            "gpt_oss_bf16",
            "exclude_layers",
            "a bf16 gpt_oss checkpoint without its original quantization_config: Quark takes lm_head, routers and "
            "attention for de-quantized MXFP4 layers and quantizes them in spite of every exclude",
            "run with 0.13; the original checkpoint carries quantization_config.modules_to_not_convert",
            "start from the original checkpoint, or check the output's excludes",
        )


def check_schemes(draft: Draft) -> Iterator[Issue]:
    """scheme_missing, scheme_unknown, scheme_not_exportable, group_size_indivisible, kv_unsupported."""
    known = [scheme.name for scheme in draft.catalog.schemes]
    name = draft.values["global_scheme"]
    if name is None:
        yield issue(
            "block",
            "scheme_missing",
            "global_scheme",
            "no scheme is chosen; there is no default",
            "without one quark-cli fails after it has loaded model and data",
            f"set global_scheme to one of: {shown(' '.join(known), 600)}" if known else "set global_scheme",
            incomplete=True,
        )
    uses = [(name, frozenset({"global_scheme"}), "the scheme")] if name is not None else []
    for pattern, scheme in draft.overrides:
        about = frozenset({"layer_quant_config", f"layer_quant_config:{pattern}"})
        uses.append((scheme, about, f"the scheme of the override {shown(pattern)}"))
    for scheme, about, what in uses:
        found = draft.catalog.scheme(scheme)
        if found is None:
            yield issue(
                "block",
                "scheme_unknown",
                about,
                f"{what} is not one of the installed Quark: {shown(scheme)}" + _meant(scheme, known)
                if known
                else f"{what} cannot be looked up: {shown(scheme)}",
                f"{draft.quark}: {len(known)} schemes, names are exact",
                f"choose one of: {shown(' '.join(known), 600)}"
                if known
                else "install amd-quark, or name its interpreter",
            )
            continue
        facts = facts_for(found)
        if facts is None:
            yield issue(
                "medium",
                "scheme_unmeasured",
                about,
                f"nothing was ever measured of {shown(scheme)}: size, calibration and export are not known",
                f"{draft.quark}: class {shown(found.class_name)}",
                "try it on a small model first",
            )
        elif not facts.exportable:
            yield issue(
                "block",
                "scheme_not_exportable",
                about,
                f"{shown(scheme)} is listed, but Quark cannot export it",
                "run with 0.13: the export ends with an error and leaves an empty folder",
                "choose another scheme",
            )
    yield from _check_groups(draft)
    yield from _check_kv(draft)


def _check_groups(draft: Draft) -> Iterator[Issue]:
    groups = {name: group_size(found) for name in draft.used_schemes if (found := draft.catalog.scheme(name))}
    if not any(groups.values()):
        return
    if not draft.inventory.known:
        scheme = draft.values["global_scheme"]
        group = groups.get(scheme) if scheme else None
        if (facts := draft.facts(scheme)) is not None and facts.pads_groups:
            return
        for key in ("hidden_size", "intermediate_size", "moe_intermediate_size"):
            size = integer(draft.analysis, key)
            if group and size and size % group:
                yield issue(
                    "block" if key == "hidden_size" else "medium",
                    "group_size_indivisible",
                    "global_scheme",
                    f"{shown(scheme)} groups {group} input features, which does not divide {key} {size}",
                    "the configuration; the modules themselves are not known",
                    "choose a scheme with a smaller group, or one without groups",
                )
        return
    wrong: dict[str, list[int]] = {}
    for index, scheme in enumerate(draft.hits):
        group = groups.get(scheme) if scheme is not None else None
        weight = draft.names.modules[index].weight
        if group and len(weight) == 2 and weight[1] % group:
            wrong.setdefault(str(scheme), []).append(index)
    for scheme, indices in wrong.items():
        module = draft.names.modules[indices[0]]
        about = {
            f"layer_quant_config:{draft.overrides[position][0]}" if position >= 0 else "global_scheme"
            for position in {draft.assignment.overridden[index] for index in indices}
        }
        if any(key != "global_scheme" for key in about):
            about.add("layer_quant_config")
        facts = draft.facts(scheme)
        if facts is not None and facts.pads_groups:
            yield issue(
                "medium",
                "group_padded",
                about,
                f"{shown(scheme)} groups {groups[scheme]} input features, which do not divide those of {len(indices)} "
                f"modules ({shown(module.name)} has {module.weight[1]}); Quark pads the last group",
                "measured with 0.12.post1: quantized and exported with one more scale a row",
                "check that the inference engine that is meant takes such shapes",
            )
            continue
        yield issue(
            "block",
            "group_size_indivisible",
            about,
            f"{shown(scheme)} groups {groups[scheme]} input features, which do not divide those of {len(indices)} "
            f"module{'s' if len(indices) != 1 else ''}: {shown(module.name)} has {module.weight[1]}",
            f"shapes from {shown(draft.inventory.source)}",
            _group_advice(draft, [draft.names.modules[index].weight[1] for index in indices]),
        )


def _group_advice(draft: Draft, sizes: Sequence[int]) -> str:
    unlike = set(sizes)
    fitting = [
        scheme.name
        for scheme in draft.catalog.schemes
        if (group := group_size(scheme)) and not any(size % group for size in unlike)
    ]
    fitting = [name for name in fitting if (facts := draft.facts(name)) is not None and facts.exportable]
    if not fitting:
        return "choose a scheme without groups, or exclude these modules"
    return f"choose one that divides ({shown(' '.join(fitting), 300)}), one without groups, or exclude these modules"


def _check_kv(draft: Draft) -> Iterator[Issue]:
    scheme = draft.values["kv_cache_scheme"]
    if scheme is None:
        return
    accepted = draft.catalog.kv_schemes
    if scheme not in accepted:
        listed = draft.catalog.options.get("--kv_cache_dtype")
        offered = listed is not None and listed.choices is not None and scheme in listed.choices
        yield issue(
            "block",
            "kv_unsupported",
            "kv_cache_scheme",
            f"the installed Quark does not accept {shown(scheme)} for the KV cache"
            + (", although its help lists it" if offered else _meant(scheme, accepted)),
            f"{draft.quark}: accepted are {shown(' '.join(accepted)) or 'none that could be read'}",
            f"choose {shown(' or '.join(accepted))}, or none" if accepted else "set kv_cache_scheme to none",
        )
        return
    if not draft.kv_layers:
        yield issue(
            "block",
            "kv_unsupported",
            "kv_cache_scheme",
            "the template names no KV layers, so nothing would be done for the KV cache",
            f"template of {shown(draft.model_type)}",
            "set kv_cache_scheme to none",
        )
    elif draft.inventory.known and not any(draft.names.matching(pattern) for pattern in draft.kv_layers):
        yield issue(
            "high",
            "kv_matches_nothing",
            "kv_cache_scheme",
            f"the template's KV layers match no module: {shown(' '.join(draft.kv_layers))}",
            shown(draft.inventory.source),
            "look at the module names; the KV cache may stay as it is",
        )


def check_algorithm(draft: Draft) -> Iterator[Issue]:
    """algorithm_unsupported, and algorithms together with multi_device."""
    value = draft.values["algorithm"]
    if value is None:
        return
    known = draft.catalog.algorithms
    for name in value.split(","):
        word = name.lower()
        if word not in known:
            yield issue(
                "block",
                "algorithm_unsupported",
                "algorithm",
                f"the installed Quark has no algorithm {shown(name)}{_meant(name, known)}",
                f"{draft.quark}: {shown(' '.join(known), 300) or 'none that could be read'}",
                "choose one that it has, or none",
            )
            continue
        if word in _BROKEN_ALGORITHMS.get(release_of(draft.catalog.quark_version) or (0, 0), ()):
            yield issue(
                "block",
                "algorithm_unsupported",
                "algorithm",
                f"{shown(name)} is listed by this Quark and fails when it starts",
                "run with 0.13: KeyError",
                "choose another algorithm, or none",
            )
            continue
        given = draft.around.template_file
        configured = (
            given.algorithms
            if draft.values["template_file"] is not None and given is not None
            else {word if draft.model_type in known[word] else ""}
        )
        if draft.model_type is not None and word not in configured:
            kind = shown(draft.model_type)
            others = [other for other, types in known.items() if draft.model_type in types]
            yield issue(
                "block",
                "algorithm_unsupported",
                "algorithm",
                f"the installed Quark has {shown(name)}, but no built-in configuration of it for {kind}",
                f"{draft.quark}: configured for {kind} are {shown(' '.join(others)) or 'none'}",
                "choose one of these, or none" if others else "set algorithm to none",
            )
    if draft.values["device_strategy"] == "multi_device":
        yield issue(
            "medium",
            "multi_device_algorithm",
            ("algorithm", "device_strategy"),
            "multi_device is meant for quantization without algorithms",
            "help of quark-cli torch-llm-ptq",
            "set algorithm to none, or choose device_strategy single",
        )


def needs_calibration(draft: Draft) -> bool | None:
    """True when a forward pass over calibration data decides something; None when a scheme's needs are not known."""
    if draft.values["algorithm"] is not None or draft.values["kv_cache_scheme"] is not None:
        return True
    if draft.values["global_scheme"] is None:
        return None
    needs: bool | None = False
    for name in draft.used_schemes:
        facts = draft.facts(name)
        if facts is None:
            needs = None
        elif facts.static_input:
            return True
    return needs


def check_calibration(draft: Draft) -> Iterator[Issue]:
    """batch_exceeds_samples, dropped samples, fewer samples than the default, unknown data sets."""
    values = draft.values
    samples, batch, dataset = values["num_calib_data"], values["batch_size"], values["dataset"]
    for key, flag in (("dataset", "--dataset"), ("evaluation_dataset", "--evaluation_dataset")):
        option = draft.catalog.options.get(flag)
        if option is not None and option.choices is not None and values[key] not in option.choices:
            words = [str(choice) for choice in option.choices if choice is not None]
            yield issue(
                "block",
                "dataset_unsupported",
                key,
                f"quark-cli does not take {shown(values[key])} for {flag}{_meant(str(values[key]), words)}",
                draft.quark,
                f"choose one of: {shown(' '.join(words), 300)}",
            )
    if dataset in _NOT_IMPLEMENTED_DATASETS:
        yield issue(
            "block",
            "dataset_unsupported",
            "dataset",
            f"{shown(dataset)} is listed, but its loader is not implemented",
            "run with 0.13: NotImplementedError",
            "choose another data set",
        )
    needs = needs_calibration(draft)
    own_batches = any(part in str(dataset) for part in _OWN_BATCHES)
    if type(samples) is int and type(batch) is int and not own_batches:
        if batch > samples:
            if needs is False:
                yield issue(
                    "low",
                    "batch_exceeds_samples",
                    ("batch_size", "num_calib_data"),
                    f"a batch of {batch} never fills from {samples} samples; this scheme needs no calibration pass",
                    "incomplete batches are dropped",
                )
            else:
                yield issue(
                    "block",
                    "batch_exceeds_samples",
                    ("batch_size", "num_calib_data"),
                    f"a batch of {batch} never fills from {samples} samples: nothing would be calibrated, and every "
                    "input scale would stay 1.0",
                    "run with 0.13: incomplete batches are dropped, the command still ends with 0",
                    f"set batch_size to {samples} or less, or num_calib_data to {batch} or more",
                )
        elif samples % batch and needs is not False:
            yield issue(
                "low",
                "samples_dropped",
                ("batch_size", "num_calib_data"),
                f"{samples % batch} of {samples} samples fill no batch of {batch} and are dropped",
                "the last incomplete batch is dropped",
                f"set num_calib_data to {samples - samples % batch}, or a batch size that divides",
            )
    default = draft.defaults["num_calib_data"]
    if type(samples) is int and type(default) is int and samples < default and not draft.reasons.get("num_calib_data"):
        yield issue(
            "low",
            "fewer_samples",
            "num_calib_data",
            f"{samples} calibration samples are fewer than the default of {default}, and no reason is given",
            draft.quark,
            "give a reason for num_calib_data (accuracy or resources)",
        )
    if values["evaluation_intent"] == "smoke":
        yield issue(
            "low",
            "evaluation_whole",
            "evaluation_intent",
            "quark-cli has one evaluation only: a smoke evaluation runs the same whole test set as a full one",
            draft.quark,
            "set evaluation_intent to none to save the time",
        )


def check_compute(draft: Draft) -> Iterator[Issue]:
    """compute_undecided, devices_missing, quark_needs_gpu, and the limits of multi_device."""
    around, strategy, devices = draft.around, draft.values["device_strategy"], draft.values["devices"]
    count = around.usable_gpus
    no_gpu = count == 0
    seen = (
        f"GPUs within the inherited mask: {' '.join(map(str, around.visible)) or 'none'}"
        if around.visible is not None
        else f"GPUs of this machine: {around.gpu_count if around.gpu_count is not None else 'unknown'}"
    )
    if strategy is None:
        yield issue(
            "block",
            "compute_undecided",
            "device_strategy",
            "where the run is to compute is not decided",
            seen,
            "set device_strategy to cpu" if no_gpu else "set device_strategy to single, multi_device or cpu",
            incomplete=True,
        )
    needs = around.quark_needs_gpu_for_cpu
    if needs and (strategy == "cpu" or no_gpu):
        yield issue(
            "block",
            "quark_needs_gpu",
            "device_strategy",
            f"amd-quark {shown(around.quark_version)} cannot run without a GPU: it offloads all weights and fails",
            "run with 0.13 on a machine without GPU: MemoryError after model and data were loaded",
            "install amd-quark 0.12.post1, which runs on the CPU" + ("" if no_gpu else ", or choose a GPU"),
            incomplete=strategy is None,
        )
    elif needs is None and strategy == "cpu":
        yield issue(
            "medium",
            "quark_version_unknown",
            "device_strategy",
            "the version of amd-quark is not known, so whether it runs on the CPU is not known either",
            "0.12.post1 does, 0.13 does not",
        )
    if strategy == "cpu":
        if devices:
            yield issue("low", "devices_unused", "devices", "devices are named, but the run computes on the CPU", seen)
        return
    if strategy not in ("single", "multi_device"):
        return
    if no_gpu:
        yield issue(
            "block",
            "devices_missing",
            ("device_strategy", "devices"),
            f"device_strategy {strategy} needs a GPU, and there is none",
            seen,
            "set device_strategy to cpu",
        )
    elif not devices:
        yield issue(
            "block",
            "devices_missing",
            "devices",
            "no device is chosen"
            + (f" among {count} GPUs" if count is not None else " and how many GPUs there are is not known")
            + "; without a choice quark-cli takes every visible one",
            seen,
            "set devices to the index of one GPU" if strategy == "single" else "set devices to the GPUs to use",
            incomplete=True,
        )
    else:
        known = around.visible if around.visible is not None else None if count is None else tuple(range(count))
        absent = [] if known is None else [device for device in devices if device not in known]
        if absent:
            yield issue(
                "block",
                "devices_missing",
                "devices",
                f"no such device: {' '.join(map(str, absent[:20]))}",
                seen,
                "choose among the GPUs that are there",
            )
        if strategy == "single" and len(devices) > 1:
            yield issue(
                "block",
                "devices_missing",
                ("devices", "device_strategy"),
                f"device_strategy single takes one device, {len(devices)} are named",
                seen,
                "name one device, or set device_strategy to multi_device",
            )
    if strategy == "multi_device":
        yield issue(
            "medium",
            "multi_device_limits",
            "device_strategy",
            "multi_device offloads to other GPUs, memory and disk: slower, and meant for runs without algorithms",
            "help of quark-cli torch-llm-ptq",
            "prefer single where the model fits",
        )


def check_remote_code(draft: Draft) -> Iterator[Issue]:
    """What the trust_remote_code row does and does not stop."""
    if draft.values["trust_remote_code"]:
        yield issue(
            "high",
            "remote_code_trusted",
            "trust_remote_code",
            "code that the model brings along will be executed without a prompt",
            "quark-cli trusts remote code unless --no_trust_remote_code is given",
            "set trust_remote_code to false unless the model needs its own code and you have read it",
        )
        return
    entries = fact(draft.analysis, "remote_code")
    loose = [
        entry
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, Mapping) and entry.get("stopped_by_flag") is False
    ]
    if loose:
        yield issue(
            "high",
            "remote_code_not_stopped",
            "trust_remote_code",
            f"trust_remote_code false does not stop the code that {shown(loose[0].get('file'))} names: "
            f"{shown(loose[0].get('target'))}",
            "run with 0.13: the flag covers the model, not its tokenizer and processor",
            "read the code, or use a copy of the model without it",
        )


def check_memory(draft: Draft, peak: int | None) -> Iterator[Issue]:
    """A warning when the rough estimate is above the machine's memory."""
    memory = draft.around.memory_bytes
    if peak is not None and memory is not None and peak > memory:
        yield issue(
            "medium",
            "memory_tight",
            ("device_strategy", "global_scheme"),
            f"the run may need {human_bytes(peak)} of memory, {human_bytes(memory)} are there",
            "a rough estimate: source and output together, and the program itself",
            "fewer samples, shorter sequences or a smaller batch help only a little",
        )
