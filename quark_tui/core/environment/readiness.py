"""What has to be right before a command is shown, each as ready, not ready or unknown, with the next step.

It reads the body of the answer ``env``. What was not seen is unknown: no absence of a fact makes a row ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from quark_tui.core.text import clean, human_bytes, human_duration

State = Literal["ready", "not ready", "unknown"]

#: What quark-cli's names of data sets stand for on the Hub (source of 0.12.post1 and 0.13).
DATASETS: Mapping[str, str] = {
    "pileval": "mit-han-lab/pile-val-backup",
    "pileval_for_awq_benchmark": "mit-han-lab/pile-val-backup",
    "wikitext": "Salesforce/wikitext",
    "wikitext_for_gptq_benchmark": "Salesforce/wikitext",
    "cnn_dailymail": "abisee/cnn_dailymail",
}
_ASK_TORCH = "ask torch itself: quark-tui env --torch"
_CHOOSE = "name the interpreter of the environment that has amd-quark: --python PATH"
_DATASETS = "pip install datasets in this environment; nothing is installed by itself"
_CLI = 'pip install "amd-quark[cli]" in this environment; nothing is installed by itself'
_BUILD = "install the PyTorch build that matches the accelerator, or choose device_strategy=cpu"


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that a command needs. ``source`` is where ``value`` was seen; ``next_step`` is "" where it is ready."""

    name: str
    state: State
    value: str
    source: str
    next_step: str = ""

    def to_json(self) -> dict[str, str]:
        return {
            "name": self.name,
            "state": self.state,
            "value": self.value,
            "from": self.source,
            "next_step": self.next_step,
        }


@dataclass(frozen=True, slots=True)
class Needs:
    """What a plan needs of the environment; None is what it does not say.

    ``strategy`` is single, multi_device or cpu; ``devices`` are physical indices; sizes are bytes: of the output, of
    the peak of memory, and free where the output goes. ``dataset`` is the name that quark-cli gets.
    """

    strategy: str | None = None
    devices: tuple[int, ...] = ()
    output_bytes: int | None = None
    free_bytes: int | None = None
    memory_bytes: int | None = None
    dataset: str | None = None


def readiness(env: Mapping[str, Any], needs: Needs | None = None) -> tuple[Row, ...]:
    """Every row, in the order in which a person would put them right; nothing is raised for a body with gaps.

    ``env`` is the body of the answer ``env``. Without ``needs`` (no plan yet) what depends on a plan is unknown.
    """
    wanted = needs or Needs()
    seen = _Seen(env)
    rows = [_interpreter(seen), _python(seen), _package(seen, "amd-quark"), _quark_cli(seen), _torch(seen)]
    rows += [_build(seen, wanted), _package(seen, "transformers"), _package(seen, "datasets")]
    rows += [_package(seen, "accelerate"), _operation(seen, wanted), _device_memory(seen, wanted), _disk(wanted)]
    rows += [_compiler(seen), _ninja(seen), _fallback(seen), _variables(seen, wanted), _locks(seen)]
    rows.append(_dataset(seen, wanted))
    return tuple(rows)


def state_of(rows: Iterable[Row]) -> State:
    """The whole: not ready where one row is, else unknown where one is."""
    states = {row.state for row in rows}
    return "not ready" if "not ready" in states else "unknown" if "unknown" in states or not states else "ready"


class _Seen:
    """The body with gaps: a part that is missing or of another shape is an empty one."""

    def __init__(self, env: Mapping[str, Any]) -> None:
        self._env = env

    def part(self, name: str) -> Mapping[str, Any]:
        value = self._env.get(name)
        return value if isinstance(value, Mapping) else {}

    def items(self, name: str) -> Sequence[Mapping[str, Any]] | None:
        value = self._env.get(name)
        sound = isinstance(value, (list, tuple)) and all(isinstance(one, Mapping) for one in value)
        return value if sound else None

    def get(self, name: str) -> Any:
        return self._env.get(name)

    def source(self, name: str, otherwise: str) -> str:
        said = self.part("sources").get(name)
        return clean(said) if isinstance(said, str) else otherwise

    @property
    def answered(self) -> bool:
        """Whether an interpreter answered at all: else nothing is known of what it has."""
        return isinstance(self.part("interpreter").get("version"), str)

    def requirement(self, name: str) -> Mapping[str, Any]:
        return next((one for one in self.items("requirements") or () if one.get("name") == name), {})


