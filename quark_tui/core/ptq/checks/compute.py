"""Devices and memory: decided, there, and enough."""

from __future__ import annotations

from collections.abc import Iterator

from quark_tui.core.ptq.checks.draft import Draft, Issue, issue, shown
from quark_tui.core.text import human_bytes


def check_compute(draft: Draft) -> Iterator[Issue]:
    """compute_undecided, devices_missing, quark_needs_gpu, and the limits of multi_device."""
    around, strategy, devices = draft.around, draft.values["device_strategy"], draft.values["devices"]
    count = around.usable_gpus
    no_gpu = count == 0
    seen = (
        f"GPUs within the inherited mask: {' '.join(map(str, around.visible)) or 'none'}"
        if around.visible is not None
        else f"GPUs of this machine: {around.gpu_count if around.gpu_count is not None else 'unknown'}"
    )
    if strategy is None:
        yield issue(
            "block",
            "compute_undecided",
            "device_strategy",
            "where the run is to compute is not decided",
            seen,
            "set device_strategy to cpu" if no_gpu else "set device_strategy to single, multi_device or cpu",
            incomplete=True,
        )
    needs = around.quark_needs_gpu_for_cpu
    if needs and (strategy == "cpu" or no_gpu):
        yield issue(
            "block",
            "quark_needs_gpu",
            "device_strategy",
            f"amd-quark {shown(around.quark_version)} cannot run without a GPU: it offloads all weights and fails",
            "run with 0.13 on a machine without GPU: MemoryError after model and data were loaded",
            "install amd-quark 0.12.post1, which runs on the CPU" + ("" if no_gpu else ", or choose a GPU"),
            incomplete=strategy is None,
        )
    elif needs is None and strategy == "cpu":
        yield issue(
            "medium",
            "quark_version_unknown",
            "device_strategy",
            "the version of amd-quark is not known, so whether it runs on the CPU is not known either",
            "0.12.post1 does, 0.13 does not",
        )
    if strategy == "cpu":
        if devices:
            yield issue("low", "devices_unused", "devices", "devices are named, but the run computes on the CPU", seen)
        return
    if strategy not in ("single", "multi_device"):
        return
    if no_gpu:
        yield issue(
            "block",
            "devices_missing",
            ("device_strategy", "devices"),
            f"device_strategy {strategy} needs a GPU, and there is none",
            seen,
            "set device_strategy to cpu",
        )
    elif not devices:
        yield issue(
            "block",
            "devices_missing",
            "devices",
            "no device is chosen"
            + (f" among {count} GPUs" if count is not None else " and how many GPUs there are is not known")
            + "; without a choice quark-cli takes every visible one",
            seen,
            "set devices to the index of one GPU" if strategy == "single" else "set devices to the GPUs to use",
            incomplete=True,
        )
    else:
        known = around.visible if around.visible is not None else None if count is None else tuple(range(count))
        absent = [] if known is None else [device for device in devices if device not in known]
        if absent:
            yield issue(
                "block",
                "devices_missing",
                "devices",
                f"no such device: {' '.join(map(str, absent[:20]))}",
                seen,
                "choose among the GPUs that are there",
            )
        if strategy == "single" and len(devices) > 1:
            yield issue(
                "block",
                "devices_missing",
                ("devices", "device_strategy"),
                f"device_strategy single takes one device, {len(devices)} are named",
                seen,
                "name one device, or set device_strategy to multi_device",
            )
    if strategy == "multi_device":
        yield issue(
            "medium",
            "multi_device_limits",
            "device_strategy",
            "multi_device offloads to other GPUs, memory and disk: slower, and meant for runs without algorithms",
            "help of quark-cli torch-llm-ptq",
            "prefer single where the model fits",
        )


def check_memory(draft: Draft, peak: int | None) -> Iterator[Issue]:
    """A warning when the rough estimate is above the machine's memory."""
    memory = draft.around.memory_bytes
    if peak is not None and memory is not None and peak > memory:
        yield issue(
            "medium",
            "memory_tight",
            ("device_strategy", "global_scheme"),
            f"the run may need {human_bytes(peak)} of memory, {human_bytes(memory)} are there",
            "a rough estimate: source and output together, and the program itself",
            "fewer samples, shorter sequences or a smaller batch help only a little",
        )
