"""What is wrong with the patterns of a plan: excludes and overrides against the modules that they can hit."""

from __future__ import annotations

from collections.abc import Iterator

from quark_tui.core.ptq.checks import Draft, Issue, issue, shown
from quark_tui.core.ptq.patterns import Names, did_you_mean, is_glob, matcher

# Projections that inference engines fuse into one matrix, and which therefore need one scheme (within one block).
_FUSED = (
    frozenset({"q_proj", "k_proj", "v_proj"}),
    frozenset({"gate_proj", "up_proj"}),
    frozenset({"w1", "w3"}),
    frozenset({"query", "key", "value"}),
    frozenset({"q_a_proj", "kv_a_proj_with_mqa"}),
)
#: Looking for what was meant costs time; a list of hundreds of wrong patterns gets this many answers.
MAX_SUGGESTIONS = 20

_FUSED_BY_LEAF = {leaf: group for group in _FUSED for leaf in group}


def shadowing(draft: Draft, position: int) -> str | None:
    """The exclude or earlier override that leaves override ``position`` nothing; None when it has an effect.

    Where the modules are not known only what follows from the texts alone is said.
    """
    pattern = draft.overrides[position][0]
    if not draft.inventory.known:
        hiding = [
            exclude
            for exclude in draft.exclude
            if exclude == pattern or (not is_glob(pattern) and matcher(exclude)(pattern))
        ]
        return hiding[0] if hiding else None
    matched = draft.names.matching(pattern)
    if not matched or draft.assignment.override_counts[position]:
        return None
    for index in matched:
        if draft.assignment.excluded[index] >= 0:
            return draft.exclude[draft.assignment.excluded[index]]
    first = draft.assignment.overridden[matched[0]]
    return draft.overrides[first][0] if first >= 0 else None


def check_patterns(draft: Draft) -> Iterator[Issue]:
    """pattern_matches_nothing, override_shadowed, override_overlaps, excludes_everything, and what is odd."""
    yield from _check_excludes(draft)
    yield from _check_overrides(draft)
    if draft.inventory.known:
        yield from _check_overlaps(draft)
        yield from _check_fused(draft)
    elif draft.overrides or draft.explicit:
        yield issue(
            "medium",
            "patterns_unchecked",
            ("layer_quant_config", "exclude_layers"),
            "the module names are not known, so what the patterns match cannot be checked",
            shown(draft.inventory.source, 300),
            "quark-cli says nothing about a pattern that matches nothing: look at its table of excluded modules",
        )


def _check_excludes(draft: Draft) -> Iterator[Issue]:
    if not draft.inventory.known:
        if any(pattern and not pattern.strip("*") for pattern in draft.exclude):
            yield issue(
                "block",
                "excludes_everything",
                "exclude_layers",
                "an exclude matches every name, so nothing would be quantized",
                "the pattern itself",
                "name only the modules that are to stay as they are",
            )
        return
    rest: Names | None = None
    reported = 0
    for pattern in draft.exclude:
        if draft.names.matching(pattern):
            continue
        about = ("exclude_layers", f"exclude_layers:{pattern}")
        if rest is None:
            rest = Names([module for module in draft.inventory.modules if module.kind == "other"])
        others = rest.matching(pattern)
        if pattern in draft.template_exclude:
            if draft.explicit:
                yield issue(
                    "info",
                    "template_pattern_unused",
                    about,
                    f"the template's exclude {shown(pattern)} matches nothing in this model",
                    shown(draft.inventory.source, 300),
                )
        elif others:
            yield issue(
                "low",
                "pattern_without_effect",
                about,
                f"the exclude {shown(pattern)} matches only modules that are never quantized",
                shown(draft.inventory.source, 300),
            )
        else:
            reported += 1
            yield _matches_nothing(draft, "exclude", pattern, about, reported <= MAX_SUGGESTIONS)
    if draft.names.modules and draft.values["global_scheme"] and not any(draft.hits):
        deciding = [draft.exclude[position] for position, count in enumerate(draft.assignment.exclude_counts) if count]
        yield issue(
            "block",
            "excludes_everything",
            ("exclude_layers", *(f"exclude_layers:{pattern}" for pattern in deciding)),
            "the excludes leave nothing to quantize: the run would write the source's weights under a quantized name",
            f"{sum(draft.assignment.exclude_counts)} modules excluded by {shown(' '.join(deciding), 300)}",
            "name only the modules that are to stay as they are",
        )


def _matches_nothing(draft: Draft, kind: str, pattern: str, about: tuple[str, ...], suggest: bool) -> Issue:
    near = did_you_mean(pattern, draft.names) if suggest else None
    return issue(
        "block",
        "pattern_matches_nothing",
        about,
        f"the {kind} {shown(pattern)} matches none of {len(draft.names.names)} modules"
        + (f"; did you mean {shown(near[0])} ({near[1]})?" if near else ""),
        f"{shown(draft.inventory.source, 300)}; a pattern must match the whole name, and case counts",
        f"correct or remove the {kind}; quark-cli would say nothing",
    )