def _no_answer(name: str) -> Row:
    return Row(name, "unknown", "no interpreter answered", "the interpreter", _CHOOSE)


def _interpreter(seen: _Seen) -> Row:
    source = seen.source("interpreter", "the interpreter itself")
    if not seen.answered:
        return Row("interpreter", "not ready", "none answers", source, _CHOOSE)
    return Row("interpreter", "ready", _text(seen.part("interpreter").get("executable")), source)


def _python(seen: _Seen) -> Row:
    if not seen.answered:
        return _no_answer("Python")
    facts, wanted = seen.part("interpreter"), seen.requirement("python")
    fits = wanted.get("satisfied") if wanted else facts.get("supported")
    range_ = f" (wanted: {_text(wanted.get('specifier'))})" if wanted else ""
    source = _text(wanted.get("from")) if wanted else "versions that Quark supports"
    step = "choose an interpreter of a supported version: --python PATH"
    return _judged("Python", fits, f"{_text(facts.get('version'))}{range_}", source, step)


def _package(seen: _Seen, name: str) -> Row:
    if not seen.answered:
        return _no_answer(name)
    source = seen.source("packages", "metadata of the installed packages")
    packages = seen.part("packages")
    if name not in packages:
        return Row(name, "unknown", "it was not looked for", source, "look again: quark-tui env")
    found = packages[name]
    if not isinstance(found, Mapping):
        step = (
            "pip install datasets in this environment; nothing is installed by itself" if name == "datasets" else _CLI
        )
        return Row(name, "not ready", "missing", source, f"check that this is the interpreter meant, else {step}")
    version = found.get("version")
    if not isinstance(version, str):
        return Row(name, "unknown", "there, its version cannot be read", source, "look at its metadata")
    wanted = seen.requirement(name)
    if not wanted:
        # Only what depends on Quark's own line needs one.
        if name == "transformers":
            step = "the installed amd-quark names no range: compare with its release notes"
            return Row(name, "unknown", clean(version), "no requirement line of amd-quark was read", step)
        return Row(name, "ready", clean(version), source)
    value = f"{clean(version)} (wanted: {_text(wanted.get('specifier'))})"
    step = f"a version within {_text(wanted.get('specifier'))} is the smallest change; nothing is changed by itself"
    return _judged(name, wanted.get("satisfied"), value, _text(wanted.get("from")), step)


def _quark_cli(seen: _Seen) -> Row:
    if not seen.answered:
        return _no_answer("quark-cli")
    source = seen.source("quark_cli", "the console script of amd-quark")
    path = seen.get("quark_cli")
    if not isinstance(path, str):
        return Row("quark-cli", "not ready", "missing", source, f"check that amd-quark[cli] is installed: {_CLI}")
    return Row("quark-cli", "ready", clean(path), source)


def _torch(seen: _Seen) -> Row:
    if not seen.answered:
        return _no_answer("torch")
    facts = seen.part("torch")
    source = seen.source("torch", "torch's version.py")
    version = facts.get("version")
    if not isinstance(version, str):
        if isinstance(seen.part("packages").get("torch"), Mapping):
            return Row("torch", "unknown", "there, its version cannot be read", source, _ASK_TORCH)
        return Row("torch", "not ready", "missing", source, _BUILD)
    if seen.part("torch_runtime").get("imported") is False:
        step = "its whole output: quark-tui env --torch --json"
        value = f"{clean(version)} cannot be imported: {_text(facts.get('operation_error'))}"
        return Row("torch", "not ready", value, seen.source("torch_runtime", source), step)
    wanted = seen.requirement("torch")
    value = f"{clean(version)}, a build for {_text(facts.get('backend'))}"
    if not wanted:
        return Row("torch", "unknown", value, source, "compare it with the versions that Quark supports")
    step = f"install a build of torch {_text(wanted.get('specifier'))} that matches the accelerator"
    return _judged("torch", wanted.get("satisfied"), value, source, step)


