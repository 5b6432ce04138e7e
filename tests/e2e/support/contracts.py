"""The artifact contracts that amd-quark itself publishes, read from the wheel of the release that carries them."""

from __future__ import annotations

import fcntl
import json
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

REQUIREMENT = "amd-quark==0.13"
_FOLDER = "quark/_bundled_skills/quark-torch-ptq/references/contracts"


@dataclass(frozen=True)
class Contracts:
    """Artifact file name → its schema."""

    schemas: dict[str, dict[str, Any]]

    def check(self, name: str, value: dict[str, Any]) -> None:
        """Fails, naming the field, when the contract refuses ``value``."""
        schema = self.schemas[name.partition(".")[0]]
        errors = [
            f"{'/'.join(map(str, error.absolute_path)) or name}: {error.message}"
            for error in jsonschema.Draft202012Validator(schema).iter_errors(value)
        ]
        assert not errors, errors


def contracts(python: Path, cache: Path) -> Contracts:
    """The schemas of ``REQUIREMENT``; its wheel is downloaded once into ``cache`` and kept by its name."""
    folder = cache / "contracts" / REQUIREMENT.replace("==", "-")
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("*.whl")):
            pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-deps"]
            subprocess.run([*pip, "-d", str(folder), REQUIREMENT], check=True, capture_output=True, timeout=900)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        names = [name for name in wheel.namelist() if name.startswith(_FOLDER) and name.endswith(".schema.json")]
        schemas = {Path(name).name.partition(".")[0]: json.loads(wheel.read(name)) for name in names}
    assert set(schemas) == {"model_analysis", "quant_plan", "run_manifest"}, sorted(schemas)
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    return Contracts(schemas)
