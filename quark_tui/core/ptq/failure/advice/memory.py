"""Next steps where memory, or what looks like it, ran out."""

from __future__ import annotations

from quark_tui.core.ptq.failure.advice.environment import known
from quark_tui.core.ptq.failure.values import Advice, Case
from quark_tui.core.ptq.phases import PhaseKey

_QUANTIZE: tuple[PhaseKey, ...] = ("replace", "algorithm", "calibrate", "freeze")


def memory(case: Case, text: str) -> Advice:
    facts = case.context
    if case.phase in _QUANTIZE and "insufficient to load the entire model" not in text:
        return (
            "The model was loaded and memory ran out afterwards: a smaller batch_size first (the result stays the "
            "same), then a shorter seq_len or fewer num_calib_data, which calibrate on less and can cost accuracy: "
            f"the plan keeps that reason.{_map_count(case)} Back to Checkpoint 2.",
            2,
        )
    if case.phase == "export":
        return (
            "Memory ran out while the result was written: free memory of the host or the device first; the partial "
            f"output stays where it is.{_map_count(case)} Back to Checkpoint 3.",
            3,
        )
    if case.phase == "evaluate":
        return (
            "Memory ran out in the evaluation, after the export: verify the output as it is, or plan without "
            "evaluation. Back to Checkpoint 2.",
            2,
        )
    if facts.device_strategy == "multi_device":
        return (
            "The model does not fit as loaded although it was spread over several devices: free memory on them (see "
            f"who holds it) or plan more of them.{_map_count(case)} Back to Checkpoint 2.",
            2,
        )
    if case.phase in (None, "import"):
        where = "Where memory ran out is not in the log."
    else:
        where = "The model does not fit as loaded."
    return (
        f"{where} Free memory first (see who holds it), or plan device_strategy multi_device, which spreads the "
        f"weights over devices and host memory, is slower, and takes no algorithm.{_map_count(case)} Back to "
        "Checkpoint 2.",
        2,
    )


def _map_count(case: Case) -> str:
    if case.context.device_strategy != "multi_device":
        return ""
    return (
        f" With a huge model on several devices the limit vm.max_map_count (now {known(case.context.max_map_count)}) "
        "can show up as a memory error although memory is free; changing it is a privileged act on the system and "
        "needs explicit approval."
    )


def maps(case: Case, text: str) -> Advice:
    advice, checkpoint = memory(case, text)
    if "max_map_count" in advice:
        return advice, checkpoint
    return (
        "The system refused a mapping or a thread: compare free memory and limits (ulimit -v, ulimit -u, the "
        f"container's limit, vm.max_map_count, now {known(case.context.max_map_count)}) before believing in a lack of "
        f"memory; changing a limit of the system needs explicit approval. {advice}",
        checkpoint,
    )
