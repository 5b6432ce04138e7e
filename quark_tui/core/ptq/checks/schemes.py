"""Schemes: known, exportable, fitting the layers' sizes; the KV cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quark_tui.core.ptq.analysis import integer
from quark_tui.core.ptq.checks.draft import Draft, Issue, issue, meant, shown
from quark_tui.core.ptq.schemes import facts_for, group_size


def check_schemes(draft: Draft) -> Iterator[Issue]:
    """scheme_missing, scheme_unknown, scheme_not_exportable, group_size_indivisible, kv_unsupported."""
    known = [scheme.name for scheme in draft.catalog.schemes]
    offered = [name for name in known if (facts := draft.facts(name)) is None or facts.exportable]
    name = draft.values["global_scheme"]
    if name is None:
        yield issue(
            "block",
            "scheme_missing",
            "global_scheme",
            "no scheme is chosen; there is no default",
            "without one quark-cli fails after it has loaded model and data",
            f"set global_scheme to one of: {shown(' '.join(offered), 600)}" if offered else "set global_scheme",
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
                f"{what} is not one of the installed Quark: {shown(scheme)}" + meant(scheme, known)
                if known
                else f"{what} cannot be looked up: {shown(scheme)}",
                f"{draft.quark}: {len(known)} schemes, names are exact",
                f"choose one of: {shown(' '.join(offered), 600)}"
                if offered
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
            + (", although its help lists it" if offered else meant(scheme, accepted)),
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
