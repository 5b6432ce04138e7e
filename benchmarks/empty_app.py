"""What Home is measured against: a Textual application that does nothing. Its last line says ``ready`` too."""

from textual.app import App, ComposeResult
from textual.widgets import Footer, Header, Static


class Empty(App[None]):
    """Header, Static, Footer."""

    BINDINGS = [("q", "quit", "ready")]  # noqa: RUF012
    ENABLE_COMMAND_PALETTE = False

    def compose(self) -> ComposeResult:
        yield Header()
        yield Static("hello")
        yield Footer()


if __name__ == "__main__":
    Empty().run()
