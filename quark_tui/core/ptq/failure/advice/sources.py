"""Next steps that concern the model's files and what is fetched."""

from __future__ import annotations

from quark_tui.core.ptq.failure.advice.environment import known
from quark_tui.core.ptq.failure.values import Advice, Case


def source(case: Case, _: str) -> Advice:
    return (
        f"Look whether {known(case.context.model_dir)} is the directory (absolute) or the repository id that was "
        "meant, and what it holds. Correct the model. Back to Checkpoint 1.",
        1,
    )


def weights(case: Case, _: str) -> Advice:
    return (
        f"The weights in {known(case.context.model_dir)} are missing or damaged: compare their sizes with where they "
        "came from and fetch the damaged files anew; nothing is deleted for you. Quark's hint to change transformers "
        "does not fit this error. Back to Checkpoint 1.",
        1,
    )


def tokenizer(_: Case, __: str) -> Advice:
    return (
        "Look whether the model directory holds its tokenizer files (tokenizer.json, or tokenizer.model with its "
        "config) and whether the model needs a package for them (sentencepiece, tiktoken). Complete the files, or "
        "have the package installed after its own approval. Back to Checkpoint 1.",
        1,
    )


def hub(case: Case, _: str) -> Advice:
    if case.phase in ("calibration_data", "evaluate"):
        return (
            "The data set could not be reached: check its id, the network and proxies, and HF_ENDPOINT, HF_HOME and "
            "HF_HUB_OFFLINE. A cache in HF_HOME/datasets that was filled once online is enough offline; another "
            "dataset, or no evaluation, is the smallest plan change. Back to Checkpoint 2.",
            2,
        )
    return (
        "Check the repository id, then authentication (a gated repository needs accepted terms and a token), then "
        "the network and proxies; a local directory needs no hub. Back to Checkpoint 1.",
        1,
    )


def trust(_: Case, __: str) -> Advice:
    return (
        "The model needs code of its own. Read it and decide whether you trust this repository; only then plan with "
        "trust_remote_code, which runs that code with your rights. Back to Checkpoint 2.",
        2,
    )


def requantized(_: Case, __: str) -> Advice:
    return (
        "The source model is already quantized, and a quantized model cannot be exported anew: choose the original, "
        "unquantized checkpoint. Back to Checkpoint 1.",
        1,
    )


def source_permission(case: Case, _: str) -> Advice:
    return (
        "A file that was to be read or cached cannot be: look at the permissions and free space of the named path "
        f"(model {known(case.context.model_dir)}, HF_HOME). Nothing is deleted for you. Back to Checkpoint 1.",
        1,
    )
