"""Next steps that concern the interpreter, its packages, devices and the system around them."""

from __future__ import annotations

import re

from quark_tui.core.ptq.failure.values import Advice, Case
from quark_tui.core.text import clean


def known(value: object) -> str:
    """A fact in words."""
    return clean(value) if value not in (None, "") else "unknown"


def _interpreter(case: Case) -> str:
    """The interpreter in words."""
    return f"The interpreter was {known(case.context.interpreter)}."


def versions(case: Case) -> str:
    """What is installed, and what Quark and the model ask for."""
    facts = case.context
    return (
        f"Installed: amd-quark {known(facts.quark_version or case.report.quark_version)}, torch "
        f"{known(facts.torch_version)}, transformers {known(facts.transformers_version)}. Quark asks for transformers "
        f"{known(facts.requires_transformers)}; the model's config names {known(facts.model_transformers)}."
    )


def quark_missing(case: Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} Either it is the wrong environment or amd-quark is not installed in it: choose the "
        "right interpreter first. Installing amd-quark[cli] there would change that environment and needs its own "
        "approval. Then back to Checkpoint 3 with a newly recorded command.",
        3,
    )


def cli_dependencies(case: Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} Look whether amd-quark[cli] is whole in it (quark-cli imports every subcommand, so one "
        "missing dependency stops all). Installing the missing packages changes the environment and needs its own "
        "approval. Then back to Checkpoint 3.",
        3,
    )


def package_missing(case: Case, text: str) -> Advice:
    if case.phase in (None, "import"):
        return cli_dependencies(case, text)
    return (
        f"{_interpreter(case)} The model's own code, or a library, needs a package that is not in it (the message "
        "names it). Look whether that package fits the installed torch; installing it changes the environment and "
        "needs its own approval. Then back to Checkpoint 3.",
        3,
    )


def package_pair(case: Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} {versions(case)} Two installed packages do not fit each other. The smallest change is "
        "one version of one of them, the one that the named API or symbol belongs to; it changes the environment and "
        "needs its own approval. Then back to Checkpoint 3.",
        3,
    )


def transformers(case: Case, text: str) -> Advice:
    api = re.search(r"seen_tokens|get_max_length|get_usable_length", text)
    named = f" The API that is gone: {api.group()}." if api else ""
    return (
        f"{versions(case)}{named} The smallest change is a transformers version inside Quark's requirement that still "
        "has what the model's code uses, or newer code of the model; neither is done blindly, and a package change "
        "needs its own approval. Then back to Checkpoint 3.",
        3,
    )


def no_device(case: Case, _: str) -> Advice:
    return (
        f"Tell three causes apart before anything is installed: torch {known(case.context.torch_version)} may be a "
        "CPU-only or mismatched build, no device may be visible (HIP_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES, "
        "permissions), or the driver or runtime may be at fault. The Environment pane shows each. If no GPU is "
        "there, device_strategy cpu is the smallest plan change (amd-quark 0.12.post1 can; 0.13 cannot). Back to "
        "Checkpoint 2.",
        2,
    )


def compiler(case: Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} Quark builds its C++ extension on first use and needs g++ and ninja for it. Look which "
        "of them is missing and at the build's own message; installing one changes the system and needs approval. "
        "Back to Checkpoint 3.",
        3,
    )


def device_broken(_: Case, __: str) -> Advice:
    return (
        "Look at the device itself first (nvidia-smi or rocm-smi, the kernel log) and at who else uses it. Another "
        "device is the smallest plan change. Back to Checkpoint 2.",
        2,
    )


def shared_library(case: Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} A shared library that torch or Quark needs is not found: look at the driver or runtime "
        "that should bring it and at LD_LIBRARY_PATH. A change of either needs its own approval. Back to Checkpoint "
        "3.",
        3,
    )


def cpu_host(case: Case, _: str) -> Advice:
    version = known(case.context.quark_version or case.report.quark_version)
    return (
        f"No GPU was there, and amd-quark {version} cannot place a model on a machine without one, with or without "
        "--multi_device: the message's own advice does not help. amd-quark 0.12.post1 runs the stock command on a "
        "CPU-only machine (its [cli] asks for transformers >5,<5.3). Choose an environment that has it, or a machine "
        "with a GPU; installing it changes an environment and needs its own approval. Back to Checkpoint 3.",
        3,
    )


def site_packages(case: Case, _: str) -> Advice:
    return (
        f"{_interpreter(case)} quark-cli makes a working folder inside its own installation and may not write there, "
        "or a cache cannot be written: look at the named path's permissions and free space. Choose an environment "
        "that you may write to, or have an administrator make the folder. Back to Checkpoint 3.",
        3,
    )
