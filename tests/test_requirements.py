"""The page of requirements and the tests: each rule once, each named test there, each id where it belongs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "requirements.md"
#: How many rules each document has.
COUNTS = {"I": 102, "P": 123, "Q": 118}
RULES = [f"{kind}-{number:02}" for kind, count in COUNTS.items() for number in range(1, count + 1)]
HEADER = ["id", "what it asks", "done by", "shown by"]
MOST_WORDS = 12

_ROW = re.compile(r"\| *[IPQ]-")
_ID = re.compile(r"\b[IPQ]-\d+\b")
_TEST = re.compile(r"`(tests/[^`]+?\.py)::([^`]+)`")
_MODULE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Row:
    """One rule; ``tests`` are (file, name) in the order in which they stand."""

    id: str
    cells: tuple[str, ...]

    @property
    def shown(self) -> str:
        return self.cells[3]

    @property
    def tests(self) -> list[tuple[str, str]]:
        return _TEST.findall(self.shown)

    @property
    def state(self) -> str | None:
        """closed, partly or not yet; None when the last cell says none of them."""
        if _TEST.match(self.shown):
            return "closed"
        return next((word for word in ("partly", "not yet") if self.shown.startswith(f"{word}: ")), None)


def rows(page: str) -> list[Row]:
    """Every row of the tables, in order; a line that begins like one and has other than four cells is one too."""
    found = []
    for line in page.splitlines():
        if _ROW.match(line):
            cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
            found.append(Row(cells[0], cells))
    return found


@cache
def docstrings() -> Mapping[tuple[str, str], str]:
    """(file, name) of every test below ``tests``, with its docstring."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                found[path.relative_to(ROOT).as_posix(), node.name] = ast.get_docstring(node) or ""
    return found


