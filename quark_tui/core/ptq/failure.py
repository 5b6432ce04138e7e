"""What a failed torch-llm-ptq run says about its cause.

A class is named only where lines of the log, the exit or the caller's facts prove it; otherwise it is ``unknown``.
The rules come from runs of quark-cli 0.12.post1 and 0.13 that were made to fail, from the messages in their source, and
from what torch, transformers, huggingface_hub and Linux print. A next step is the smallest bounded change, with its
side effect and the checkpoint that it leads back to; never a blind retry, never a change of the installed quark-cli.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from quark_tui.core.logtext import Folder, Line
from quark_tui.core.ptq.phases import PhaseKey, PhaseReport, Phases, parse_bar
from quark_tui.core.text import clean, clean_lines, redact

Kind = Literal[
    "environment",
    "load",
    "compatibility",
    "memory",
    "configuration",
    "quantization",
    "export",
    "interrupted",
    "unknown",
]

_MAX_LINES = 20_000
_MAX_MESSAGE_LINES = 200
_MAX_ERROR = 200_000
_MAX_MATCH = 20_000


@dataclass(frozen=True, slots=True)
class FailureContext:
    """Facts about the run that the log does not hold; None or empty is unknown.

    ``stopped_by`` is the signal that our own stop sent. ``kernel_word`` is what the kernel or the scheduler says of a
    kill (dmesg, memory.events, slurmstepd). ``requires_transformers`` is the installed Quark's own requirement,
    ``model_transformers`` the version that the model's config.json names.
    """

    interpreter: str = ""
    quark_version: str | None = None
    torch_version: str | None = None
    transformers_version: str | None = None
    requires_transformers: str | None = None
    model_transformers: str | None = None
    gpu_available: bool | None = None
    device_strategy: str | None = None
    devices: int | None = None
    model_dir: str = ""
    output_dir: str = ""
    stopped_by: str | None = None
    kernel_word: str = ""
    max_map_count: int | None = None
    output_missing: bool = False
    phase: PhaseKey | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A classed failure.

    ``message`` is the last exception (all its lines) or the sentence that ended the run; ``evidence`` the lines that
    prove the class, each beginning with ``line N: `` where it comes from the log; ``checkpoint`` the one that
    ``next_step`` leads back to (1 analysis, 2 plan, 3 approval), None when nothing is to change; ``whole_error`` the
    text of the whole traceback with its chain, or the tail of the log where there is none.
    """

    kind: Kind
    message: str
    evidence: tuple[str, ...]
    next_step: str
    whole_error: str
    checkpoint: int | None = None
    code: str = ""
    phase: PhaseKey | None = None


@dataclass(frozen=True, slots=True)
class _Error:
    """One exception of a traceback: its frames and its message lines."""

    start: int  # index of the first line of its traceback
    end: int  # index behind its last message line
    type: str
    text: str  # type and message
    lines: tuple[Line, ...] = ()
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Case:
    """Everything that a rule may look at."""

    context: FailureContext
    report: PhaseReport
    phase: PhaseKey | None
    frames: str
    chain: tuple[_Error, ...] = field(default=())

    @property
    def cpu_only(self) -> bool:
        """No GPU was there: the caller knows, or the log of a started load lists none while weights were offloaded."""
        if self.context.gpu_available is not None:
            return not self.context.gpu_available
        return self.report.offloaded_to_disk and not self.report.gpus_listed and self.report.has("model")

    @property
    def quark(self) -> tuple[int, ...] | None:
        return _version(self.context.quark_version or self.report.quark_version)


Advice = tuple[str, int | None]
Step = Callable[[_Case, str], Advice]

_LOAD: tuple[PhaseKey, ...] = ("model", "tokenizer")
_QUANTIZE: tuple[PhaseKey, ...] = ("replace", "algorithm", "calibrate", "freeze")


def classify(
    log: Sequence[Line] | str,
    status: int | None,
    signal: int | None = None,
    context: FailureContext | None = None,
) -> Failure:
    """The cause of a run's end, as far as ``log`` (folded lines, or text), its end and ``context`` prove one.

    ``status`` is the exit status, ``signal`` the number of the signal that ended it; None is unknown. A shell's 128 + N
    for a signal is read as that signal. Raises nothing for any content; the work is bounded by the last 20,000 lines.
    """
    facts = context or FailureContext()
    lines = list(_fold(log) if isinstance(log, str) else log)[-_MAX_LINES:]
    if signal is None and status is not None and status in (129, 130, 134, 135, 136, 137, 139, 143):
        signal = status - 128
    phases = Phases()
    phases.feed(lines)
    report = phases.report()
    errors = _tracebacks(lines)
    chain = _last_chain(lines, errors)
    last = chain[-1] if chain else None
    frames = "\n".join(last.frames) if last else ""
    phase = _phase_of(frames) or facts.phase or report.current
    case = _Case(facts, report, phase, frames, chain)
    whole = _whole(lines, chain)

    # A process that failed may crash, or be killed, while it ends: the traceback at the end of its log is the cause.
    crashed = signal in (6, 7, 9, 11) and not facts.stopped_by and last is not None and last.type != "KeyboardInterrupt"
    if signal is not None and not crashed:
        return _by_signal(lines, signal, case, last, whole)
    if last is not None and last.type == "KeyboardInterrupt":
        return _interrupted(case, last, whole, "The process was interrupted (SIGINT).")
    if status == 0:
        return _after_zero(case, whole)
    if last is None:
        return _without_traceback(lines, status, case, whole)
    # The last exception decides; an earlier one of its chain speaks only where the last says nothing.
    for error in reversed(chain):
        found = _by_rule(error, case)
        if found is not None:
            kind, code, advice = found
            shown = (last,) if error is last else (error, last)
            return Failure(
                kind,
                _message(last),
                tuple(text for item in shown for text in _evidence(item)) + _supporting(lines, case, code),
                advice[0],
                whole,
                advice[1],
                code,
                phase,
            )
    kind, advice = _by_phase(case)
    code = "unrecognised" if kind == "unknown" else f"{kind}_error"
    place = _phase_evidence(case) if kind != "unknown" else ()
    if kind == "export" and (schemes := _matching(lines, _UNEXPORTABLE)):
        code, advice, place = "scheme_not_exportable", _not_exportable(case, ""), (*place, *schemes)
    return Failure(kind, _message(last), (*_evidence(last), *place), advice[0], whole, advice[1], code, phase)


