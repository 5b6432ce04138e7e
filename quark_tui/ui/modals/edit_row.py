"""One row of the plan: what it is, what it takes, and a line to type another value into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from quark_tui.core.finding import Finding
from quark_tui.core.text import pad
from quark_tui.ui.actions import bindings
from quark_tui.ui.modals.base import BaseModal
from quark_tui.ui.text import Lines, Part, safe, wrapped
from quark_tui.ui.views import edit_row as view
from quark_tui.ui.views import finding_detail
from quark_tui.ui.widgets.field import LABEL, Field
from quark_tui.ui.widgets.row_list import RowList
from quark_tui.ui.widgets.text_lines import TextLines

_IDS = ("form.submit", "form.next", "modal.close")


class EditRowModal(BaseModal[tuple[str, str]]):
    """Gives back (value, reason) as typed; None when it was closed.

    ``row`` is a row of the plan's answer, ``guide`` its schemes. After a refusal ``typed`` and ``reason`` are what was
    typed, and ``refused`` says why not.
    """

    IDS = _IDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(_IDS)

    def __init__(
        self,
        row: Mapping[str, Any],
        guide: Sequence[Mapping[str, Any]] = (),
        typed: str | None = None,
        reason: str = "",
        refused: tuple[Finding, ...] = (),
    ) -> None:
        super().__init__()
        self._row, self._refused = row, refused
        self._choices = tuple(guide) if row["key"] == "global_scheme" else ()
        given = view.typed(row) if typed is None else typed
        self._value = Field("value", given, replace=typed is None, id="value")
        self._reason = Field("reason", reason, "optional: why, for whoever reads the plan", id="reason")

    def heading(self) -> str:
        return f"Change {safe(self._row['key'])}"

    def labels(self) -> dict[str, str]:
        rows = self.query("#choices").first(RowList) if self._choices else None
        return {"form.submit": "take this scheme" if rows is not None and rows.has_focus else "change it"}

    def body(self) -> ComposeResult:
        yield Static(id="facts")
        yield self._value
        if self._choices:
            yield RowList(view.layout, titles=False, id="choices")
        yield self._reason
        yield TextLines(id="found")

    def on_mount(self) -> None:
        if self._choices:
            rows = self.query_one("#choices", RowList)
            rows.show(view.choices(self._choices, self.quark.ascii_only), self._value.value)
        self.set_class(bool(self._refused), "-refused")
        self._value.input.focus()
        super().on_mount()

    def paint(self) -> None:
        width = (self.query_one("#box").content_size.width or 70) - LABEL
        lines: Lines = []
        for label, text, style in view.facts(self._row):
            for number, piece in enumerate(wrapped(text, width)[: view.FACT_LINES]):
                lines.append([(pad("" if number else f"  {label}", LABEL), "$muted"), (piece, style)])
        self.text("facts", [*lines, []])
        told = [part for one in self._refused for part in finding_detail(one)]
        self.query_one("#found", TextLines).tell(told)
        super().paint()

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        if self._refused:
            mark = "[XX]" if self.quark.ascii_only else "✗"
            return [(f"{mark} refused: nothing was changed", "$failed")], self.query_one("#found", TextLines).more()
        if self._choices:
            return [("↓ goes to the list of schemes, ↵ takes one of it", "$muted")], []
        return [("a changed plan has to be confirmed again", "$muted")], []

    def on_key(self, event: events.Key) -> None:
        if event.key == "down" and self._value.input.has_focus and self._choices:
            event.stop()
            self.query_one("#choices", RowList).focus()

    def on_descendant_focus(self) -> None:
        self.paint()

    def on_input_submitted(self) -> None:
        self.act("form.submit")

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        message.stop()
        super().paint()

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        message.stop()
        self.act("form.submit")

    def do_form_next(self) -> None:
        self.focus_next()

    def do_form_submit(self) -> None:
        if self._choices and (rows := self.query_one("#choices", RowList)).has_focus:
            if rows.current is not None:
                self._value.put(rows.current)
            self._value.input.focus()
            return
        if problem := self._value.problem or self._reason.problem:
            self.say(problem, "warning")
            return
        self.dismiss((self._value.value, self._reason.value))
