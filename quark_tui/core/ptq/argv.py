"""The exact command of a confirmed plan: ``quark-cli torch-llm-ptq`` with the options that the plan decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.command import Command
from quark_tui.core.ptq.catalog import Catalog
from quark_tui.core.ptq.surroundings import Surroundings
from quark_tui.core.text import clean, elide_end

#: Where quark-cli changes to before it loads anything, below site-packages; it makes the folder if need be (source).
WORKING_FOLDER = "quark/experimental/cli/torch_llm/llm_ptq"


def ptq_command(
    plan: Mapping[str, Any], quark_cli: str, job_dir: str, catalog: Catalog | None, around: Surroundings
) -> Command:
    """The command for ``plan`` (the content of ``quant_plan.json``), started in ``job_dir``.

    ``quark_cli`` is the absolute path of the command in the environment that holds amd-quark. Only
    ``exclude_layers_source`` and ``layer_order`` decide about excludes and overrides. Options whose value is the
    installed command's default are left out where the documents say so (data set, batch size). Raises WrongQuestion
    for a plan that cannot be a command: a missing or mistyped field, a relative path, a value that would be read as an
    option.
    """
    catalog = catalog if catalog is not None else Catalog("", "")
    model = plan.get("model")
    model_dir = model.get("model_path") if isinstance(model, Mapping) else None
    model_path = _path(model_dir if model_dir is not None else around.model_dir or None, "model.model_path")
    output = _path(plan.get("output_dir"), "output_dir")
    strategy = plan.get("device_strategy")
    if strategy not in ("single", "multi_device", "cpu"):
        raise WrongQuestion("the plan does not decide where the run computes (device_strategy)")

    argv = [_path(quark_cli, "quark-cli"), "torch-llm-ptq"]
    argv += ["--model_dir", model_path, "--output_dir", output]
    argv += ["--quant_scheme", _text(plan.get("global_scheme"), "global_scheme")]
    for pattern, scheme in _overrides(plan):
        argv += ["--layer_quant_scheme", pattern, scheme]
    if plan.get("kv_cache_scheme") is not None:
        argv += ["--kv_cache_dtype", _text(plan["kv_cache_scheme"], "kv_cache_scheme")]
    if plan.get("algorithm") is not None:
        argv += ["--quant_algo", _text(plan["algorithm"], "algorithm")]
    source = plan.get("exclude_layers_source")
    if source == "explicit":
        # Takes any number of values up to the next option, so an option follows; without a value it excludes nothing.
        argv += ["--exclude_layers", *_texts(plan.get("exclude_layers"), "exclude_layers")]
    elif source != "template":
        raise WrongQuestion("the plan does not say whether exclude_layers are the template's (exclude_layers_source)")
    argv += ["--num_calib_data", _count(plan, "num_calib_data"), "--seq_len", _count(plan, "seq_len")]
    dataset = _text(plan.get("dataset"), "dataset")
    if dataset != catalog.default("--dataset"):
        argv += ["--dataset", dataset]
    batch = _count(plan, "batch_size")
    if batch != str(catalog.default("--batch_size")):
        argv += ["--batch_size", batch]
    # A ROCm build of torch calls its devices cuda as well.
    argv += ["--device", "cpu" if strategy == "cpu" else "cuda"]
    if strategy == "multi_device":
        argv.append("--multi_device")
    template = plan.get("template_file")
    if template is not None:
        argv += ["--template_file", _path(template, "template_file")]
    trust = plan.get("trust_remote_code")
    if type(trust) is not bool:
        raise WrongQuestion("the plan does not decide about remote code (trust_remote_code)")
    if not trust:
        argv.append("--no_trust_remote_code")
    intent = plan.get("evaluation_intent")
    if intent == "none":
        argv.append("--skip_evaluation")
    elif intent in ("smoke", "full"):
        evaluation = _text(plan.get("evaluation_dataset"), "evaluation_dataset")
        if evaluation != catalog.default("--evaluation_dataset"):
            argv += ["--evaluation_dataset", evaluation]
    else:
        raise WrongQuestion("the plan does not decide about the evaluation (evaluation_intent)")

    env_set, env_unset = environment(strategy, _devices(plan), around)
    reads = [model_path] + ([template] if template is not None else [])
    writes = [output]
    if catalog.source.startswith("/"):
        writes.append(f"{catalog.source.rstrip('/')}/{WORKING_FOLDER}")
    return Command(
        argv=tuple(argv),
        cwd=_path(job_dir, "the job"),
        env_set=env_set,
        env_unset=env_unset,
        reads=tuple(reads),
        writes=tuple(writes),
        purpose=f"quantize to {clean(plan.get('global_scheme'))}",
    )


def environment(
    strategy: str, devices: tuple[int, ...], around: Surroundings
) -> tuple[dict[str, str], tuple[str, ...]]:
    """(variables to set, variables to unset): the log level that prints the phases, and the device mask.

    ``devices`` are physical indices. Without a mask quark-cli takes every visible GPU (source). CUDA numbers devices by
    speed unless told to use the bus order, which is that of the indices that people see.
    """
    mask = "" if strategy == "cpu" else ",".join(map(str, devices))
    if strategy != "cpu" and not devices:
        raise WrongQuestion("the plan names no device (devices)")
    variables = {"QUARK_LOG_LEVEL": "info"}
    if around.gpu_backend == "rocm":
        variables["HIP_VISIBLE_DEVICES"] = mask
        # A second mask would be applied on top of this one, and count within it.
        nested = [name for name in ("ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL") if name in around.inherited and mask]
        return variables, ("CUDA_VISIBLE_DEVICES", *nested)
    variables["CUDA_VISIBLE_DEVICES"] = mask
    if mask:
        variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    return variables, ()


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise WrongQuestion(f"the plan's {name} is no text")
    if value.startswith("-"):
        raise WrongQuestion(f"{elide_end(clean(value), 80)} in {name} would be read as an option")
    return value


def _path(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise WrongQuestion(f"{name} is no absolute path: {elide_end(clean(value), 80)}")
    return value


def _texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list):
        raise WrongQuestion(f"the plan's {name} is no list")
    return [_text(item, name) for item in value]


def _count(plan: Mapping[str, Any], name: str) -> str:
    value = plan.get(name)
    if type(value) is not int or not 0 < value < 10**12:
        raise WrongQuestion(f"the plan's {name} is no positive integer")
    return str(value)


def _overrides(plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    schemes, order = plan.get("layer_quant_config"), plan.get("layer_order")
    if not isinstance(schemes, Mapping):
        raise WrongQuestion("the plan's layer_quant_config is no map")
    patterns = _texts(order if order is not None else list(schemes), "layer_order")
    if len(patterns) != len(schemes) or set(patterns) != set(schemes):
        raise WrongQuestion("layer_order and layer_quant_config of the plan name different patterns")
    return [(pattern, _text(schemes[pattern], "layer_quant_config")) for pattern in patterns]


def _devices(plan: Mapping[str, Any]) -> tuple[int, ...]:
    value = plan.get("devices")
    if value is None:
        return ()
    if not isinstance(value, list) or not all(type(item) is int and 0 <= item < 4096 for item in value):
        raise WrongQuestion("the plan's devices are no list of GPU indices")
    return tuple(value)
