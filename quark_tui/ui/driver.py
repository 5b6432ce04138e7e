"""The terminal's input, whatever bytes come from it, until it is gone."""

from __future__ import annotations

import select
import threading

from textual.drivers.linux_driver import LinuxDriver


class Driver(LinuxDriver):
    """Textual's own ends the program with a traceback for one byte that is no UTF-8, such as a key of a Latin-1
    terminal or an old mouse report. Where a terminal goes and no signal tells, it takes a whole core for ever."""

    def run_input_thread(self) -> None:
        """Read and dispatch input until the program ends; what was read together with a wrong byte is left out."""
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
            except UnicodeDecodeError:
                continue
            return

    def _run_input_thread(self) -> None:
        from quark_tui.ui.app import QuarkTui

        app = self._app
        assert isinstance(app, QuarkTui)

        def watch() -> None:
            poller = select.poll()
            poller.register(self.fileno, 0)
            poller.poll()  # comes back when the terminal has hung up
            app.call_later(app.terminal_gone)

        threading.Thread(target=watch, name="quark-tui-terminal", daemon=True).start()
        try:
            self.run_input_thread()
        except OSError:
            app.call_later(app.terminal_gone)
        except Exception as error:
            app.call_later(app._handle_exception, error)
