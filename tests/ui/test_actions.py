"""What breaks if this is wrong: a key does nothing, does two things, or is taken by tmux or by an editor's terminal."""

from __future__ import annotations

import pytest
from textual.binding import Binding

from quark_tui.core.text import cell_width
from quark_tui.ui.actions import ACTIONS, bindings
from quark_tui.ui.modals.approve import ApproveModal
from quark_tui.ui.modals.stop import StopModal
from quark_tui.ui.modals.whole import WholeModal
from quark_tui.ui.screens.base import Acting, key_line
from quark_tui.ui.screens.home import HomeScreen
from quark_tui.ui.screens.result import ResultScreen
from quark_tui.ui.screens.review import CommandScreen, EnvironmentScreen, ModelScreen, PlanScreen
from quark_tui.ui.screens.run import RunScreen
from quark_tui.ui.widgets.log_view import LogView
from quark_tui.ui.widgets.row_list import RowList

SCREENS: list[type[Acting]] = [
    HomeScreen, EnvironmentScreen, ModelScreen, PlanScreen, CommandScreen, RunScreen, ResultScreen,
    ApproveModal, StopModal, WholeModal,
]  # fmt: skip
#: Taken by tmux, screen, flow control, a terminal's own menus or an editor's terminal.
TAKEN = {"ctrl+a", "ctrl+b", "ctrl+s", "ctrl+q", "ctrl+j", "ctrl+o", "ctrl+p", "ctrl+k", "ctrl+e", "ctrl+z"}


@pytest.mark.parametrize("action", ACTIONS.values(), ids=lambda action: action.id)
def test_every_action_has_a_key_that_reaches_it_and_says_what_it_does(action) -> None:  # type: ignore[no-untyped-def]
    free = [key for key in action.keys if key not in TAKEN and not (key.startswith("f") and key[1:].isdigit())]
    assert free
    assert action.label
    assert action.help


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.__name__)
def test_every_key_of_a_screen_does_one_thing(screen: type[Acting]) -> None:
    ids = list(screen.IDS)
    assert len(set(ids)) == len(ids)
    keys = [key for one in ids for key in ACTIONS[one].keys]
    assert sorted(set(keys)) == sorted(keys)
    for one in ids:
        assert callable(getattr(screen, f"do_{one.replace('.', '_')}", None)), one
    bound = {one.id for one in screen.BINDINGS if isinstance(one, Binding)}  # type: ignore[attr-defined]
    assert set(ids) <= bound


@pytest.mark.parametrize("screen", SCREENS[:-1], ids=lambda screen: screen.__name__)
def test_no_key_of_a_screen_is_taken_by_its_lists(screen: type[Acting]) -> None:
    """A widget with the focus is asked first: what it binds never reaches the screen."""
    moving = {key for one in RowList.BINDINGS if isinstance(one, Binding) for key in one.key.split(",")}
    if screen is RunScreen:
        moving |= {key for one in LogView.BINDINGS if isinstance(one, Binding) for key in one.key.split(",")}
    assert not moving & {key for one in screen.IDS for key in ACTIONS[one].keys}


def test_every_action_belongs_to_a_screen() -> None:
    used = {one for screen in _all(Acting) for one in screen.IDS}
    assert set(ACTIONS) == used


def _all(base: type[Acting]) -> list[type[Acting]]:
    import quark_tui.ui.modals.edit_row
    import quark_tui.ui.modals.follow_up
    import quark_tui.ui.modals.help
    import quark_tui.ui.modals.new_job  # noqa: F401

    return [base, *(inner for one in base.__subclasses__() for inner in _all(one))]


class _Screen(Acting):
    IDS = tuple(ACTIONS)

    def blocked(self, action: str) -> str:
        return "for a reason" if action == "command.approve" else ""


@pytest.mark.parametrize("width", [20, 40, 73, 113, 400])
def test_the_key_line_fits_and_keeps_help_and_quit(width: int) -> None:
    text = "".join(text for text, _ in key_line(_Screen(), width))
    assert cell_width(text) <= max(width, 20)
    assert "? help" in text
    assert "q quit" in text


def test_what_is_blocked_says_so_and_is_still_there() -> None:
    text = "".join(text for text, _ in key_line(_Screen(), 400))
    assert "a approve… (blocked)" in text


def test_a_binding_carries_the_id_of_its_action() -> None:
    (one,) = bindings(["app.help"])
    assert isinstance(one, Binding)
    assert (one.id, one.action, one.key) == ("app.help", "act('app.help')", "question_mark,f1")
