"""What a person settled: options of the command line, variables, ``config.yaml``, and what the app remembers.

``config.yaml`` is hers alone and never written. What the app itself remembers (the theme that was picked in it) stands
in ``ui.json`` of the state folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from quark_tui.core.finding import Finding
from quark_tui.core.text import clean, redact
from quark_tui.io import atomic
from quark_tui.io.paths import config_folder, state_folder

Ascii: TypeAlias = Literal["auto", "on", "off"]
Color: TypeAlias = Literal["auto", "true", "256", "16", "none"]
COLORS: Final[tuple[str, ...]] = get_args(Color)

_MAX_CONFIG = 64 << 10
_MAX_REMEMBERED = 64 << 10
_YES: Final = ("1", "on", "true", "yes")
_NO: Final = ("0", "off", "false", "no")


@dataclass(frozen=True, slots=True)
class Options:
    """What one source says; None where it says nothing."""

    theme: str | None = None
    ascii: Ascii | None = None
    color: Color | None = None
    mouse: bool | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds. ``theme`` is None when nobody named one; ``source`` names, for each setting, where it comes from."""

    theme: str | None
    ascii: Ascii
    color: Color
    mouse: bool
    source: Mapping[str, str]


COMMAND_LINE: Final = "the command line"
DEFAULT: Final = "default"
_DEFAULTS: Final = Options(None, "auto", "auto", True)


def resolve(*sources: tuple[str, Options]) -> Settings:
    """For each setting the first of ``sources`` (name, what it says) that says something, else the default."""
    value: dict[str, Any] = {}
    source: dict[str, str] = {}
    for name in (one.name for one in fields(Options)):
        for where, options in (*sources, (DEFAULT, _DEFAULTS)):
            value[name], source[name] = getattr(options, name), where
            if value[name] is not None:
                break
    return Settings(value["theme"], value["ascii"], value["color"], value["mouse"], source)


def load(command_line: Options, environ: Mapping[str, str]) -> tuple[Settings, tuple[Finding, ...]]:
    """The settings that hold, and what was wrong with their sources; such a source, or its value, says nothing.

    Imports a YAML library and a validator only when there is a ``config.yaml``. Raises nothing for what a file holds.
    """
    asked, wrong = from_environment(environ)
    path = str(config_folder() / "config.yaml")
    config, broken = read_config(path)
    return (
        resolve(
            (COMMAND_LINE, command_line),
            ("the environment", asked),
            (path, config),
            ("remembered", remembered()),
        ),
        (*wrong, *broken),
    )


def from_environment(environ: Mapping[str, str]) -> tuple[Options, tuple[Finding, ...]]:
    """``QUARK_TUI_THEME``, ``_ASCII``, ``_COLOR``, ``_MOUSE``: an empty one says nothing, a wrong one is a finding."""
    findings: list[Finding] = []

    def read(name: str, words: Mapping[str, Any]) -> Any:
        variable = f"QUARK_TUI_{name}"
        said = environ.get(variable, "")
        if not said or said.lower() in words:
            return words.get(said.lower())
        findings.append(
            Finding(
                "medium",
                "setting_invalid",
                f"{variable} is none of {', '.join(words)}; it is passed over",
                f"{variable}={redact(clean(said))[:80]}",
                f"correct or unset {variable}",
            )
        )
        return None

    switch = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}
    ascii_words = {"auto": "auto", **dict.fromkeys(_YES, "on"), **dict.fromkeys(_NO, "off")}
    options = Options(
        environ.get("QUARK_TUI_THEME") or None,
        read("ASCII", ascii_words),
        read("COLOR", {word: word for word in COLORS}),
        read("MOUSE", switch),
    )
    return options, tuple(findings)


def read_config(path: str) -> tuple[Options, tuple[Finding, ...]]:
    """``path`` by ``schemas/settings.schema.json``. A file that is wrong anywhere says nothing at all: half of what
    somebody settled is not what she settled."""
    try:
        data = atomic.read_bytes(path, _MAX_CONFIG)
    except (FileNotFoundError, NotADirectoryError):
        return Options(), ()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Options(), (_broken(path, said),)
    from quark_tui.io.artifacts import problem

    try:
        value = _yaml(data)
    except ValueError as error:
        return Options(), (_broken(path, str(error)),)
    if value is None:
        return Options(), ()  # empty, or nothing but comments
    if not isinstance(value, dict):
        return Options(), (_broken(path, "not a map of KEY: VALUE lines"),)
    if unknown := [key for key in value if key not in Options.__dataclass_fields__]:
        return Options(), (_broken(path, f"{_key(unknown[0])}: there is no such setting"),)
    if wrong := problem("settings", value):
        return Options(), (_broken(path, wrong),)
    color = value.get("color")
    return (
        Options(
            value.get("theme"),
            value.get("ascii"),
            None if color is None else cast(Color, str(color).lower()),
            value.get("mouse"),
        ),
        (),
    )


def _key(key: object) -> str:
    return redact(clean(key))[:80]


def _broken(path: str, why: str) -> Finding:
    where = clean(path)
    return Finding(
        "medium",
        "settings_unusable",
        f"{where} is passed over: {redact(clean(why))[:300]}",
        where,
        "correct the file; the settings are theme, ascii, color and mouse",
    )


def _yaml(data: bytes) -> Any:
    """The value of a YAML document with JSON's scalars (``on`` is a word). Raises ValueError for anything else, for
    aliases, and for a key that stands twice."""
    import re

    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - the name and type are PyYAML's

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not read here")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key, _ in node.value:
                word = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
                if word in seen:
                    raise yaml.YAMLError(f"line {key.start_mark.line + 1}: {clean(word)[:80]} stands twice")
                seen.add(word)
            return super().construct_mapping(node, deep)

    tag = "tag:yaml.org,2002:"
    for word, pattern, starts in (
        ("null", r"~|null|", ["~", "n", ""]),
        ("bool", r"true|false", ["t", "f"]),
        ("int", r"0|[1-9][0-9]{0,9}", list("0123456789")),
    ):
        Loader.add_implicit_resolver(tag + word, re.compile(rf"(?:{pattern})\Z"), starts)
    try:
        return yaml.load(data, Loader=Loader)  # noqa: S506 - a subclass of SafeLoader
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{error.problem or error.context or 'no YAML'}") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())) from None


# --- what the app remembers ------------------------------------------------------------------------------------------


def _memory() -> str:
    return str(state_folder() / "ui.json")


def _recall() -> dict[str, Any]:
    try:
        return atomic.read_json(_memory(), _MAX_REMEMBERED)
    except (OSError, ValueError):
        return {}


def remembered() -> Options:
    """What the app remembers; a file that is damaged, or a value that is no word, is as if it were not there."""
    theme = _recall().get("theme")
    return Options(theme=theme if isinstance(theme, str) and 0 < len(theme) <= 200 else None)


def remember(name: str, value: str) -> None:
    """Keep ``value`` (the theme that was picked in the app: ``theme``) for the next time.

    Raises OSError, leaving what was remembered.
    """
    folder = state_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    atomic.write_json(_memory(), {**_recall(), "version": 1, name: value})