# Block formats that are calibrated but for which no export exists (quark-cli 0.13, measured).
_UNEXPORTABLE = re.compile(r"dtype=<?Dtype\.(?:mx|mx6|mx9|bfp16)\b")


# --- reading the log -------------------------------------------------------------------------------------------------

_HEADER = re.compile(r"(?:Exception Group )?Traceback \(most recent call last\):\s*$")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_EXCEPTION = re.compile(r"((?:[A-Za-z_][\w]*\.){0,12}[A-Za-z_]\w*)(?::\s?(.*))?$", re.DOTALL)
_RANK = re.compile(r"\[rank\d{1,6}\]:\s?")
# What may stand behind the last traceback without being part of its message.
_BEHIND = re.compile(
    r"\[QUARK-[A-Z]+\]: |Exception ignored in|\[?[IWEF]\d{4,8} \d\d:\d\d:\d\d|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL):\w"
    r"|\[transformers\] |Command exited with non-zero status|\tCommand being timed|    Command being timed"
    r"|(?:real|user|sys)\s+\d+m[\d.]+s|Script done on |slurmstepd: |srun: error|\S+\.py:\d+: \w*Warning: |Killed$"
)


def _fold(text: str) -> list[Line]:
    folder = Folder()
    return [*folder.feed(text.encode("utf-8", "surrogatepass")), *folder.finish()]


def _plain(line: Line) -> str:
    return _RANK.sub("", line.text, count=1) if line.text.startswith("[rank") else line.text


def _tracebacks(lines: Sequence[Line]) -> list[_Error]:
    """Every traceback, with frames and message. One that Python reports as ignored is left out."""
    found: list[_Error] = []
    index = 0
    while index < len(lines):
        if "Traceback (most" not in lines[index].text or not _HEADER.search(lines[index].text):
            index += 1
            continue
        ignored = index > 0 and lines[index - 1].text.startswith("Exception ignored in")
        error = _read_error(lines, index)
        if not ignored:
            found.append(error)
        index = max(index + 1, error.end)
    return found


def _read_error(lines: Sequence[Line], start: int) -> _Error:
    index = start + 1
    frames: list[str] = []
    grouped = lines[start].text.lstrip().startswith("+ ")
    while index < len(lines):
        text = _ungroup(_plain(lines[index]), grouped)
        if text and not text.startswith(" "):
            break
        frames.append(text)
        index += 1
    first = index
    while index < len(lines) and index - first < _MAX_MESSAGE_LINES:
        text = _ungroup(_plain(lines[index]), grouped)
        if index > first and (
            _HEADER.search(text) or text.startswith(_CHAINED) or _BEHIND.match(text) or parse_bar(text) is not None
        ):
            break
        index += 1
    end = index
    while end > first + 1 and not lines[end - 1].text.strip():
        end -= 1
    message = tuple(lines[first:end])
    text = "\n".join(_ungroup(_plain(line), grouped) for line in message)
    match = _EXCEPTION.match(text)
    return _Error(start, end, match.group(1) if match else "", text, message, tuple(frames))


def _ungroup(text: str, grouped: bool) -> str:
    return re.sub(r"^\s*\| ?", "", text) if grouped else text


def _last_chain(lines: Sequence[Line], errors: Sequence[_Error]) -> tuple[_Error, ...]:
    """The chained tracebacks at the end of the log; empty when the program went on after the last one."""
    if not errors:
        return ()
    last = errors[-1]
    for line in lines[last.end :]:
        if (line.starts_record and line.level in ("info", "debug")) or parse_bar(line.text) is not None:
            return ()
    chain = [last]
    for earlier in reversed(errors[:-1]):
        between = [line.text for line in lines[earlier.end : chain[0].start] if line.text.strip()]
        if not any(_plain_text(text).startswith(_CHAINED) for text in between):
            break
        chain.insert(0, earlier)
    return tuple(chain)


def _plain_text(text: str) -> str:
    return _RANK.sub("", text, count=1).lstrip(" |")


def _whole(lines: Sequence[Line], chain: Sequence[_Error]) -> str:
    part = lines[chain[0].start : chain[-1].end] if chain else lines[-40:]
    text = redact(clean_lines("\n".join(line.text for line in part)))
    return text if len(text) <= _MAX_ERROR else "… earlier text left out\n" + text[-_MAX_ERROR:]


def _message(error: _Error) -> str:
    return redact(clean_lines(error.text)).strip()


def _quote(line: Line) -> str:
    return redact(f"line {line.number}: {clean(line.text.strip())}")


def _evidence(error: _Error) -> tuple[str, ...]:
    return tuple(_quote(line) for line in error.lines[:20] if line.text.strip())


