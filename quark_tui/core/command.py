"""``Command``: one process to start, exactly."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Command:
    """One exact command.

    ``argv`` is what execve gets, ``cwd`` an absolute directory; ``env_set`` and ``env_unset`` are the only changes to
    the inherited environment; ``reads`` and ``writes`` are absolute paths that it is known to touch.
    """

    argv: tuple[str, ...]
    cwd: str
    env_set: Mapping[str, str] = field(default_factory=dict)
    env_unset: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    purpose: str = ""

    @property
    def shell(self) -> str:
        """The argv as text that a POSIX shell reads back as the same argv."""
        return shlex.join(self.argv)

    def to_json(self) -> dict[str, Any]:
        return {
            "argv": list(self.argv),
            "shell": self.shell,
            "cwd": self.cwd,
            "env_set": dict(self.env_set),
            "env_unset": list(self.env_unset),
            "reads": list(self.reads),
            "writes": list(self.writes),
            "purpose": self.purpose,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Command:
        return cls(
            argv=tuple(data["argv"]),
            cwd=data["cwd"],
            env_set=dict(data["env_set"]),
            env_unset=tuple(data["env_unset"]),
            reads=tuple(data["reads"]),
            writes=tuple(data["writes"]),
            purpose=data.get("purpose", ""),
        )

    def digestible(self) -> dict[str, Any]:
        """What an approval covers of this command: everything that decides what runs."""
        return {
            "argv": list(self.argv),
            "cwd": self.cwd,
            "env_set": dict(self.env_set),
            "env_unset": list(self.env_unset),
            "reads": list(self.reads),
            "writes": list(self.writes),
        }

    def option_lines(self) -> list[tuple[str, str]]:
        """The argv as (option, values) pairs for a one-option-per-line view; the program and subcommand come first."""
        lines: list[tuple[str, list[str]]] = []
        for item in self.argv:
            if item.startswith("--") or not lines:
                lines.append((item, []))
            else:
                lines[-1][1].append(item)
        return [(option, shlex.join(values)) for option, values in lines]


# A terminal's own noise is not here: TERM, COLUMNS and the like change nothing about a run.
_PREFIXES = [
    "HIP_",
    "CUDA_",
    "ROCR_",
    "ROCM_",
    "HSA_",
    "GPU_",
    "AMD_",
    "MIOPEN_",
    "NVIDIA_",
    "PYTORCH_",
    "TORCH_",
    "TORCHINDUCTOR_",
    "TRITON_",
    "HF_",
    "TRANSFORMERS_",
    "DATASETS_",
    "SAFETENSORS_",
    "TOKENIZERS_",
    "QUARK_",
    "VLLM_",
    "AITER_",
    "NCCL_",
    "RCCL_",
    "PYTHON",
    "LD_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "KMP_",
    "GLIBC_",
    "MALLOC_",
]
_NAMES = frozenset(
    [
        "PATH",
        "HOME",
        "TMPDIR",
        "TEMP",
        "TMP",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "XDG_CACHE_HOME",
        "CC",
        "CXX",
        "CFLAGS",
        "CXXFLAGS",
        "MAX_JOBS",
        "LANG",
        "LC_ALL",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
    ]
)


def decides_a_run(name: str) -> bool:
    """True for environment variables that can change what a run does."""
    return name in _NAMES or name.startswith(tuple(_PREFIXES))
