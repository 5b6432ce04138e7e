"""The artifact files of a job: validated against ``schemas/`` when written and when read, whole or absent."""

from __future__ import annotations

import functools
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
    """What ``schemas/NAME.schema.json`` refuses about ``value``, with the field; "" when it is valid."""
    import jsonschema

    error = jsonschema.exceptions.best_match(_validator(name).iter_errors(value))
    if error is None:
        return ""
    where = "/".join(clean(part) for part in error.absolute_path) or "the whole file"
    return f"{where}: {clean(error.message)[:300]}"


def _schema_of(path: str) -> str:
    return ARTIFACTS[path.rpartition("/")[2]]


def write(path: str, value: Mapping[str, Any]) -> None:
    """Validate and replace the artifact. Raises ArtifactProblem (invalid: nothing written) or OSError."""
    if wrong := problem(_schema_of(path), value):
        raise ArtifactProblem(path, f"not written, {wrong}")
    if path.endswith(".yaml"):
        import yaml

        text = yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=False, width=4096)
        atomic.write_bytes(path, text.encode(), 0o644)
    else:
        atomic.write_json(path, value, 0o644)


def read(path: str) -> dict[str, Any]:
    """The artifact, strictly. Raises FileNotFoundError, or ArtifactProblem when it cannot be read or is invalid."""
    try:
        if path.endswith(".yaml"):
            import yaml

            with open(path, "rb") as file:
                try:
                    value = yaml.safe_load(file)
                except (yaml.YAMLError, RecursionError) as error:
                    raise ValueError(f"no YAML: {error}") from None
            if not isinstance(value, dict):
                raise ValueError("not a map")
        else:
            value = atomic.read_json(path)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise ArtifactProblem(path, clean(error)[:300]) from None
    if wrong := problem(_schema_of(path), value):
        raise ArtifactProblem(path, wrong)
    return dict(value)
