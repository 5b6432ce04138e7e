"""A thread of our own that looks at the disk when asked, or again and again, and hands over what it saw.

Textual's thread workers keep a process alive until they return; these are daemons, and a dead mount may hold them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Looker(Generic[T]):
    """``read`` runs in the thread, ``tell`` is called there with its value. Looks asked for meanwhile are one look.

    ``again`` gives the seconds after which it looks by itself, from the seconds that the last look took; None: never.
    """

    def __init__(
        self,
        read: Callable[[], T],
        tell: Callable[[T], object],
        again: Callable[[float], float | None] = lambda took: None,
    ) -> None:
        self._read, self._tell, self._again = read, tell, again
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
        import time

        wait: float | None = None
        while self._next(wait):
            while not self._asked.empty():
                if not self._asked.get():
                    return
            begun = time.monotonic()
            self._tell(self._read())
            wait = self._again(time.monotonic() - begun)

    def _next(self, wait: float | None) -> bool:
        try:
            return self._asked.get(timeout=wait)
        except queue.Empty:
            return True
