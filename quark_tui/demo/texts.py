"""Runs in the *target* interpreter: data sets of the names that quark-cli asks for, and the cache that it reads.

``python -P texts.py repositories ROOT`` writes dataset repositories whose text is the documentation that the standard
library carries in its own modules; ``python -P texts.py fill`` loads them once through ``datasets`` (HF_ENDPOINT names
the hub, HF_HOME the cache), exactly as quark-cli loads them. The repositories, configurations, splits and columns were
read in amd-quark 0.12.post1 and 0.13; a filled HF_HOME then serves a run with HF_HUB_OFFLINE=1.
"""

from __future__ import annotations

import ast
import importlib
import sys
import sysconfig
from pathlib import Path

PILE = "mit-han-lab/pile-val-backup"
WIKITEXT = "Salesforce/wikitext"
WIKITEXT_CONFIG = "wikitext-2-raw-v1"

#: Characters a row: enough for 512 tokens, so that a calibration sample is seldom padded.
ROW = 2600
ROWS = 600
#: Rows of the split that perplexity is measured on: one window of 2048 tokens, which takes minutes on two CPU cores.
TEST_ROWS = 3


def documentation() -> list[str]:
    """The docstrings of the standard library's modules, classes and functions, in order of file and line."""
    texts: list[str] = []
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted([*root.glob("*.py"), *root.glob("[a-z]*/*.py")]):
        if path.parts[-2] in ("site-packages", "test", "idlelib", "lib2to3"):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text and len(text) > 120:
                    texts.append(text)
    return texts


def rows(texts: list[str], count: int, length: int = ROW) -> list[str]:
    """``count`` rows of at least ``length`` characters, taken from ``texts`` in order and from the start again."""
    made: list[str] = []
    row: list[str] = []
    size = index = 0
    while len(made) < count:
        row.append(texts[index % len(texts)])
        size += len(row[-1])
        index += 1
        if size >= length:
            made.append("\n\n".join(row))
            row, size = [], 0
    return made


def _card(config: str, files: dict[str, str]) -> str:
    lines = ["---", "configs:", f"- config_name: {config}", "  data_files:"]
    for split, pattern in files.items():
        lines += [f"  - split: {split}", f"    path: {pattern}"]
    return "\n".join([*lines, "---", "Documentation strings of the Python standard library, for demonstrations.", ""])


def write_repositories(root: Path) -> None:
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    text = rows(documentation(), ROWS + TEST_ROWS)
    splits = {
        PILE: ("default", "data", {"validation": text[:ROWS]}),
        WIKITEXT: (WIKITEXT_CONFIG, WIKITEXT_CONFIG, {"train": text[:ROWS], "test": text[ROWS:]}),
    }
    for repository, (config, folder, contents) in splits.items():
        base = root / "datasets" / repository
        (base / folder).mkdir(parents=True)
        for split, content in contents.items():
            table = arrow.table({"text": content})
            parquet.write_table(table, base / folder / f"{split}-00000-of-00001.parquet")
        card = _card(config, {split: f"{folder}/{split}-*" for split in contents})
        (base / "README.md").write_text(card, encoding="utf-8")


def fill_cache() -> None:
    load = importlib.import_module("datasets").load_dataset
    load(PILE, split="validation")
    for split in ("train", "test"):
        load(WIKITEXT, WIKITEXT_CONFIG, split=split)


def main(argv: list[str]) -> int:
    if argv[:1] == ["repositories"]:
        write_repositories(Path(argv[1]))
    else:
        fill_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