def _matching(lines: Sequence[Line], pattern: re.Pattern[str], limit: int = 3) -> tuple[str, ...]:
    found: list[str] = []
    for line in reversed(lines):
        if pattern.search(line.text[:_MAX_MATCH]):
            found.append(_quote(line))
            if len(found) == limit:
                break
    return tuple(reversed(found))


def _version(text: str | None) -> tuple[int, ...] | None:
    match = re.match(r"(\d{1,6})\.(\d{1,6})", text or "")
    return (int(match.group(1)), int(match.group(2))) if match else None


# The functions that torch_llm_ptq's run() calls, the innermost named one deciding (read in 0.12.post1 and 0.13).
_FRAME_PHASES: tuple[tuple[str, PhaseKey], ...] = (
    ("ppl_eval", "evaluate"),
    ("export_safetensors", "export"),
    ("freeze", "freeze"),
    ("_do_calibration", "calibrate"),
    ("_apply_advanced_quant_algo", "algorithm"),
    ("_prepare_model", "replace"),
    ("quantize_model", "replace"),
    ("get_calib_dataloader", "calibration_data"),
    ("get_tokenizer", "tokenizer"),
    ("get_model", "model"),
)


_FUNCTION = re.compile(r"^ +File .*, line \d+, in (\w+)$", re.MULTILINE)


def _phase_of(frames: str) -> PhaseKey | None:
    called = set(_FUNCTION.findall(frames))
    return next((phase for function, phase in _FRAME_PHASES if function in called), None)


def _phase_evidence(case: _Case) -> tuple[str, ...]:
    seen = next((item for item in case.report.seen if item.key == case.phase), None)
    if seen is not None:
        return (f"line {seen.line}: the phase {case.phase} began",)
    return (f"the traceback passes through the phase {case.phase}",) if case.phase else ()


# --- advice ----------------------------------------------------------------------------------------------------------


def _know(value: object) -> str:
    return clean(value) if value not in (None, "") else "unknown"


def _interpreter(case: _Case) -> str:
    return f"The interpreter was {_know(case.context.interpreter)}."


def _versions(case: _Case) -> str:
    facts = case.context
    return (
        f"Installed: amd-quark {_know(facts.quark_version or case.report.quark_version)}, torch "
        f"{_know(facts.torch_version)}, transformers {_know(facts.transformers_version)}. Quark asks for transformers "
        f"{_know(facts.requires_transformers)}; the model's config names {_know(facts.model_transformers)}."
    )


def _quark_missing(case: _Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} Either it is the wrong environment or amd-quark is not installed in it: choose the "
        "right "
        "interpreter first. Installing amd-quark[cli] there would change that environment and needs its own approval. "
        "Then back to Checkpoint 3 with a newly recorded command.",
        3,
    )


def _cli_dependencies(case: _Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} Look whether amd-quark[cli] is whole in it (quark-cli imports every subcommand, so one "
        "missing dependency stops all). Installing the missing packages changes the environment and needs its own "
        "approval. Then back to Checkpoint 3.",
        3,
    )


def _package_missing(case: _Case, text: str) -> Advice:
    if case.phase in (None, "import"):
        return _cli_dependencies(case, text)
    return (
        f"{_interpreter(case)} The model's own code, or a library, needs a package that is not in it (the message "
        "names it). "
        "Look whether that package fits the installed torch; installing it changes the environment and needs its own "
        "approval. Then back to Checkpoint 3.",
        3,
    )


def _package_pair(case: _Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} {_versions(case)} Two installed packages do not fit each other. The smallest change is "
        "one "
        "version of one of them, the one that the named API or symbol belongs to; it changes the environment and needs "
        "its own approval. Then back to Checkpoint 3.",
        3,
    )


def _transformers(case: _Case, text: str) -> Advice:
    api = re.search(r"seen_tokens|get_max_length|get_usable_length", text)
    named = f" The API that is gone: {api.group()}." if api else ""
    return (
        f"{_versions(case)}{named} The smallest change is a transformers version inside Quark's requirement that still "
        "has what the model's code uses, or newer code of the model; neither is done blindly, and a package change "
        "needs "
        "its own approval. Then back to Checkpoint 3.",
        3,
    )


def _no_device(case: _Case, _: str) -> Advice:
    return (
        f"Tell three causes apart before anything is installed: torch {_know(case.context.torch_version)} may be a "
        "CPU-only "
        "or mismatched build, no device may be visible (HIP_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES, permissions), or "
        "the "
        "driver or runtime may be at fault. The Environment pane shows each. If no GPU is there, device_strategy cpu "
        "is "
        "the smallest plan change (amd-quark 0.12.post1 can; 0.13 cannot). Back to Checkpoint 2.",
        2,
    )


def _compiler(case: _Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} Quark builds its C++ extension on first use and needs g++ and ninja for it. Look which "
        "of "
        "them is missing and at the build's own message; installing one changes the system and needs approval. Back to "
        "Checkpoint 3.",
        3,
    )


def _device_broken(_: _Case, __: str) -> Advice:
    return (
        "Look at the device itself first (nvidia-smi or rocm-smi, the kernel log) and at who else uses it. Another "
        "device "
        "is the smallest plan change. Back to Checkpoint 2.",
        2,
    )


def _shared_library(case: _Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} A shared library that torch or Quark needs is not found: look at the driver or runtime "
        "that "
        "should bring it and at LD_LIBRARY_PATH. A change of either needs its own approval. Back to Checkpoint 3.",
        3,
    )


