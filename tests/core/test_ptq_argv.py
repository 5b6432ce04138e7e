"""The exact command of a plan, and what the real option parser makes of it."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.command import Command
from quark_tui.core.ptq.argv import ptq_command
from quark_tui.core.ptq.plan import Surroundings, TemplateFile
from tests.support.ptq import analysis, catalog, machine, view

CLI = "/env/bin/quark-cli"


def command(*sets: str, around: Surroundings | None = None, version: str = "0.12.post1", **asked: Any) -> Command:
    around = around if around is not None else machine()
    plan = view(*sets, around=around, quark=catalog(version), **asked).plan
    assert plan is not None
    return ptq_command(plan, CLI, "/jobs/j", catalog(version), around)


def parser() -> argparse.ArgumentParser:
    """The options of quark-cli torch-llm-ptq, as its documents describe them."""
    made = argparse.ArgumentParser(exit_on_error=False)
    for flag in ("--model_dir", "--output_dir", "--quant_scheme", "--dataset", "--quant_algo", "--template_file",
                 "--device", "--evaluation_dataset", "--kv_cache_dtype"):  # fmt: skip
        made.add_argument(flag)
    for flag, default in (("--num_calib_data", 512), ("--seq_len", 512), ("--batch_size", 1)):
        made.add_argument(flag, type=int, default=default)
    made.add_argument("--layer_quant_scheme", action="append", nargs=2)
    made.add_argument("--exclude_layers", nargs="*")
    for flag in ("--multi_device", "--skip_evaluation", "--no_trust_remote_code"):
        made.add_argument(flag, action="store_true")
    return made


def test_the_shortest_command() -> None:
    """P-70, P-71, P-72, P-73, P-80, P-82: what is always there, and nothing beyond what was confirmed."""
    assert command().argv == (
        CLI, "torch-llm-ptq", "--model_dir", "/models/m", "--output_dir", "/jobs/j/out", "--quant_scheme", "fp8",
        "--num_calib_data", "512", "--seq_len", "512", "--device", "cpu", "--no_trust_remote_code", "--skip_evaluation",
    )  # fmt: skip


def test_the_longest_command() -> None:
    """P-73, P-74, P-75, P-76, P-77, P-78, P-81: each confirmed decision becomes its option."""
    around = machine(gpu_count=2, visible=(0, 1), gpu_backend="cuda", quark_version="0.13")
    made = command(
        "global_scheme=int4_wo_32", "kv_cache_scheme=fp8", "algorithm=gptq,awq", "dataset=wikitext", "batch_size=8",
        "device_strategy=multi_device", "evaluation_intent=full", "evaluation_dataset=other", "trust_remote_code=true",
        "num_calib_data=64", "exclude_layers=lm_head,*q_proj",
        overrides=("*up_proj=int8", "*down_proj=ptpc_fp8"), around=around, version="0.13",
    )  # fmt: skip
    assert made.argv[2:] == (
        "--model_dir", "/models/m", "--output_dir", "/jobs/j/out", "--quant_scheme", "int4_wo_32",
        "--layer_quant_scheme", "*up_proj", "int8", "--layer_quant_scheme", "*down_proj", "ptpc_fp8",
        "--kv_cache_dtype", "fp8", "--quant_algo", "gptq,awq", "--exclude_layers", "lm_head", "*q_proj",
        "--num_calib_data", "64", "--seq_len", "512", "--dataset", "wikitext", "--batch_size", "8", "--device", "cuda",
        "--multi_device", "--evaluation_dataset", "other",
    )  # fmt: skip


def test_the_templates_excludes_are_not_an_option() -> None:
    """P-77: given only to replace the template's list; without values by deliberate choice."""
    assert "--exclude_layers" not in command().argv
    assert parser().parse_args(command("exclude_layers=[]").argv[2:]).exclude_layers == []
    assert parser().parse_args(command("exclude_layers=lm_head").argv[2:]).exclude_layers == ["lm_head"]


def test_remote_code_stays_off_unless_consented() -> None:
    """P-79: the flag is left out after explicit consent only."""
    assert "--no_trust_remote_code" in command().argv
    assert "--no_trust_remote_code" not in command("trust_remote_code=true").argv


