"""What a failed run says about its cause."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.logtext import Folder, Line
from quark_tui.core.ptq.failure import Failure, FailureContext, classify

CPU_013 = FailureContext(gpu_available=False, quark_version="0.13")
GPU = FailureContext(gpu_available=True, quark_version="0.13", device_strategy="single")
STARTS = {
    "import": "C++ kernel loading check start.",
    "model": "Loading model ...",
    "tokenizer": "Initializing tokenizer from /m",
    "calibration_data": "Loading dataset ...",
    "replace": "In-place OPs replacement start.",
    "algorithm": "Advanced algorithm start.",
    "calibrate": "Calibration start.",
    "freeze": "Freeze model start.",
    "export": "Exporting hugging face format safetensors...",
    "evaluate": "Evaluating ...",
}


def record(text: str, level: str = "INFO") -> str:
    return f"\x1b[32m\n[QUARK-{level}]: {text}\x1b[0m\n"


def log(phase: str) -> str:
    keys = list(STARTS)
    return "".join(record(STARTS[key]) for key in keys[: keys.index(phase) + 1]) if phase else ""


def trace(error: str, *frames: tuple[str, str]) -> str:
    """A traceback that ends with ``error``, through ``frames`` of (file, function)."""
    rows = "".join(f'  File "/site-packages/{file}", line 7, in {name}\n    x = f(y)\n' for file, name in frames)
    return f"Traceback (most recent call last):\n{rows}{error}\n"


def failed(
    text: str, context: FailureContext | None = None, status: int | None = 1, signal: int | None = None
) -> Failure:
    return classify(text, status, signal, context)


TEMPLATE = ("quark/torch/quantization/config/template.py", "get_config")
IN_TEMPLATE = ("quark/torch/quantization/config/template.py", "_set_algorithm")

CASES: list[tuple[str, str, str, str, str, int]] = [
    # phase, error, kind, code, a word of the next step, checkpoint
    ("model", "OSError: Repo id must be in the form 'a/b': '/nope'.", "load", "source_missing", "absolute", 1),
    (
        "model",
        "ValueError: Unrecognized model in /m. Should have a `model_type` key in its config.json.",
        "load",
        "config_missing",
        "Checkpoint 1",
        1,
    ),
    (
        "model",
        "OSError: /m does not appear to have a file named config.json.",
        "load",
        "config_missing",
        "Checkpoint 1",
        1,
    ),
    (
        "model",
        "OSError: Error no file named model.safetensors, or pytorch_model.bin, found in directory /m.",
        "load",
        "weights",
        "damaged",
        1,
    ),
    (
        "model",
        "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata",
        "load",
        "weights",
        "damaged",
        1,
    ),
    (
        "tokenizer",
        "ValueError: Couldn't instantiate the backend tokenizer from one of: \n(1) a file, \n(2) more",
        "load",
        "tokenizer",
        "sentencepiece",
        1,
    ),
    (
        "calibration_data",
        "ValueError: Unsupported quantization scheme: None",
        "configuration",
        "scheme",
        "case-sensitive",
        2,
    ),
    (
        "calibration_data",
        "ValueError: There is no model template defined for the model type 'gpt2'.",
        "configuration",
        "template_missing",
        "template_file",
        2,
    ),
    ("calibration_data", "ValueError: Unsupported KV cache scheme: int8", "configuration", "kv_scheme", "fp8", 2),
    ("calibration_data", "ValueError: Unsupported algorithm: quarot", "configuration", "algorithm", "registered", 2),
    (
        "calibration_data",
        "NotImplementedError: No built-in awq configuration is available for the 'x' architecture.",
        "configuration",
        "algorithm",
        "registered",
        2,
    ),
    ("calibration_data", "KeyError: 'autoround'", "configuration", "algorithm", "registered", 2),
    (
        "calibration_data",
        "ConnectionError: Couldn't reach 'mit-han-lab/pile-val-backup' on the Hub (OfflineModeIsEnabled)",
        "load",
        "hub",
        "HF_HOME",
        2,
    ),
    ("model", "huggingface_hub.errors.GatedRepoError: 401 Client Error.", "load", "hub", "authentication", 1),
    (
        "model",
        "ValueError: The repository /m contains custom code which must be executed. pass trust_remote_code=True",
        "load",
        "remote_code",
        "trust",
        2,
    ),
    ("model", "AssertionError: Torch not compiled with CUDA enabled", "environment", "no_device", "CPU-only", 2),
    ("model", "RuntimeError: No HIP GPUs are available", "environment", "no_device", "visible", 2),
    (
        "model",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2 GiB",
        "memory",
        "out_of_memory",
        "multi_device",
        2,
    ),
    (
        "calibrate",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        "memory",
        "out_of_memory",
        "num_calib_data",
        2,
    ),
    ("calibrate", "RuntimeError: HIP error: out of memory", "memory", "out_of_memory", "accuracy", 2),
    ("model", "MemoryError: Cannot allocate memory (os error 12)", "memory", "mappings", "max_map_count", 2),
    (
        "calibrate",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "environment",
        "device_failed",
        "device",
        2,
    ),
    ("model", "RuntimeError: HIP error: invalid device function", "compatibility", "no_kernel_image", "torch", 3),
    (
        "calibrate",
        "ValueError: The number of element is 96 which is not divisible by group_size=128.",
        "configuration",
        "group_size",
        "divide",
        2,
    ),
    ("export", "NotADirectoryError: [Errno 20] Not a directory: '/a/b'", "export", "output_path", "output_dir", 2),
    ("export", "PermissionError: [Errno 13] Permission denied: '/out'", "export", "permission", "permissions", 2),
    ("export", "OSError: [Errno 28] No space left on device", "export", "disk", "nothing is deleted", 2),
    (
        "export",
        'SafetensorError: Error while serializing: IoError(Os { code: 122, message: "Disk quota exceeded" })',
        "export",
        "disk",
        "quota",
        2,
    ),
    (
        "export",
        "ValueError: The model is quantized with QuantizationMethod.QUARK and is not serializable",
        "export",
        "already_quantized",
        "unquantized",
        1,
    ),
    (
        "export",
        "AssertionError: Not supported for mx, mx6, mx9 quantization!",
        "export",
        "scheme_not_exportable",
        "mx6",
        2,
    ),
    ("export", "RuntimeError: something new", "export", "export_error", "partial files stay", 2),
    ("calibration_data", "OSError: [Errno 28] No space left on device: '/hf/x'", "load", "cache_disk", "HF_HOME", 1),
    (
        "import",
        "PermissionError: [Errno 13] Permission denied: '/v/site-packages/quark/x'",
        "environment",
        "permission",
        "installation",
        3,
    ),
    ("", "ModuleNotFoundError: No module named 'quark'", "environment", "quark_missing", "interpreter", 3),
    ("", "ModuleNotFoundError: No module named 'timm'", "environment", "package_missing", "amd-quark[cli]", 3),
    (
        "model",
        "ImportError: This modeling file requires the following packages that were not found: flash_attn.",
        "environment",
        "package_missing",
        "interpreter",
        3,
    ),
    (
        "",
        "ModuleNotFoundError: No module named 'torch.ao.quantization.pt2e'",
        "compatibility",
        "torch_api_moved",
        "amd-quark",
        3,
    ),
    ("", "RuntimeError: operator torchvision::nms does not exist", "compatibility", "torchvision_mismatch", "torch", 3),
    ("", "ImportError: /x/libtorch.so: undefined symbol: _ZN3c10", "compatibility", "binary_mismatch", "fit", 3),
    (
        "",
        "OSError: libamdhip64.so.6: cannot open shared object file: No such file or directory",
        "environment",
        "shared_library",
        "driver",
        3,
    ),
    (
        "import",
        "RuntimeError: Stable-ABI hw_emulation extension could not be loaded and JIT compilation failed.",
        "environment",
        "compiler",
        "g++",
        3,
    ),
    (
        "calibrate",
        "AttributeError: 'DynamicCache' object has no attribute 'seen_tokens'",
        "compatibility",
        "transformers_api",
        "seen_tokens",
        3,
    ),
    (
        "model",
        "ValueError: The checkpoint has model type `x` but Transformers does not recognize this architecture.",
        "compatibility",
        "model_type_unknown",
        "transformers",
        3,
    ),
    (
        "model",
        "ImportError: cannot import name 'SlidingWindowCache' from 'transformers.cache_utils'",
        "compatibility",
        "transformers_api",
        "transformers",
        3,
    ),
    (
        "",
        "ImportError: tokenizers>=0.22 is required for a normal functioning of this module, but found 0.21",
        "compatibility",
        "version_required",
        "transformers",
        3,
    ),
    (
        "algorithm",
        "RuntimeError: The size of tensor a (2048) must match b (4096)",
        "quantization",
        "quantization_error",
        "algorithm",
        2,
    ),
    ("model", "RuntimeError: something new", "load", "load_error", "files", 1),
    ("", "RuntimeError: something new", "unknown", "unrecognised", "whole error", 3),
    ("evaluate", "RuntimeError: something new", "unknown", "unrecognised", "whole error", 3),
]


@pytest.mark.parametrize(("phase", "error", "kind", "code", "word", "checkpoint"), CASES)
def test_a_class_tied_to_its_line(phase: str, error: str, kind: str, code: str, word: str, checkpoint: int) -> None:
    """P-104, P-108, P-109, P-114, P-115, P-117, P-119, P-120: each class has its evidence and its smallest change."""
    text = log(phase) + trace(error)
    found = failed(text)
    assert (found.kind, found.code, found.checkpoint) == (kind, code, checkpoint)
    assert word in found.next_step
    assert found.message == "\n".join(line.rstrip() for line in error.split("\n"))
    first = text[: text.index(error)].count("\n") + 1
    assert found.evidence[0] == f"line {first}: {error.splitlines()[0].strip()}"
    assert found.whole_error.startswith("Traceback (most recent call last):")
    assert found.whole_error.endswith(error.splitlines()[-1])
    assert f"Checkpoint {checkpoint}" in found.next_step


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[3])
def test_no_step_is_a_blind_retry_or_touches_the_installed_program(case: tuple[str, str, str, str, str, int]) -> None:
    """P-110, P-123."""
    step = failed(log(case[0]) + trace(case[1])).next_step
    assert not re.search(r"(?i)\b(?:try again|retry|re-?run|patch|edit quark)\b", step)


def test_the_frames_tell_a_bare_key_error() -> None:
    assert failed(log("calibration_data") + trace("KeyError: 'nope'", TEMPLATE)).code == "override_scheme"
    assert failed(log("calibration_data") + trace("KeyError: 'nope'", TEMPLATE, IN_TEMPLATE)).code == "algorithm"
    auto = ("transformers/models/auto/configuration_auto.py", "__getitem__")
    assert failed(log("model") + trace("KeyError: 'new_arch'", auto)).code == "model_type_unknown"
    assert failed(trace("KeyError: 'nope'")).kind == "unknown"


def test_a_template_file_is_configuration() -> None:
    frame = ("quark/experimental/cli/register_template.py", "parse_template_from_json_file")
    assert failed(trace("FileNotFoundError: Template file not found: /t.json", frame)).code == "template_file"
    assert (
        failed(trace("ValueError: --template_file defines model_type 'a', but the model is 'b'.")).code
        == "template_file"
    )


def test_the_frames_tell_the_phase_where_the_records_are_missing() -> None:
    frames = (
        ("quark/torch/quantization/api.py", "quantize_model"),
        ("quark/torch/quantization/api.py", "_do_calibration"),
    )
    found = failed(trace("torch.OutOfMemoryError: CUDA out of memory.", *frames))
    assert (found.kind, found.phase) == ("memory", "calibrate")
    assert "num_calib_data" in found.next_step


PLACEMENT = (
    "MemoryError: Out of memory. The available GPU memory is insufficient to load the entire model. "
    "You can try adding '--multi_device' "
)


def test_no_gpu_for_a_new_quark_is_the_environment() -> None:
    """The message's own advice does not help on a host without GPU (measured with 0.13)."""
    found = failed(log("replace") + trace(PLACEMENT), CPU_013)
    assert (found.kind, found.code) == ("environment", "quark_needs_gpu")
    assert "0.12.post1" in found.next_step
    meta = failed(log("calibrate") + trace("NotImplementedError: Cannot copy out of meta tensor; no data!"), CPU_013)
    assert meta.code == "quark_needs_gpu"


