"""The plan: rows with values, defaults and reasons, what its patterns hit, what it costs, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from quark_tui.core.digest import digest
from quark_tui.core.finding import Finding
from quark_tui.core.model.inventory import Inventory
from quark_tui.core.ptq import analysis as facts_of
from quark_tui.core.ptq.catalog import Catalog
from quark_tui.core.ptq.checks import (
    Draft,
    Issue,
    check_algorithm,
    check_calibration,
    check_compute,
    check_memory,
    check_model,
    check_remote_code,
    check_schemes,
)
from quark_tui.core.ptq.estimate import Estimate, estimate
from quark_tui.core.ptq.output_checks import check_output
from quark_tui.core.ptq.pattern_checks import check_patterns, shadowing
from quark_tui.core.ptq.patterns import Names, any_match, assign
from quark_tui.core.ptq.surroundings import OutputState, Surroundings, TemplateFile
from quark_tui.core.ptq.wishes import OUTPUT_FORMATS, ROWS, TEMPLATE, Wishes
from quark_tui.core.text import clean

__all__ = [
    "Estimate",
    "OutputState",
    "PatternView",
    "PlanView",
    "Row",
    "Surroundings",
    "TemplateFile",
    "build",
    "output_dir",
    "plan_digest",
    "refusals",
    "template_path",
]

#: Defaults where the installed command does not say its own; those of quark-cli 0.12.post1 and 0.13.
_FALLBACKS: Mapping[str, tuple[str, Any]] = {
    "dataset": ("--dataset", "pileval"),
    "num_calib_data": ("--num_calib_data", 512),
    "seq_len": ("--seq_len", 512),
    "batch_size": ("--batch_size", 1),
    "evaluation_dataset": ("--evaluation_dataset", "wikitext"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One decision: its value, what it would be if nobody had said anything, why, and whether it was set by hand."""

    key: str
    value: Any
    default: Any
    reason: str
    changed: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "value": self.value,
            "default": self.default,
            "reason": self.reason,
            "changed": self.changed,
        }


@dataclass(frozen=True, slots=True)
class PatternView:
    """What one pattern hits. ``matches``: modules whose name it matches; ``effective``: those about which it decides;
    ``shadowed_by``: the pattern that leaves it nothing. Counts are None where the modules are not known."""

    kind: Literal["exclude", "override"]
    pattern: str
    scheme: str | None
    matches: int | None
    effective: int | None
    shadowed_by: str | None

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "pattern": self.pattern,
            "scheme": self.scheme,
            "matches": self.matches,
            "effective": self.effective,
            "shadowed_by": self.shadowed_by,
        }