def test_default_evaluation_needs_no_option() -> None:
    """P-81: only another data set than the default is named."""
    made = command("evaluation_intent=smoke")
    assert "--skip_evaluation" not in made.argv and "--evaluation_dataset" not in made.argv


def test_a_template_file_is_given_and_read() -> None:
    around = machine(template_file=TemplateFile("gpt2"), quark_version="0.13", gpu_count=1, visible=(0,))
    made = command(
        "template_file=/t.json", "device_strategy=single", around=around, version="0.13", model=analysis("gpt2")
    )
    assert made.argv[made.argv.index("--template_file") + 1] == "/t.json"
    assert made.reads == ("/models/m", "/t.json")


def test_folders() -> None:
    made = command()
    assert made.cwd == "/jobs/j"
    assert made.writes[0] == "/jobs/j/out"
    assert made.writes[1].startswith("/env/lib/site-packages/quark/")


@pytest.mark.parametrize(
    ("around", "sets", "set_", "unset"),
    [
        (machine(), (), {"CUDA_VISIBLE_DEVICES": ""}, ()),
        (machine(gpu_backend="rocm"), (), {"HIP_VISIBLE_DEVICES": ""}, ("CUDA_VISIBLE_DEVICES",)),
        (
            machine(gpu_count=8, visible=(4, 6), gpu_backend="cuda"),
            ("device_strategy=multi_device", "devices=6,4"),
            {"CUDA_VISIBLE_DEVICES": "6,4", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            (),
        ),
        (
            machine(gpu_count=8, visible=(4, 6), gpu_backend="rocm", inherited={"ROCR_VISIBLE_DEVICES": "4,6"}),
            ("device_strategy=single", "devices=4"),
            {"HIP_VISIBLE_DEVICES": "4"},
            ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
        ),
    ],
)
def test_device_mask(around: Surroundings, sets: tuple[str, ...], set_: dict[str, str], unset: tuple[str, ...]) -> None:
    """P-13, P-72, P-83: ROCm is written cuda and pinned by HIP_VISIBLE_DEVICES."""
    made = command(*sets, around=around)
    assert made.env_set == {"QUARK_LOG_LEVEL": "info", **set_}
    assert made.env_unset == unset
    assert made.argv[made.argv.index("--device") + 1] == ("cuda" if sets else "cpu")


@given(st.lists(st.text("ab*?[]' $;\"\\é.", min_size=1, max_size=6), unique=True, max_size=4))
def test_patterns_arrive_as_they_are(patterns: list[str]) -> None:
    """P-75, P-82: one argv item each, and the preview reads back as the same argv."""
    plan = view().plan
    assert plan is not None
    plan |= {
        "exclude_layers": patterns,
        "exclude_layers_source": "explicit",
        "layer_quant_config": dict.fromkeys(reversed(patterns), "int8"),
        "layer_order": patterns,
    }
    made = ptq_command(plan, CLI, "/jobs/j", catalog(), machine())
    read = parser().parse_args(list(made.argv[2:]))
    assert read.exclude_layers == patterns
    assert (read.layer_quant_scheme or []) == [[pattern, "int8"] for pattern in patterns]
    assert read.num_calib_data == 512
    assert tuple(shlex.split(made.shell)) == made.argv


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model", None),
        ("model", {"model_path": "relative"}),
        ("output_dir", "out"),
        ("output_dir", 7),
        ("global_scheme", "--x"),
        ("global_scheme", None),
        ("exclude_layers_source", "?"),
        ("layer_order", ["*a"]),
        ("layer_quant_config", []),
        ("num_calib_data", True),
        ("seq_len", -1),
        ("batch_size", "1"),
        ("device_strategy", None),
        ("devices", [True]),
        ("trust_remote_code", "false"),
        ("evaluation_intent", None),
        ("dataset", "-d"),
        ("algorithm", ["awq"]),
        ("template_file", "t.json"),
    ],
)
def test_a_damaged_plan_is_no_command(key: str, value: Any) -> None:
    plan = view().plan
    assert plan is not None
    with pytest.raises(WrongQuestion):
        ptq_command({**plan, key: value}, CLI, "/jobs/j", catalog(), machine(model_dir=""))
