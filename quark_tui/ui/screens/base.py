"""What every screen has: title, body, status line, keys; actions from the registry; calls off the event loop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.text import cell_width
from quark_tui.ui.actions import ACTIONS, Action
from quark_tui.ui.text import Lines, Part, content, ends, home_relative, safe

if TYPE_CHECKING:
    from quark_tui.ui.app import QuarkTui

#: Columns and rows that the screens are made for; below them a sentence is shown instead.
SMALLEST: Final = (80, 24)
T = TypeVar("T")


class Problem(Exception):
    """A call was answered with a sentence instead: it holds that sentence, made safe."""


class Told(Message):
    """A call came back: ``then`` takes its value on the event loop."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.then = then


def attempt(call: Callable[[], T]) -> T | Problem:
    """The value of ``call``, or what kept it from one, in words. A defect of ours is raised on by whoever looks."""
    try:
        return call()
    except WrongQuestion as error:
        return Problem(safe(error).removeprefix("quark-tui: "))
    except OSError as error:
        where = f"{safe(error.filename)}: " if error.filename else ""
        return Problem(f"{where}{safe(error.strerror or error)}")
    except Exception as error:
        # By name: a validator is imported only where something was validated.
        if type(error).__name__ == "JobBusy":
            return Problem("another quark-tui is changing or starting this job; look again in a moment")
        if type(error).__name__ == "ArtifactProblem":
            return Problem(safe(error))
        raise


class Acting:
    """Actions of the registry on a screen: the method ``do_GROUP_NAME`` does ``group.name``."""

    IDS: ClassVar[Sequence[str]] = ()

    @property
    def ascii_only(self) -> bool:
        """Whether the terminal shows nothing but ASCII."""
        return False

    def labels(self) -> dict[str, str]:
        """Other words for actions than the registry's, by id."""
        return {}

    def blocked(self, action: str) -> str:
        """Why ``action`` cannot be done now; "" when it can."""
        return ""

    def offered(self) -> list[Action]:
        """The actions of this screen."""
        return [ACTIONS[one] for one in self.IDS]

    def say(self, text: str, tone: str = "muted") -> None:
        """Show a sentence where the person looks for one."""

    def action_act(self, name: str) -> None:
        self.act(name)

    def act(self, name: str) -> None:
        """Do the action ``name``, or say why not."""
        if reason := self.blocked(name):
            self.say(reason, "warning")
            return
        getattr(self, f"do_{name.replace('.', '_')}")()


def key_line(screen: Acting, width: int) -> list[Part]:
    """The keys of ``screen`` that fit ``width``: help, quit and what comes first always, then by their place those that
    do something, then those that are blocked, which say so."""
    words = screen.labels()
    offered = sorted((one for one in screen.offered() if one.footer), key=lambda one: one.footer)
    kept = [one for one in offered if one.id in ("app.help", "app.quit")]
    texts = {}
    for one in offered:
        label = words.get(one.id, one.label)
        key = one.keys[0] if screen.ascii_only and not one.shown_key.isascii() else one.shown_key
        texts[one.id] = (key, f" {label}{' (blocked)' if screen.blocked(one.id) else ''}")
    room = width - 1 - sum(cell_width("".join(texts[one.id])) + 3 for one in kept)
    for one in sorted(offered, key=lambda one: (one.footer > 1, bool(screen.blocked(one.id)))):
        if one in kept:
            continue
        room -= cell_width("".join(texts[one.id])) + 3
        if room < 0:
            break
        kept.append(one)
    parts: list[Part] = [(" ", "")]
    for one in sorted(kept, key=lambda one: (one.footer, one.id)):
        key, label = texts[one.id]
        parts += [(key, "bold $strong"), (label, "$muted" if screen.blocked(one.id) else "$foreground"), ("   ", "")]
    return parts[:-1]


