"""What breaks if this is wrong: a page names a key, a command, a file or a setting that is not there, or shows a screen
as it no longer is."""

from __future__ import annotations

import re
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from html import unescape
from pathlib import Path

import pytest

from quark_tui import cli
from quark_tui.core.answer import WrongQuestion
from quark_tui.io import atomic, settings
from quark_tui.io.paths import data_folder
from quark_tui.ui import actions, theme
from quark_tui.ui.modals.accept import AcceptModal
from quark_tui.ui.modals.approve import ApproveModal
from quark_tui.ui.screens.base import Acting
from quark_tui.ui.screens.home import HomeScreen
from quark_tui.ui.screens.result import ResultScreen
from quark_tui.ui.screens.review import CommandScreen, EnvironmentScreen, ModelScreen, PlanScreen
from quark_tui.ui.screens.run import RunScreen

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

#: The rows of the table of keys that follow from what a screen offers.
SCREENS: dict[str, type[Acting]] = {
    "Home": HomeScreen,
    "Environment": EnvironmentScreen,
    "Model": ModelScreen,
    "Plan": PlanScreen,
    "Command": CommandScreen,
    "its approval": ApproveModal,
    "Run": RunScreen,
    "Result": ResultScreen,
    "its acceptance": AcceptModal,
}
_PICTURE = re.compile(r'<img src="([^"]+)" alt="([^"]*)">')
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")


def names(path: Path) -> str:
    return path.name


# --- keys ------------------------------------------------------------------------------------------------------------


def keys(ids: tuple[str, ...]) -> str:
    """The second cell of a row of the table."""
    return " · ".join(f"`{actions.ACTIONS[one].shown_key}` {actions.ACTIONS[one].label}" for one in ids)


@pytest.mark.parametrize("name", SCREENS)
def test_the_keys_of_a_screen_are_those_of_the_registry(name: str) -> None:
    own = tuple(one for one in SCREENS[name].IDS if one not in (*actions.COMMON, *actions.STEPS))
    assert f"| {name} | {keys(own)} |" in README.splitlines()


def test_the_keys_that_are_everywhere_are_those_of_the_registry() -> None:
    lines = README.splitlines()
    assert f"| everywhere | {keys(actions.COMMON)} |" in lines
    assert f"| a job | {keys(actions.STEPS)} |" in lines
    moves = " · ".join(f"`{shown}` {what}" for shown, what in actions.MOVES[:3])
    assert f"| lists and logs | {moves} |" in lines


# --- pictures --------------------------------------------------------------------------------------------------------


def drawn(path: Path) -> list[str]:
    """The lines of text of a picture of a screen, from its top; what is drawn beside the screen is left out."""
    lines: dict[float, dict[float, str]] = defaultdict(dict)
    for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text"):
        if "line-" in element.get("clip-path", ""):
            lines[float(element.get("y", "0"))][float(element.get("x", "0"))] = element.text or ""
    return ["".join(line[x] for x in sorted(line)) for _, line in sorted(lines.items())]


def bare(line: str) -> str:
    """Without spaces: a picture places its texts, a frame fills the gaps between them."""
    return re.sub(r"\s", "", line)


PICTURES = _PICTURE.findall(README)


def test_a_picture_stands_for_each_screen_and_says_what_it_shows() -> None:
    shown = [Path(source).name.split("-")[0] for source, _ in PICTURES]
    assert shown == ["home", "model", "plan", "approve", "run", "result"]
    assert all(len(unescape(alt)) > 30 for _, alt in PICTURES)
    assert README.count("<img") == len(PICTURES)


@pytest.mark.parametrize("source", [source for source, _ in PICTURES])
def test_a_picture_shows_the_frame_that_is_asserted(source: str) -> None:
    """Pictures are not compared when screens are tested: an old one would stay unnoticed."""
    path = ROOT / source
    frame = [bare(line) for line in path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()]
    assert [line for line in map(bare, drawn(path)) if line] == [line for line in frame if line]


