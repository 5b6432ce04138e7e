"""What was seen of an output folder: plain values, read by io and judged here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from quark_tui.core.model.headers import Checkpoint


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON file. ``problem`` is empty when it was read; ``unreadable`` when the system refused to let us look.

    ``note`` says what is odd about a file that could be read all the same.
    """

    name: str
    present: bool = False
    data: Any = None
    sha256: str | None = None
    problem: str = ""
    unreadable: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """A tokenizer file: ``rest_sha256`` covers what is left without ``settings``.

    ``settings`` are tokenizer.json's padding and truncation, or the plain values of tokenizer_config.json.
    """

    name: str
    size: int
    sha256: str | None = None
    problem: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    rest_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Export:
    """An output folder.

    ``files`` are names and sizes in bytes (None when the size cannot be had); ``scalars`` the values of one-element
    scale tensors by name; ``unreadable`` the weight files that the system refused to let us look into; ``problem`` says
    why the folder itself could not be looked at, and ``refused`` that it was for want of permission.
    """

    directory: str
    problem: str = ""
    refused: bool = False
    files: tuple[tuple[str, int | None], ...] = ()
    config: Document = field(default_factory=lambda: Document("config.json"))
    other_config: Document = field(default_factory=lambda: Document("hf_quant_config.json"))
    checkpoint: Checkpoint = field(default_factory=lambda: Checkpoint(""))
    scalars: Mapping[str, float] = field(default_factory=dict)
    scalars_problem: str = ""
    unreadable: tuple[str, ...] = ()
    tokenizer: tuple[TokenizerFile, ...] = ()