def test_the_same_message_with_a_gpu_is_memory() -> None:
    found = failed(log("replace") + trace(PLACEMENT), GPU)
    assert (found.kind, found.code) == ("memory", "out_of_memory")
    assert "multi_device" in found.next_step
    assert "num_calib_data" not in found.next_step


def test_without_facts_the_log_itself_may_prove_that_there_was_no_gpu() -> None:
    told = "Some parameters are on the meta device because they were offloaded to the disk.\n"
    version = record('Quantizing with the quantization configuration:\n    version="0.13",')
    gpu = record("GPU0 cuda_avail_memory: 149.6GB")
    assert failed(log("replace") + told + version + trace(PLACEMENT)).kind == "environment"
    assert failed(log("replace") + told + gpu + version + trace(PLACEMENT)).kind == "memory"
    assert failed(log("replace") + version + trace(PLACEMENT)).kind == "memory"


def test_many_devices_name_the_mapping_limit() -> None:
    """P-118: vm.max_map_count is shown, and changing it needs approval."""
    context = FailureContext(device_strategy="multi_device", max_map_count=65530, gpu_available=True)
    step = failed(log("model") + trace("torch.OutOfMemoryError: HIP out of memory."), context).next_step
    assert "vm.max_map_count (now 65530)" in step
    assert "explicit approval" in step
    assert "plan device_strategy multi_device" not in step


