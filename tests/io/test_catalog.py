"""Reading an installed Quark's source files."""

from __future__ import annotations

import os
from pathlib import Path

from quark_tui.io.catalog import ALGORITHMS, COMMAND, TEMPLATE, read_catalog
from tests.support.ptq import ALGO_PY, CLI_PY, TEMPLATE_PY, catalog


def install(folder: Path) -> Path:
    for name, text in ((TEMPLATE, TEMPLATE_PY), (ALGORITHMS, ALGO_PY), (COMMAND, CLI_PY)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_an_installed_quark_is_read(tmp_path: Path) -> None:
    """P-34, P-49, P-70: looked up in the installed files, nothing imported."""
    found = read_catalog(install(tmp_path), "0.12.post1")
    assert found is not None
    assert found.source == str(tmp_path)
    assert (found.schemes, found.templates, found.options) == (
        catalog().schemes,
        catalog().templates,
        catalog().options,
    )


def test_no_quark_is_none(tmp_path: Path) -> None:
    assert read_catalog(tmp_path, "") is None
    assert read_catalog(tmp_path / "absent", "") is None


def test_missing_and_odd_files_are_problems(tmp_path: Path) -> None:
    install(tmp_path)
    (tmp_path / TEMPLATE).unlink()
    (tmp_path / ALGORITHMS).write_bytes(b"\xff\xfe")
    (tmp_path / COMMAND).unlink()
    os.mkfifo(tmp_path / COMMAND)
    found = read_catalog(tmp_path, "1")
    assert found is not None
    text = "\n".join(found.problems)
    assert "No such file" in text and "not UTF-8" in text and "not a regular file" in text
    assert (found.schemes, found.templates, found.algorithms, found.options) == ((), {}, {}, {})


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    install(tmp_path)
    (tmp_path / COMMAND).unlink()
    (tmp_path / COMMAND).mkdir()
    found = read_catalog(tmp_path, "1")
    assert found is not None and found.problems and found.schemes