# --- what is named is there ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in _LINK.findall(text):
        if not target.startswith(("https://", "mailto:")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_make_targets_are_there(page: Path) -> None:
    there = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    named = [*_SPAN.findall(text), *(line for _, block in _BLOCK.findall(text) for line in block.splitlines())]
    for words in (one.split() for one in named):
        if words[:1] == ["make"] and len(words) > 1:
            assert words[1] in there, words


def commands(text: str) -> list[list[str]]:
    """The words behind ``quark-tui`` of each command line in a block of shell, continued lines joined."""
    found = []
    for kind, block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines() if kind == "sh" else ():
            if line.startswith("quark-tui "):
                found.append(shlex.split(line, comments=True)[1:])
    return found


def test_the_plain_twin_s_commands_are_understood() -> None:
    asked = commands((ROOT / "docs" / "plain-twin.md").read_text(encoding="utf-8"))
    assert len(asked) >= 10
    for words in asked:
        assert cli._parser().parse_args(words).command == words[0]
    with pytest.raises(WrongQuestion):
        cli._parser().parse_args([*asked[0], "--no-such-option"])


def test_the_plain_twin_s_block_is_shell() -> None:
    blocks = [block for kind, block in _BLOCK.findall((ROOT / "docs" / "plain-twin.md").read_text()) if kind == "sh"]
    assert len(blocks) == 2
    for block in blocks:
        assert subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True).stderr == ""


def test_each_module_of_the_screens_has_its_place_in_the_picture_of_rooms() -> None:
    start = ARCHITECTURE.index("\nquark_tui/\n")
    rooms = re.sub(r"[(),;:/]", " ", ARCHITECTURE[start : ARCHITECTURE.index("```", start)]).split()
    words = {word.removesuffix(".py") for word in rooms}
    for path in (ROOT / "quark_tui" / "ui").rglob("*.py"):
        if path.name != "__init__.py" and path.parent.name != "views":
            assert path.stem in words, path.stem
    for word in rooms:
        if word.endswith(".py"):
            assert list((ROOT / "quark_tui").rglob(word)), word


# --- settings --------------------------------------------------------------------------------------------------------


def test_every_variable_that_is_looked_at_is_on_the_page_of_settings_and_no_other() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "quark_tui").rglob("*.py")]
    looked_at = {name for text in sources for name in re.findall(r"\bQUARK_TUI_[A-Z]+\b", text)}
    looked_at |= {f"QUARK_TUI_{name.upper()}" for name in settings.Options.__dataclass_fields__}
    assert set(re.findall(r"\bQUARK_TUI_[A-Z]+\b", SETTINGS)) == looked_at


def test_every_setting_has_its_row_with_option_variable_and_values() -> None:
    schema = atomic.read_json(str(data_folder("schemas") / "settings.schema.json"))["properties"]
    help_text = cli._parser().format_help()
    rows = [line for line in SETTINGS.splitlines() if line.startswith("| `--")]
    assert len(rows) == len(schema) == len(settings.Options.__dataclass_fields__)
    for row in rows:
        option, variable, key, values, default = ([*_SPAN.findall(cell)] for cell in row.strip("| ").split(" | "))
        (name,) = key
        assert option[0].split()[0] in help_text
        assert variable == [f"QUARK_TUI_{name.upper()}"]
        words = [str(one) for one in schema[name].get("enum", ()) if isinstance(one, str)]
        assert not words or values == words
        meant = getattr(settings._DEFAULTS, name)
        assert default[0] == (theme.DARK if meant is None else str(meant).lower())


def test_the_example_of_a_config_is_one(tmp_path: Path) -> None:
    (config,) = (block for kind, block in _BLOCK.findall(SETTINGS) if kind == "yaml" and "theme:" in block)
    path = tmp_path / "config.yaml"
    path.write_text(config)
    options, findings = settings.read_config(str(path))
    assert findings == ()
    assert None not in (options.theme, options.ascii, options.color, options.mouse)


def test_the_example_of_a_theme_is_one_and_leaves_nothing_out(tmp_path: Path) -> None:
    (example,) = (block for kind, block in _BLOCK.findall(SETTINGS) if kind == "yaml" and "name:" in block)
    (tmp_path / "evening.yaml").write_text(example)
    (made,), findings = theme.own(tmp_path, ["quark-dark"])
    assert findings == ()
    assert theme.flat_map(example).keys() == {"name", "dark", *theme.COLORS}
    assert made.name == "evening"


# --- what a page is --------------------------------------------------------------------------------------------------


def test_the_readme_is_two_screens() -> None:
    assert len(README.splitlines()) <= 130


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_lines_of_prose_keep_to_the_width(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    long = [n for n, line in enumerate(lines, 1) if len(line) > 120 and not line.startswith(("|", "<"))]
    assert long == []
