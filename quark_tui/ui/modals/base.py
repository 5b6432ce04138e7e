"""What every modal has: a box with a title, a body and its own keys, on top of a screen that stays visible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from quark_tui.ui.screens.base import Acting, key_line
from quark_tui.ui.text import Lines, Part, content, ends

if TYPE_CHECKING:
    from quark_tui.ui.app import QuarkTui

R = TypeVar("R")
#: The border, the heading, the line above the keys, the keys.
_FRAME = 5


class BaseModal(Acting, ModalScreen[R | None], Generic[R]):
    """Gives back None when it is closed. A modal fills in :meth:`body` and :meth:`heading`."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[str, Lines] = {}
        self._said: Part | None = None
        self._dismissed = False

    @property
    def quark(self) -> QuarkTui:
        from quark_tui.ui.app import QuarkTui

        app = self.app
        assert isinstance(app, QuarkTui)
        return app

    @property
    def ascii_only(self) -> bool:
        return self.quark.ascii_only

    def heading(self) -> str:
        """The title of the box."""
        return ""

    def body(self) -> ComposeResult:
        """What is between title and keys."""
        yield from ()

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(id="heading")
            yield from self.body()
            yield Static(id="modal-status")
            yield Static(id="modal-keys")

    def on_mount(self) -> None:
        self.paint()
        # The box has its size only after the first layout.
        self.call_after_refresh(self.paint)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= 110, "-wide")
        self.call_after_refresh(self.paint)

    def say(self, text: str, tone: str = "muted") -> None:
        """Show a sentence above the keys until the next action."""
        self._said = (text, f"${tone}")
        self.paint()

    def act(self, name: str) -> None:
        if self._dismissed:
            return  # keys that were on their way when this was answered
        self._said = None
        super().act(name)
        if self.is_current:
            self.paint()

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        """The line above the keys."""
        return [], []

    def paint(self) -> None:
        """Heading, status and keys from the present state."""
        if not self.is_mounted:
            return
        width = self.query_one("#box").content_size.width or 70
        left, right = self.status_parts()
        if self._said is not None:
            left = [self._said]
        self.text("heading", [[(self.heading(), "bold $strong")]])
        self.text("modal-status", [ends(left, right, width)])
        self.text("modal-keys", [key_line(self, width)])

    def text(self, name: str, lines: Lines) -> None:
        """Update the Static ``name`` when its lines changed."""
        if self._shown.get(name) != lines:
            self._shown[name] = lines
            self.query_one(f"#{name}", Static).update(content(lines))

    def fit(self, rows: int, beside: int) -> None:
        """Make the box as high as its ``rows`` and the ``beside`` lines around them need, at most the whole screen."""
        height = min(self.size.height, rows + beside + _FRAME)
        box = self.query_one("#box")
        if box.styles.height is None or box.styles.height.value != height:
            box.styles.height = height

    def dismiss(self, result: R | None = None) -> AwaitComplete:
        """Close with ``result``, once: Textual would take the screens below away for every further call.

        What was opened on top of this, the command palette, goes too.
        """
        if self._dismissed or self not in self.app.screen_stack:
            return AwaitComplete()
        self._dismissed = True
        self.quark.uncover(self)
        return super().dismiss(result)

    def do_modal_close(self) -> None:
        self.dismiss(None)