@dataclass(frozen=True, slots=True)
class PlanView:
    """A built plan. ``plan`` is what ``quant_plan.json`` holds, None while it cannot be written (no scheme, no model
    type); ``issues`` are the findings with what each is about."""

    rows: tuple[Row, ...]
    patterns: tuple[PatternView, ...]
    estimate: Estimate
    plan: dict[str, Any] | None
    issues: tuple[Issue, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(issue.finding for issue in self.issues)

    @property
    def confirmable(self) -> bool:
        """True when there is a plan and nothing blocks it."""
        return self.plan is not None and not any(issue.finding.level == "block" for issue in self.issues)


def output_dir(wishes: Wishes, default_output: str) -> str:
    """The output folder that ``wishes`` mean; whoever gathers :class:`Surroundings` looks at this one."""
    value = wishes.values.get("output_dir")
    return value if isinstance(value, str) else default_output


def template_path(wishes: Wishes) -> str | None:
    """The template file that ``wishes`` name, if any."""
    value = wishes.values.get("template_file")
    return value if isinstance(value, str) else None


def build(
    wishes: Wishes,
    analysis: Mapping[str, Any],
    inventory: Inventory,
    catalog: Catalog | None,
    around: Surroundings,
    default_output: str,
    confirmed: bool,
    analysis_ref: str = "model_analysis.json",
    names: Names | None = None,
) -> PlanView:
    """Resolve ``wishes`` against the confirmed analysis, the installed Quark and the machine.

    ``default_output`` is absolute. ``confirmed`` says that Checkpoint 2 was passed (``requires_confirmation`` false).
    ``names`` may be kept between builds for the same inventory, to save preparing it. Nothing is raised for what a
    person can ask; everything wrong is a finding.
    """
    catalog = catalog if catalog is not None else Catalog(around.quark_version or "", "")
    names = names if names is not None else Names.of(inventory)
    model_type = facts_of.model_type(analysis)
    template_exclude, kv_layers, template_source = _template(wishes, model_type, catalog, around)
    defaults = _defaults(catalog, around, template_exclude, default_output)
    exclude, explicit = _effective_exclude(wishes, template_exclude)
    values: dict[str, Any] = {**defaults, **wishes.values}
    values["layer_quant_config"] = dict(wishes.overrides)
    values["exclude_layers"] = exclude
    if values["device_strategy"] == "cpu" and "devices" not in wishes.values:
        values["devices"] = []
    elif values["device_strategy"] == "multi_device" and "devices" not in wishes.values:
        values["devices"] = list(around.visible or range(min(around.gpu_count or 0, 4096))) or None
    if values["devices"] is not None:
        values["devices"] = list(values["devices"])
    values = {key: values[key] for key in ROWS}

    overrides = wishes.overrides
    assignment = assign(names, exclude, [pattern for pattern, _ in overrides])
    hits = _hits(names, assignment.excluded, assignment.overridden, overrides, values["global_scheme"])
    draft = Draft(
        values=values,
        overrides=overrides,
        exclude=exclude,
        explicit=explicit,
        template_exclude=template_exclude,
        kv_layers=kv_layers,
        model_type=model_type,
        analysis=analysis,
        inventory=inventory,
        names=names,
        assignment=assignment,
        hits=hits,
        catalog=catalog,
        around=around,
        reasons=wishes.reasons,
        defaults=defaults,
    )
    cost = _estimate(draft)
    rows = _rows(draft, wishes, template_source)
    return PlanView(
        rows=rows,
        patterns=_pattern_views(draft),
        estimate=cost,
        plan=_plan(draft, rows, analysis_ref, confirmed),
        issues=(
            *_catalog_issues(catalog),
            *check_model(draft),
            *check_schemes(draft),
            *check_patterns(draft),
            *check_algorithm(draft),
            *check_calibration(draft),
            *check_compute(draft),
            *check_output(draft, cost.output_bytes),
            *check_remote_code(draft),
            *check_memory(draft, cost.peak_memory_bytes),
        ),
    )


def refusals(before: PlanView, after: PlanView, touched_keys: Iterable[str]) -> tuple[Finding, ...]:
    """The blocking findings that a change causes or touches; empty when it may be made.

    ``touched_keys`` as ``wishes.touched`` gives them. A decision that is still open (no scheme yet) refuses nothing.
    """
    keys = set(touched_keys)
    # Naming the row touches each of its patterns; naming one pattern does not touch the others.
    was = {(issue.finding.code, issue.finding.message) for issue in before.issues if issue.finding.level == "block"}
    return tuple(
        issue.finding
        for issue in after.issues
        if issue.finding.level == "block"
        and not issue.incomplete
        and ((issue.finding.code, issue.finding.message) not in was or _about(issue, keys))
    )


def _about(issue: Issue, keys: set[str]) -> bool:
    entries = {key for key in issue.about if ":" in key}
    rows = issue.about - entries
    return bool(keys & entries) or any(row in keys for row in rows)


def plan_digest(plan: Mapping[str, Any]) -> str:
    """sha256 over a plan without ``requires_confirmation`` and without times, so that confirming does not change it."""
    kept = {
        key: value
        for key, value in plan.items()
        if key != "requires_confirmation" and not key.endswith(("_at", "_time"))
    }
    return digest("quant_plan", kept)


def _template(
    wishes: Wishes, model_type: str | None, catalog: Catalog, around: Surroundings
) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """(excludes, KV layers, where they come from) of the template that the run will use."""
    if template_path(wishes) is not None:
        given = around.template_file
        if given is not None and not given.problem:
            return given.exclude, given.kv_layers, "the template file"
        return (), (), "a template file that cannot be used"
    template = catalog.templates.get(model_type) if model_type is not None else None
    if template is None:
        return (), (), "no template"
    version = clean(catalog.quark_version)
    return template.exclude, template.kv_layers, f"{clean(model_type)} template of Quark {version}".rstrip()


def _defaults(
    catalog: Catalog, around: Surroundings, template_exclude: Sequence[str], default_output: str
) -> dict[str, Any]:
    defaults: dict[str, Any] = dict.fromkeys(ROWS)
    for key, (flag, fallback) in _FALLBACKS.items():
        found = catalog.default(flag, fallback)
        defaults[key] = found if type(found) is type(fallback) else fallback
    count = around.usable_gpus
    if count:
        defaults["device_strategy"] = "single"
    if count == 1:
        defaults["devices"] = [around.visible[0] if around.visible else 0]
    defaults["layer_quant_config"] = {}
    defaults["exclude_layers"] = list(template_exclude)
    defaults["output_dir"] = default_output
    defaults["output_format"] = OUTPUT_FORMATS[0]
    defaults["evaluation_intent"] = "none"
    defaults["trust_remote_code"] = False
    return defaults


def _effective_exclude(wishes: Wishes, template_exclude: Sequence[str]) -> tuple[list[str], bool]:
    """(list, explicit): the excludes that hold, and whether they replace the template's own."""
    given = wishes.values.get("exclude_layers", TEMPLATE)
    base = list(template_exclude) if given == TEMPLATE else list(given)
    added = [pattern for pattern in wishes.exclude_added if pattern not in base]
    return base + added, given != TEMPLATE or bool(wishes.exclude_added)


def _hits(
    names: Names,
    excluded: Sequence[int],
    overridden: Sequence[int],
    overrides: Sequence[tuple[str, str]],
    global_scheme: str | None,
) -> list[str | None]:
    """The scheme that each module gets. Embeddings only by an override, and then their weight stays; routers never."""
    hits: list[str | None] = []
    for index, module in enumerate(names.modules):
        if excluded[index] >= 0 or module.kind != "linear":
            hits.append(None)
        elif overridden[index] >= 0:
            hits.append(overrides[overridden[index]][1])
        else:
            hits.append(global_scheme)
    return hits


def _estimate(draft: Draft) -> Estimate:
    if draft.values["global_scheme"] is None:
        return Estimate(None, None, "no scheme is chosen")
    kv_outputs = 0
    if draft.values["kv_cache_scheme"] is not None:
        kv_outputs = sum(
            1 for index in any_match(draft.names, draft.kv_layers) if draft.names.modules[index].kind == "linear"
        )
    return estimate(
        draft.inventory,
        draft.hits,
        draft.names.modules,
        {name: draft.facts(name) for name in draft.used_schemes},
        kv_outputs,
        draft.analysis,
        draft.values["batch_size"],
        draft.values["seq_len"],
    )


def _pattern_views(draft: Draft) -> tuple[PatternView, ...]:
    known = draft.inventory.known
    views = [
        PatternView(
            "exclude",
            pattern,
            None,
            len(draft.names.matching(pattern)) if known else None,
            draft.assignment.exclude_counts[position] if known else None,
            _earlier_exclude(draft, position) if known else None,
        )
        for position, pattern in enumerate(draft.exclude)
    ]
    for position, (pattern, scheme) in enumerate(draft.overrides):
        matched = draft.names.matching(pattern)
        effective = sum(
            1
            for index in matched
            if draft.assignment.overridden[index] == position and draft.names.modules[index].kind != "router"
        )
        views.append(
            PatternView(
                "override",
                pattern,
                scheme,
                len(matched) if known else None,
                effective if known else None,
                shadowing(draft, position),
            )
        )
    return tuple(views)


def _earlier_exclude(draft: Draft, position: int) -> str | None:
    matched = draft.names.matching(draft.exclude[position])
    if not matched or draft.assignment.exclude_counts[position]:
        return None
    return draft.exclude[draft.assignment.excluded[matched[0]]]


def _rows(draft: Draft, wishes: Wishes, template_source: str) -> tuple[Row, ...]:
    by_hand = set(wishes.values)
    if wishes.overrides:
        by_hand.add("layer_quant_config")
    if draft.explicit:
        by_hand.add("exclude_layers")
    rows: list[Row] = []
    for key in ROWS:
        value, default = draft.values[key], draft.defaults[key]
        changed = key in by_hand and (value != default or key == "exclude_layers")
        reason = wishes.reasons.get(key) or _reason(draft, key, key in by_hand, template_source)
        rows.append(Row(key, value, default, reason, changed))
    return tuple(rows)


def _reason(draft: Draft, key: str, by_hand: bool, template_source: str) -> str:
    version = clean(draft.catalog.quark_version) or "of unknown version"
    if key == "exclude_layers":
        return f"replaces the list of the {template_source}" if draft.explicit else template_source
    if key == "global_scheme":
        facts = draft.facts(draft.values[key])
        return facts.summary if facts is not None else "chosen by hand" if by_hand else "required, no default"
    if by_hand:
        return "chosen by hand"
    flag = _FALLBACKS.get(key, ("", None))[0]
    if flag and draft.catalog.default(flag) is not None:
        return f"default of quark-cli {version}"
    if flag:
        return "default of quark-cli 0.12.post1 and 0.13; the installed one's could not be read"
    return {
        "kv_cache_scheme": "not asked for",
        "layer_quant_config": "no overrides",
        "algorithm": "not asked for: round to nearest",
        "device_strategy": "a GPU is there" if draft.values[key] else "to be decided",
        "devices": "what the strategy implies" if draft.values[key] is not None else "to be decided",
        "output_dir": "the job's own folder",
        "output_format": "the only format that quark-cli writes",
        "evaluation_intent": "stop at the quantized output",
        "trust_remote_code": "safer unless the model needs it",
        "template_file": "the built-in template",
    }.get(key, "default of quark-cli")


def _plan(draft: Draft, rows: Sequence[Row], analysis_ref: str, confirmed: bool) -> dict[str, Any] | None:
    values = draft.values
    if draft.model_type is None or values["global_scheme"] is None:
        return None
    model: dict[str, Any] = {"model_type": draft.model_type, "analysis_ref": analysis_ref}
    if draft.around.model_dir:
        model["model_path"] = draft.around.model_dir
    plan: dict[str, Any] = {"model": model}
    for key in ROWS:
        plan[key] = values[key]
        if key == "layer_quant_config":
            plan["layer_order"] = [pattern for pattern, _ in draft.overrides]
        elif key == "exclude_layers":
            plan["exclude_layers_source"] = "explicit" if draft.explicit else TEMPLATE
    plan["reasons"] = {row.key: row.reason for row in rows}
    if draft.catalog.quark_version:
        plan["quark_version"] = draft.catalog.quark_version
    plan["requires_confirmation"] = not confirmed
    return plan


def _catalog_issues(catalog: Catalog) -> list[Issue]:
    return [
        Issue(
            Finding(
                "medium",
                "catalog_incomplete",
                clean(problem),
                clean(catalog.source),
                "what this Quark offers is not fully known",
            ),
            frozenset({"catalog"}),
        )
        for problem in catalog.problems
    ]
