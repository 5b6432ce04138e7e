"""The question before a signal: what it would reach, what it does and what it leaves. Cancel has the focus."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from quark_tui.core.answer import Answer
from quark_tui.core.finding import blocks
from quark_tui.ui.actions import bindings
from quark_tui.ui.modals.base import BaseModal
from quark_tui.ui.text import Part, safe, wrapped
from quark_tui.ui.views.run import stop_detail
from quark_tui.ui.widgets.row_list import Column, Entry, RowList

_IDS = ("stop.cancel", "stop.send", "app.copy")


class StopModal(BaseModal[bool]):
    """``answer`` is what ``stop`` said without sending anything. Gives back True when the signal is to be sent."""

    IDS = _IDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(_IDS)

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._answer = answer
        self._detail = stop_detail(answer)

    @property
    def _signal(self) -> str:
        return safe(self._answer.body["signal"])

    def heading(self) -> str:
        return f"Send {self._signal} to this run?"

    def body(self) -> ComposeResult:
        yield RowList(lambda width: (Column("", width),), titles=False, id="whole")

    def paint(self) -> None:
        super().paint()
        rows = self.query_one("#whole", RowList)
        width = max(10, rows.size.width - 4)
        lines = [(line, tone) for text, tone in self._detail for line in wrapped(text, width)]
        self.fit(len(lines), 0)
        rows.show(Entry(str(number), (line,), span=True) for number, line in enumerate(lines))

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        below = self.query_one("#whole", RowList).below
        more = f" · {below} more lines below: j" if below else ""
        return [("[ Cancel ]", "bold reverse"), (f" has the focus; nothing was sent{more}", "$muted")], []

    def on_row_list_moved(self) -> None:
        super().paint()

    def labels(self) -> dict[str, str]:
        return {"stop.send": f"send {self._signal}"}

    def blocked(self, action: str) -> str:
        if action == "stop.send":
            if blocks(self._answer.findings):
                return next(safe(one.message) for one in self._answer.findings if one.level == "block")
            if not self._answer.body["targets"]:
                return safe(self._answer.body["next"])
        return super().blocked(action)

    def do_stop_cancel(self) -> None:
        self.dismiss(False)

    def do_stop_send(self) -> None:
        self.dismiss(True)

    def do_app_copy(self) -> None:
        self.quark.copy("\n".join(text for text, _ in self._detail), self.say)
