"""What is asked of the target interpreter: which one it is, and what is installed there."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from quark_tui.core.text import clean, elide_end, redact
from quark_tui.io.capture import Captured, capture

_PROBE = str(Path(__file__).with_name("probes") / "metadata.py")
_VERSION = "import sys; sys.stdout.write('%d.%d.%d' % tuple(sys.version_info[:3]))"

#: Minor versions of Python 3 that Quark runs on (Requires-Python of amd-quark 0.12.post1 and 0.13: >=3.11,<3.14).
SUPPORTED_MINORS = (11, 12, 13)


class TargetProblem(Exception):
    """The interpreter could not be asked: what happened, and what was seen."""

    def __init__(self, message: str, evidence: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.evidence = evidence


@dataclass(frozen=True, slots=True)
class Package:
    """An installed distribution; ``version`` is None when its metadata does not say."""

    version: str | None
    location: str

    def to_json(self) -> dict[str, str | None]:
        return {"version": self.version, "location": self.location}


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """What torch's ``version.py`` states; ``cuda`` and ``hip`` are None for a build without them.

    ``lock_file_blocks``: True where a left ``lock`` file in the extensions folder makes every later start wait for ever
    (torch's FileBaton), False where the lock ends with its holder (seen in torch 2.14), None when it cannot be told.
    """

    version: str | None
    cuda: str | None
    hip: str | None
    debug: bool | None
    file: str
    lock_file_blocks: bool | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """One interpreter and its packages, as it reports them itself (``executable`` and paths: symlinks not followed).

    ``packages`` names each package that was looked for; None means not installed. ``torch`` is None without a readable
    ``torch/version.py``. ``quark_cli`` is the console script of the environment that provides amd-quark, ``quark_root``
    the folder that holds ``quark/``; ``search_path`` are the folders that it imports from, in order; ``quark_requires``
    are amd-quark's own Requires-Dist lines.
    """

    executable: str | None
    prefix: str
    base_prefix: str
    version: str
    supported: bool
    is_venv: bool
    externally_managed: bool
    has_pip: bool
    site_packages: tuple[str, ...]
    packages: Mapping[str, Package | None]
    search_path: tuple[str, ...] = ()
    torch: TorchBuild | None = None
    quark_cli: str | None = None
    quark_root: str | None = None
    quark_requires: tuple[str, ...] = ()
    quark_requires_python: str | None = None
    implementation: str = ""
    platform: str = ""
    machine: str = ""
    asked: str = field(default="", compare=False)


def find_interpreter(env: Mapping[str, str]) -> tuple[str, str]:
    """The interpreter that is active in ``env``, and what says so: ``VIRTUAL_ENV``, ``CONDA_PREFIX`` or ``PATH``.

    Raises TargetProblem when there is none.
    """
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := env.get(name):
            path = os.path.join(os.path.abspath(prefix), "bin", "python")
            if os.access(path, os.X_OK):
                return path, name
    for command in ("python3", "python"):
        if found := shutil.which(command, path=env.get("PATH", os.defpath)):
            return os.path.abspath(found), "PATH"
    raise TargetProblem("No Python interpreter was found.", "VIRTUAL_ENV, CONDA_PREFIX and PATH were looked at")


def probe(python: str, env: Mapping[str, str] | None = None, timeout: float = 20.0) -> Target:
    """Ask ``python`` (a path) what it is and what is installed there; nothing of torch or Quark is imported by it.

    It runs in a neutral empty folder with exactly ``env`` (default: this process's), so that the answer is what a run
    would see, PYTHONPATH and user site included. ``timeout`` in seconds. Raises TargetProblem.
    """
    environment = dict(os.environ if env is None else env)
    with tempfile.TemporaryDirectory(prefix="quark-tui-") as empty:
        answer = _ask(python, ["-P", "-B", _PROBE], environment, timeout, empty)
        if answer.status and b"nknown option: -P" in answer.stderr:
            answer = _ask(python, ["-B", _PROBE], environment, timeout, empty)
        data = _last_object(answer.stdout)
        if answer.status == 0 and data is not None:
            return _target(data, python)
        shown = _shown(answer)
        if answer.status is None:
            raise TargetProblem(f"{clean(python)} did not answer within {timeout:g} s.", shown)
        if answer.overflowed:
            raise TargetProblem(f"{clean(python)} prints without end; that is no Python interpreter.", shown)
        old = _ask(python, ["-c", _VERSION], environment, timeout, empty)
        version = old.stdout.decode("ascii", "replace").strip()
        if old.status == 0 and _is_version(version):
            if _minor(version) < (3, 8):
                raise TargetProblem(f"{clean(python)} is Python {version}, too old to be asked.", "sys.version_info")
            raise TargetProblem(f"{clean(python)} is Python {version}, but its packages could not be listed.", shown)
    raise TargetProblem(f"{clean(python)} does not answer as a Python interpreter.", shown)


def _ask(python: str, arguments: list[str], env: dict[str, str], timeout: float, cwd: str) -> Captured:
    try:
        return capture([python, *arguments], env, timeout=timeout, cwd=cwd)
    except FileNotFoundError:
        if os.path.lexists(python):  # the file is there: its own interpreter (#!) or a link's target is not
            raise TargetProblem(f"{clean(python)} cannot be started.", "what it points to does not exist") from None
        raise TargetProblem(f"{clean(python)} does not exist.", "no such file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TargetProblem(f"{clean(python)} cannot be started.", clean(reason)) from None


def _shown(answer: Captured) -> str:
    """The last thing that was printed, as one safe line."""
    text = (answer.stderr.strip() or answer.stdout.strip())[-2000:].decode("utf-8", "replace")
    last = text.splitlines()[-1] if text else "nothing was printed"
    return elide_end(clean(redact(last)), 300) + (f" (exit status {answer.status})" if answer.status else "")


def _is_version(text: str) -> bool:
    fields = text.split(".")
    return len(fields) == 3 and all(item.isascii() and item.isdigit() and len(item) < 4 for item in fields)


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _last_object(stdout: bytes) -> dict[str, Any] | None:
    """The probe's object; a site hook of the target may have printed before it."""
    for line in reversed(stdout.splitlines()):
        if b"quark_tui_probe" not in line:
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return data if isinstance(data, dict) else None
    return None


class _Strict:
    """Reads an object of foreign JSON; a value of another type than asked for raises TargetProblem."""

    def __init__(self, data: object, python: str) -> None:
        self._python = python
        if not isinstance(data, dict):
            raise self._wrong("an object")
        self._data = data

    def _wrong(self, name: str) -> TargetProblem:
        return TargetProblem(f"{clean(self._python)} gave an answer that cannot be used.", f"{name} is missing or odd")

    def text(self, name: str) -> str:
        value = self._data.get(name)
        if not isinstance(value, str):
            raise self._wrong(name)
        return value

    def optional(self, name: str) -> str | None:
        return None if self._data.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        value = self._data.get(name)
        if not isinstance(value, bool):
            raise self._wrong(name)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._data.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name)
        return tuple(value)

    def inner(self, name: str) -> _Strict:
        return _Strict(self._data.get(name), self._python)

    def has(self, name: str) -> bool:
        return self._data.get(name) is not None

    def names(self) -> list[str]:
        return [name for name in self._data if isinstance(name, str)]


def _target(data: dict[str, Any], python: str) -> Target:
    answer = _Strict(data, python)
    version = answer.text("version")
    numbers = version.split(".")
    supported = numbers[0] == "3" and len(numbers) > 1 and numbers[1] in {str(minor) for minor in SUPPORTED_MINORS}
    listed = answer.inner("packages")
    packages: dict[str, Package | None] = {}
    for name in listed.names():
        packages[name] = None
        if listed.has(name):
            one = listed.inner(name)
            packages[name] = Package(one.optional("version"), one.text("location"))
    torch = None
    if answer.has("torch"):
        build = answer.inner("torch")
        debug = build.flag("debug") if build.has("debug") else None
        torch = TorchBuild(
            build.optional("version"),
            build.optional("cuda"),
            build.optional("hip"),
            debug,
            build.text("file"),
            build.flag("lock_file_blocks") if build.has("lock_file_blocks") else None,
        )
    quark = answer.inner("quark")
    return Target(
        executable=answer.optional("executable"),
        prefix=answer.text("prefix"),
        base_prefix=answer.text("base_prefix"),
        version=version,
        supported=supported,
        is_venv=answer.flag("is_venv"),
        externally_managed=answer.flag("externally_managed"),
        has_pip=answer.flag("has_pip"),
        site_packages=answer.texts("site_packages"),
        packages=MappingProxyType(packages),
        search_path=answer.texts("search_path"),
        torch=torch,
        quark_cli=quark.optional("cli"),
        quark_root=quark.optional("root"),
        quark_requires=quark.texts("requires"),
        quark_requires_python=quark.optional("requires_python"),
        implementation=answer.text("implementation"),
        platform=answer.text("platform"),
        machine=answer.text("machine"),
        asked=python,
    )
