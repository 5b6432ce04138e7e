"""Collecting what an approval rests on, from the present files and environment.

The supervisor carries this module and collects again right before exec, so it needs the standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quark_tui.core.command import decides_a_run
from quark_tui.core.text import redact_env
from quark_tui.io import atomic
from quark_tui.io.checkpoint import read_shard

#: Distributions whose version decides what the command does.
DISTRIBUTIONS = ("amd-quark", "torch", "transformers", "datasets", "accelerate", "tokenizers", "safetensors", "numpy")
_WEIGHTS = re.compile(r"(?i)\.(safetensors|bin|pt|pth|gguf|h5|msgpack|npz|ckpt|onnx)$")
_SKIPPED_FOLDERS = frozenset({".git", ".cache", "__pycache__"})
_MAX_FILES = 20_000
_MAX_DEPTH = 6
_HASHED_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Subject:
    """Where to look: absolute paths. ``files`` are hashed whole, ``model`` is walked (None for a Hub repository);
    ``search_path`` are the folders that the target interpreter imports from, in order; ``runs`` is the folder of the
    job's runs: an approval stands for one start, so that a second one of the same plan has another digest."""

    files: tuple[str, ...]
    model: str | None
    interpreter: str
    search_path: tuple[str, ...]
    runs: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "files": list(self.files),
            "model": self.model,
            "interpreter": self.interpreter,
            "search_path": list(self.search_path),
            "runs": self.runs,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Subject:
        return cls(tuple(data["files"]), data["model"], data["interpreter"], tuple(data["search_path"]), data["runs"])


def collect(subject: Subject, environ: Mapping[str, str]) -> dict[str, Any]:
    """``{"env", "files", "versions", "earlier_runs", "used_digests"}`` as they are now.

    Nothing is raised for a missing file: it is recorded as missing.
    """
    files = [_whole(path) for path in subject.files]
    if subject.model is not None:
        files += [_model_file(path) for path in sorted(_walk(subject.model))]
    files.append(_interpreter(subject.interpreter))
    return {
        "env": dict(sorted(redact_env(environ, filter(decides_a_run, environ)).items())),
        "files": files,
        "versions": versions(subject.search_path),
        "earlier_runs": [] if subject.runs is None else started_runs(subject.runs),
        "used_digests": [] if subject.runs is None else _used(subject.runs),
    }


def started_runs(folder: str) -> list[str]:
    """Ids of the runs in ``folder`` whose command was started, in order."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    started = []
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            if was_started(f"{folder}/{name}", atomic.read_json(f"{folder}/{name}/run.json")):
                started.append(name)
    return started


def was_started(folder: str, run: Mapping[str, Any]) -> bool:
    """True when the command of the run in ``folder`` was started: by its record, or by what it wrote of itself into
    its lock right before."""
    if run.get("process") or run.get("refused"):
        return bool(run.get("process"))
    try:
        return os.stat(f"{folder}/alive.lock").st_size > 0
    except OSError:
        return False


def _used(runs: str) -> list[str]:
    """Digests that job.json names as used, for runs whose folder is gone."""
    with contextlib.suppress(OSError, ValueError):
        used = atomic.read_json(f"{os.path.dirname(runs)}/job.json").get("used_digests")
        if isinstance(used, list):
            return [item for item in used if isinstance(item, str)]
    return []


def versions(search_path: tuple[str, ...]) -> dict[str, str | None]:
    """Version of each of DISTRIBUTIONS as first found along ``search_path``, read from metadata; None when absent."""
    found: dict[str, str | None] = dict.fromkeys(DISTRIBUTIONS)
    for distribution in importlib.metadata.distributions(path=list(search_path)):
        name = (distribution.metadata["Name"] or "").lower().replace("_", "-")
        if name in found and found[name] is None:
            found[name] = distribution.version
    return found


def _walk(folder: str, depth: int = 0, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Files below ``folder``, linked folders too (code is imported through them too); no folder inside itself."""
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen |= {real}
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for count, entry in enumerate(entries):
        if count >= _MAX_FILES:
            return
        if _is_folder(entry):
            if depth < _MAX_DEPTH and entry.name not in _SKIPPED_FOLDERS:
                yield from _walk(entry.path, depth + 1, seen)
        else:
            yield entry.path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _whole(path: str) -> dict[str, Any]:
    try:
        info = os.stat(path)
        if not stat.S_ISREG(info.st_mode):
            return {"path": path, "stat": {"kind": "not a regular file"}}
        if info.st_size > _HASHED_BYTES:
            return {"path": path, "stat": {"size": info.st_size, "mtime_ns": info.st_mtime_ns}}
        with open(path, "rb") as file:
            return {"path": path, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    except OSError as error:
        return {"path": path, "stat": {"missing": error.strerror or str(error)}}


def _model_file(path: str) -> dict[str, Any]:
    if not _WEIGHTS.search(path):
        return _whole(path)
    try:
        info = os.stat(path)
    except OSError as error:
        return {"path": path, "stat": {"missing": error.strerror or str(error)}}
    facts: dict[str, Any] = {"size": info.st_size, "mtime_ns": info.st_mtime_ns}
    if path.lower().endswith(".safetensors"):
        facts["header_sha256"] = read_shard(Path(path)).header_sha256
    return {"path": path, "stat": facts}


def _interpreter(path: str) -> dict[str, Any]:
    try:
        info = os.stat(path)
        return {"path": path, "stat": {"real": os.path.realpath(path), "size": info.st_size}}
    except OSError as error:
        return {"path": path, "stat": {"missing": error.strerror or str(error)}}
