"""Every action of the program, once: keys, footer, palette, help and documentation are made from this list.

Keys are Textual's names. None is reachable only by what tmux, screen or an editor's terminal takes for itself (ctrl+a,
ctrl+b, ctrl+s, ctrl+q, function keys, ctrl+p): each has a plain key, and all are in the command palette.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from textual.binding import Binding, BindingType

#: How keys are shown; others are shown as they are.
_SHOWN: Final = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "enter": "↵",
    "escape": "esc",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}


@dataclass(frozen=True, slots=True)
class Action:
    """``keys``: the first one is shown. ``footer``: place in the footer, 0 for none; low numbers stay longest."""

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    group: str
    footer: int = 0

    @property
    def shown_key(self) -> str:
        return shown(self.keys[0])


def shown(key: str) -> str:
    """``key`` as a person reads it."""
    return _SHOWN.get(key, key)


_THIS, _MOVE, _EVERYWHERE = "on this screen", "moving", "everywhere"

_ALL: Final = (
    Action("home.open", ("enter", "o"), "open", "open the job where it stands", _THIS, 1),
    Action("home.new", ("n",), "new", "make a job on a local model directory", _THIS, 2),
    Action("home.filter", ("slash",), "filter", "show only jobs that contain a text; esc ends it", _THIS, 3),
    Action("home.look", ("r",), "look again", "look at the disk again now", _THIS, 5),
    Action("step.confirm", ("c",), "confirm", "pass this checkpoint: what is shown here is what is meant", _THIS, 1),
    Action("plan.edit", ("enter", "e"), "change", "change the row under the cursor", _THIS, 2),
    Action("step.detail", ("enter",), "whole", "show the row under the cursor whole, with its evidence", _THIS, 2),
    Action("command.approve", ("a",), "approve…", "read the exact command whole, then approve or cancel", _THIS, 1),
    Action("step.look", ("r",), "look again", "read model, target and machine again", _THIS, 6),
    Action("run.follow", ("f",), "follow", "keep the end of the log in view", _THIS, 1),
    Action("run.pane", ("tab",), "pane", "move between task tree and log", _THIS, 3),
    Action("run.zoom", ("z",), "zoom", "give the focused pane the whole width, or take it back", _THIS, 5),
    Action("run.search", ("slash",), "search", "search the log; n and N go on and back", _THIS, 2),
    Action("run.detail", ("enter",), "whole", "show the task or the log line under the cursor whole", _THIS, 6),
    Action("run.regex", ("ctrl+r",), "text or regex", "while searching: plain text or a regular expression", _THIS),
    Action("run.case", ("ctrl+l",), "case", "while searching: any case, or exactly as typed", _THIS),
    Action("run.next", ("n",), "next match", "go to the next match", _THIS),
    Action("run.previous", ("N",), "previous match", "go to the previous match", _THIS),
    Action("run.stop", ("s",), "stop…", "ask the run to stop; a second question comes first", _THIS, 4),
    Action("run.command", ("c",), "command", "show the command that runs, whole", _THIS, 8),
    Action("run.result", ("v",), "result", "what is in the output folder, by its headers", _THIS, 7),
    Action("result.accept", ("a",), "accept", "take this result as it is: Checkpoint 4", _THIS, 1),
    Action("result.back", ("b",), "follow-up", "choose what to do next and go back to its checkpoint", _THIS, 3),
    Action("result.log", ("l",), "log", "the run's task tree and log", _THIS, 4),
    Action("accept.yes", ("A",), "Accept it", "take exactly this result", _THIS, 2),
    Action("form.submit", ("enter",), "take it", "next field; on the last one take what was typed", _THIS, 1),
    Action("form.next", ("tab",), "next field", "move to the next field", _THIS, 2),
    Action("approve.run", ("r",), "Run it", "start exactly this command", _THIS, 2),
    Action("modal.choose", ("enter",), "choose", "take the line under the cursor", _THIS, 1),
    Action("modal.close", ("escape", "q"), "close", "go back; nothing is changed", _THIS, 1),
    Action("approve.cancel", ("escape", "enter", "q"), "Cancel", "go back; nothing was started", _THIS, 1),
    Action("stop.cancel", ("escape", "enter", "q"), "Cancel", "go back; nothing is sent", _THIS, 1),
    Action("stop.send", ("S",), "send it", "send the signal that is named here", _THIS, 2),
    Action("step.1", ("1",), "Environment", "the target interpreter and this machine", _MOVE),
    Action("step.2", ("2",), "Model", "what the model's files say: Checkpoint 1", _MOVE),
    Action("step.3", ("3",), "Plan", "what will be quantized, and how: Checkpoint 2", _MOVE),
    Action("step.4", ("4",), "Command", "the exact command: Checkpoint 3", _MOVE),
    Action("step.5", ("5",), "Run", "task tree and log", _MOVE),
    Action("step.6", ("6",), "Result", "what was found on disk: Checkpoint 4", _MOVE),
    Action("app.home", ("escape", "H"), "jobs", "back to the list of jobs; a run goes on", _MOVE, 8),
    Action("app.copy", ("y",), "copy", "copy what the cursor is on", _EVERYWHERE, 7),
    Action("app.palette", ("colon", "ctrl+p"), "commands", "find an action by name", _EVERYWHERE),
    Action("app.theme", ("T",), "theme", "the next theme; the choice is remembered", _EVERYWHERE),
    Action("app.help", ("question_mark", "f1"), "help", "what this screen is, and its keys", _EVERYWHERE, 9),
    Action("app.quit", ("q",), "quit", "leave; runs go on without this program", _EVERYWHERE, 9),
)  # fmt: skip
ACTIONS: Final = {action.id: action for action in _ALL}
#: What every list understands; for the help.
MOVES: Final = (
    ("j k ↓ ↑", "down, up"),
    ("g G home end", "first, last"),
    ("ctrl+d ctrl+u", "half a screen down, up"),
    ("h l ← →", "left and right, in the log; fold and unfold, in the task tree"),
    ("space", "fold or unfold, in the task tree"),
)
COMMON: Final = ("app.copy", "app.palette", "app.theme", "app.help", "app.quit")
STEPS: Final = ("step.1", "step.2", "step.3", "step.4", "step.5", "step.6", "app.home")


def bindings(ids: Iterable[str]) -> list[BindingType]:
    """The bindings of the actions ``ids``: each calls ``action_act`` of the screen with the id."""
    return [
        Binding(",".join(one.keys), f"act('{one.id}')", one.label, show=False, id=one.id, tooltip=one.help)
        for one in map(ACTIONS.__getitem__, ids)
    ]