_FITS = {"cuda": "nvidia", "rocm": "amd"}


def _build(seen: _Seen, needs: Needs) -> Row:
    name, source = "torch build", "torch's version.py against the GPUs that were seen"
    if not seen.answered:
        return _no_answer(name)
    backend, verdict = seen.part("torch").get("backend"), seen.get("gpu_verdict")
    if backend not in ("cpu", "cuda", "rocm"):
        return Row(name, "unknown", "the build is not known", source, _ASK_TORCH)
    if needs.strategy == "cpu":
        return Row(name, "ready", f"{backend}; the plan computes on the CPU", source)
    named = [gpu.get("vendor") for gpu in seen.items("gpus") or ()]
    vendors = {vendor if isinstance(vendor, str) else None for vendor in named}
    if verdict == "no_gpu":
        step = "use a host with a GPU, or choose device_strategy=cpu"
        if needs.strategy is None:
            return Row(name, "unknown", f"{backend}; no GPU here, and CPU is not chosen", source, step)
        return Row(name, "not ready", f"{backend}; the plan wants a GPU, and there is none", source, step)
    if verdict != "gpus" or not vendors or None in vendors:
        step = f"find out about the GPUs first: {_text(seen.get('gpu_evidence'))}"
        return Row(name, "unknown", f"{backend}; the GPUs are not known", source, step)
    shown = ", ".join(sorted(clean(vendor) for vendor in vendors))
    if _FITS.get(backend) not in vendors:
        return Row(name, "not ready", f"{backend}, the GPUs are {shown}", source, _BUILD)
    if len(vendors) > 1:
        step = "choose the devices of the vendor that torch was built for"
        return Row(name, "unknown", f"{backend}, the GPUs are {shown}", source, step)
    return Row(name, "ready", f"{backend}, the GPUs are {shown}", source)


def _operation(seen: _Seen, needs: Needs) -> Row:
    facts = seen.part("torch")
    source = seen.source("torch_runtime", "torch was not asked")
    done, reached = facts.get("operation_ok"), facts.get("gpu_available")
    error = _text(facts.get("operation_error"))
    if done is False:
        return Row("operation", "not ready", error, source, "its whole output: quark-tui env --torch --json")
    if done is not True:
        value = "it was not tried" if facts.get("operation_error") is None else error
        return Row("operation", "unknown", value, source, _ASK_TORCH)
    if needs.strategy == "cpu":
        return Row("operation", "ready", "a tensor operation succeeded", source)
    if reached is not True:
        state: State = "unknown" if needs.strategy is None else "not ready"
        step = "see the rows torch build and variables, or choose device_strategy=cpu"
        return Row("operation", state, "torch reaches no GPU; the CPU computes", source, step)
    count = facts.get("device_count")
    shown = f" on each of {count} devices" if isinstance(count, int) and count > 1 else " on the device"
    return Row("operation", "ready", f"a tensor operation succeeded{shown}", source)


def _device_memory(seen: _Seen, needs: Needs) -> Row:
    name = "memory"
    if needs.memory_bytes is None:
        return Row(name, "unknown", "what the plan needs is not known", "the plan's estimate", "decide the plan first")
    if needs.strategy == "cpu":
        there, source = seen.part("memory").get("available"), "/proc/meminfo"
        free = there if _whole(there) else None
    elif needs.strategy is None or not needs.devices:
        step = "choose device_strategy and devices in the plan"
        return Row(name, "unknown", "no device is chosen", "the plan", step)
    else:
        source = "the GPUs that were seen"
        gpus = {index: gpu for gpu in seen.items("gpus") or () if _whole(index := gpu.get("index"))}
        free = _sum(_free_of(gpus.get(index)) for index in needs.devices)
    value = f"{human_bytes(free)} free, estimated peak {human_bytes(needs.memory_bytes)}"
    if free is None:
        return Row(name, "unknown", value, source, "look at the tool of the GPU's vendor")
    step = "free memory, fewer samples, shorter sequences, or more devices; see who holds the GPUs"
    return _judged(name, free >= needs.memory_bytes, value, source, step)


