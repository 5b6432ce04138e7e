"""The full-screen program: it wires screens, themes and the terminal, and decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import shlex
import shutil
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App, SystemCommand
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widgets import Input

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.text import clean
from quark_tui.ui import theme as themes
from quark_tui.ui.appearance import Appearance, appearance, plain
from quark_tui.ui.screens.home import HomeScreen
from quark_tui.ui.services import Engine, Services

if TYPE_CHECKING:
    from textual.driver import Driver

    from quark_tui.core.finding import Finding
    from quark_tui.io.settings import Settings
    from quark_tui.ui.job import JobView
    from quark_tui.ui.terminal import Terminal

#: Textual installs no handlers of its own; without them these leave the alternate screen and mouse reporting on.
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
#: Seconds after which a shutdown that hangs (a terminal that takes no bytes any more) is ended by the kernel.
_PATIENCE = 10
#: Seconds that each of Textual's own threads gets to end.
_THREADS = 1.0
#: Seconds that the end of the program waits for a change that is under way, such as a start.
_UNDER_WAY = 30.0


class QuarkTui(App[None]):
    """``services`` answers; ``host`` is the machine's name; ``path`` is what was named on the command line."""

    TITLE = "quark-tui"
    CSS_PATH = Path(__file__).with_name("styles") / "app.tcss"
    BINDINGS: ClassVar = []

    def __init__(
        self, services: Services, host: str, path: str | None = None, appearance: Appearance | None = None
    ) -> None:
        look = appearance or plain()
        # Without colours Textual turns the theme into greys; only with the terminal's own palette it sends none at all.
        super().__init__(ansi_color=True if look.own_palette else None)
        self.animation_level = "none"
        self.crash: Exception | None = None
        self.services, self.host, self.ascii_only = services, host, look.ascii_only
        self.findings = look.findings
        self.come_back: str | None = None
        self._path = path
        self._threads: list[threading.Thread] = []
        self._themes = [one.name for one in look.themes]
        for one in look.themes:
            self.register_theme(one)
        if look.theme in self.available_themes:
            self.theme = look.theme

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Values for themes that know nothing of our names."""
        return dict(themes.DEFAULTS)

    def get_driver_class(self) -> type[Driver]:
        """The driver that survives whatever bytes come; one that the environment names is taken as Textual takes it."""
        from quark_tui.ui.driver import Driver as Ours

        named = super().get_driver_class()
        return Ours if named is LinuxDriver else named

    def get_line_filters(self) -> Sequence[LineFilter]:
        """In a terminal without these glyphs every one that is drawn becomes an ASCII character."""
        filters = list(super().get_line_filters())
        if self.ascii_only:
            from quark_tui.ui.ascii import AsciiFilter

            filters.append(AsciiFilter())
        return filters

    def get_default_screen(self) -> Screen[None]:
        """Home, without a blank screen below it."""
        return HomeScreen(self.services, self.host, self._path)

    # Going from screen to screen.

    def open(self, job: JobView, step: int | None = None) -> None:
        """Show ``job`` at ``step``, or where it stands."""
        self.push_screen(_step_screen(job, step or job.present_step()))

    def show_step(self, job: JobView, step: int) -> None:
        """Show another step of the job that is shown."""
        self.switch_screen(_step_screen(job, step))

    def show_home(self) -> None:
        """Back to the list of jobs."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def uncover(self, screen: Screen[Any]) -> None:
        """Close at once what is open above ``screen``, which is on the stack; Textual's own way does it later."""
        while self.screen is not screen:
            self.pop_screen()

    # What screens share.

    def hold(self, thread: threading.Thread) -> None:
        """The end of the program waits for ``thread``, which changes something; within bounds."""
        self._threads = [one for one in self._threads if one.is_alive()]
        self._threads.append(thread)

    def under_way(self) -> list[threading.Thread]:
        """Threads that have not come back yet."""
        return [one for one in self._threads if one.is_alive()]

    def copy(self, text: str, say: Callable[[str], None]) -> None:
        """Send ``text`` to the terminal's clipboard and write it down; ``say`` tells where, and promises nothing."""
        from quark_tui.ui.clipboard import copy

        def write(sequence: str) -> None:
            if self._driver is not None:
                self._driver.write(sequence)

        def work() -> None:
            where = copy(text, os.environ, write).where
            self.call_later(say, where)

        threading.Thread(target=work, name="quark-tui-copy", daemon=True).start()

    def next_theme(self) -> str:
        """Change to the next theme and remember it; its name, or what kept it from being remembered."""
        from quark_tui.io.settings import remember

        names = self._themes
        if not names:
            return "none can be read"
        at = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(at + 1) % len(names)]
        try:
            remember("theme", self.theme)
        except OSError as error:
            return f"{self.theme} (not remembered: {clean(error.strerror or error)})"
        return self.theme

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The command palette: the actions of the present screen, with keys and what blocks them."""
        from quark_tui.ui.screens.base import Acting

        if not isinstance(screen, Acting):
            return
        words = screen.labels()
        for action in screen.offered():
            reason = screen.blocked(action.id)
            label = words.get(action.id, action.label)
            help_text = f"{action.help}{f' (blocked: {reason})' if reason else ''}"
            yield SystemCommand(f"{label}  ({action.shown_key})", help_text, lambda name=action.id: screen.act(name))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A blinking cursor would write to the terminal for ever."""
        if isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    # How it ends.

    def leave_by_choice(self) -> None:
        """End; what was on the screen is named, so that the person can come back to it."""
        job = getattr(self.screen, "job", None)
        self.come_back = clean(getattr(job, "path", None) or self._path or "")
        self.exit()

    def leave(self, number: int) -> None:
        """End because of signal ``number``: the terminal is restored, the exit status is 128 + number.

        A terminal that is gone is not restored: Textual would wait for it, sometimes for ever.
        """
        if isinstance(self._driver, LinuxDriver) and _hung_up(self._driver.fileno):
            for thread in self.under_way():
                thread.join(_UNDER_WAY)
            os._exit(128 + number)
        signal.alarm(_PATIENCE)
        self.exit(return_code=128 + number)

    def terminal_gone(self) -> None:
        """Nothing can be read from the terminal any more, and no signal said so."""
        self.leave(signal.SIGHUP)

    def action_help_quit(self) -> None:
        """Ctrl+C: say how to leave instead of leaving by accident."""
        from quark_tui.ui.screens.base import Acting

        if isinstance(self.screen, Acting):
            self.screen.say("q leaves quark-tui and lets runs go on; a run is stopped on its own screen")

    def _set_pointer_shape(self, shape: str) -> None:
        # An OSC sequence that few terminals know: some ring their bell or print it. No widget here needs a shape.
        pass

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print a traceback with local variables; the caller says one sentence and keeps the rest. What a
        # screen meets that opens while the program ends is no defect: it never got its widgets.
        if not self._exit:
            self.crash = self.crash or error
            self._return_code = 1
            if self._exception is None:
                self._exception = error
                self._exception_event.set()
        self._close_messages_no_wait()


