"""Reading an output folder into evidence: documents, headers, scalar scales, tokenizer files. No weight is read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quark_tui.core.model.headers import Checkpoint, Shard
from quark_tui.core.ptq.verify.evidence import Document, Export, TokenizerFile
from quark_tui.core.ptq.verify.modules import SCALARS
from quark_tui.core.text import clean
from quark_tui.io.checkpoint import INDEX_NAME, read_checkpoint, read_index, read_scalars, read_shard

#: Larger documents are no configuration of a model; the largest real tokenizer.json are about 35 MB.
MAX_CONFIG = 32 << 20
MAX_TOKENIZER = 256 << 20

_TOKENIZER_NAMES = frozenset(
    [
        "tokenizer.json",
        "tokenizer_config.json",
        "tokenizer.model",
        "vocab.json",
        "vocab.txt",
        "merges.txt",
        "special_tokens_map.json",
        "added_tokens.json",
        "spiece.model",
        "sentencepiece.bpe.model",
        "tekken.json",
        "chat_template.jinja",
        "chat_template.json",
    ]
)
# What can be wrong with a path itself; every other error means that we were not allowed, or not able, to look.
_DAMAGE = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENAMETOOLONG, errno.EINVAL}
)


def read_export(path: Path) -> Export:
    """Everything that a verdict may rest on, of the folder at ``path``. Nothing is raised."""
    directory = os.path.abspath(path)
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        refused = error.errno not in _DAMAGE
        return Export(directory, f"The folder cannot be read: {error.strerror or type(error).__name__}.", refused)
    root = Path(directory)
    checkpoint, unreadable = _checkpoint(root, names)
    scalars, problem = _scalars(root, checkpoint)
    files = tuple((name, size) for name in names for regular, size in [_size(root / name)] if regular)
    return Export(
        directory,
        files=files,
        config=read_document(root / "config.json"),
        other_config=read_document(root / "hf_quant_config.json"),
        checkpoint=checkpoint,
        scalars=scalars,
        scalars_problem=problem,
        unreadable=unreadable,
        tokenizer=read_tokenizer(root, names),
    )


def _size(path: Path) -> tuple[bool, int | None]:
    """(is a file, its size); a link that leads nowhere is a file of unknown size."""
    try:
        info = os.stat(path)
    except OSError:
        return True, None
    return not stat.S_ISDIR(info.st_mode), info.st_size if stat.S_ISREG(info.st_mode) else None


def _checkpoint(root: Path, names: list[str]) -> tuple[Checkpoint, tuple[str, ...]]:
    index = root / INDEX_NAME
    odd = INDEX_NAME in names and not index.is_file()  # reading a pipe would never end
    try:
        checkpoint = _shard_by_shard(root, names) if odd else read_checkpoint(root)
    except (OSError, ValueError, RecursionError, OverflowError, MemoryError):
        checkpoint = _shard_by_shard(root, names)
    unreadable = tuple(shard.name for shard in checkpoint.shards if shard.problem and _refused(root / shard.name))
    return checkpoint, unreadable


def _shard_by_shard(root: Path, names: list[str]) -> Checkpoint:
    """The weights of a folder in which something cannot be read as a whole: what is wrong stays with its file."""
    shards: list[Shard] = []
    for name in names:
        if name.endswith(".safetensors"):
            try:
                shards.append(read_shard(root / name))
            except (ValueError, RecursionError, OverflowError, MemoryError) as error:
                problem = f"the header cannot be understood ({type(error).__name__})"
                shards.append(Shard(name, _size(root / name)[1] or 0, problem=problem))
    odd = INDEX_NAME in names and not (root / INDEX_NAME).is_file()
    index, problem = (None, f"{INDEX_NAME} is not a regular file") if odd else read_index(root / INDEX_NAME)
    return Checkpoint(str(root), tuple(shards), index, problem)


def _refused(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return error.errno not in _DAMAGE
    return False


def _scalars(root: Path, checkpoint: Checkpoint) -> tuple[dict[str, float], str]:
    names = [name for name, tensor in checkpoint.tensors.items() if tensor.elements == 1 and name.endswith(SCALARS)]
    try:
        values = read_scalars(root, checkpoint, names, limit=1)
    except OSError as error:
        return {}, f"scales cannot be read: {error.strerror or type(error).__name__}"
    return {name: found[0] for name, found in values.items() if found}, ""


def _read(path: Path, limit: int) -> bytes:
    """The bytes of a regular file; ValueError says why it is none that can be used. Raises OSError."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise ValueError("not a regular file")
        if info.st_size > limit:
            raise ValueError(f"{info.st_size} bytes are too many")
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise ValueError(f"more than {limit} bytes")
    return raw