def _check_overrides(draft: Draft) -> Iterator[Issue]:
    globs: list[str] = []
    reported = 0
    for position, (pattern, scheme) in enumerate(draft.overrides):
        about = ("layer_quant_config", f"layer_quant_config:{pattern}")
        if is_glob(pattern):
            globs.append(pattern)
        if draft.inventory.known:
            matched = draft.names.matching(pattern)
            kinds = {draft.names.modules[index].kind for index in matched}
            if not matched:
                reported += 1
                yield _matches_nothing(draft, "override", pattern, about, reported <= MAX_SUGGESTIONS)
                continue
            if kinds == {"router"}:
                yield issue(
                    "block",
                    "pattern_matches_nothing",
                    about,
                    f"the override {shown(pattern)} matches only routers, which Quark never quantizes",
                    f"{len(matched)} modules, first {shown(draft.names.names[matched[0]])}",
                    "remove the override",
                )
                continue
            if "embedding" in kinds:
                yield issue(
                    "high",
                    "override_embedding",
                    about,
                    f"the override {shown(pattern)} matches an embedding: Quark then writes odd names and leaves the "
                    "weight as it was",
                    "run with 0.13: model.embed_tokens._weight_scale beside a BF16 weight",
                    "let the pattern match linear modules only",
                )
        hider = shadowing(draft, position)
        if hider is not None and hider in draft.exclude:
            own = hider in draft.template_exclude and not draft.explicit
            yield issue(
                "block",
                "override_shadowed",
                (*about, f"exclude_layers:{hider}"),
                f"the override {shown(pattern)}={shown(scheme)} has no effect: the {'template' if own else 'plan'} "
                f"excludes {shown(hider)}, and an exclude beats an override",
                "run with 0.13: ends with 0 and without a warning, the module stays as it was",
                "set exclude_layers to a list without it, or remove the override",
            )
        elif draft.inventory.known:
            matched = draft.names.matching(pattern)
            lost = sum(1 for index in matched if draft.assignment.excluded[index] >= 0)
            if lost:
                yield issue(
                    "low",
                    "override_partly_shadowed",
                    about,
                    f"{lost} of {len(matched)} modules of the override {shown(pattern)} are excluded",
                    "an exclude beats an override",
                )
    if globs:
        yield issue(
            "info",
            "glob_in_export",
            "layer_quant_config",
            f"the exported configuration keeps {'this pattern' if len(globs) == 1 else 'these patterns'} as written: "
            f"{shown(' '.join(globs), 300)}",
            "excludes are expanded to module names, overrides are not",
            "some inference engines take whole names or regular expressions only: check the one that is meant",
        )


def _check_overlaps(draft: Draft) -> Iterator[Issue]:
    """Two overrides over one module: Quark takes the first, and writes its map sorted, so that readers see another."""
    owners: dict[int, int] = {}
    reported: set[tuple[int, int]] = set()
    for position, (pattern, scheme) in enumerate(draft.overrides):
        for index in draft.names.matching(pattern):
            if draft.assignment.excluded[index] >= 0 or draft.names.modules[index].kind == "router":
                continue
            other = owners.setdefault(index, position)
            if other == position or (other, position) in reported:
                continue
            reported.add((other, position))
            first, first_scheme = draft.overrides[other]
            about = (
                "layer_quant_config",
                f"layer_quant_config:{pattern}",
                f"layer_quant_config:{first}",
            )
            if scheme == first_scheme:
                yield issue(
                    "low",
                    "override_redundant",
                    about,
                    f"the overrides {shown(first)} and {shown(pattern)} both match {shown(draft.names.names[index])}",
                    f"both say {shown(scheme)}",
                )
            else:
                yield issue(
                    "block",
                    "override_overlaps",
                    about,
                    f"the overrides {shown(first)}={shown(first_scheme)} and {shown(pattern)}={shown(scheme)} both "
                    f"match {shown(draft.names.names[index])}",
                    "Quark quantizes by the first and writes the map sorted: a reader of the export may see the other",
                    "make the patterns exclude each other",
                )
            if len(reported) >= 50:
                return


def _check_fused(draft: Draft) -> Iterator[Issue]:
    """Partners of one fused matrix under different schemes; only what this plan does, not what a template does."""
    if not draft.overrides and not draft.explicit:
        return
    partners: dict[tuple[str, frozenset[str]], dict[str, str | None]] = {}
    for index, module in enumerate(draft.names.modules):
        parent, _, leaf = module.name.rpartition(".")
        group = _FUSED_BY_LEAF.get(leaf)
        if group is not None and module.kind == "linear":
            partners.setdefault((parent, group), {})[leaf] = draft.hits[index]
    split = [(parent, schemes) for (parent, _), schemes in partners.items() if len(set(schemes.values())) > 1]
    if split:
        parent, schemes = split[0]
        described = ", ".join(f"{leaf} {scheme or 'as it is'}" for leaf, scheme in schemes.items())
        yield issue(
            "medium",
            "fused_split",
            ("layer_quant_config", "exclude_layers"),
            f"{len(split)} block{'s' if len(split) != 1 else ''} split partners that inference engines fuse: "
            f"{shown(parent)} has {shown(described, 200)}",
            "vLLM and others load q/k/v and gate/up as one matrix with one scheme",
            "give the partners one scheme",
        )