class BaseScreen(Acting, Screen[None]):
    """Title, body, status line and keys, in the same place on every screen. Texts that did not change are not painted.

    A screen gives :meth:`body`, :meth:`title`, :meth:`status`, and paints with :meth:`paint` when something changed.
    """

    #: Textual would give the keys to a widget that is not displayed too.
    AUTO_FOCUS: ClassVar[str | None] = ""

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[str, Lines] = {}
        self._said: Part | None = None
        self._asked = 0
        self.covered = False
        self._held: Widget | None = None

    @property
    def quark(self) -> QuarkTui:
        """The app, by its own type."""
        from quark_tui.ui.app import QuarkTui

        app = self.app
        assert isinstance(app, QuarkTui)
        return app

    @property
    def on_top(self) -> bool:
        """Whether nothing is open above this screen; Textual calls the screen below a modal current too."""
        return self.app.screen is self

    @property
    def ascii_only(self) -> bool:
        return self.quark.ascii_only

    # What a screen fills in.

    def body(self) -> ComposeResult:
        """The widgets between title and status line."""
        yield from ()

    def title_parts(self) -> tuple[list[Part], list[Part]]:
        """The title's left and right end."""
        return [], []

    def rail_parts(self) -> list[Part]:
        """The line below the title: where in the work this is; none for no line."""
        return []

    def status_parts(self) -> tuple[list[Part], list[Part]]:
        """The status line's left and right end: the truth now."""
        return [], []

    def paint_body(self) -> None:
        """Bring the body's widgets to the present state."""

    def ready(self) -> bool:
        """Whether everything that was asked for has come."""
        return self._asked == 0

    def twin(self) -> str:
        """The command that says the same as this screen."""
        return "quark-tui --help"

    def about(self) -> str:
        """What this screen is, in a sentence or two: for the help."""
        return ""

    def copy_text(self) -> str:
        """What ``copy`` copies; "" for nothing."""
        return ""

    # What every screen does.

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        yield Static(id="small")
        yield Static(id="rail")
        with Vertical(id="body"):
            yield from self.body()
        yield Static(id="status")
        yield Static(id="keys")

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        small = width < SMALLEST[0] or height < SMALLEST[1]
        if small and not self.has_class("-small"):
            self._held = self.focused  # what is hidden loses the keys, and gets them back
        self.set_class(small, "-small")
        self.set_class(width >= 110, "-wide")
        self.paint()
        self.call_after_refresh(self.keep_focus)

    def on_screen_suspend(self) -> None:
        self.covered = True

    def on_screen_resume(self) -> None:
        self.covered = False
        self.paint()
        self.call_after_refresh(self.keep_focus)

    def keep_focus(self) -> None:
        """Give some widget the keys back: one that was hidden for a while has lost them."""
        if self.focused is None:
            held = self._held
            if held is not None and held.is_attached and held.focusable:
                held.focus()
            else:
                self.focus_next()

    def act(self, name: str) -> None:
        """Do the action ``name``, or say why not; what was said before is over."""
        if self._said is not None:
            self._said = None
            self.paint()
        super().act(name)

    def say(self, text: str, tone: str = "muted") -> None:
        """Show a sentence on the status line until the next key."""
        self._said = (text, f"${tone}")
        self.paint()

    def paint(self) -> None:
        """Every text from the present state.

        A covered screen waits until it is seen again: what changes below another one has the whole terminal sent anew.
        """
        if not self.is_mounted or self.covered or self._pruning:
            return  # not to be seen, or its widgets go while an answer comes
        width = self.size.width
        with self.app.batch_update():
            left, right = self.title_parts()
            self.text("title", [ends(left, [*right, (" ", "")], width)])
            self.text("small", self._small(width))
            rail = self.rail_parts()
            self.set_class(not rail, "-no-rail")
            self.text("rail", [rail])
            self.paint_body()
            left, right = self.status_parts()
            if self._said is not None:
                left = [self._said]
            self.text("status", [ends([(" ", ""), *left], [*right, (" ", "")], width)])
            word: Part = ("ready", "bold $ok") if self.ready() else ("looking", "$muted")
            self.text("keys", [ends(key_line(self, width - len(word[0]) - 2), [word], width)])

    def _small(self, width: int) -> Lines:
        needs = f"This screen needs {SMALLEST[0]}×{SMALLEST[1]}; the terminal is {width}×{self.size.height}."
        return [
            [(needs, "")],
            [("Make it larger, or ask the plain twin:", "$muted")],
            [(self.twin(), "$strong")],
            [("q leaves; runs go on.", "$muted")],
        ]

    def text(self, name: str, lines: Lines) -> None:
        """Update the Static ``name`` when its lines changed."""
        before = self._shown.get(name)
        if before != lines:
            self._shown[name] = lines
            # Lines are as long as there is room: only their number changes what is around them.
            layout = before is None or len(before) != len(lines)
            self.query_one(f"#{name}", Static).update(content(lines), layout=layout)

    def ask(
        self,
        call: Callable[[], T],
        then: Callable[[T], None],
        wrong: Callable[[Problem], None] | None = None,
        *,
        quiet: bool = False,
        changes: bool = False,
    ) -> None:
        """Call off the event loop; ``then`` gets the value on it, ``wrong`` the sentence that came instead.

        The screen is not ready before that, unless the call is ``quiet``: one that only adds to what is shown. The end
        of the program waits for a call that ``changes`` something.
        """
        self._asked += not quiet
        self.paint()

        def told(value: T | Problem) -> None:
            self._asked -= not quiet
            if isinstance(value, Problem):
                (wrong or self._wrong)(value)
            else:
                then(value)
            self.paint()

        def work() -> None:
            try:
                value = attempt(call)
            except Exception as error:
                self.post_message(Told(_raiser(error)))
                return
            self.post_message(Told(lambda: told(value)))

        thread = threading.Thread(target=work, name="quark-tui-ask", daemon=True)
        if changes:
            self.quark.hold(thread)
        thread.start()

    def _wrong(self, problem: Problem) -> None:
        self.say(str(problem), "failed")

    def on_told(self, message: Told) -> None:
        message.then()

    def home_path(self, path: str) -> str:
        """``path`` as a person of this machine writes it."""
        return home_relative(safe(path), os.path.expanduser("~"))

    # Actions that every screen has.

    def do_app_quit(self) -> None:
        self.quark.leave_by_choice()

    def do_app_help(self) -> None:
        from quark_tui.ui.modals.help import HelpModal

        self.app.push_screen(HelpModal(self))

    def do_app_palette(self) -> None:
        self.app.action_command_palette()

    def do_app_theme(self) -> None:
        self.say(f"theme {self.quark.next_theme()}")

    def do_app_copy(self) -> None:
        text = self.copy_text()
        if not text:
            self.say("there is nothing to copy here")
            return
        self.quark.copy(text, self.say)


def _raiser(error: Exception) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it
