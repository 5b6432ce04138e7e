"""Code that comes with a model and would be executed when it is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quark_tui.core.model.config import shown
from quark_tui.core.text import clean

_TARGET = re.compile(r"^[\w./-]{1,200}(?:--[\w./-]{1,200})?$")
#: Classes that the tokenizer's loading reads, whichever file names them.
_TOKENIZER_SIDE = re.compile(r"Tokenizer|Processor|FeatureExtractor")
_MOST = 200


@dataclass(frozen=True, slots=True)
class RemoteCode:
    """One class that a file asks to be taken from Python code.

    ``file`` is the JSON file that asks, ``key`` its dotted key, ``target`` "module.Class" or
    "repository--module.Class". ``sha256`` is the digest of the Python file in the folder, None when it is not there.
    ``stopped_by_flag`` is True only where ``--no_trust_remote_code`` really prevents it: quark-cli 0.12.post1 and 0.13
    load the tokenizer with trust whatever the flag says (measured).
    """

    file: str
    key: str
    target: str
    sha256: str | None
    stopped_by_flag: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "key": self.key,
            "target": self.target,
            "sha256": self.sha256,
            "stopped_by_flag": self.stopped_by_flag,
        }


def _auto_maps(data: Any) -> list[tuple[str, Any]]:
    """Every ``auto_map`` at the top or in a sub-configuration, as (dotted key, value)."""
    found: list[tuple[str, Any]] = []
    pending: list[tuple[str, Any, int]] = [("", data, 0)]
    seen = 0
    while pending and seen < 2_000:
        place, item, depth = pending.pop(0)
        seen += 1
        if not isinstance(item, Mapping):
            continue
        for key, value in item.items():
            dotted = f"{place}.{key}" if place else str(key)
            if key == "auto_map" and value:
                found.append((dotted, value))
            elif depth < 3 and isinstance(value, Mapping):
                pending.append((dotted, value, depth + 1))
    return found


def _module_file(target: str) -> str | None:
    """The Python file of a target, relative to the model's folder; None for one in another repository."""
    if "--" in target or "." not in target or not _TARGET.match(target):
        return None
    return target.rpartition(".")[0].replace(".", "/") + ".py"


def find_remote_code(files: Mapping[str, Any], python_files: Mapping[str, str]) -> tuple[RemoteCode, ...]:
    """All classes that the parsed JSON ``files`` (name -> data) ask to be taken from code.

    ``python_files`` maps relative ``.py`` names to digests. Values of unexpected types are reported, not skipped: what
    an unknown reader makes of them is not known. At most 200 are returned.
    """
    found: list[RemoteCode] = []
    for name, data in files.items():
        for place, auto_map in _auto_maps(data):
            entries = auto_map.items() if isinstance(auto_map, Mapping) else [("", auto_map)]
            for key, value in entries:
                targets = value if isinstance(value, list) else [value]
                for target in targets[:20]:
                    if target is None:
                        continue
                    text = clean(target[:400]) if isinstance(target, str) else shown(target)
                    module = _module_file(target) if isinstance(target, str) else None
                    found.append(
                        RemoteCode(
                            clean(name),
                            clean(f"{place}.{key}" if key else place)[:400],
                            text,
                            python_files.get(module) if module else None,
                            name == "config.json" and not _TOKENIZER_SIDE.search(str(key)),
                        )
                    )
                    if len(found) >= _MOST:
                        return tuple(found)
    return tuple(found)
