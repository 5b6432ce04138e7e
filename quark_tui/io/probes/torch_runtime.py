"""Runs in the *target* interpreter and asks its torch what it reaches: devices, and one real operation on each.

It imports torch and nothing of Quark, transformers or datasets, and only what Python 3.8 runs. Each step prints a JSON
object on a line of its own before the next one begins: a crash or a hang leaves what was known, and says where it was.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    # Pythons before 3.11 have no -P: this script's own folder must not be searched for modules.
    del sys.path[0]

import importlib
import json
from typing import Any

#: Rows and columns of the matrices that are multiplied; each entry of the product of two matrices of ones is this.
SIZE = 64


def say(step: str, **facts: Any) -> None:
    """One line that reaches the reader even when the next step ends the process."""
    sys.stdout.write("\n" + json.dumps({"quark_tui_torch": 1, "step": step, **facts}) + "\n")
    sys.stdout.flush()


def told(error: BaseException) -> str:
    """The exception as its last line of a traceback has it."""
    return f"{type(error).__name__}: {error}"


def operate(torch: Any, device: str) -> str:
    """Multiply two matrices on ``device`` and look at the product; the error in words, "" when it is right."""
    try:
        ones = torch.ones((SIZE, SIZE), dtype=torch.float32, device=device)
        product = ones @ ones
        if device != "cpu":
            torch.cuda.synchronize(device)
        lowest, highest = float(product.min().item()), float(product.max().item())
    except Exception as error:
        return told(error)
    if lowest != SIZE or highest != SIZE:
        return f"a product of ones is {lowest} to {highest} and not {SIZE}"
    return ""


def about(torch: Any, index: int) -> dict[str, Any]:
    """Name, bytes of memory and architecture of one device as torch has them; what it does not say is None."""
    found: dict[str, Any] = {"name": None, "memory": None, "free": None, "arch": None, "problem": ""}
    try:
        facts = torch.cuda.get_device_properties(index)
        found["name"] = str(facts.name)
        found["memory"] = int(facts.total_memory)
        arch = getattr(facts, "gcnArchName", None) if torch.version.hip else None
        found["arch"] = str(arch) if arch else f"{facts.major}.{facts.minor}"
    except Exception as error:
        found["problem"] = told(error)
    return found


def main() -> None:
    say("import")
    try:
        torch = importlib.import_module("torch")
    except BaseException as error:  # a library that cannot be loaded may end in SystemExit as well
        say("failed", error=told(error))
        raise
    say("imported", version=str(torch.__version__), cuda=torch.version.cuda, hip=getattr(torch.version, "hip", None))
    try:
        available = bool(torch.cuda.is_available())
        count = int(torch.cuda.device_count())
    except Exception as error:
        say("failed", error=told(error))
        return
    say("devices", available=available, count=count)
    # A driver that lists devices and says that none is available is asked all the same: its error says why.
    for index in range(count):
        say("device", index=index, **about(torch, index))
        say("operation", index=index, error=operate(torch, f"cuda:{index}"))
    if not count:
        say("operation", index=None, error=operate(torch, "cpu"))
    say("end")


if __name__ == "__main__":
    main()