def _free_of(gpu: Mapping[str, Any] | None) -> int | None:
    total, used = (gpu.get("memory_total"), gpu.get("memory_used")) if gpu else (None, None)
    return max(0, total - used) if _whole(total) and _whole(used) else None


def _sum(parts: Iterable[int | None]) -> int | None:
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _disk(needs: Needs) -> Row:
    source = "the filesystem of the output folder"
    value = f"{human_bytes(needs.free_bytes)} free, estimated output {human_bytes(needs.output_bytes)}"
    if needs.free_bytes is None or needs.output_bytes is None:
        return Row("disk", "unknown", value, source, "decide the plan and its output_dir first")
    step = "free space, or another filesystem: quark-tui plan JOB --set output_dir=PATH"
    return _judged("disk", needs.free_bytes > needs.output_bytes, value, source, step)


def _compiler(seen: _Seen) -> Row:
    name, source = "compiler", seen.source("tools", "PATH")
    if "g++" not in seen.part("tools"):
        return Row(name, "unknown", "it was not looked for", source, "look again: quark-tui env")
    path = seen.part("tools")["g++"]
    if isinstance(path, str):
        return Row(name, "ready", clean(path), source)
    built = seen.get("built_extensions")
    step = "install a C++ compiler"
    if isinstance(built, (list, tuple)) and built:
        value = "no g++; a compiled helper is there, and is used unless its source or torch changed"
        return Row(name, "unknown", value, clean(built[0]), step)
    return Row(name, "not ready", "no g++, and no compiled helper of Quark", source, step)


def _ninja(seen: _Seen) -> Row:
    source = seen.source("tools", "PATH")
    if "ninja" not in seen.part("tools"):
        return Row("ninja", "unknown", "it was not looked for", source, "look again: quark-tui env")
    path, beside = seen.part("tools")["ninja"], seen.part("target_tools").get("ninja")
    if isinstance(path, str):
        return Row("ninja", "ready", clean(path), source)
    if isinstance(beside, str):
        return Row("ninja", "ready", f"{clean(beside)}, which a run's PATH begins with", "the target environment")
    return Row("ninja", "not ready", "absent", source, "check that the installation of amd-quark is complete")


def _fallback(seen: _Seen) -> Row:
    """A variable that forbids compiling on first use, which the universal wheel cannot do without."""
    name = "compiling on first use"
    variable = "QUARK_BUILD_DISABLE_JIT_FALLBACK"
    source = seen.source("env_vars", "this environment")
    if variable not in seen.part("env_vars"):
        return Row(name, "unknown", f"{variable} was not looked at", source, "look again: quark-tui env")
    value = seen.part("env_vars")[variable]
    if value is None or value in ("", "0"):
        return Row(name, "ready", f"{variable} forbids nothing", source)
    package = seen.part("packages").get("amd-quark")
    version = package.get("version") if isinstance(package, Mapping) else None
    step = f"unset {variable}, or install a wheel of amd-quark that was built for this accelerator"
    if isinstance(version, str) and "+" not in version:
        value = (
            f"{variable}={_text(value)}, and amd-quark {clean(version)} is the universal wheel, which has to compile"
        )
        return Row(name, "not ready", value, source, step)
    return Row(
        name, "unknown", f"{variable}={_text(value)}: whether this wheel needs to compile is not known", source, step
    )