def test_the_interpreter_is_shown_first() -> None:
    """P-111: the interpreter's path comes before an install is proposed."""
    context = FailureContext(interpreter="/v/bin/python")
    step = failed(trace("ModuleNotFoundError: No module named 'quark'"), context).next_step
    assert step.startswith("The interpreter was /v/bin/python.")
    assert step.index("/v/bin/python") < step.index("nstall")


def test_versions_are_named() -> None:
    """P-116: installed, required and declared version and the missing API."""
    context = FailureContext(
        quark_version="0.13", transformers_version="5.16", requires_transformers=">5,<5.17", model_transformers="4.46"
    )
    step = failed(trace("AttributeError: 'DynamicCache' object has no attribute 'get_max_length'"), context).next_step
    assert all(word in step for word in ("5.16", ">5,<5.17", "4.46", "get_max_length"))


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        (
            "AMD Quark CLI dependencies need to be installed with `pip install x`: No module named 'timm'.\n",
            "environment",
            "cli_dependencies_missing",
        ),
        (
            "AMD Quark needs to be installed with e.g. `pip3 install amd-quark`: No module named 'quark'.\n",
            "environment",
            "quark_missing",
        ),
        (
            "AMD Quark needs to be installed with e.g. `pip3 install amd-quark`: No module named 'torch'.\n",
            "environment",
            "package_missing",
        ),
        (
            "AMD Quark needs to be installed: No module named 'torch.ao.quantization.pt2e'.\n",
            "compatibility",
            "torch_api_moved",
        ),
        ("/v/bin/python: No module named quark\n", "environment", "quark_missing"),
    ],
)
def test_sentences_without_traceback(text: str, kind: str, code: str) -> None:
    """P-113."""
    found = failed(text)
    assert (found.kind, found.code) == (kind, code)
    assert found.evidence[0].startswith("line 1: ")


