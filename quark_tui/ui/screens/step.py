"""What the screens of a job have in common: its title, the rail of steps, and going from one to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from quark_tui.ui.actions import COMMON, STEPS
from quark_tui.ui.job import JobView
from quark_tui.ui.screens.base import BaseScreen
from quark_tui.ui.text import Part


class StepScreen(BaseScreen):
    """``STEP`` is the number of the step (1 to 6) that the screen shows of ``job``."""

    STEP: ClassVar[int] = 0
    IDS: ClassVar[Sequence[str]] = (*STEPS, *COMMON)

    def __init__(self, job: JobView) -> None:
        super().__init__()
        self.job = job

    def title_parts(self) -> tuple[list[Part], list[Part]]:
        left: list[Part] = [("quark-tui", "bold $strong"), (f" · {self.job.name}", "$foreground")]
        if self.job.model:
            left.append((f" · {self.job.model}", "$foreground"))
        return [(" ", ""), *left], [(self.job.workflow, "$muted")]

    def rail_parts(self) -> list[Part]:
        return self.job.rail(self.STEP, self.quark.ascii_only)

    def blocked(self, action: str) -> str:
        if action in ("step.5", "step.6") and self.job.status is not None and self.job.status.body["liveness"] is None:
            return "no run was started yet"
        if action == "step.6" and self.job.status is not None and self.job.status.body["liveness"] == "alive":
            return "the run is still going: there is nothing to judge yet"
        return super().blocked(action)

    def go(self, step: int) -> None:
        """Show step ``step`` of the same job."""
        if step == self.STEP:
            self.say("this is that step")
            return
        self.quark.uncover(self)  # what is open above goes, and not this screen in its place
        self.quark.show_step(self.job, step)

    def do_step_1(self) -> None:
        self.go(1)

    def do_step_2(self) -> None:
        self.go(2)

    def do_step_3(self) -> None:
        self.go(3)

    def do_step_4(self) -> None:
        self.go(4)

    def do_step_5(self) -> None:
        self.go(5)

    def do_step_6(self) -> None:
        self.go(6)

    def do_app_home(self) -> None:
        self.quark.show_home()
