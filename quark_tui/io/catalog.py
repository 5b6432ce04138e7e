"""Reading an installed Quark's catalogue: three source files, never imported."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from quark_tui.core.ptq.catalog import MAX_SOURCE, Catalog, parse_catalog
from quark_tui.core.text import clean

TEMPLATE = "quark/torch/quantization/config/template.py"
ALGORITHMS = "quark/torch/quantization/config/algo_configs.py"
COMMAND = "quark/experimental/cli/torch_llm_ptq.py"


def read_catalog(site_packages: Path, quark_version: str) -> Catalog | None:
    """The catalogue of the Quark in ``site_packages`` (the folder that holds ``quark/``); None when there is none.

    ``Catalog.source`` is that folder. Nothing is raised: a file that cannot be read leaves its part empty and is named
    in ``Catalog.problems``.
    """
    if not os.path.isdir(site_packages / "quark"):
        return None
    texts: list[str] = []
    problems: list[str] = []
    for name in (TEMPLATE, ALGORITHMS, COMMAND):
        text, problem = _read(site_packages / name)
        texts.append(text)
        if problem:
            problems.append(f"{name}: {problem}")
    catalog = parse_catalog(quark_version, str(site_packages), *texts)
    if not problems:
        return catalog
    return Catalog(
        catalog.quark_version,
        catalog.source,
        catalog.schemes,
        catalog.templates,
        catalog.kv_schemes,
        catalog.algorithms,
        catalog.options,
        (*problems, *catalog.problems),
    )


def _read(path: Path) -> tuple[str, str]:
    """(text, problem) of a source file."""
    try:
        # A named pipe in its place must not make anybody wait.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "", "not a regular file"
            raw = file.read(MAX_SOURCE + 1)
        if len(raw) > MAX_SOURCE:
            return "", f"more than {MAX_SOURCE} bytes"
        return raw.decode("utf-8-sig"), ""
    except OSError as error:
        return "", error.strerror or clean(error)
    except UnicodeDecodeError as error:
        return "", f"not UTF-8 at byte {error.start}"
