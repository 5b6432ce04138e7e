"""The artifact files of a job: validated against ``schemas/`` when written and when read, whole or absent."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from typing import Any

from quark_tui.core.text import clean
from quark_tui.io import atomic
from quark_tui.io.paths import data_folder

#: Artifact file name → schema name.
ARTIFACTS = {
    "model_analysis.json": "model_analysis",
    "quant_plan.json": "quant_plan",
    "run_manifest.yaml": "run_manifest",
    "job.json": "job",
    "run.json": "run",
    "exit.json": "exit",
}

# A manifest is a few kilobytes; PyYAML can take twenty seconds for a megabyte.
_MAX_YAML = 1 << 20
_MAX_JSON = 64 << 20
# Artifacts are about ten levels deep. Deeper ones would exhaust the stack of whoever walks through them.
_MAX_DEPTH = 64


class ArtifactProblem(Exception):
    """An artifact cannot be used: ``path`` and what is wrong, with the field where the schema refused it."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{clean(path)}: {message}")
        self.path, self.message = path, message


@functools.cache
def _validator(name: str) -> Any:
    import jsonschema  # not at start-up

    schema = atomic.read_json(str(data_folder("schemas") / f"{name}.schema.json"))
    return jsonschema.Draft202012Validator(schema)


def problem(name: str, value: Any) -> str:
    """What ``schemas/NAME.schema.json`` refuses about ``value``, with the field; "" when it is valid.

    A value that no JSON file can hold is refused before any schema is asked: other types, keys that are no text,
    numbers that are not finite, more than 64 levels.
    """
    import jsonschema

    if wrong := _not_plain(value):
        return wrong
    error = jsonschema.exceptions.best_match(_validator(name).iter_errors(value))
    if error is None:
        return ""
    return f"{_where(error.absolute_path)}: {clean(error.message[:600])[:300]}"


def _where(path: Any) -> str:
    return "/".join(clean(part)[:80] for part in path) or "the whole file"


def _not_plain(value: Any) -> str:
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    while waiting:
        item, path = waiting.pop()
        if len(path) > _MAX_DEPTH:
            return f"{_where(path[:6])}…: nested more than {_MAX_DEPTH} levels deep"
        if isinstance(item, Mapping):
            for key, held in item.items():
                if not isinstance(key, str):
                    return f"{_where((*path, key))}: the key is no text"
                waiting.append((held, (*path, key)))
        elif isinstance(item, list | tuple):
            waiting += [(held, (*path, number)) for number, held in enumerate(item)]
        elif isinstance(item, float) and not math.isfinite(item):
            return f"{_where(path)}: {item} is no number that a file can hold"
        elif item is not None and not isinstance(item, str | int | float):
            return f"{_where(path)}: {clean(type(item).__name__)} is no type of JSON"
    return ""


def _schema_of(path: str) -> str:
    return ARTIFACTS[path.rpartition("/")[2]]


def write(path: str, value: Mapping[str, Any]) -> None:
    """Validate and replace the artifact. Raises ArtifactProblem (invalid: nothing written) or OSError."""
    if wrong := problem(_schema_of(path), value):
        raise ArtifactProblem(path, f"not written, {wrong}")
    yaml = path.endswith(".yaml")
    data = _yaml_bytes(value) if yaml else atomic.to_json_bytes(value)
    if len(data) > (limit := _MAX_YAML if yaml else _MAX_JSON):
        raise ArtifactProblem(path, f"not written, it has more than {limit} bytes")
    atomic.write_bytes(path, data, 0o644)


def read(path: str) -> dict[str, Any]:
    """The artifact, strictly. Raises FileNotFoundError, or ArtifactProblem when it cannot be read or is invalid.

    Time and memory are bounded whatever the file holds: only regular files, up to 64 MB (YAML 1 MB), no YAML aliases.
    """
    try:
        value = (
            _yaml_value(atomic.read_bytes(path, _MAX_YAML))
            if path.endswith(".yaml")
            else _json_value(atomic.read_bytes(path, _MAX_JSON))
        )
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ArtifactProblem(path, clean(said[:600])[:300]) from None
    if not isinstance(value, dict):
        raise ArtifactProblem(path, "not a map")
    if wrong := problem(_schema_of(path), value):
        raise ArtifactProblem(path, wrong)
    return value


def _json_value(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from None


# --- YAML as far as JSON goes ----------------------------------------------------------------------------------------


@functools.cache
def _yaml_classes() -> tuple[Any, Any]:
    """(loader, dumper): no aliases either way, and only JSON's scalars.

    PyYAML's own resolver follows YAML 1.1, where 1:30 and 2025-01-01 are no text; the dumper still quotes by it, so
    that every reader sees the text that was meant.
    """
    import re

    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - the name and type are PyYAML's

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not read here")
            return super().compose_node(parent, index)

    tag = "tag:yaml.org,2002:"
    for word, pattern, starts in (
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
        ("int", r"[-+]?(?:0|[1-9][0-9]{0,400})", list("-+0123456789")),
        ("float", r"[-+]?[0-9]{1,400}(?:\.[0-9]{0,400})?(?:[eE][-+]?[0-9]{1,5})?", list("-+0123456789")),
    ):
        Loader.add_implicit_resolver(tag + word, re.compile(rf"(?:{pattern})\Z"), starts)

    def number(kind: type[int] | type[float]) -> Any:
        # PyYAML's own constructors take sexagesimal numbers, in time that grows with the square of their length.
        def construct(loader: Any, node: Any) -> int | float:
            try:
                return kind(loader.construct_scalar(node))
            except ValueError:
                raise yaml.YAMLError(f"no {kind.__name__} that is read here") from None

        return construct

    plain = {word: yaml.SafeLoader.yaml_constructors[tag + word] for word in ("null", "bool", "str", "seq", "map")}
    plain |= {"int": number(int), "float": number(float)}
    Loader.yaml_constructors = {
        None: yaml.SafeLoader.yaml_constructors[None],
        **{tag + word: constructor for word, constructor in plain.items()},
    }

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, data: str) -> Any:
        # 1e5 and 0o17 are text in YAML 1.1, for which PyYAML quotes, and numbers in 1.2.
        quoted = data[:1] in set("+-.0123456789")
        return dumper.represent_scalar(tag + "str", data, style="'" if quoted else None)

    Dumper.add_representer(str, text)
    return Loader, Dumper


def _yaml_bytes(value: Mapping[str, Any]) -> bytes:
    import yaml

    plain = json.loads(json.dumps(value, allow_nan=False))
    text = yaml.dump(plain, Dumper=_yaml_classes()[1], sort_keys=False, allow_unicode=False, width=4096)
    return str(text).encode()


def _yaml_value(data: bytes) -> Any:
    import yaml

    try:
        return yaml.load(data, Loader=_yaml_classes()[0])  # noqa: S506 - a subclass of SafeLoader
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except yaml.YAMLError as error:
        raise ValueError(f"no YAML: {error}") from None