def _variables(seen: _Seen, needs: Needs) -> Row:
    """Variables that decide which devices a run gets; a mask within a mask counts within what is left."""
    source, masks = seen.source("env_vars", "this environment"), seen.part("masks")
    applied = masks.get("applied")
    if not isinstance(applied, (list, tuple)) or not all(isinstance(name, str) for name in applied):
        return Row("variables", "unknown", "they were not looked at", source, "look again: quark-tui env")
    if not applied:
        return Row("variables", "ready", "no variable masks a device", source)
    values = seen.part("env_vars")
    shown = ", then ".join(f"{_text(name)}={_text(values.get(name))}" for name in applied)
    visible = masks.get("visible")
    if not isinstance(visible, (list, tuple)):
        step = "which devices these leave cannot be told from here: use indices, or unset them"
        return Row("variables", "unknown", shown, source, step)
    left = ", ".join(clean(index) for index in visible) or "none"
    value = f"{shown}: physical devices that are left: {left}"
    if needs.strategy != "cpu" and not visible:
        step = f"unset {' and '.join(_text(name) for name in applied)}, or choose device_strategy=cpu"
        if len(applied) > 1:
            step = f"the second mask counts within the first, so that nothing is left: unset one of them. Else {step}"
        return Row("variables", "not ready" if needs.strategy else "unknown", value, source, step)
    missing = [index for index in needs.devices if index not in visible]
    if missing and needs.strategy != "cpu":
        step = "choose devices within the mask, or change the mask"
        return Row("variables", "not ready", f"{value}; the plan wants {_list(missing)}", source, step)
    if len(applied) > 1 and needs.strategy != "cpu":
        value += " (the second mask counts within the first)"
    return Row("variables", "ready", value, source)


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _locks(seen: _Seen) -> Row:
    name, source = "build locks", seen.source("build_locks", "the folder of compiled extensions")
    locks = seen.items("build_locks")
    if locks is None:
        return Row(name, "unknown", "they were not looked for", source, "look again: quark-tui env")
    waiting = [lock for lock in locks if lock.get("blocks") is not False]
    if not waiting:
        return Row(name, "ready", "none that a start would wait for", source)
    states: list[State] = []
    shown = []
    for lock in waiting:
        owner = lock.get("owner")
        state = owner.get("state") if isinstance(owner, Mapping) else None
        pids = owner.get("pids") if isinstance(owner, Mapping) else None
        age = lock.get("age_seconds")
        old = f", {human_duration(float(age))} old" if isinstance(age, (int, float)) and age == age else ""
        if state == "alive":
            who = f"held by pid {', '.join(clean(pid) for pid in pids)}" if isinstance(pids, (list, tuple)) else "held"
        else:
            who = "left by a build that ended" if state == "stale" else "its owner is unknown"
        shown.append(f"{_text(lock.get('path'))}{old}, {who}")
        states.append("not ready" if state in ("alive", "stale") and lock.get("blocks") is True else "unknown")
    step = "wait for a build that lives; remove the file of one that ended: it is never removed by itself"
    return Row(name, "not ready" if "not ready" in states else "unknown", "; ".join(shown), source, step)


def _dataset(seen: _Seen, needs: Needs) -> Row:
    name, source = "calibration data", seen.source("hub", "variables and caches of Hugging Face")
    if needs.dataset is None:
        return Row(name, "unknown", "no data set is chosen", "the plan", "decide the plan first")
    hub = seen.part("hub")
    wanted = DATASETS.get(needs.dataset, needs.dataset if "/" in needs.dataset else None)
    cached, offline = hub.get("cached_datasets"), hub.get("offline")
    value = clean(needs.dataset) if wanted in (None, needs.dataset) else f"{clean(needs.dataset)} ({wanted})"
    if wanted is None or not isinstance(cached, (list, tuple)) or not isinstance(offline, (list, tuple)):
        return Row(name, "unknown", value, source, "load it once in this environment to see")
    if wanted in cached:
        return Row(name, "ready", f"{value}, a copy is in the cache", source)
    if offline:
        step = "load it once with the network, name the cache that has it with HF_HOME, or unset the variable"
        return Row(
            name, "not ready", f"{value}, not in the cache, and {_text(offline[0])} forbids the network", source, step
        )
    where = _text(hub.get("endpoint")) if hub.get("endpoint") else "the Hub"
    step = "a run loads it first: load it once in this environment to see"
    return Row(name, "unknown", f"{value}, not in the cache; it would come from {where}", source, step)


def _judged(name: str, fits: Any, value: str, source: str, step: str) -> Row:
    if fits is True:
        return Row(name, "ready", value, source)
    return Row(name, "not ready" if fits is False else "unknown", value, source, step)


def _whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return "unknown" if value is None else clean(value)