def _cpu_host(case: _Case, _: str) -> Advice:
    version = _know(case.context.quark_version or case.report.quark_version)
    return (
        f"No GPU was there, and amd-quark {version} cannot place a model on a machine without one, with or without "
        "--multi_device: the message's own advice does not help. amd-quark 0.12.post1 runs the stock command on a "
        "CPU-only "
        "machine (its [cli] asks for transformers >5,<5.3). Choose an environment that has it, or a machine with a "
        "GPU; "
        "installing it changes an environment and needs its own approval. Back to Checkpoint 3.",
        3,
    )


def _memory(case: _Case, text: str) -> Advice:
    facts = case.context
    if case.phase in _QUANTIZE and "insufficient to load the entire model" not in text:
        return (
            "The model was loaded and memory ran out afterwards: a smaller batch_size first (the result stays the "
            "same), "
            "then a shorter seq_len or fewer num_calib_data, which calibrate on less and can cost accuracy: the plan "
            "keeps "
            f"that reason.{_map_count(case)} Back to Checkpoint 2.",
            2,
        )
    if case.phase == "export":
        return (
            "Memory ran out while the result was written: free memory of the host or the device first; the partial "
            "output "
            f"stays where it is.{_map_count(case)} Back to Checkpoint 3.",
            3,
        )
    if case.phase == "evaluate":
        return (
            "Memory ran out in the evaluation, after the export: verify the output as it is, or plan without "
            "evaluation. "
            "Back to Checkpoint 2.",
            2,
        )
    if facts.device_strategy == "multi_device":
        return (
            "The model does not fit as loaded although it was spread over several devices: free memory on them (see "
            "who "
            f"holds it) or plan more of them.{_map_count(case)} Back to Checkpoint 2.",
            2,
        )
    if case.phase in (None, "import"):
        where = "Where memory ran out is not in the log."
    else:
        where = "The model does not fit as loaded."
    return (
        f"{where} Free memory first (see who holds it), or plan device_strategy multi_device, which spreads the "
        "weights over "
        f"devices and host memory, is slower, and takes no algorithm.{_map_count(case)} Back to Checkpoint 2.",
        2,
    )


def _map_count(case: _Case) -> str:
    if case.context.device_strategy != "multi_device":
        return ""
    return (
        f" With a huge model on several devices the limit vm.max_map_count (now {_know(case.context.max_map_count)}) "
        "can "
        "show up as a memory error although memory is free; changing it is a privileged act on the system and needs "
        "explicit approval."
    )


def _maps(case: _Case, text: str) -> Advice:
    advice, checkpoint = _memory(case, text)
    if "max_map_count" in advice:
        return advice, checkpoint
    return (
        "The system refused a mapping or a thread: compare free memory and limits (ulimit -v, ulimit -u, the "
        "container's "
        f"limit, vm.max_map_count, now {_know(case.context.max_map_count)}) before believing in a lack of memory; "
        "changing "
        f"a limit of the system needs explicit approval. {advice}",
        checkpoint,
    )


def _source(case: _Case, _: str) -> Advice:
    return (
        f"Look whether {_know(case.context.model_dir)} is the directory (absolute) or the repository id that was "
        "meant, and "
        "what it holds. Correct the model. Back to Checkpoint 1.",
        1,
    )


def _weights(case: _Case, _: str) -> Advice:
    return (
        f"The weights in {_know(case.context.model_dir)} are missing or damaged: compare their sizes with where they "
        "came "
        "from and fetch the damaged files anew; nothing is deleted for you. Quark's hint to change transformers does "
        "not "
        "fit this error. Back to Checkpoint 1.",
        1,
    )


def _tokenizer(_: _Case, __: str) -> Advice:
    return (
        "Look whether the model directory holds its tokenizer files (tokenizer.json, or tokenizer.model with its "
        "config) "
        "and whether the model needs a package for them (sentencepiece, tiktoken). Complete the files, or have the "
        "package "
        "installed after its own approval. Back to Checkpoint 1.",
        1,
    )


def _hub(case: _Case, _: str) -> Advice:
    if case.phase in ("calibration_data", "evaluate"):
        return (
            "The data set could not be reached: check its id, the network and proxies, and HF_ENDPOINT, HF_HOME and "
            "HF_HUB_OFFLINE. A cache in HF_HOME/datasets that was filled once online is enough offline; another "
            "dataset, or "
            "no evaluation, is the smallest plan change. Back to Checkpoint 2.",
            2,
        )
    return (
        "Check the repository id, then authentication (a gated repository needs accepted terms and a token), then the "
        "network and proxies; a local directory needs no hub. Back to Checkpoint 1.",
        1,
    )


def _trust(_: _Case, __: str) -> Advice:
    return (
        "The model needs code of its own. Read it and decide whether you trust this repository; only then plan with "
        "trust_remote_code, which runs that code with your rights. Back to Checkpoint 2.",
        2,
    )


def _scheme(_: _Case, __: str) -> Advice:
    return (
        "Choose a scheme that the installed Quark lists (names are exact and case-sensitive; the Plan pane shows "
        "them). "
        "Back to Checkpoint 2.",
        2,
    )


def _kv(_: _Case, __: str) -> Advice:
    return "The KV cache takes fp8 or nothing in these versions of Quark. Back to Checkpoint 2.", 2


def _algorithm(_: _Case, __: str) -> Advice:
    return (
        "Look whether the algorithm is registered in the installed Quark and has a built-in configuration for this "
        "model_type (the Plan pane shows which do); plan another, or none. Back to Checkpoint 2.",
        2,
    )


