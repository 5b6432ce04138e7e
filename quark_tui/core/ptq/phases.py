"""The phases that a torch-llm-ptq log witnesses.

The start lines, bar names and tables are those of quark-cli 0.12.post1 and 0.13 (measured). Only records of Quark's own
logger and its progress bars move the phase; unknown lines change nothing. A phase is done when a later one was seen;
that the process ended with 0 is for the reader of a :class:`PhaseReport` to add. Nothing here decides a verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from quark_tui.core.logtext import Line

PhaseKey = Literal[
    "import",
    "model",
    "tokenizer",
    "calibration_data",
    "replace",
    "algorithm",
    "calibrate",
    "freeze",
    "export",
    "evaluate",
]
#: In the order in which quark-cli goes through them; ``algorithm`` and ``evaluate`` are not part of every run.
PHASES: tuple[PhaseKey, ...] = get_args(PhaseKey)

_STARTS: tuple[tuple[str, PhaseKey], ...] = (
    ("Working directory is now=", "model"),
    ("Loading model ...", "model"),
    ("Initializing tokenizer from", "tokenizer"),
    ("Loading dataset ...", "calibration_data"),
    ("Using weight only quantization", "replace"),
    ("Using weight quantization", "replace"),
    ("Quantizing with the quantization configuration", "replace"),
    ("In-place OPs replacement start", "replace"),
    ("Advanced algorithm start", "algorithm"),
    ("Weight calibration start", "calibrate"),
    ("Calibration start", "calibrate"),
    ("Calibrating all weights", "calibrate"),
    ("Running forward pass calibration", "calibrate"),
    ("Freeze model start", "freeze"),
    ("Exporting hugging face format", "export"),
    ("Model post process start", "export"),
    ("Start exporting", "export"),
    ("Evaluating ...", "evaluate"),
)
_APPLYING = re.compile(r"Applying (\S+) processing/algorithm")
# Bars that belong to one phase only; the splits of a data set are generated for calibration and for evaluation.
_BAR_STARTS: dict[str, PhaseKey] = {
    "Loading weights": "model",
    "Loading checkpoint shards": "model",
    "Caching layer inputs": "algorithm",
    "Calibrating all params": "calibrate",
    "Calibrating activations": "calibrate",
    "Freezing quantized modules": "freeze",
    "Preserving pre-quantized modules": "export",
    "Converting QuantLinear for export": "export",
    "Writing model shards": "export",
}
_UNITS = {
    "Loading weights": "tensors",
    "Loading checkpoint shards": "shards",
    "Calibrating all params": "modules",
    "Calibrating activations": "batches",
    "Freezing quantized modules": "modules",
    "Converting QuantLinear for export": "modules",
    "Writing model shards": "shards",
}

_PERCENT = re.compile(r"(\d{1,3})%\|")
_COUNT = re.compile(r"\|\s{0,40}(\d[\d.]{0,20}[kMGTPEZY]?)/(\d[\d.]{0,20}[kMGTPEZY]?) \[")
_NO_TOTAL = re.compile(r"(?:^|: )(\d[\d.]{0,20}[kMGTPEZY]?)( ?[A-Za-z]{1,20}) \[\d")
_RATE = re.compile(r"(?:\?|[\d.]{1,20}[kMGTPEZY]?) ?([A-Za-z]{1,20})/s|s/([A-Za-z]{1,20})")
_SUFFIX = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21, "Y": 1e24}
#: A bar is a short line; longer ones are not looked at.
_MAX_BAR = 4096
_MAX_ROWS = 10_000
_MAX_WARNINGS = 100
_MAX_WARNING_LINES = 12

_PERPLEXITY = re.compile(r"Perplexity:\s*(\S{1,60})")
_EXPORTED = re.compile(r"hf_format quantized model exported to (.+?) successfully\.?$")
_EXPORTED_LAST = re.compile(r"Successfully exported model to Safetensors format in \S+ mode: (.+)$")
_VERSION = re.compile(r'version="([0-9][0-9A-Za-z.+!-]{0,40})",?$')
_LAYER = re.compile(r"Start quantizing layer (\d{1,9})/(\d{1,9})")
_REQUANTIZED = re.compile(r"Requantizing \d+ HF-dequantized layer")

_WARNING_CODES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("moe_coverage", re.compile(r"MoE EXPERT COVERAGE WARNING")),
    ("no_tokens", re.compile(r"No tokens found in calibration dataset")),
    ("zero_tokens", re.compile(r"The module: .{1,300}? received 0 tokens")),
    ("few_tokens", re.compile(r"The module: .{1,300}? received \d+ tokens")),
    ("awq_batch_size", re.compile(r"For AWQ benchmark, batch_size should be")),
    ("requantized", _REQUANTIZED),
    ("sequence_too_long", re.compile(r"Token indices sequence length is longer")),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One state of a tqdm bar: ``done`` of ``total`` (None when it names none) in ``unit``; ``name`` may be empty."""

    name: str
    done: int
    total: int | None
    unit: str
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A phase that was seen: ``done`` when a later one was seen too. ``line`` is where it was first seen."""

    key: PhaseKey
    state: Literal["done", "active"]
    line: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LogWarning:
    """A warning of the log. ``code`` is ``moe_coverage``, ``no_tokens``, ``zero_tokens``, ``few_tokens``,
    ``no_batches``, ``awq_batch_size``, ``requantized``, ``sequence_too_long``, ``perplexity_unusable`` or ``other``."""

    code: str
    message: str
    line: int


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """What a log has shown so far; everything that it did not show is None or empty.

    ``exclude_table`` holds (pattern, modules excluded), ``replace_table`` (module type, found, replaced).
    ``gpus_listed``: Quark listed the memory of a GPU (it does so for each that it sees). ``offloaded_to_disk``:
    transformers said that it put weights on the meta device. ``quark_version`` is the one in the configuration that
    Quark prints.
    """

    seen: tuple[Seen, ...] = ()
    current: PhaseKey | None = None
    progress: Bar | None = None
    perplexity: float | None = None
    export_dir: str | None = None
    exclude_table: tuple[tuple[str, int], ...] = ()
    replace_table: tuple[tuple[str, int, int], ...] = ()
    warnings: tuple[LogWarning, ...] = ()
    warnings_left_out: int = 0
    quark_version: str | None = None
    gpus_listed: bool = False
    offloaded_to_disk: bool = False

    def has(self, key: PhaseKey) -> bool:
        """True when ``key`` was seen itself."""
        return any(phase.key == key for phase in self.seen)

    def passed(self, key: PhaseKey) -> bool:
        """True when a phase later than ``key`` was seen."""
        return self.current is not None and PHASES.index(self.current) > PHASES.index(key)


def parse_bar(text: str) -> Bar | None:
    """The bar that ``text`` shows, or None. Anything may stand behind the bar."""
    if len(text) > _MAX_BAR:
        return None
    percent = _PERCENT.search(text)
    if percent:
        count = _COUNT.search(text, percent.end() - 1)
        if not count:
            return None
        name = text[: percent.start()].strip().removesuffix(":").strip()
        rate = _RATE.search(text, count.end())
        unit = (rate.group(1) or rate.group(2)) if rate else "it"
        done, total = _number(count.group(1)), _number(count.group(2))
        if done is None or total is None:
            return None
        return Bar(name, done, total, _UNITS.get(name, unit), text.strip())
    open_end = _NO_TOTAL.search(text)
    if not open_end:
        return None
    done = _number(open_end.group(1))
    if done is None:
        return None
    name = text[: open_end.start()].strip()
    return Bar(name, done, None, _UNITS.get(name, open_end.group(2).strip()), text.strip())


def _number(text: str) -> int | None:
    factor = _SUFFIX.get(text[-1], 1)
    digits = text[:-1] if factor != 1 else text
    try:
        return int(float(digits) * factor) if "." in digits or factor != 1 else int(digits)
    except ValueError:
        return None


class _Open:
    """A warning that still takes continuation lines."""

    __slots__ = ("line", "texts")

    def __init__(self, line: int, text: str) -> None:
        self.line = line
        self.texts = [text]


class Phases:
    """Reads lines as they come. Memory is bounded: tables and warnings are capped, lines are not kept."""

    def __init__(self) -> None:
        self._first: dict[PhaseKey, int] = {}
        self._details: dict[PhaseKey, str] = {}
        self._current: PhaseKey | None = None
        self._bars: dict[str, Bar] = {}  # this phase's bars by name, the outer of two nested ones first
        self._table: Literal["", "exclude", "replace"] = ""
        self._exclude: list[tuple[str, int]] = []
        self._replaced: list[tuple[str, int, int]] = []
        self._warnings: list[_Open] = []
        self._left_out = 0
        self._record_warns = False
        self._perplexity: float | None = None
        self._export_dir: str | None = None
        self._version: str | None = None
        self._gpus = False
        self._offloaded = False

    def feed(self, lines: Iterable[Line], pending: str = "") -> None:
        """Take further lines, and the unfinished last one (a live bar) as it stands now."""
        for line in lines:
            self._line(line)
        if pending:
            self._bar(pending, 0)

    def report(self) -> PhaseReport:
        current = self._current
        seen = tuple(
            Seen(key, "active" if key == current else "done", self._first[key], self._details.get(key, ""))
            for key in PHASES
            if key in self._first
        )
        return PhaseReport(
            seen=seen,
            current=current,
            progress=self._progress(),
            perplexity=self._perplexity,
            export_dir=self._export_dir,
            exclude_table=tuple(self._exclude),
            replace_table=tuple(self._replaced),
            warnings=tuple(_closed(warning) for warning in self._warnings),
            warnings_left_out=self._left_out,
            quark_version=self._version,
            gpus_listed=self._gpus,
            offloaded_to_disk=self._offloaded,
        )

    def _progress(self) -> Bar | None:
        """The outer one of nested bars while it is unfinished, else the last one."""
        bars = list(self._bars.values())
        for bar in bars:
            if bar.total is not None and bar.done < bar.total:
                return bar
        return bars[-1] if bars else None

    def _enter(self, key: PhaseKey, number: int) -> None:
        if self._current is not None and PHASES.index(key) < PHASES.index(self._current):
            return
        self._first.setdefault(key, number)
        if key != self._current:
            self._current = key
            self._bars = {}

    def _line(self, line: Line) -> None:
        if line.starts_record:
            self._record(line)
        elif not self._continuation(line):
            self._bar(line.text, line.number)
            self._plain(line)

    def _record(self, line: Line) -> None:
        message = line.message.strip()
        if self._current is None:
            self._enter("import", line.number)
        self._table = ""
        self._record_warns = line.level == "warning"
        if self._record_warns:
            self._warn(line.number, message)
        for start, key in _STARTS:
            if message.startswith(start):
                self._enter(key, line.number)
                break
        if message.startswith("Module exclusion from quantization summary"):
            self._table, self._exclude = "exclude", []
        elif message.startswith("Module replacement for quantization summary"):
            self._table, self._replaced = "replace", []
        elif match := _APPLYING.match(message):
            self._enter("algorithm", line.number)
            names = [name for name in self._details.get("algorithm", "").split(", ") if name]
            if match.group(1) not in names and len(names) < 20:
                self._details["algorithm"] = ", ".join([*names, match.group(1)])
        elif match := _LAYER.match(message):
            self._layer(match, message)
        elif match := _EXPORTED.match(message) or _EXPORTED_LAST.match(message):
            self._enter("export", line.number)
            self._export_dir = match.group(1)
        elif match := _PERPLEXITY.match(message):
            self._enter("evaluate", line.number)
            self._take_perplexity(match.group(1), line.number)
        elif re.match(r"GPU\d{1,4} cuda_avail_memory", message):
            self._gpus = True
        elif _REQUANTIZED.match(message) and not self._record_warns:
            self._warn(line.number, message)

    def _layer(self, match: re.Match[str], message: str) -> None:
        """Layer-by-layer algorithms say which layer they begin; their bars count the columns of one module."""
        if self._current == "algorithm" and int(match.group(2)) > 0:
            name = next((name for name in self._bars if name.startswith("Applying ")), "layers")
            self._bars.setdefault(name, Bar(name, 0, int(match.group(2)), "layers", message))
            self._bars[name] = Bar(name, max(0, int(match.group(1)) - 1), int(match.group(2)), "layers", message)

    def _take_perplexity(self, text: str, number: int) -> None:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isfinite(value):
            self._perplexity = value
        else:
            self._warn(number, f"Perplexity: {text}")

    def _continuation(self, line: Line) -> bool:
        """True when the line belongs to a table or a warning that is open."""
        if self._table:
            text = line.text.strip()
            if text.startswith("|") and text.endswith("|") and len(text) > 2:
                self._row(text)
                return True
            self._table = ""
        if self._record_warns and line.level == "warning" and self._warnings:
            texts = self._warnings[-1].texts
            if not self._left_out and len(texts) < _MAX_WARNING_LINES:
                texts.append(line.text.strip())
            return True
        self._record_warns = False
        return False

    def _row(self, text: str) -> None:
        if self._table == "exclude":
            pattern, _, count = text[1:-1].rpartition("|")
            if (number := _cell(count)) is not None and len(self._exclude) < _MAX_ROWS:
                self._exclude.append((pattern.strip(), number))
        else:
            rest, _, replaced = text[1:-1].rpartition("|")
            name, _, original = rest.rpartition("|")
            before, after = _cell(original), _cell(replaced)
            if before is not None and after is not None and len(self._replaced) < _MAX_ROWS:
                self._replaced.append((name.strip(), before, after))

    def _plain(self, line: Line) -> None:
        text = line.text.strip()
        if self._version is None and self._current is not None and (match := _VERSION.match(text)):
            self._version = match.group(1)
        elif "offloaded to the disk" in text:
            self._offloaded = True
        elif "MoE EXPERT COVERAGE WARNING" in text or "Token indices sequence length is longer" in text:
            self._warn(line.number, text)

    def _warn(self, number: int, text: str) -> None:
        if len(self._warnings) < _MAX_WARNINGS:
            self._warnings.append(_Open(number, text))
        else:
            self._left_out += 1

    def _bar(self, text: str, number: int) -> None:
        bar = parse_bar(text)
        if bar is None:
            return
        if (key := _BAR_STARTS.get(bar.name)) is not None:
            self._enter(key, number)
        # An outer bar that stopped moving (its loop was left early) must not hide the ones that follow.
        if bar.name not in self._bars:
            for name in list(self._bars)[:-1]:
                del self._bars[name]
        self._bars[bar.name] = bar
        if number and bar.name == "Calibrating activations" and bar.done == 0 and not bar.total:
            self._warn(number, "Calibrating activations: no batch was run; activation scales were not calibrated")


def _cell(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None


def _closed(warning: _Open) -> LogWarning:
    message = "\n".join(text for text in warning.texts if text)
    if message.startswith("Calibrating activations: no batch"):
        return LogWarning("no_batches", message, warning.line)
    if message.startswith("Perplexity: "):
        return LogWarning("perplexity_unusable", message, warning.line)
    code = next((code for code, pattern in _WARNING_CODES if pattern.search(message)), "other")
    return LogWarning(code, message, warning.line)
