"""A resolved plan as the checks see it, and how a check speaks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quark_tui.core.finding import Finding, Level
from quark_tui.core.model.inventory import Inventory
from quark_tui.core.ptq.catalog import Catalog
from quark_tui.core.ptq.patterns import Assignment, Names
from quark_tui.core.ptq.schemes import SchemeFacts, facts_for
from quark_tui.core.ptq.surroundings import Surroundings
from quark_tui.core.text import clean, elide_end


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


def meant(word: str, known: Iterable[str]) -> str:
    near = nearest(word, known)
    return f"; did you mean {shown(near)}?" if near and near != word else ""