def _template(case: _Case, _: str) -> Advice:
    return (
        f"The installed Quark (amd-quark {_know(case.context.quark_version or case.report.quark_version)}) has no "
        "usable "
        "template for this model_type: compare with the templates that it lists, and plan a template_file (0.13 and "
        "newer) "
        "whose model_type is the model's own. The installed quark-cli stays as it is. Back to Checkpoint 2.",
        2,
    )


def _group(_: _Case, __: str) -> Advice:
    return (
        "A group size must divide the input dimension of every layer: choose a scheme with a smaller group, or exclude "
        "the "
        "layers that do not fit (they stay unquantized). Back to Checkpoint 2.",
        2,
    )


def _dataset(_: _Case, __: str) -> Advice:
    return (
        "The data set cannot serve this plan (not implemented, or no usable sample): choose another dataset, a shorter "
        "seq_len, or a batch_size below the number of samples. Back to Checkpoint 2.",
        2,
    )


def _arguments(_: _Case, __: str) -> Advice:
    return (
        "quark-cli refused the command line before it loaded anything: take out or correct the named option in the "
        "plan; "
        "the installed version may not have it. Back to Checkpoint 2.",
        2,
    )


def _not_exportable(_: _Case, __: str) -> Advice:
    return (
        "This scheme can be calibrated but not exported by the installed Quark (mx6, mx9 and bfp16 are such). Choose "
        "another "
        "scheme. Back to Checkpoint 2.",
        2,
    )


def _requantized(_: _Case, __: str) -> Advice:
    return (
        "The source model is already quantized, and a quantized model cannot be exported anew: choose the original, "
        "unquantized checkpoint. Back to Checkpoint 1.",
        1,
    )


def _disk(case: _Case, _: str) -> Advice:
    return (
        f"Look at the parent of {_know(case.context.output_dir)}: its permissions, free space, quota and inodes. Make "
        "room or "
        "choose another output_dir; nothing is deleted for you, and partial files stay. Back to Checkpoint 2.",
        2,
    )


def _site_packages(case: _Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} quark-cli makes a working folder inside its own installation and may not write there, "
        "or a "
        "cache cannot be written: look at the named path's permissions and free space. Choose an environment that you "
        "may "
        "write to, or have an administrator make the folder. Back to Checkpoint 3.",
        3,
    )


def _source_permission(case: _Case, _: str) -> Advice:
    return (
        "A file that was to be read or cached cannot be: look at the permissions and free space of the named path "
        "(model "
        f"{_know(case.context.model_dir)}, HF_HOME). Nothing is deleted for you. Back to Checkpoint 1.",
        1,
    )


def _new_folder(_: _Case, __: str) -> Advice:
    return (
        "Something that is no directory, or already exists, stands where the output should go: choose a new, empty, "
        "absolute output_dir. Back to Checkpoint 2.",
        2,
    )


# --- rules -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: Kind
    code: str
    pattern: re.Pattern[str]
    step: Step
    phases: tuple[PhaseKey | None, ...] = ()  # only in these; empty for any
    frames: str = ""  # only when the traceback passes through this


def _rule(
    kind: Kind, code: str, pattern: str, step: Step, phases: tuple[PhaseKey | None, ...] = (), frames: str = ""
) -> _Rule:
    return _Rule(kind, code, re.compile(pattern), step, phases, frames)


_OUT_OF_MEMORY = (
    r"OutOfMemoryError|(?:CUDA|HIP|hip|cuda|XPU) (?:error: )?out of memory|hipErrorOutOfMemory|CUDA_ERROR_OUT_OF_MEMORY"
    r"|HSA_STATUS_ERROR_OUT_OF_RESOURCES|CUBLAS_STATUS_ALLOC_FAILED|DefaultCPUAllocator: (?:can't|not enough)|bad_alloc"
    r"|^MemoryError\b|Unable to allocate .{1,60} for an array|insufficient to load the entire model"
    r"|[Oo]ut of host memory"
)
_DISK = (
    r"No space left on device|Disk quota exceeded|StorageFull|File too large|Read-only file system"
    r"|\[Errno (?:28|122|27|30)\]|os error (?:28|122|27|30)\b"
)
_PERMISSION = r"^PermissionError\b|\[Errno (?:13|1)\] |Permission denied|os error 13\b"
_EARLY: tuple[PhaseKey | None, ...] = ("import",)
_READING: tuple[PhaseKey | None, ...] = ("model", "tokenizer", "calibration_data")

