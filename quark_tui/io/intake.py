"""Reading a model's folder for intake: JSON files, names and sizes, digests of Python files, weight headers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.model.config import holds_nonfinite
from quark_tui.core.model.intake import JsonFile, ModelSource
from quark_tui.core.text import clean
from quark_tui.io.checkpoint import read_checkpoint

MAX_JSON = 64 * 2**20
MAX_PYTHON = 16 * 2**20
MAX_ENTRIES = 10_000
MAX_DEPTH = 16

#: JSON files that say something of the model; vocabularies and tokenizers are only listed.
_READ = re.compile(r"(?:.*config.*|.*\.index|generation_config|special_tokens_map|params)\.json", re.IGNORECASE)
_MAX_FILES = 100
_LFS = b"version https://git-lfs"
_ONNX = (
    "quark-tui quantizes PyTorch and Hugging Face models with quark-cli torch-llm-ptq; ONNX models are not its input"
)


def read_model(directory: Path) -> ModelSource:
    """Everything that intake needs of a model's folder; no weight is read and nothing is fetched.

    Raises WrongQuestion when the folder does not exist, is none, has no config.json, holds only ONNX weights, cannot be
    listed, or when its config.json is no JSON object. Other unreadable files are told in their ``problem``.
    """
    shown = clean(str(directory))
    try:
        info = os.stat(directory)
    except (OSError, ValueError) as error:
        reason = "no such directory" if isinstance(error, FileNotFoundError) else _reason(error)
        raise WrongQuestion(f"{shown}: {reason}") from None
    if not stat.S_ISDIR(info.st_mode):
        if directory.name.lower().endswith(".onnx"):
            raise WrongQuestion(f"{shown}: {_ONNX}")
        raise WrongQuestion(f"{shown}: not a directory; a model is the folder that holds its config.json")
    try:
        listing, complete = _listing(directory)
    except OSError as error:
        raise WrongQuestion(f"{shown}: cannot be listed: {_reason(error)}") from None
    tops = [name for name in listing if "/" not in name]
    weights = [name for name in tops if re.search(r"(?i)\.(safetensors|bin|pt|pth|gguf)$", name)]
    if not weights and any(name.lower().endswith(".onnx") for name in tops):
        raise WrongQuestion(f"{shown}: holds only ONNX weights; {_ONNX}")
    if "config.json" not in listing and not os.path.isfile(directory / "config.json"):  # the listing may have been cut
        where = f"{shown}: no config.json in it (looked for {shown.rstrip('/')}/config.json)"
        raise WrongQuestion(where + _instead(tops))
    names = ["config.json", *sorted(name for name in tops if name != "config.json" and _READ.fullmatch(name))]
    files = {name: read_json(directory / name) for name in names[:_MAX_FILES]}
    config = files["config.json"]
    if config.problem:
        raise WrongQuestion(f"{clean(str(directory / 'config.json'))}: {clean(config.problem)}")
    if not isinstance(config.data, dict):
        kind = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}.get(
            type(config.data), "a number"
        )
        raise WrongQuestion(f"{clean(str(directory / 'config.json'))}: its JSON is {kind}, not an object")
    python_files = {}
    for name, size in listing.items():
        if name.endswith(".py") and size <= MAX_PYTHON:
            digest = _sha256(directory / name)
            if digest is not None:
                python_files[name] = digest
    try:
        checkpoint = read_checkpoint(directory)
    except OSError as error:
        raise WrongQuestion(f"{shown}: cannot be listed: {_reason(error)}") from None
    return ModelSource(
        str(directory), files, listing, python_files, checkpoint, complete, _pointers(directory, listing)
    )


def _instead(names: list[str]) -> str:
    """What a folder without config.json seems to be, as the end of a sentence; "" when that cannot be told."""
    if "adapter_config.json" in names:
        return "; it holds an adapter, not a whole model: merge it into its base model and save that"
    if any(name.lower().endswith(".gguf") for name in names):
        return "; GGUF files cannot be quantized by Quark: use the model that they were made from"
    if "params.json" in names:
        return "; it has params.json: use the same model in Hugging Face's layout"
    return ""


def _pointers(directory: Path, listing: Mapping[str, int]) -> tuple[str, ...]:
    """Files at the top that are Git LFS pointers: short, with a first line of their own."""
    small = [name for name, size in listing.items() if "/" not in name and 100 <= size <= 300]
    return tuple(name for name in small[:_MAX_FILES] if (_bytes(directory / name, 300)[0] or b"").startswith(_LFS))


def read_json(path: Path) -> JsonFile:
    """One JSON file; whatever is wrong with it is in ``problem``, nothing is raised.

    A byte order mark, NaN and Infinity (no JSON) and a key given twice are accepted with a note. Other encodings than
    UTF-8 are refused with the offset of the first byte that does not fit.
    """
    raw, problem = _bytes(path, MAX_JSON)
    if raw is None:
        return JsonFile(path.name, None, problem, None)
    data, problem, note = parse_json(raw)
    return JsonFile(path.name, data, problem, hashlib.sha256(raw).hexdigest(), note)


def parse_json(raw: bytes) -> tuple[Any, str, str]:
    """(data, problem, note) of a JSON file's bytes."""
    if not raw.strip():
        return None, "is empty" if not raw else "holds only white space", ""
    if raw.startswith(_LFS):
        return None, "is a Git LFS pointer, not the file itself (git lfs pull)", ""
    notes = []
    body = raw
    if raw.startswith(b"\xef\xbb\xbf"):
        body = raw[3:]
        notes.append("starts with a byte order mark")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        offset = error.start + len(raw) - len(body)
        guess = "; it looks like UTF-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        return None, f"is no UTF-8 text: byte {raw[offset]:#04x} at offset {offset}{guess}", ""
    if "\0" in text:
        return None, f"is no UTF-8 text: a zero byte at offset {raw.index(0)}; it looks like UTF-16", ""
    twice: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        held = dict(found)
        if len(held) != len(found) and len(twice) < 3:
            seen: set[str] = set()
            for key, _ in found:
                if key in seen:
                    twice.append(key)
                    break
                seen.add(key)
        return held

    try:
        data = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        return None, f"is no JSON: {error.msg} at line {error.lineno}, column {error.colno}", ""
    except RecursionError:
        return None, "is nested too deeply to be read", ""
    except ValueError:
        return None, "holds a number of too many digits", ""
    if twice:
        notes.append(f"holds {clean(twice[0][:80])!r} twice in one object; the last is used")
    if holds_nonfinite(data):
        notes.append("holds NaN or Infinity, which are no JSON; other readers may refuse it")
    return data, "", " and ".join(notes)


def _bytes(path: Path, most: int) -> tuple[bytes | None, str]:
    """(content, "") of a regular file of at most ``most`` bytes, or (None, why not)."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                return None, "is not a regular file"
            if info.st_size > most:
                return None, f"has {info.st_size} bytes, more than {most}: not read"
            return file.read(most), ""
    except OSError as error:
        return None, f"cannot be read: {_reason(error)}"


def _sha256(path: Path) -> str | None:
    raw, _ = _bytes(path, MAX_PYTHON)
    return None if raw is None else hashlib.sha256(raw).hexdigest()


def _listing(directory: Path) -> tuple[dict[str, int], bool]:
    """(name -> size, complete): files at the top, and ``.py`` files below; links to folders are not followed.

    At most MAX_ENTRIES entries are looked at, the top of the folder first. Raises OSError when the top cannot be
    listed.
    """
    found: dict[str, int] = {}
    pending = [("", 0)]
    looked = 0
    while pending:
        below, depth = pending.pop(0)
        try:
            entries = os.scandir(os.path.join(directory, below))
        except OSError:
            if not below:
                raise
            continue
        with entries:
            for entry in entries:
                looked += 1
                if looked > MAX_ENTRIES:
                    return found, False
                name = f"{below}/{entry.name}" if below else entry.name
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if depth < MAX_DEPTH and entry.name not in (".git", "__pycache__"):
                            pending.append((name, depth + 1))
                    elif (not below or name.endswith(".py")) and entry.is_file():
                        found[name] = entry.stat().st_size
                except OSError:
                    continue
    return dict(sorted(found.items())), True


def _reason(error: Exception) -> str:
    return clean(getattr(error, "strerror", None) or error)