def problems(page: str, told: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """What is wrong with ``page``, given the tests with their docstrings."""
    table = rows(page)
    for name, count in Counter(row.id for row in table).items():
        if count > 1:
            yield f"{name} stands {count} times"
    ids = [row.id for row in table]
    yield from (f"{name} has no row" for name in RULES if name not in ids)
    yield from (f"{name} is no rule" for name in ids if name not in RULES)
    if ids != sorted(ids, key=lambda name: RULES.index(name) if name in RULES else -1):
        yield "the rows are out of order"
    for row in table:
        yield from (f"{row.id}: {said}" for said in _row_problems(row, told))
    named = {(row.id, test) for row in table for test in row.tests}
    for test, docstring in told.items():
        for name in _ID.findall(docstring):
            if (name, test) not in named:
                yield f"{name}: {test[0]}::{test[1]} carries the id and is not in its row"
    kinds = Counter((row.id[0], row.state) for row in table)
    for kind, count in COUNTS.items():
        counts = [count, *(kinds[kind, state] for state in ("closed", "partly", "not yet"))]
        if f"| {kind} | {' | '.join(map(str, counts))} |" not in page.splitlines():
            yield f"the counts of {kind} are {counts}"


def _row_problems(row: Row, told: Mapping[tuple[str, str], str]) -> Iterator[str]:
    if len(row.cells) != len(HEADER) or not all(row.cells):
        yield f"four cells with something in each are wanted, not {list(row.cells)}"
        return
    if len(row.cells[1].split()) > MOST_WORDS:
        yield f"more than {MOST_WORDS} words say what it asks"
    modules = _MODULE.findall(row.cells[2])
    for module in modules:
        path = ROOT / "quark_tui" / module
        if not path.with_name(f"{path.name}.py").is_file() and not (path / "__init__.py").is_file():
            yield f"there is no module {module}"
    if row.state is None:
        yield "neither a test nor 'partly: ' nor 'not yet: '"
    elif row.state == "not yet":
        if modules or row.tests:
            yield "not yet, and yet a module or a test is named"
    elif not modules:
        yield f"{row.state}, and no module is named"
    elif row.state == "partly" and not _TEST.sub("", row.shown.removeprefix("partly: ")).strip(" ;()"):
        yield "partly, and not a word of what is missing"
    for test in row.tests:
        if test not in told:
            yield f"there is no test {test[0]}::{test[1]}"
        elif not re.match(rf"(?:[IPQ]-\d+, )*{row.id}\b", told[test]):
            yield f"the docstring of {test[0]}::{test[1]} does not begin with the id"


def test_the_page_and_the_tests_agree() -> None:
    found = list(problems(PAGE.read_text(encoding="utf-8"), docstrings()))
    assert not found, "\n".join(found)


TEST = ("tests/test_a.py", "test_x")
TOLD = {TEST: "P-01, P-02: a rule."}
CLOSED = "`tests/test_a.py::test_x`"


def _page(*changes: tuple[str, str]) -> str:
    """A page with every rule, two of them closed, after ``changes`` of its text."""
    lines = [f"| {kind} | {count} | 0 | 0 | {count} |" for kind, count in COUNTS.items()]
    lines += [f"| {name} | asks | none | not yet: not built |" for name in RULES]
    page = "\n".join(lines)
    wanted = (
        ("| P | 123 | 0 | 0 | 123 |", "| P | 123 | 2 | 0 | 121 |"),
        ("| P-01 | asks | none | not yet: not built |", f"| P-01 | asks | `cli` | {CLOSED} |"),
        ("| P-02 | asks | none | not yet: not built |", f"| P-02 | asks | `cli` | {CLOSED} |"),
        *changes,
    )
    for old, new in wanted:
        assert page.count(old) == 1, old
        page = page.replace(old, new)
    return page


def test_a_sound_page_has_no_problems() -> None:
    assert list(problems(_page(), TOLD)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("| I-07 | asks | none | not yet: not built |\n", "", "I-07 has no row"),
        ("| I-07 |", "| I-08 |", "I-08 stands 2 times"),
        ("| Q-118 |", "| Q-119 |", "Q-119 is no rule"),
        ("| I-07 | asks", "| I-07 | ", "I-07: four cells"),
        ("| I-07 | asks | none | not yet: not built |", "| I-07 | asks |", "I-07: four cells"),
        ("| I-07 | asks", f"| I-07 | {'word ' * 13}", "I-07: more than 12 words"),
        ("| P-02 | asks | `cli`", "| P-02 | asks | `core/nowhere.py`", "P-02: there is no module"),
        ("| P-02 | asks | `cli`", "| P-02 | asks | none", "P-02: closed, and no module"),
        ("| I-07 | asks | none | not yet: not built |", "| I-07 | asks | none | done |", "I-07: neither a test"),
        ("| I-07 | asks | none |", "| I-07 | asks | `cli` |", "I-07: not yet, and yet"),
        (
            f"| P-02 | asks | `cli` | {CLOSED}",
            f"| P-02 | asks | `cli` | partly: {CLOSED}",
            "P-02: partly, and",
        ),
        (
            f"| P-02 | asks | `cli` | {CLOSED}",
            "| P-02 | asks | `cli` | `tests/a.py::b`",
            "P-02: there is no",
        ),
        (
            f"| P-02 | asks | `cli` | {CLOSED}",
            "| P-02 | asks | `cli` | partly: x",
            "P-02: tests/test_a",
        ),
        ("| Q | 118 | 0 | 0 | 118 |", "| Q | 118 | 1 | 0 | 117 |", "the counts of Q"),
    ],
)
def test_what_is_wrong_with_a_page_is_said(old: str, new: str, said: str) -> None:
    assert any(found.startswith(said) for found in problems(_page((old, new)), TOLD))


@pytest.mark.parametrize("docstring", ["", "P-01: only this one.", "A rule: P-01, P-02.", "P-01, P-020: another."])
def test_a_docstring_that_does_not_begin_with_the_id_is_said(docstring: str) -> None:
    said = "P-02: the docstring of tests/test_a.py::test_x does not begin with the id"
    assert said in list(problems(_page(), {TEST: docstring}))


def test_an_id_that_is_in_no_row_is_said() -> None:
    told = {**TOLD, ("tests/test_b.py", "test_y"): "P-03: and not in its row."}
    assert list(problems(_page(), told)) == ["P-03: tests/test_b.py::test_y carries the id and is not in its row"]


def test_rows_out_of_order_are_said() -> None:
    one, two = (f"| I-0{number} | asks | none | not yet: not built |" for number in (1, 2))
    page = _page((f"{one}\n{two}", f"{two}\n{one}"))
    assert list(problems(page, TOLD)) == ["the rows are out of order"]