# The first that fits decides, so the more telling ones stand first.
_RULES: tuple[_Rule, ...] = (
    # packages that do not fit each other are not missing packages
    _rule(
        "compatibility", "torch_api_moved", r"No module named 'torch\.ao|torch\.ao\.quantization\.pt2e", _package_pair
    ),
    _rule("compatibility", "torchvision_mismatch", r"operator torchvision::\w+ does not exist", _package_pair),
    _rule("compatibility", "binary_mismatch", r"undefined symbol|version `?GLIBC|_ARRAY_API not found", _package_pair),
    _rule(
        "compatibility", "binary_mismatch", r"numpy\.core\.multiarray failed to import|numpy\.dtype size", _package_pair
    ),
    _rule("environment", "quark_missing", r"No module named '?quark(?:\.[\w.]+)?'?(?:$|[\s.;,])", _quark_missing),
    _rule(
        "environment",
        "quark_missing",
        r"AMD Quark needs to be installed(?!.*No module named '(?!quark\b))",
        _quark_missing,
    ),
    _rule(
        "environment", "cli_dependencies_missing", r"AMD Quark CLI dependencies need to be installed", _cli_dependencies
    ),
    _rule("compatibility", "transformers_api", r"\b(?:seen_tokens|get_max_length|get_usable_length)\b", _transformers),
    _rule(
        "compatibility",
        "model_type_unknown",
        r"Transformers does not recognize this architecture|does not recognize this architecture",
        _transformers,
    ),
    _rule("compatibility", "model_type_unknown", r"^KeyError: ", _transformers, (), "configuration_auto.py"),
    _rule(
        "compatibility",
        "transformers_api",
        r"cannot import name .{1,200} from '?(?:transformers|huggingface_hub)",
        _transformers,
    ),
    _rule("compatibility", "import_name", r"cannot import name ", _package_pair),
    _rule("compatibility", "version_required", r"is required for a normal functioning of this module", _transformers),
    _rule("compatibility", "transformers_api", r"Model compatibility check failed", _transformers),
    _rule(
        "load",
        "tokenizer",
        r"Couldn't instantiate the backend tokenizer|Can't load (?:the )?tokenizer|Tokenizer class \S+ does not exist"
        r"|Unable to load vocabulary|requires the (?:SentencePiece|tiktoken) library|convert a slow tokenizer",
        _tokenizer,
    ),
    _rule(
        "environment", "package_missing", r"^ModuleNotFoundError\b|No module named ", _package_missing, (None, *_EARLY)
    ),
    _rule(
        "environment",
        "package_missing",
        r"^ModuleNotFoundError\b|requires the following packages|^ImportError: \S+ requires",
        _package_missing,
    ),
    # devices
    _rule("compatibility", "no_kernel_image", r"no kernel image is available|invalid device function", _package_pair),
    _rule(
        "environment",
        "no_device",
        r"Torch not compiled with (?:CUDA|ROCm|HIP) enabled|No (?:HIP|CUDA) GPUs are available|Found no NVIDIA driver"
        r"|no (?:CUDA|ROCm)-capable device|(?:CUDA|HIP) driver version is insufficient|invalid device ordinal"
        r"|(?:hip|cuda)(?:ErrorNoDevice|GetDeviceCount)|NVIDIA driver on your system is too old",
        _no_device,
    ),
    _rule("environment", "shared_library", r"cannot open shared object file", _shared_library),
    _rule(
        "environment",
        "compiler",
        r"hw_emulation|JIT compilation failed|Ninja is required|Error building extension"
        r"|QUARK_BUILD_DISABLE_JIT_FALLBACK"
        r"|No such file or directory: '(?:g\+\+|gcc|c\+\+|ninja|hipcc|nvcc)'",
        _compiler,
    ),
    # memory
    _rule(
        "memory",
        "mappings",
        r"Cannot allocate memory|can't start new thread|pthread_create failed|Resource temporarily unavailable"
        r"|os error 12\b",
        _maps,
    ),
    _rule("memory", "out_of_memory", _OUT_OF_MEMORY, _memory),
    _rule("memory", "meta_tensor", r"Cannot copy out of meta tensor|offload the whole model to the disk", _memory),
    _rule(
        "environment",
        "device_failed",
        r"(?:CUDA|HIP) error: |ECC error|uncorrectable|Memory access fault by GPU|HSA_STATUS_ERROR|NCCL error"
        r"|RCCL error",
        _device_broken,
    ),
    # disk and permissions
    _rule("environment", "disk", _DISK, _site_packages, _EARLY),
    _rule("load", "cache_disk", _DISK, _source_permission, _READING),
    _rule("export", "disk", _DISK, _disk),
    _rule(
        "environment",
        "permission",
        r"(?:Permission denied|PermissionError).*(?:site-packages|dist-packages)",
        _site_packages,
    ),
    _rule("environment", "permission", _PERMISSION, _site_packages, _EARLY),
    _rule("load", "permission", _PERMISSION, _source_permission, _READING),
    _rule("export", "permission", _PERMISSION, _disk),
    _rule(
        "configuration",
        "template_file",
        r"Template (?:file|key|configuration)|--template_file defines|in template configuration",
        _template,
    ),
    _rule("configuration", "template_file", r"", _template, (), "register_template.py"),
    # sources
    _rule(
        "load",
        "remote_code",
        r"contains custom code|trust_remote_code=True|allow custom code to be run",
        _trust,
    ),
    _rule(
        "load",
        "hub",
        r"Couldn't reach |OfflineModeIsEnabled|LocalEntryNotFoundError|GatedRepo|RepositoryNotFound|RevisionNotFound"
        r"|couldn't connect to|Max retries exceeded|NameResolutionError|Temporary failure in name resolution|SSLError"
        r"|CERTIFICATE_VERIFY_FAILED|Client Error|Server Error|is not a valid model identifier|ConnectionError"
        r"|ConnectTimeout"
        r"|ReadTimeout|Connection refused|Access to model .{1,200} is restricted|Consistency check failed"
        r"|outgoing traffic",
        _hub,
    ),
    _rule("load", "source_missing", r"Repo id must be in the form|HFValidationError", _source),
    _rule(
        "load",
        "config_missing",
        r"Unrecognized model in|Should have a `model_type` key|config\.json",
        _source,
        (None, "import", *_LOAD),
    ),
    _rule(
        "load",
        "weights",
        r"no file named (?:model|pytorch_model)|SafetensorError|deserializing header|InvalidHeader"
        r"|MetadataIncompleteBuffer"
        r"|UnpicklingError|invalid load key|PytorchStreamReader failed|git-lfs|size mismatch for"
        r"|Unexpected end of file",
        _weights,
        (None, "import", *_LOAD),
    ),
    # the plan
    _rule("configuration", "scheme", r"Unsupported quantization scheme", _scheme),
    _rule("configuration", "kv_scheme", r"Unsupported KV cache (?:quantization )?scheme", _kv),
    _rule(
        "configuration", "algorithm", r"Unsupported algorithm|No built-in \S+ configuration is available", _algorithm
    ),
    _rule("configuration", "algorithm", r"The algorithm \S+ is not supported in Quark", _algorithm),
    _rule("configuration", "template_missing", r"There is no model template defined", _template),
    _rule("configuration", "group_size", r"not divisible by group_size|divisible by (?:the )?group[_ ]size", _group),
    _rule("configuration", "override_scheme", r"Invalid --layer_quant_scheme", _scheme),
    _rule("configuration", "algorithm", r"^KeyError: '(?:autoround|quarot)'", _algorithm),
    _rule("configuration", "algorithm", r"^KeyError: ", _algorithm, (), "_set_algorithm"),
    _rule(
        "configuration", "override_scheme", r"^KeyError: ", _scheme, (), "quark/torch/quantization/config/template.py"
    ),
    _rule("configuration", "dataset", r"^NotImplementedError", _dataset, (), "data_preparation.py"),
    _rule(
        "configuration",
        "dataset",
        r"expected a non-empty list of Tensors|chat_template is not set",
        _dataset,
        ("calibration_data",),
    ),
    # export
    _rule("export", "scheme_not_exportable", r"Not supported for mx\b", _not_exportable),
    _rule(
        "export",
        "already_quantized",
        r"QuantizationMethod\.\w+ and is not serializable",
        _requantized,
    ),
    _rule(
        "export",
        "output_path",
        r"^(?:NotADirectoryError|FileExistsError|IsADirectoryError)\b",
        _new_folder,
        (None, "export"),
    ),
)


