"""Glob patterns as Quark matches them, over the names of all modules of a model at once.

Quark applies ``fnmatch.fnmatch`` to the whole run-time module name: ``*`` crosses dots, ``?`` and ``[...]`` work, case
counts on Linux. Of the excludes exact names are tried first, then globs in their order, and the first match gets the
count; an excluded module takes no override; of the overrides an exact name wins, then the first in the given order.
Measured with quark-cli 0.12.post1 and 0.13.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress

from quark_tui.core.model.inventory import Inventory, Module

_DIGITS = re.compile(r"\d+")
_META = re.compile(r"[*?\[]")
_LITERAL_RUN = re.compile(r"[^*?\[\]]+")


def is_glob(pattern: str) -> bool:
    """True when ``pattern`` has a wildcard, in the sense of Quark's own test."""
    return _META.search(pattern) is not None


@lru_cache(maxsize=4096)
def matcher(pattern: str) -> Callable[[str], object]:
    """A function of a name that is truthy where ``fnmatch.fnmatchcase(name, pattern)`` is; compiled once."""
    if not is_glob(pattern):
        return pattern.__eq__
    return re.compile(fnmatch.translate(pattern)).match


class Names:
    """The module names of a model, prepared for many patterns.

    A pattern without digits, ``?`` and ``[`` cannot tell numbers apart, so it is tried once for each set of names that
    differ in numbers only: a model of a quarter of a million modules has a few dozen of them.
    """

    __slots__ = ("_by_name", "_by_shape", "_matched", "modules", "names")

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = tuple(modules)
        self.names = [module.name for module in self.modules]
        self._by_name: dict[str, list[int]] = {}
        self._by_shape: dict[str, list[int]] = {}
        self._matched: dict[str, tuple[int, ...]] = {}
        for index, name in enumerate(self.names):
            self._by_name.setdefault(name, []).append(index)
        for index, shape in enumerate(_shapes(self.names)):
            self._by_shape.setdefault(shape, []).append(index)

    @classmethod
    def of(cls, inventory: Inventory) -> Names:
        """The names that patterns can hit: linear modules, routers and embeddings."""
        return cls([module for module in inventory.modules if module.kind != "other"])

    def matching(self, pattern: str) -> tuple[int, ...]:
        """Indices (ascending) of the names that ``pattern`` matches as a whole."""
        known = self._matched.get(pattern)
        if known is None:
            if len(self._matched) > 512:
                self._matched.clear()
            known = self._matched[pattern] = self._match(pattern)
        return known

    def _match(self, pattern: str) -> tuple[int, ...]:
        if not is_glob(pattern):
            return tuple(self._by_name.get(pattern, ()))
        test = matcher(pattern)
        # Digit in the sense of the expression above: names may hold any script's digits.
        if not _DIGITS.search(pattern) and "?" not in pattern and "[" not in pattern:
            hits = [indices for shape, indices in self._by_shape.items() if test(shape)]
            if len(hits) == 1:
                return tuple(hits[0])
            if len(hits) == len(self._by_shape):
                return tuple(range(len(self.names)))
            return tuple(sorted(index for indices in hits for index in indices))
        if "[" not in pattern:
            # The longest literal piece must be there: a substring search is far cheaper than the expression.
            piece = max(_LITERAL_RUN.findall(pattern), key=len, default="")
            return tuple(index for index, name in enumerate(self.names) if piece in name and test(name))
        return tuple(compress(range(len(self.names)), map(test, self.names)))

    @property
    def shapes(self) -> dict[str, list[int]]:
        """Names with every number written as 0, and the indices that share them."""
        return self._by_shape


def _shapes(names: Sequence[str]) -> list[str]:
    """Each name with every run of digits written as 0; one pass over all of them where no name has a line feed."""
    if not any("\n" in name for name in names):
        return _DIGITS.sub("0", "\n".join(names)).split("\n") if names else []
    return [_DIGITS.sub("0", name) for name in names]


@dataclass(frozen=True, slots=True)
class Assignment:
    """Who decides about each module: ``excluded`` and ``overridden`` hold a position in the given lists, or -1.

    ``exclude_counts`` and ``override_counts`` are modules that each entry really decides.
    """

    excluded: Sequence[int]
    overridden: Sequence[int]
    exclude_counts: tuple[int, ...]
    override_counts: tuple[int, ...]


def assign(names: Names, exclude: Sequence[str], overrides: Sequence[str]) -> Assignment:
    """Apply excludes and overrides to all names in Quark's order of precedence."""
    total = len(names.names)
    excluded, exclude_counts = _first_match(names, exclude, total, None)
    overridden, override_counts = _first_match(names, overrides, total, excluded)
    return Assignment(excluded, overridden, exclude_counts, override_counts)


def _first_match(
    names: Names, patterns: Sequence[str], total: int, taken: Sequence[int] | None
) -> tuple[list[int], tuple[int, ...]]:
    owner = [-1] * total
    counts = [0] * len(patterns)
    exact = [position for position, pattern in enumerate(patterns) if not is_glob(pattern)]
    globs = [position for position, pattern in enumerate(patterns) if is_glob(pattern)]
    for position in [*exact, *globs]:
        for index in names.matching(patterns[position]):
            if owner[index] < 0 and (taken is None or taken[index] < 0):
                owner[index] = position
                counts[position] += 1
    return owner, tuple(counts)


def any_match(names: Names, patterns: Iterable[str]) -> set[int]:
    """Indices that at least one of ``patterns`` matches."""
    return {index for pattern in patterns for index in names.matching(pattern)}


def did_you_mean(pattern: str, names: Names) -> tuple[str, int] | None:
    """A pattern like ``pattern`` that matches something, with its count; None when nothing is near."""
    for candidate in (f"{pattern}.*", f"*{pattern}", f"{pattern}*", f"*{pattern}*"):
        count = len(names.matching(candidate))
        if count and pattern.strip("*?"):
            return candidate, count
    lowered = pattern.lower()
    if lowered != pattern and (count := len(names.matching(lowered))):
        return lowered, count
    pieces = sorted({piece for piece in re.findall(r"[A-Za-z0-9_]+", pattern) if len(piece) > 1}, key=len, reverse=True)
    segments = sorted({segment for shape in names.shapes for segment in shape.split(".") if not segment.isdigit()})
    wholes = sorted(names.shapes)[:2000]
    for piece in pieces[:8]:
        for near in difflib.get_close_matches(piece, segments[:2000], n=3, cutoff=0.6):
            candidate = pattern.replace(piece, near)
            if near != piece and (count := len(names.matching(candidate))):
                return candidate, count
    for near in difflib.get_close_matches(pattern, wholes, n=1, cutoff=0.75):
        candidate = near if not _DIGITS.search(near) else _DIGITS.sub("*", near)
        if count := len(names.matching(candidate)):
            return candidate, count
    return None
