"""A named line to type into."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static

from quark_tui.core.text import clean, pad
from quark_tui.ui.text import content

#: Cells of a label, its mark and the gap behind it among them.
LABEL = 19
#: Characters that are taken; longer ones are mistakes, and each is laid out at every key.
_MOST = 4096


class SafeInput(Input):
    """What is pasted or given here is drawn as it is shown elsewhere: control characters as escapes.

    ``cut``: more was given than is taken.
    """

    cut = False

    def validate_value(self, value: str) -> str:
        self.cut = len(value) > _MOST
        return clean(value[:_MOST])


class Field(Horizontal):
    """``label`` and an input below the id ``id``. ``given`` may be any text: as long as nobody changes what is shown
    of it, :attr:`value` is ``given`` itself. ``replace``: the first key that is typed takes its place. What is too long
    to be changed here is not shown: what is typed takes its place."""

    def __init__(self, label: str, given: str = "", placeholder: str = "", *, replace: bool = False, id: str) -> None:
        super().__init__(classes="field")
        self._label, self._given = label, given
        long = len(given) > _MOST
        if long:
            placeholder = f"{len(given):,} characters, too long to be changed here"
        self.input = SafeInput(placeholder=placeholder, compact=True, select_on_focus=replace, id=id)
        self._shown = "" if long else self.input.validate_value(given)

    def compose(self) -> ComposeResult:
        self.input.value = self._shown
        yield Static(classes="label")
        yield self.input

    @property
    def value(self) -> str:
        """What was typed, without the spaces around it."""
        return self._given if self.input.value == self._shown else self.input.value.strip()

    @property
    def problem(self) -> str:
        """Why what was typed cannot be taken; "" when it can."""
        if not self.input.cut:
            return ""
        return f"{self._label}: more than {_MOST:,} characters are not taken here; the command line takes them"

    def put(self, text: str) -> None:
        """Type ``text`` for the person."""
        self.input.value = text
        self.input.cursor_position = len(self.input.value)

    def on_mount(self) -> None:
        self._mark()

    def on_descendant_focus(self) -> None:
        self._mark()

    def on_descendant_blur(self) -> None:
        self._mark()

    def _mark(self) -> None:
        here = self.input.has_focus
        text = f"{'▸' if here else ' '} {pad(self._label, LABEL - 2)}"
        self.query_one(".label", Static).update(content([[(text, "bold $strong" if here else "$muted")]]))