@pytest.mark.parametrize(
    "text",
    [
        "usage: quark-cli [-h] ...\nquark-cli: error: Unknown arguments: ['--group_size']\n",
        "usage: quark-cli x [-h]\nquark-cli torch-llm-ptq: error: argument --dataset: invalid choice: 'x'\n",
    ],
)
def test_a_refused_command_line(text: str) -> None:
    found = failed(record("import") + text, status=2)
    assert (found.kind, found.checkpoint) == ("configuration", 2)
    assert ": error: " in found.message


def test_the_last_of_chained_errors_is_the_message_and_the_chain_is_kept() -> None:
    chain = trace("KeyError: 'a'") + "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = failed(trace("ValueError: old") + "going on\n" + chain + trace("ValueError: Unsupported algorithm: x"))
    assert found.message == "ValueError: Unsupported algorithm: x"
    assert "KeyError: 'a'" in found.whole_error
    assert "ValueError: old" not in found.whole_error


def test_an_earlier_error_of_the_chain_speaks_where_the_last_says_nothing() -> None:
    cause = trace("RuntimeError: operator torchvision::nms does not exist")
    joint = "\nThe above exception was the direct cause of the following exception:\n\n"
    found = failed(cause + joint + trace("ModuleError: Could not import module 'AutoProcessor'."))
    assert found.code == "torchvision_mismatch"
    assert found.message == "ModuleError: Could not import module 'AutoProcessor'."
    assert len(found.evidence) == 2


