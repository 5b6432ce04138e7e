"""The rules that class an exception by its words, its frames and where it was raised.

They come from runs of quark-cli 0.12.post1 and 0.13 that were made to fail, from the messages in their source, and from
what torch, transformers, huggingface_hub and Linux print.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quark_tui.core.logtext import Line
from quark_tui.core.ptq.failure.advice import environment, memory, plan, sources
from quark_tui.core.ptq.failure.places import phase_evidence, phase_of
from quark_tui.core.ptq.failure.quotes import MAX_MATCH, matching_lines
from quark_tui.core.ptq.failure.values import Advice, Case, Kind, RaisedError, Step
from quark_tui.core.ptq.phases import PhaseKey


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: Kind
    code: str
    pattern: re.Pattern[str]
    step: Step
    phases: tuple[PhaseKey | None, ...] = ()  # only in these; empty for any
    frames: str = ""  # only when the traceback passes through this


def _rule(
    kind: Kind, code: str, pattern: str, step: Step, phases: tuple[PhaseKey | None, ...] = (), frames: str = ""
) -> _Rule:
    return _Rule(kind, code, re.compile(pattern), step, phases, frames)


_OUT_OF_MEMORY = (
    r"OutOfMemoryError|(?:CUDA|HIP|hip|cuda|XPU) (?:error: )?out of memory|hipErrorOutOfMemory|CUDA_ERROR_OUT_OF_MEMORY"
    r"|HSA_STATUS_ERROR_OUT_OF_RESOURCES|CUBLAS_STATUS_ALLOC_FAILED|DefaultCPUAllocator: (?:can't|not enough)|bad_alloc"
    r"|^MemoryError\b|Unable to allocate .{1,60} for an array|insufficient to load the entire model"
    r"|[Oo]ut of host memory"
)

_DISK = (
    r"No space left on device|Disk quota exceeded|StorageFull|File too large|Read-only file system"
    r"|\[Errno (?:28|122|27|30)\]|os error (?:28|122|27|30)\b"
)

_PERMISSION = r"^PermissionError\b|\[Errno (?:13|1)\] |Permission denied|os error 13\b"
_LOAD: tuple[PhaseKey, ...] = ("model", "tokenizer")
_EARLY: tuple[PhaseKey | None, ...] = ("import",)
_READING: tuple[PhaseKey | None, ...] = ("model", "tokenizer", "calibration_data")

# The first that fits decides, so the more telling ones stand first.
_RULES: tuple[_Rule, ...] = (
    # packages that do not fit each other are not missing packages
    _rule(
        "compatibility",
        "torch_api_moved",
        r"No module named 'torch\.ao|torch\.ao\.quantization\.pt2e",
        environment.package_pair,
    ),
    _rule(
        "compatibility", "torchvision_mismatch", r"operator torchvision::\w+ does not exist", environment.package_pair
    ),
    _rule(
        "compatibility",
        "binary_mismatch",
        r"undefined symbol|version `?GLIBC|_ARRAY_API not found",
        environment.package_pair,
    ),
    _rule(
        "compatibility",
        "binary_mismatch",
        r"numpy\.core\.multiarray failed to import|numpy\.dtype size",
        environment.package_pair,
    ),
    _rule(
        "environment",
        "quark_missing",
        r"No module named '?quark(?:\.[\w.]+)?'?(?:$|[\s.;,])",
        environment.quark_missing,
    ),
    _rule(
        "environment",
        "quark_missing",
        r"AMD Quark needs to be installed(?!.*No module named '(?!quark\b))",
        environment.quark_missing,
    ),
    _rule(
        "environment",
        "cli_dependencies_missing",
        r"AMD Quark CLI dependencies need to be installed",
        environment.cli_dependencies,
    ),
    _rule(
        "compatibility",
        "transformers_api",
        r"\b(?:seen_tokens|get_max_length|get_usable_length)\b",
        environment.transformers,
    ),
    _rule(
        "compatibility",
        "model_type_unknown",
        r"Transformers does not recognize this architecture|does not recognize this architecture",
        environment.transformers,
    ),
    _rule("compatibility", "model_type_unknown", r"^KeyError: ", environment.transformers, (), "configuration_auto.py"),
    _rule(
        "compatibility",
        "transformers_api",
        r"cannot import name .{1,200} from '?(?:transformers|huggingface_hub)",
        environment.transformers,
    ),
    _rule("compatibility", "import_name", r"cannot import name ", environment.package_pair),
    _rule(
        "compatibility",
        "version_required",
        r"is required for a normal functioning of this module",
        environment.transformers,
    ),
    _rule("compatibility", "transformers_api", r"Model compatibility check failed", environment.transformers),
    _rule(
        "load",
        "tokenizer",
        r"Couldn't instantiate the backend tokenizer|Can't load (?:the )?tokenizer|Tokenizer class \S+ does not exist"
        r"|Unable to load vocabulary|requires the (?:SentencePiece|tiktoken) library|convert a slow tokenizer",
        sources.tokenizer,
    ),
    _rule(
        "environment",
        "package_missing",
        r"^ModuleNotFoundError\b|No module named ",
        environment.package_missing,
        (None, *_EARLY),
    ),
    _rule(
        "environment",
        "package_missing",
        r"^ModuleNotFoundError\b|requires the following packages|^ImportError: \S+ requires",
        environment.package_missing,
    ),
    # devices
    _rule(
        "compatibility",
        "no_kernel_image",
        r"no kernel image is available|invalid device function",
        environment.package_pair,
    ),
    _rule(
        "environment",
        "no_device",
        r"Torch not compiled with (?:CUDA|ROCm|HIP) enabled|No (?:HIP|CUDA) GPUs are available|Found no NVIDIA driver"
        r"|no (?:CUDA|ROCm)-capable device|(?:CUDA|HIP) driver version is insufficient|invalid device ordinal"
        r"|(?:hip|cuda)(?:ErrorNoDevice|GetDeviceCount)|NVIDIA driver on your system is too old",
        environment.no_device,
    ),
    _rule("environment", "shared_library", r"cannot open shared object file", environment.shared_library),
    _rule(
        "environment",
        "compiler",
        r"hw_emulation|JIT compilation failed|Ninja is required|Error building extension"
        r"|QUARK_BUILD_DISABLE_JIT_FALLBACK"
        r"|No such file or directory: '(?:g\+\+|gcc|c\+\+|ninja|hipcc|nvcc)'",
        environment.compiler,
    ),
    # memory
    _rule(
        "memory",
        "mappings",
        r"Cannot allocate memory|can't start new thread|pthread_create failed|Resource temporarily unavailable"
        r"|os error 12\b",
        memory.maps,
    ),
    _rule("memory", "out_of_memory", _OUT_OF_MEMORY, memory.memory),
    _rule(
        "memory", "meta_tensor", r"Cannot copy out of meta tensor|offload the whole model to the disk", memory.memory
    ),
    _rule(
        "environment",
        "device_failed",
        r"(?:CUDA|HIP) error: |ECC error|uncorrectable|Memory access fault by GPU|HSA_STATUS_ERROR|NCCL error"
        r"|RCCL error",
        environment.device_broken,
    ),
    # disk and permissions
    _rule("environment", "disk", _DISK, environment.site_packages, _EARLY),
    _rule("load", "cache_disk", _DISK, sources.source_permission, _READING),
    _rule("export", "disk", _DISK, plan.disk),
    _rule(
        "environment",
        "permission",
        r"(?:Permission denied|PermissionError).*(?:site-packages|dist-packages)",
        environment.site_packages,
    ),
    _rule("environment", "permission", _PERMISSION, environment.site_packages, _EARLY),
    _rule("load", "permission", _PERMISSION, sources.source_permission, _READING),
    _rule("export", "permission", _PERMISSION, plan.disk),
    _rule(
        "configuration",
        "template_file",
        r"Template (?:file|key|configuration)|--template_file defines|in template configuration",
        plan.template,
    ),
    _rule("configuration", "template_file", r"", plan.template, (), "register_template.py"),
    # sources
    _rule(
        "load",
        "remote_code",
        r"contains custom code|trust_remote_code=True|allow custom code to be run",
        sources.trust,
    ),
    _rule(
        "load",
        "hub",
        r"Couldn't reach |OfflineModeIsEnabled|LocalEntryNotFoundError|GatedRepo|RepositoryNotFound|RevisionNotFound"
        r"|couldn't connect to|Max retries exceeded|NameResolutionError|Temporary failure in name resolution|SSLError"
        r"|CERTIFICATE_VERIFY_FAILED|Client Error|Server Error|is not a valid model identifier|ConnectionError"
        r"|ConnectTimeout"
        r"|ReadTimeout|Connection refused|Access to model .{1,200} is restricted|Consistency check failed"
        r"|outgoing traffic",
        sources.hub,
    ),
    _rule("load", "source_missing", r"Repo id must be in the form|HFValidationError", sources.source),
    _rule(
        "load",
        "config_missing",
        r"Unrecognized model in|Should have a `model_type` key|config\.json",
        sources.source,
        (None, "import", *_LOAD),
    ),
    _rule(
        "load",
        "weights",
        r"no file named (?:model|pytorch_model)|SafetensorError|deserializing header|InvalidHeader"
        r"|MetadataIncompleteBuffer"
        r"|UnpicklingError|invalid load key|PytorchStreamReader failed|git-lfs|size mismatch for"
        r"|Unexpected end of file",
        sources.weights,
        (None, "import", *_LOAD),
    ),
    # the plan
    _rule("configuration", "scheme", r"Unsupported quantization scheme", plan.scheme),
    _rule("configuration", "kv_scheme", r"Unsupported KV cache (?:quantization )?scheme", plan.kv),
    _rule(
        "configuration",
        "algorithm",
        r"Unsupported algorithm|No built-in \S+ configuration is available",
        plan.algorithm,
    ),
    _rule("configuration", "algorithm", r"The algorithm \S+ is not supported in Quark", plan.algorithm),
    _rule("configuration", "template_missing", r"There is no model template defined", plan.template),
    _rule(
        "configuration", "group_size", r"not divisible by group_size|divisible by (?:the )?group[_ ]size", plan.group
    ),
    _rule("configuration", "override_scheme", r"Invalid --layer_quant_scheme", plan.scheme),
    _rule("configuration", "algorithm", r"^KeyError: '(?:autoround|quarot)'", plan.algorithm),
    _rule("configuration", "algorithm", r"^KeyError: ", plan.algorithm, (), "_set_algorithm"),
    _rule(
        "configuration",
        "override_scheme",
        r"^KeyError: ",
        plan.scheme,
        (),
        "quark/torch/quantization/config/template.py",
    ),
    _rule("configuration", "dataset", r"^NotImplementedError", plan.dataset, (), "data_preparation.py"),
    _rule(
        "configuration",
        "dataset",
        r"expected a non-empty list of Tensors|chat_template is not set",
        plan.dataset,
        ("calibration_data",),
    ),
    # export
    _rule("export", "scheme_not_exportable", r"Not supported for mx\b", plan.not_exportable),
    _rule(
        "export",
        "already_quantized",
        r"QuantizationMethod\.\w+ and is not serializable",
        sources.requantized,
    ),
    _rule(
        "export",
        "output_path",
        r"^(?:NotADirectoryError|FileExistsError|IsADirectoryError)\b",
        plan.new_folder,
        (None, "export"),
    ),
)


def by_rule(error: RaisedError, case: Case) -> tuple[Kind, str, Advice] | None:
    """(kind, code, next step with its checkpoint) by the first rule that fits, None when none does."""
    text = error.text[:MAX_MATCH]
    frames = "\n".join(error.frames)
    own_phase = phase_of(frames) or case.phase
    for rule in _RULES:
        if rule.phases and own_phase not in rule.phases:
            continue
        if rule.frames and rule.frames not in frames:
            continue
        if not rule.pattern.search(text):
            continue
        if rule.code in ("out_of_memory", "meta_tensor") and _placement(text) and _no_gpu_for_new_quark(case):
            return "environment", "quark_needs_gpu", environment.cpu_host(case, text)
        return rule.kind, rule.code, rule.step(case, text)
    return None


def _placement(text: str) -> bool:
    return "insufficient to load the entire model" in text or "meta tensor" in text or "offload the whole" in text


def _no_gpu_for_new_quark(case: Case) -> bool:
    return case.cpu_only and case.quark is not None and case.quark >= (0, 13)


_OFFLOADED = re.compile(r"offloaded to the (?:disk|cpu)|No CUDA runtime is found|version=\"")


def supporting(lines: Sequence[Line], case: Case, code: str) -> tuple[str, ...]:
    """Evidence beyond the exception itself, for the codes that need it."""
    if code == "quark_needs_gpu":
        host = () if case.context.gpu_available is None else ("environment: no GPU is available to torch",)
        return (*matching_lines(lines, _OFFLOADED), *host)
    if code in ("out_of_memory", "meta_tensor", "mappings", "disk", "permission"):
        return phase_evidence(case)
    return ()


def by_phase(case: Case) -> tuple[Kind, Advice]:
    """The class of an exception that no rule knows: where it was raised is proof of what failed, not of why."""
    look = "Read the whole error; the cause is not one that is known here."
    match case.phase:
        case "model" | "tokenizer":
            return "load", (
                f"{look} {environment.versions(case)} Check the model's files and its code's needs. Back to "
                "Checkpoint 1.",
                1,
            )
        case "calibration_data":
            return "load", (f"{look} Check the data set and its options in the plan. Back to Checkpoint 2.", 2)
        case "replace" | "algorithm" | "calibrate" | "freeze":
            return "quantization", (
                f"{look} The smallest plan change is the one that concerns the failing step: another algorithm or "
                "none, another scheme, or the failing layer excluded (it stays unquantized). Back to Checkpoint 2.",
                2,
            )
        case "export":
            return "export", (
                f"{look} Look at the output folder and its parent; partial files stay. Back to Checkpoint 2.",
                2,
            )
    return "unknown", (f"{look} Nothing in the log proves a class. Back to Checkpoint 3 with what you find.", 3)
