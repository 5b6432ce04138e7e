"""Runs in the *target* interpreter and prints what it is and what is installed there, as one JSON object.

Standard library only, and only what Python 3.8 runs. Nothing of torch, transformers or Quark is imported: versions
come from the packages' metadata, torch's build from the text of its ``version.py``.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    # Pythons before 3.11 have no -P: this script's own folder must not be searched for modules.
    del sys.path[0]

import ast
import importlib.metadata
import importlib.util
import json
import os
import platform
import sysconfig
from typing import Any

PACKAGES = ("amd-quark", "torch", "transformers", "datasets", "accelerate", "vllm")
#: Packages of which any variant counts (onnxruntime-rocm, onnxruntime-gpu, …).
FAMILIES = ("onnxruntime",)
CLI = "quark-cli"


def describe(name: str) -> dict[str, Any] | None:
    """Version and folder of one installed distribution, None when it is not there."""
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    try:
        version = found.metadata["Version"]
    except Exception:  # a distribution with broken metadata is there all the same
        version = None
    return {"version": version, "location": os.path.normpath(str(found.locate_file("")))}


def family_members() -> list[str]:
    """Names of installed distributions that belong to one of the families, from the names of their folders."""
    names = set()
    for folder in sys.path:
        try:
            entries = os.listdir(folder or os.curdir)
        except OSError:
            continue
        for entry in entries:
            stem, dot, suffix = entry.rpartition(".")
            if dot and suffix in ("dist-info", "egg-info"):
                name = stem.split("-")[0].lower().replace("_", "-")
                if any(name == family or name.startswith(family + "-") for family in FAMILIES):
                    names.add(name)
    return sorted(names)


def torch_build() -> dict[str, Any] | None:
    """Version, CUDA, HIP and debug as torch's own ``version.py`` states them; None without that file."""
    try:
        spec = importlib.util.find_spec("torch")
        if spec is None or not spec.origin:
            return None
        path = os.path.join(os.path.dirname(spec.origin), "version.py")
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read(65536))
    except (ImportError, OSError, SyntaxError, ValueError):
        return None
    facts: dict[str, Any] = {"version": None, "cuda": None, "hip": None, "debug": None, "file": path}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(value, ast.Constant):
            continue
        for target in targets:
            name = getattr(target, "id", "").strip("_")
            if name in facts and name != "file" and isinstance(value.value, (str, bool)):
                facts[name] = value.value
    return facts


def jit_lock_file(torch_file: str | None) -> bool | None:
    """Whether a mere ``lock`` file makes this torch wait: True for the older builds, which wait until it is gone;
    False for those that take a lock on it, which ends with its holder; None when the source does not tell.
    """
    if torch_file is None:
        return None
    path = os.path.join(os.path.dirname(torch_file), "utils", "cpp_extension.py")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(1 << 20)
    except (OSError, ValueError):
        return None
    if "FileBaton(" in text:
        return True
    return False if "FileLock(" in text else None


def quark_facts() -> dict[str, Any]:
    """Requirements of the installed amd-quark, its command and the folder that holds ``quark/``."""
    facts: dict[str, Any] = {"requires": [], "requires_python": None, "cli": None, "root": None}
    try:
        spec = importlib.util.find_spec("quark")
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.submodule_search_locations:
        facts["root"] = os.path.dirname(os.path.normpath(next(iter(spec.submodule_search_locations))))
    try:
        found = importlib.metadata.distribution("amd-quark")
        facts["requires"] = list(found.requires or [])
        facts["requires_python"] = found.metadata["Requires-Python"]
        record = found.read_text("RECORD") or ""
    except Exception:  # not installed, or its metadata cannot be read: then nothing is known
        return facts
    candidates = [
        os.path.normpath(str(found.locate_file(line.split(",")[0].strip('"'))))
        for line in record.splitlines()
        if os.path.basename(line.split(",")[0].strip('"')) == CLI
    ]
    candidates.append(os.path.join(sysconfig.get_path("scripts"), CLI))
    facts["cli"] = next((path for path in candidates if os.path.isfile(path) and os.access(path, os.X_OK)), None)
    return facts


def main() -> None:
    paths = sysconfig.get_paths()
    torch = torch_build()
    if torch is not None:
        torch["lock_file_blocks"] = jit_lock_file(torch["file"])
    is_venv = sys.prefix != sys.base_prefix
    marker = os.path.join(paths["stdlib"], "EXTERNALLY-MANAGED")
    answer = {
        "quark_tui_probe": 1,
        "executable": sys.executable or None,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "is_venv": is_venv,
        "externally_managed": not is_venv and os.path.isfile(marker),
        "has_pip": importlib.util.find_spec("pip") is not None,
        "site_packages": sorted({paths["purelib"], paths["platlib"]}),
        "search_path": [path for path in sys.path if os.path.isdir(path)],
        "packages": {name: describe(name) for name in (*PACKAGES, *family_members())},
        "torch": torch,
        "quark": quark_facts(),
    }
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
