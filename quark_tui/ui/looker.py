"""The one thread of our own: it looks at the disk when asked and hands over what it saw."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from quark_tui.ui.listing import Listing


class Looker:
    """``read`` runs in the thread, ``tell`` is called there with its value. Looks asked for meanwhile are one look."""

    def __init__(self, read: Callable[[], Listing], tell: Callable[[Listing], object]) -> None:
        self._read, self._tell = read, tell
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="quark-tui-looker", daemon=True)

    def look(self) -> None:
        """Ask for a look; starts the thread with the first one."""
        self._asked.put(True)
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        """Let the thread end after what it is doing; never waits, since a dead mount may hold it for ever."""
        self._asked.put(False)

    def _work(self) -> None:
        while self._asked.get():
            while not self._asked.empty():
                if not self._asked.get():
                    return
            self._tell(self._read())
