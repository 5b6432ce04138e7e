"""Algorithm and calibration: supported, and with enough samples."""

from __future__ import annotations

from collections.abc import Iterator

from quark_tui.core.ptq.checks.draft import Draft, Issue, issue, meant, shown
from quark_tui.core.ptq.surroundings import release_of

#: Data sets whose loader ignores ``--batch_size`` (source, 0.12.post1 and 0.13).
_OWN_BATCHES = ("ultrachat", "pileval_for_awq_benchmark")
#: A choice of the command line whose loader is not implemented (source and run, 0.13).
_NOT_IMPLEMENTED_DATASETS = frozenset({"ScienceQA"})
#: Listed with a configuration, and dies with a KeyError all the same (run, 0.13).
_BROKEN_ALGORITHMS = {(0, 13): frozenset({"autoround"})}


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
                f"the installed Quark has no algorithm {shown(name)}{meant(name, known)}",
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
                f"quark-cli does not take {shown(values[key])} for {flag}{meant(str(values[key]), words)}",
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
