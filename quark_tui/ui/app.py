"""The full-screen program: one app, its theme, and a terminal that is whole again however it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.screen import Screen

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.text import clean
from quark_tui.io.paths import data_folder
from quark_tui.ui import theme as themes
from quark_tui.ui.listing import Listing, read_listing
from quark_tui.ui.screens.home import HomeScreen

#: Textual installs no handlers of its own; without them these leave the alternate screen and mouse reporting on.
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
#: Seconds after which a shutdown that hangs (a terminal that takes no bytes any more) is ended by the kernel.
_PATIENCE = 10


class QuarkTui(App[None]):
    """``read`` gives what Home lists and is called off the event loop; ``host`` is the machine's name."""

    TITLE = "quark-tui"
    CSS_PATH = Path(__file__).with_name("styles") / "home.tcss"
    # The palette opens an input whose cursor blinks; it comes with the screens that have something to find.
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = False

    def __init__(self, read: Callable[[], Listing], host: str) -> None:
        # Without colours Textual turns the theme into greys; only with the terminal's own palette it sends none at all.
        super().__init__(ansi_color=True if os.environ.get("NO_COLOR") else None)
        self.animation_level = "none"
        self.crash: Exception | None = None
        self._read, self._host = read, host
        for one in themes.built_in(data_folder("themes")):
            self.register_theme(one)
        chosen = os.environ.get("TEXTUAL_THEME") or "quark-dark"
        if chosen in self.available_themes:
            self.theme = chosen

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Values for themes that know nothing of our names."""
        return dict(themes.DEFAULTS)

    def get_default_screen(self) -> Screen[None]:
        """Home, without a blank screen below it."""
        return HomeScreen(self._read, self._host)

    def leave(self, number: int) -> None:
        """End because of signal ``number``: the terminal is restored, the exit status is 128 + number."""
        signal.alarm(_PATIENCE)
        self.exit(return_code=128 + number)

    def action_help_quit(self) -> None:
        """Ctrl+C: say which keys there are instead of leaving by accident."""
        screen = self.screen
        if isinstance(screen, HomeScreen):
            screen.action_help()

    def _set_pointer_shape(self, shape: str) -> None:
        # An OSC sequence that few terminals know: some ring their bell or print it. No widget here needs a shape.
        pass

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print a traceback with local variables; the caller says one sentence and keeps the rest.
        self.crash = self.crash or error
        self._return_code = 1
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()


async def _run(app: QuarkTui) -> None:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, app.leave, int(number))
    await app.run_async()


def run_app(path: str | None) -> int:
    """Open the app; ``path`` is absolute and exists. Returns the exit status, 128 + N after signal N.

    Raises WrongQuestion when standard error, which Textual draws on, is no terminal; re-raises what a screen raised.
    """
    if sys.__stderr__ is None or not sys.__stderr__.isatty():
        raise WrongQuestion("quark-tui: the app draws on standard error, which is no terminal here")
    app = QuarkTui(partial(read_listing, path), clean(os.uname().nodename))
    asyncio.run(_run(app))
    signal.alarm(0)
    if app.crash is not None:
        raise app.crash
    return app.return_code or 0
