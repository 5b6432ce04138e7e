"""Gathering what a plan needs to know about this machine and about paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quark_tui.core.ptq.surroundings import Backend, OutputState, Surroundings, TemplateFile, template_file
from quark_tui.io import gpus
from quark_tui.io.intake import read_json
from quark_tui.io.target import Target

_MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")


def look_around(
    target: Target | None,
    environ: Mapping[str, str],
    model: str,
    output: str,
    template: str | None,
    seen: Mapping[str, Any],
) -> Surroundings:
    """``seen`` is what :func:`quark_tui.io.gpus.look` answered; ``model`` and ``output`` are absolute paths."""
    quark = target.packages.get("amd-quark") if target else None
    verdict = seen["gpu_verdict"]
    count = len(seen["gpus"]) if verdict == "gpus" else 0 if verdict == "no_gpu" else None
    vendors = {gpu["vendor"] for gpu in seen["gpus"]}
    vendor = vendors.pop() if len(vendors) == 1 else None
    return Surroundings(
        quark_version=quark.version if quark else None,
        gpu_count=count,
        gpu_backend=_backend(target),
        visible=None if count is None else gpus.visible_indices(environ, count, vendor),
        prefix=target.prefix if target else "",
        free_bytes=_free(output),
        memory_bytes=_memory(),
        output=output_state(output),
        model_dir=model,
        model_resolved=os.path.realpath(model),
        template_file=None if template is None else _template(template),
        inherited={name: environ[name] for name in _MASKS if name in environ},
    )


def _backend(target: Target | None) -> Backend | None:
    if target is None or target.torch is None:
        return None
    return "rocm" if target.torch.hip else "cuda" if target.torch.cuda else None


def output_state(path: str) -> OutputState:
    """The output folder as it is; nothing is created."""
    exists = os.path.lexists(path)
    is_dir = os.path.isdir(path) if exists else None
    empty = None
    if is_dir:
        try:
            with os.scandir(path) as entries:
                empty = next(entries, None) is None
        except OSError:
            empty = None
    nearest = _nearest(path)
    return OutputState(
        path=path,
        exists=exists,
        empty=empty,
        is_dir=is_dir,
        parent_exists=os.path.isdir(os.path.dirname(path)),
        parent_writable=os.path.isdir(nearest) and os.access(nearest, os.W_OK | os.X_OK),
        resolved=os.path.realpath(path),
    )


def _nearest(path: str) -> str:
    """``path`` itself when it exists, else its nearest ancestor that does; a relative path is left to the checks."""
    while not os.path.lexists(path) and os.path.dirname(path) not in ("", path):
        path = os.path.dirname(path)
    return path


def _free(path: str) -> int | None:
    try:
        info = os.statvfs(_nearest(path))
    except OSError:
        return None
    return info.f_bavail * info.f_frsize


def _memory() -> int | None:
    import psutil  # not at start-up

    return int(psutil.virtual_memory().available)


def _template(path: str) -> TemplateFile:
    file = read_json(Path(path))
    return template_file(file.data) if not file.problem else TemplateFile(problem=f"{path}: {file.problem}")
