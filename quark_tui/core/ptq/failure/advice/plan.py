"""Next steps that change a row of the plan."""

from __future__ import annotations

from quark_tui.core.ptq.failure.advice.environment import known
from quark_tui.core.ptq.failure.values import Advice, Case


def scheme(_: Case, __: str) -> Advice:
    return (
        "Choose a scheme that the installed Quark lists (names are exact and case-sensitive; the Plan pane shows "
        "them). Back to Checkpoint 2.",
        2,
    )


def kv(_: Case, __: str) -> Advice:
    return "The KV cache takes fp8 or nothing in these versions of Quark. Back to Checkpoint 2.", 2


def algorithm(_: Case, __: str) -> Advice:
    return (
        "Look whether the algorithm is registered in the installed Quark and has a built-in configuration for this "
        "model_type (the Plan pane shows which do); plan another, or none. Back to Checkpoint 2.",
        2,
    )


def template(case: Case, _: str) -> Advice:
    return (
        f"The installed Quark (amd-quark {known(case.context.quark_version or case.report.quark_version)}) has no "
        "usable template for this model_type: compare with the templates that it lists, and plan a template_file "
        "(0.13 and newer) whose model_type is the model's own. The installed quark-cli stays as it is. Back to "
        "Checkpoint 2.",
        2,
    )


def group(_: Case, __: str) -> Advice:
    return (
        "A group size must divide the input dimension of every layer: choose a scheme with a smaller group, or "
        "exclude the layers that do not fit (they stay unquantized). Back to Checkpoint 2.",
        2,
    )


def dataset(_: Case, __: str) -> Advice:
    return (
        "The data set cannot serve this plan (not implemented, or no usable sample): choose another dataset, a "
        "shorter seq_len, or a batch_size below the number of samples. Back to Checkpoint 2.",
        2,
    )


def arguments(_: Case, __: str) -> Advice:
    return (
        "quark-cli refused the command line before it loaded anything: take out or correct the named option in the "
        "plan; the installed version may not have it. Back to Checkpoint 2.",
        2,
    )


def not_exportable(_: Case, __: str) -> Advice:
    return (
        "This scheme can be calibrated but not exported by the installed Quark (mx6, mx9 and bfp16 are such). Choose "
        "another scheme. Back to Checkpoint 2.",
        2,
    )


def disk(case: Case, _: str) -> Advice:
    return (
        f"Look at the parent of {known(case.context.output_dir)}: its permissions, free space, quota and inodes. Make "
        "room or choose another output_dir; nothing is deleted for you, and partial files stay. Back to Checkpoint 2.",
        2,
    )


def new_folder(_: Case, __: str) -> Advice:
    return (
        "Something that is no directory, or already exists, stands where the output should go: choose a new, empty, "
        "absolute output_dir. Back to Checkpoint 2.",
        2,
    )