def test_a_logged_error_that_the_program_survived_is_not_the_cause() -> None:
    survived = trace("torch.OutOfMemoryError: CUDA out of memory.") + record("Initializing tokenizer from /m")
    assert failed(survived).kind == "unknown"


def test_what_stands_behind_the_traceback_is_not_its_message() -> None:
    tails = (
        "Exception ignored in: <function f>\n" + trace("AttributeError: late"),
        "Command exited with non-zero status 1\n\tExit status: 1\n",
        "\nreal\t1m2.024s\nuser\t1m57.709s\n",
        "W1130 15:35:46.383000 2851 torch/x.py:183] leaked\n",
    )
    for tail in tails:
        found = failed(log("model") + trace("ValueError: Unsupported algorithm: x") + tail)
        assert found.message == "ValueError: Unsupported algorithm: x"


def test_a_traceback_behind_a_live_bar_is_found() -> None:
    text = log("calibrate") + "\rCalibrating activations: 6%|# | 1/16 [0:00<0:01, 2.06it/s]" + trace("MemoryError")
    found = failed(text)
    assert (found.kind, found.message, found.phase) == ("memory", "MemoryError", "calibrate")


def test_a_ranked_traceback() -> None:
    text = "".join(f"[rank0]: {row}\n" for row in trace("MemoryError: x").splitlines())
    assert failed(text).kind == "memory"


def test_a_tail_that_begins_inside_the_traceback() -> None:
    assert failed("    x = f(y)\nValueError: Unsupported quantization scheme: fp9\n").code == "scheme"


@pytest.mark.parametrize(
    ("status", "signal", "stopped"),
    [(None, 2, "INT"), (None, 15, None), (130, None, None), (143, None, None), (None, 9, "KILL"), (None, 1, None)],
)
def test_signals_that_interrupt(status: int | None, signal: int | None, stopped: str | None) -> None:
    found = failed(log("calibrate"), FailureContext(stopped_by=stopped), status, signal)
    assert found.kind == "interrupted"
    assert ("This program's stop sent it" in found.message) is bool(stopped)
    assert "nothing is written" in found.next_step


