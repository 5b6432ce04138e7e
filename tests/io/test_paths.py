"""What a person types becomes an absolute path as her shell would understand it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quark_tui.core.answer import WrongQuestion
from quark_tui.io.paths import absolute, cache_folder, config_folder, data_folder, state_folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that she came to through a symbolic link."""
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "real" / "sub")
    monkeypatch.setenv("PWD", str(tmp_path / "link" / "sub"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("x", "{}/link/sub/x"),
        ("", "{}/link/sub"),
        (".", "{}/link/sub"),
        ("./x/", "{}/link/sub/x"),
        ("..", "{}/link"),
        ("../x", "{}/link/x"),
        ("a/../b//c", "{}/link/sub/b/c"),
        ("~", "{}/home"),
        ("~/x/../y", "{}/home/y"),
        ("x~", "{}/link/sub/x~"),
        ("~no-such-user/x", "{}/link/sub/~no-such-user/x"),
        ("/x/./y/../z", "/x/z"),
        ("//x", "/x"),
        ("///x", "/x"),
        ("/../..", "/"),
        ("/", "/"),
        (" x ", "{}/link/sub/ x "),
    ],
)
def test_paths_are_made_absolute_and_links_are_kept(here: Path, typed: str, meant: str) -> None:
    """P-82: paths are absolute."""
    assert absolute(typed) == meant.format(here)


def test_the_link_in_a_path_is_kept(here: Path) -> None:
    assert absolute("../../link/sub") == f"{here}/link/sub"


@pytest.mark.parametrize("pwd", ["{}", "{}/none", ".", "", "relative", "{}/link/sub\0"])
def test_a_pwd_that_is_another_folder_is_not_believed(here: Path, monkeypatch: pytest.MonkeyPatch, pwd: str) -> None:
    monkeypatch.delenv("PWD")
    if "\0" not in pwd:  # no environment can hold one
        monkeypatch.setenv("PWD", pwd.format(here))
    assert absolute("x") == f"{here.resolve()}/real/sub/x"


def test_a_folder_that_is_gone_is_told(here: Path) -> None:
    os.rmdir(here / "real" / "sub")
    assert absolute("/x") == "/x"
    with pytest.raises(WrongQuestion, match="current folder"):
        absolute("x")


@settings(deadline=None)
@given(st.text(st.sampled_from("ab./~ "), max_size=12))
def test_the_result_is_absolute_and_stays_as_it_is(typed: str) -> None:
    path = absolute(typed)
    assert os.path.isabs(path) and absolute(path) == path
    assert not {".", "..", ""} & set(path.split("/")[1:]) or path == "/"


@pytest.mark.parametrize(
    ("variable", "folder"),
    [("QUARK_TUI_CONFIG", config_folder), ("QUARK_TUI_STATE", state_folder), ("QUARK_TUI_CACHE", cache_folder)],
)
def test_own_folders_follow_their_variables_and_are_absolute(
    here: Path, monkeypatch: pytest.MonkeyPatch, variable: str, folder: object
) -> None:
    assert callable(folder)
    monkeypatch.setenv(variable, "relative")
    assert str(folder()) == f"{here.resolve()}/real/sub/relative"
    for name in (variable, "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert str(folder()).startswith(f"{here}/home/") and str(folder()).endswith("quark-tui")


def test_schemas_come_with_the_program() -> None:
    assert (data_folder("schemas") / "job.schema.json").is_file()
