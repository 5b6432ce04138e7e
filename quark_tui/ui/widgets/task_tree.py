"""The task tree of a run: a list whose rows fold, and whose cursor follows the work until a person moves it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from quark_tui.core.finding import Finding
from quark_tui.ui.views import Row, findings, title
from quark_tui.ui.views.tasks import Node, Task, nodes, row, standing_key
from quark_tui.ui.widgets.row_list import RowList

#: Cells of a row that are not for its text: the mark of the cursor, and one at the end.
_EDGES = 4
#: Begins the keys of rows that are no tasks: no key of a task holds a control character.
_APART = "\n"


class TaskTree(RowList):
    """What is folded and where the cursor is are known by key, and stay when the tasks change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "fold_or_unfold", "fold", show=False),
        Binding("h,left", "fold", "fold", show=False),
        Binding("l,right", "unfold", "unfold", show=False),
    ]

    def __init__(self, ascii_only: bool, *, id: str | None = None) -> None:
        super().__init__(lambda width: (), titles=False, empty="no tasks are known", id=id)
        self._ascii_only = ascii_only
        self._tasks: Sequence[Task] = ()
        self._findings: Sequence[Finding] = ()
        self._folds: dict[str, bool] = {}
        self._visible: tuple[Node, ...] = ()
        self._rows: dict[str, Row] = {}
        self._steered = False

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self._rows.get(self.current or "")

    @property
    def on_task(self) -> bool:
        """Whether the cursor is on a task and not on a finding."""
        return self._node is not None

    def present(self, tasks: Sequence[Task], found: Sequence[Finding]) -> None:
        """Take ``tasks`` and the findings that are listed below them."""
        self._tasks, self._findings = tasks, found
        self._build()

    def release(self) -> None:
        """Let the cursor follow the work again: this is another run."""
        self._steered = False

    def _build(self, selected: str | None = None) -> None:
        width = max(0, self.size.width - _EDGES)
        self._visible = nodes(self._tasks, self._folds)
        rows = [row(node, width, self._ascii_only) for node in self._visible]
        if self._findings:
            rows.append(title(f"{_APART}title", "findings"))
            rows += findings(self._findings, self._ascii_only, prefix=_APART)
        self._rows = {one.entry.key: one for one in rows}
        if selected is None and not self._steered:
            selected = standing_key(self._tasks, self._visible)
        self.show((one.entry for one in rows), selected)

    def on_resize(self) -> None:
        self._build()

    def move_to(self, index: int, direction: int = 1) -> None:
        self._steered = True
        super().move_to(index, direction)

    @property
    def _node(self) -> Node | None:
        return next((one for one in self._visible if one.key == self.current), None)

    def _set(self, node: Node, is_open: bool) -> None:
        self._folds[node.key] = is_open
        self._build(node.key)

    def action_fold_or_unfold(self) -> None:
        """Fold or unfold the task under the cursor; one without tasks below it belongs to its parent."""
        node = self._node
        if node is not None and node.open is not None:
            self._set(node, not node.open)
        elif node is not None:
            self.action_fold()

    def action_fold(self) -> None:
        """Fold the task under the cursor, or go to the one that it is part of."""
        node = self._node
        if node is not None and node.open:
            self._set(node, False)
        elif node is not None and node.parent is not None:
            self.move_to(next(index for index, one in enumerate(self._visible) if one.key == node.parent))

    def action_unfold(self) -> None:
        """Unfold the task under the cursor, or go to its first part."""
        node = self._node
        if node is None or node.open is None:
            return
        if node.open:
            self.move_to(self.cursor + 1)
        else:
            self._set(node, True)