def _step_screen(job: JobView, step: int) -> Screen[None]:
    if step == 5:
        from quark_tui.ui.screens.run import RunScreen

        return RunScreen(job)
    if step == 6:
        from quark_tui.ui.screens.result import ResultScreen

        return ResultScreen(job)
    from quark_tui.ui.screens.review import CommandScreen, EnvironmentScreen, ModelScreen, PlanScreen

    panes = (EnvironmentScreen, ModelScreen, PlanScreen, CommandScreen)
    return panes[step - 1](job)


async def _run(app: QuarkTui, mouse: bool) -> None:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, app.leave, int(number))
    await app.run_async(mouse=mouse)


def run_app(
    path: str | None,
    environ: Mapping[str, str],
    *,
    settings: Settings,
    terminal: Terminal,
    findings: Sequence[Finding] = (),
) -> int:
    """Open the app; ``path`` is absolute and exists. Returns the exit status, 128 + N after signal N.

    ``environ`` is the environment that runs inherit. Raises WrongQuestion when standard error, which Textual draws on,
    is no terminal, or for an unknown theme; re-raises what a screen raised.
    """
    if sys.__stderr__ is None or not sys.__stderr__.isatty():
        raise WrongQuestion("quark-tui: the app draws on standard error, which is no terminal here")
    look = appearance(settings, terminal, findings)
    app = QuarkTui(Engine(path, environ), clean(os.uname().nodename), path, look)
    try:
        asyncio.run(_run(app, look.mouse))
    except (OSError, termios.error):
        # A terminal that goes while it is being restored is not there to be restored.
        if not app.return_code:
            raise
    signal.alarm(0)
    for thread in app.under_way():
        thread.join(_UNDER_WAY)
    if app.crash is not None:
        raise app.crash
    if app.come_back is not None:
        named = [app.come_back] if app.come_back else []
        back = shlex.join(["quark-tui", *named])
        if shutil.which("quark-tui") is None:
            back += f" (which is not on PATH here: {shlex.join([sys.executable, '-m', 'quark_tui', *named])})"
        print(f"runs go on without this program. Back to where you were: {back}")  # noqa: T201
    return _let_go(app)


def _hung_up(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, 0)
    return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poller.poll(0))


def _let_go(app: QuarkTui) -> int:
    """The exit status. Textual's threads may wait for a terminal that went, the process does not wait with them."""
    status = app.return_code or 0
    driver = app._driver
    if isinstance(driver, LinuxDriver):
        driver.exit_event.set()
    left = [one for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]
    for thread in left:
        thread.join(_THREADS)
    if any(thread.is_alive() for thread in left):
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(status)
    return status