def read_document(path: Path) -> Document:
    """A JSON object from a file; what is wrong with it is in ``problem``, nothing is raised."""
    name = path.name
    try:
        raw = _read(path, MAX_CONFIG)
    except FileNotFoundError:
        return Document(
            name, present=os.path.lexists(path), problem="the link leads nowhere" if os.path.lexists(path) else ""
        )
    except OSError as error:
        return Document(name, True, None, None, error.strerror or type(error).__name__, error.errno not in _DAMAGE)
    except ValueError as error:
        return Document(name, True, None, None, str(error))
    sha256 = hashlib.sha256(raw).hexdigest()
    note = "The file begins with a byte order mark, which strict readers refuse." if raw[:3] == b"\xef\xbb\xbf" else ""
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Document(name, True, None, sha256, f"no UTF-8 at byte {error.start}")
    except RecursionError:
        return Document(name, True, None, sha256, "nested too deeply")
    except ValueError as error:
        return Document(name, True, None, sha256, f"no JSON: {clean(error)[:200]}")
    if not isinstance(data, dict):
        return Document(name, True, None, sha256, "no JSON object")
    return Document(name, True, data, sha256, note=note)


def read_tokenizer(root: Path, names: list[str] | None = None) -> tuple[TokenizerFile, ...]:
    """The tokenizer's files at the top of ``root``, in name order; empty when there are none or no such folder."""
    if names is None:
        try:
            names = sorted(os.listdir(root))
        except OSError:
            return ()
    return tuple(
        _tokenizer_file(root / name) for name in names if name in _TOKENIZER_NAMES or name.endswith(".tiktoken")
    )


def _tokenizer_file(path: Path) -> TokenizerFile:
    try:
        raw = _read(path, MAX_TOKENIZER)
    except (OSError, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return TokenizerFile(path.name, 0, problem=clean(text)[:200])
    sha256 = hashlib.sha256(raw).hexdigest()
    if path.name not in ("tokenizer.json", "tokenizer_config.json"):
        return TokenizerFile(path.name, len(raw), sha256)
    try:
        data = json.loads(raw.decode("utf-8-sig"))
        if not isinstance(data, dict):
            return TokenizerFile(path.name, len(raw), sha256, "no JSON object")
        settings, rest = _parts(path.name, data)
        rest_sha256 = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    except (ValueError, RecursionError) as error:
        return TokenizerFile(path.name, len(raw), sha256, f"no JSON: {clean(error)[:150]}")
    return TokenizerFile(path.name, len(raw), sha256, "", settings, rest_sha256)


def _parts(name: str, data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(settings that quark-cli rewrites or that are plain values, everything else)."""
    if name == "tokenizer.json":
        settings = {key: data.get(key) for key in ("padding", "truncation")}
    else:
        plain = (str, int, float, bool, type(None))
        settings = {key: value for key, value in data.items() if isinstance(value, plain) and len(str(value)) <= 200}
        # Special tokens may be written as objects; what they are is their content.
        for key, value in data.items():
            if key.endswith("_token") and isinstance(value, dict) and isinstance(value.get("content"), str):
                settings[key] = value["content"][:200]
    return settings, {key: value for key, value in data.items() if key not in settings}