def test_a_keyboard_interrupt_is_no_error() -> None:
    found = failed(log("calibrate") + trace("KeyboardInterrupt"), None, 1)
    assert (found.kind, found.evidence[0].endswith("KeyboardInterrupt")) == ("interrupted", True)


def test_a_kill_is_memory_only_with_the_kernel_s_word() -> None:
    assert failed(log("model"), None, None, 9).kind == "unknown"
    assert failed(log("model") + "Killed\n", None, 137).kind == "unknown"
    word = FailureContext(kernel_word="Memory cgroup out of memory: Killed process 12 (quark-cli)")
    found = failed(log("model"), word, None, 9)
    assert found.kind == "memory"
    assert any("Memory cgroup" in item for item in found.evidence)
    slurm = failed(log("model") + "slurmstepd: error: Detected 1 oom_kill event in StepId=1\n", None, 137)
    assert slurm.kind == "memory"


def test_a_crash_is_told_by_its_own_words_or_not_at_all() -> None:
    assert failed("Fatal Python error: Segmentation fault\n", None, None, 11).kind == "unknown"
    assert failed("terminate called after throwing an instance of 'std::bad_alloc'\n", None, None, 6).kind == "memory"
    assert failed("Memory access fault by GPU node-1\n", None, None, 6).kind == "environment"
    assert failed("", None, None, 25).kind == "export"


def test_nothing_proves_a_class() -> None:
    for status in (None, 1, 77):
        found = failed(log("calibrate") + "strange words\n", None, status)
        assert found.kind == "unknown"
        assert found.evidence
    assert failed("", None, None).kind == "unknown"


def test_zero_without_output_is_no_success() -> None:
    """P-121, P-122."""
    found = failed(log("export"), FailureContext(output_missing=True), 0)
    assert (found.kind, found.checkpoint) == ("export", 2)
    assert "absolute output_dir" in found.next_step  # P-121


def test_secrets_and_control_characters_do_not_pass() -> None:
    text = trace("ConnectionError: Couldn't reach https://user:tok@host/x?token=abc \x1b]52;c;AA\x07\u202e")
    found = failed(text)
    for part in (found.message, found.whole_error, *found.evidence, found.next_step):
        assert "tok@" not in part
        assert "abc" not in part
        assert all(row.isprintable() for row in part.split("\n"))


_PARTS = st.one_of(
    st.sampled_from(
        [
            "Traceback (most recent call last):",
            '  File "x.py", line 1, in f',
            "  + Exception Group Traceback (most recent call last):",
            "  | ValueError: x",
            "During handling of the above exception, another exception occurred:",
            "",
            "ValueError: Unsupported algorithm: q",
            "KeyError: 'x'",
            "KeyboardInterrupt",
            "[QUARK-INFO]: Loading model ...",
            "quark-cli: error: no",
            "Killed",
            "[rank0]: x",
        ]
    ),
    st.text(max_size=30),
)


@given(
    st.lists(_PARTS, max_size=15),
    st.one_of(st.none(), st.integers(-5, 260)),
    st.one_of(st.none(), st.integers(1, 70)),
)
def test_any_log_has_an_answer(parts: list[str], status: int | None, signal: int | None) -> None:
    found = classify("\n".join(parts), status, signal)
    assert found.kind
    assert found.next_step
    assert all(item.isprintable() for item in found.evidence)
    assert all(row.isprintable() for row in found.message.split("\n"))


def test_a_hostile_log_is_bounded() -> None:
    rows = ["Traceback (most recent call last):", "ValueError: x " + "No module named '" * 4000] * 3000
    lines = [Line(text, "", number) for number, text in enumerate(rows, 1)]
    found = classify(lines, 1)
    assert len(found.whole_error) < 300_000


def test_text_and_lines_are_the_same() -> None:
    text = log("model") + trace("ValueError: Unsupported algorithm: x")
    folder = Folder()
    assert classify([*folder.feed(text.encode()), *folder.finish()], 1) == classify(text, 1)