def _by_rule(error: _Error, case: _Case) -> tuple[Kind, str, Advice] | None:
    text = error.text[:_MAX_MATCH]
    frames = "\n".join(error.frames)
    own_phase = _phase_of(frames) or case.phase
    for rule in _RULES:
        if rule.phases and own_phase not in rule.phases:
            continue
        if rule.frames and rule.frames not in frames:
            continue
        if not rule.pattern.search(text):
            continue
        if rule.code in ("out_of_memory", "meta_tensor") and _placement(text) and _no_gpu_for_new_quark(case):
            return "environment", "quark_needs_gpu", _cpu_host(case, text)
        return rule.kind, rule.code, rule.step(case, text)
    return None


def _placement(text: str) -> bool:
    return "insufficient to load the entire model" in text or "meta tensor" in text or "offload the whole" in text


def _no_gpu_for_new_quark(case: _Case) -> bool:
    return case.cpu_only and case.quark is not None and case.quark >= (0, 13)


_OFFLOADED = re.compile(r"offloaded to the (?:disk|cpu)|No CUDA runtime is found|version=\"")


def _supporting(lines: Sequence[Line], case: _Case, code: str) -> tuple[str, ...]:
    if code == "quark_needs_gpu":
        host = () if case.context.gpu_available is None else ("environment: no GPU is available to torch",)
        return (*_matching(lines, _OFFLOADED), *host)
    if code in ("out_of_memory", "meta_tensor", "mappings", "disk", "permission"):
        return _phase_evidence(case)
    return ()


def _by_phase(case: _Case) -> tuple[Kind, Advice]:
    """The class of an exception that no rule knows: where it was raised is proof of what failed, not of why."""
    look = "Read the whole error; the cause is not one that is known here."
    match case.phase:
        case "model" | "tokenizer":
            return "load", (
                f"{look} {_versions(case)} Check the model's files and its code's needs. Back to Checkpoint 1.",
                1,
            )
        case "calibration_data":
            return "load", (f"{look} Check the data set and its options in the plan. Back to Checkpoint 2.", 2)
        case "replace" | "algorithm" | "calibrate" | "freeze":
            return "quantization", (
                f"{look} The smallest plan change is the one that concerns the failing step: another algorithm or "
                "none, "
                "another scheme, or the failing layer excluded (it stays unquantized). Back to Checkpoint 2.",
                2,
            )
        case "export":
            return "export", (
                f"{look} Look at the output folder and its parent; partial files stay. Back to Checkpoint 2.",
                2,
            )
    return "unknown", (f"{look} Nothing in the log proves a class. Back to Checkpoint 3 with what you find.", 3)


# --- ends without a traceback ----------------------------------------------------------------------------------------

_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    15: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
}
_OOM_KILL = re.compile(
    r"(?i)oom[-_ ]?kill|out of memory: killed|memory cgroup out of memory|oom_reaper|detected \d+ oom"
    r"|killed process \d+.*rss"
)
_ARGPARSE = re.compile(
    r"^\S*quark-cli\b.{0,80}?: error: |^usage: \S*quark-cli|^\S+(?: [a-z-]+)?: error: (?:argument|unrecognized"
    r"|the following|Unknown)"
)
_FATAL = re.compile(r"terminate called|what\(\):|Fatal Python error|Memory access fault by GPU|core dumped|Bus error")


