"""One check's answer, and what all checks share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from quark_tui.core.ptq.verify.case import Case
from quark_tui.core.text import clean

Weight = Literal["fatal", "partial", "advisory"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the verdict. ``ok`` is None when the check does not apply or, with ``undecided``, could not be made.

    ``weight`` says what a false check costs: the verdict failed, partial, or nothing.
    """

    code: str
    ok: bool | None
    message: str
    evidence: str = ""
    next_step: str = ""
    weight: Weight = "partial"
    undecided: bool = False


BLIND = "Part of the weights could not be read."
_FOREIGN = "Another method's quantization is not judged here."
AGAIN = "Compare the recorded command with the plan; export again."


def some_names(names: Iterable[str], most: int = 3) -> str:
    """The first names, cleaned and cut, and how many more there are."""
    listed = list(names)
    shown = ", ".join(clean(name)[:120] for name in listed[:most])
    return shown + (f" and {len(listed) - most} more" if len(listed) > most else "")


def module_count(count: int) -> str:
    return "1 module" if count == 1 else f"{count} modules"


def untestable(case: Case, code: str, *, needs: bool = True) -> Check | None:
    """The answer of a check that rests on tensors when there are none to rest on."""
    if case.blind:
        return Check(code, None, BLIND, some_names(case.export.unreadable) or case.export.problem, undecided=True)
    if case.foreign:
        return Check(code, None, _FOREIGN, f"{case.config.where}: {case.foreign}", undecided=code == "scheme_matches")
    if needs and not case.seen:
        return Check(code, None, "No tensor was seen.")
    return None
