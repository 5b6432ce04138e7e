"""Names against Quark's patterns: whole-string globs that cross dots, case-sensitive, exact names first.

Measured with quark-cli 0.12.post1 and 0.13: exclude before overrides, overrides in command-line order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from quark_tui.core.ptq.patterns import is_glob, matcher

_DIGITS = re.compile(r"\d+")
_FINE = re.compile(r"[\d?\[]")

# Wrappers that a model's own name and its saved name do not always share (``model.language_model.`` and
# ``language_model.model.``, for example).
_WRAPPERS = frozenset({"model", "language_model", "base_model", "transformer", "text_model", "backbone", "decoder"})


def canonical(name: str) -> str:
    """``name`` without leading wrapper segments, to compare run-time names with saved ones."""
    parts = name.split(".")
    start = 0
    while start < len(parts) - 1 and parts[start] in _WRAPPERS:
        start += 1
    return ".".join(parts[start:])


def group_of(name: str) -> str:
    """``name`` with its numbers as ``*``: what one module of every layer shares."""
    return ".".join("*" if part.isdigit() else part for part in name.split("."))


class Patterns:
    """An ordered list of patterns, compiled once: :meth:`first` and :meth:`all` answer for one name.

    An exact name wins over every glob; among globs the first. With ``loose`` a pattern without wildcards also matches
    the same module under its other wrapper names (see :func:`canonical`): for names that were saved, not run.
    """

    __slots__ = ("_by_shape", "_exact", "_fine", "_globs", "_loose", "items")

    def __init__(self, items: Iterable[str], *, loose: bool = False) -> None:
        self.items: tuple[str, ...] = tuple(dict.fromkeys(items))
        self._exact = set(self.items)
        self._globs = [(item, matcher(item)) for item in self.items if is_glob(item)]
        # Globs that cannot tell numbers apart are tried once for all names that differ in numbers alone.
        self._fine = any(_FINE.search(item) for item, _ in self._globs)
        self._by_shape: dict[str, tuple[str, ...]] = {}
        self._loose: dict[str, str] = {}
        for item in self.items if loose else ():
            if not is_glob(item):
                self._loose.setdefault(canonical(item), item)

    def __bool__(self) -> bool:
        return bool(self.items)

    def _matching(self, name: str) -> tuple[str, ...]:
        """The globs that match, in their order."""
        if not self._globs:
            return ()
        if self._fine:
            return tuple(item for item, test in self._globs if test(name))
        shape = _DIGITS.sub("0", name)
        known = self._by_shape.get(shape)
        if known is None:
            known = self._by_shape[shape] = tuple(item for item, test in self._globs if test(shape))
        return known

    def all(self, name: str) -> list[str]:
        """Every pattern that matches, the one that decides first."""
        found = [name] if name in self._exact else []
        found += [item for item in self._matching(name) if item != name]
        loose = self._loose.get(canonical(name)) if self._loose else None
        if loose is not None and loose not in found:
            found.append(loose)
        return found

    def first(self, name: str) -> str | None:
        """The pattern that decides for ``name``, None when none matches."""
        return next(iter(self.all(name)), None)

    def matches(self, name: str) -> bool:
        return self.first(name) is not None


def align(wanted: Sequence[str], present: Iterable[str]) -> dict[str, str]:
    """Wanted names to the names that they are present by: the same, or the only one of the same canonical form."""
    there = set(present)
    by_form: dict[str, list[str]] = {}
    for name in there:
        by_form.setdefault(canonical(name), []).append(name)
    found: dict[str, str] = {}
    for name in wanted:
        if name in there:
            found[name] = name
        else:
            others = by_form.get(canonical(name), [])
            if len(others) == 1:
                found[name] = others[0]
    return found