def _by_signal(lines: Sequence[Line], signal: int, case: _Case, last: _Error | None, whole: str) -> Failure:
    name = _SIGNALS.get(signal, f"signal {signal}")
    ours = case.context.stopped_by
    ended = f"The process was ended by {name} ({signal})."
    if signal == 9 and not ours:
        words = _matching(lines[-400:], _OOM_KILL)
        if case.context.kernel_word and _OOM_KILL.search(case.context.kernel_word):
            words = (*words, f"kernel: {redact(clean(case.context.kernel_word.strip()))}")
        if words:
            advice = _memory(case, "")
            return Failure(
                "memory", ended, (*words, f"signal {signal}"), advice[0], whole, advice[1], "oom_killed", case.phase
            )
    if signal in (1, 2, 3, 15) or ours:
        who = "This program's stop sent it." if ours else "This program did not send it."
        return _interrupted(case, last, whole, f"{ended} {who}", f"signal {signal} ({name})")
    if signal == 25:
        advice = _disk(case, "")
        return Failure(
            "export",
            ended,
            (f"signal {signal}: a file grew beyond the limit",),
            advice[0],
            whole,
            advice[1],
            "file_size_limit",
            case.phase,
        )
    fatal = _matching(lines[-400:], _FATAL)
    for line in reversed(lines[-400:]):
        if _FATAL.search(line.text):
            found = _by_rule(_Error(0, 0, "", line.text.strip(), (line,), ()), case)
            if found is not None:
                return Failure(
                    found[0],
                    f"{ended}\n{clean(line.text.strip())}",
                    (_quote(line), f"signal {signal}"),
                    found[2][0],
                    whole,
                    found[2][1],
                    found[1],
                    case.phase,
                )
    if signal == 9:
        step = (
            "Who sent it is not known. Look in the kernel log and the container's or scheduler's events for a memory "
            "kill or a "
            "time limit before anything is changed. Back to Checkpoint 3."
        )
    else:
        step = (
            "A crash of native code. Look at the kernel log and the devices, and at the versions of torch and the "
            "driver, before "
            f"anything is changed. {_versions(case)} Back to Checkpoint 3."
        )
    return Failure("unknown", ended, (*fatal, f"signal {signal} ({name})"), step, whole, 3, "killed", case.phase)


def _interrupted(case: _Case, last: _Error | None, whole: str, message: str, extra: str = "") -> Failure:
    evidence = (_evidence(last) if last is not None and last.type == "KeyboardInterrupt" else ()) + (
        (extra,) if extra else ()
    )
    before = case.phase not in ("export", "evaluate")
    left = (
        "Before the export nothing is written." if before else "What was written stays; verify says what it is worth."
    )
    return Failure(
        "interrupted",
        message,
        evidence,
        f"{left} A run cannot be continued: the same plan needs a new approval. Back to Checkpoint 3.",
        whole,
        3,
        "interrupted",
        case.phase,
    )


def _after_zero(case: _Case, whole: str) -> Failure:
    if case.context.output_missing:
        return Failure(
            "export",
            "The process ended with 0, but the expected output is not there.",
            ("exit status 0", "the output folder lacks the expected files"),
            "This is no success. Read the log for where the export went (a relative output_dir lands inside Quark's "
            "installation), inspect the output folder, and plan an absolute output_dir. Back to Checkpoint 2.",
            whole,
            2,
            "output_missing",
            case.phase,
        )
    return Failure(
        "unknown",
        "The process ended with 0.",
        ("exit status 0",),
        "Let verify look at the output; the exit status alone proves nothing.",
        whole,
        None,
        "no_failure",
        case.phase,
    )


def _without_traceback(lines: Sequence[Line], status: int | None, case: _Case, whole: str) -> Failure:
    tail = lines[-400:]
    ended = "How the process ended is not known." if status is None else f"The process ended with exit status {status}."
    end = () if status is None else (f"exit status {status}",)
    for line in reversed(tail):
        text = line.text.strip()
        if _ARGPARSE.search(text) and ": error: " in text:
            advice = _arguments(case, text)
            return Failure(
                "configuration",
                redact(clean(text)),
                (_quote(line), *end),
                advice[0],
                whole,
                advice[1],
                "arguments",
                case.phase,
            )
    # One line of plain text may be a whole exception (the caller's tail began behind the traceback), or a sentence.
    for line in reversed(tail):
        text = line.text.strip()
        if line.starts_record or parse_bar(text) is not None:
            break  # the program went on after anything that stands before
        if not re.match(
            r"(?:[\w.]+(?:Error|Exception|Interrupt|Exit)\b|AMD Quark |\S+: line \d+: |\S*python\S*: )", text
        ):
            continue
        match = _EXCEPTION.match(text)
        error = _Error(0, 0, match.group(1) if match else "", text, (line,), ())
        if error.type == "KeyboardInterrupt":
            return _interrupted(case, error, whole, "The process was interrupted (SIGINT).")
        found = _by_rule(error, case)
        if found is not None:
            return Failure(
                found[0],
                redact(clean(text)),
                (_quote(line), *end, *_supporting(lines, case, found[1])),
                found[2][0],
                whole,
                found[2][1],
                found[1],
                case.phase,
            )
        break
    words = _matching(tail, _OOM_KILL)
    if words:
        advice = _memory(case, "")
        return Failure("memory", ended, (*words, *end), advice[0], whole, advice[1], "oom_killed", case.phase)
    last = next((line for line in reversed(tail) if line.text.strip()), None)
    evidence = (*((_quote(last),) if last else ()), *end)
    where = f" The last phase seen was {case.phase}." if case.phase else ""
    return Failure(
        "unknown",
        f"{ended} The log holds no error.{where}",
        evidence,
        "Nothing proves a cause. Read the end of the log and the kernel's and scheduler's events before anything is "
        "changed. "
        "Back to Checkpoint 3.",
        whole,
        3,
        "unrecognised",
        case.phase,
    )
