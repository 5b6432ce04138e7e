"""Plans: rows, patterns, every refusal one by one, estimates, and the digest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.finding import Finding
from quark_tui.core.model.inventory import Inventory, Module
from quark_tui.core.ptq.catalog import parse_catalog
from quark_tui.core.ptq.plan import PlanView, TemplateFile, build, plan_digest, refusals
from quark_tui.core.ptq.surroundings import template_file
from quark_tui.core.ptq.wishes import ROWS, Wishes, changed, touched
from quark_tui.core.text import clean
from tests.support.ptq import analysis, catalog, codes, llama, machine, moe, output, view

UNKNOWN = Inventory(False, "no headers")


def finding(plan: PlanView, code: str) -> Finding:
    return next(finding for finding in plan.findings if finding.code == code)


def row(plan: PlanView, key: str) -> Any:
    return next(row for row in plan.rows if row.key == key)


def gpus(count: int, **facts: Any) -> Any:
    return machine(gpu_count=count, visible=tuple(range(count)), gpu_backend="cuda", **facts)


def test_a_complete_plan_blocks_nothing() -> None:
    """P-56, P-64, P-65, P-66: the fields of quant_plan.json."""
    plan = view()
    assert codes(plan) == [] and plan.confirmable
    assert plan.plan is not None
    assert plan.plan["model"] == {
        "model_type": "llama",
        "analysis_ref": "/jobs/j/model_analysis.json",
        "model_path": "/models/m",
    }
    assert plan.plan["kv_cache_scheme"] is None and plan.plan["layer_quant_config"] == {}
    assert plan.plan["evaluation_intent"] == "none"


def test_rows_come_in_order_with_defaults_and_reasons() -> None:
    """P-48, P-60, P-62: every decision is a row, defaults are those of the installed command."""
    plan = view("seq_len=128", reasons=("seq_len=short texts",))
    assert tuple(row.key for row in plan.rows) == ROWS
    assert all(row.reason for row in plan.rows)
    sequence = row(plan, "seq_len")
    assert (sequence.value, sequence.default, sequence.reason, sequence.changed) == (128, 512, "short texts", True)
    assert row(plan, "num_calib_data").value == 512 and not row(plan, "num_calib_data").changed
    assert plan.plan is not None and plan.plan["num_calib_data"] == 512  # written although it is the default
    assert row(plan, "trust_remote_code").value is False


def test_defaults_follow_the_installed_command() -> None:
    """P-60: another version, other defaults."""
    other = parse_catalog(
        "9.9",
        "/s",
        "",
        "",
        'p.add_argument("--num_calib_data", default=99)\np.add_argument("--dataset", default=load())',
    )
    plan = view(quark=other)
    assert row(plan, "num_calib_data").default == 99
    assert row(plan, "num_calib_data").reason == "default of quark-cli 9.9"
    assert row(plan, "dataset").default == "pileval"


def test_a_remembered_default_is_labelled_as_one() -> None:
    """P-22: what could not be read of the installed command is never called its own."""
    plan = view(quark=parse_catalog("9.9", "/s", "", "", 'p.add_argument("--dataset", default=load())'))
    for key in ("dataset", "seq_len"):
        assert "could not be read" in row(plan, key).reason and "9.9" not in row(plan, key).reason


def test_a_dataset_that_the_command_lists_and_does_not_have() -> None:
    """P-59: measured, ScienceQA ends in NotImplementedError after the model was loaded."""
    assert codes(view("dataset=ScienceQA")) == ["dataset_unsupported"]
    assert codes(view("dataset=wikitext")) == []
    assert codes(view("dataset=elsewhere")) == ["dataset_unsupported"]


def test_trusting_remote_code_says_what_the_command_does_without_the_flag() -> None:
    """P-79: the flag is left out only by choice, and then it is said that the command trusts remote code."""
    trusted = view("trust_remote_code=true")
    (finding,) = [one for one in trusted.findings if one.code == "remote_code_trusted"]
    assert "trusts remote code unless --no_trust_remote_code" in f"{finding.message} {finding.evidence}"
    assert not [one for one in view().findings if one.code == "remote_code_trusted"]


def test_only_schemes_that_can_be_exported_are_offered() -> None:
    """P-51: a scheme that is refused afterwards is no offer."""
    (missing,) = [one for one in view("global_scheme=none").findings if one.code == "scheme_missing"]
    offered = missing.next_step.split(": ", 1)[1].split()
    assert "fp8" in offered and "brand_new" in offered and "mx6" not in offered


def test_excludes_start_from_the_template_and_say_so() -> None:
    """P-55, P-67: the effective list is stored together with where it comes from."""
    plan = view()
    assert plan.plan is not None
    assert (plan.plan["exclude_layers"], plan.plan["exclude_layers_source"]) == (["lm_head"], "template")
    added = view(excludes=("*down_proj",)).plan
    assert added is not None
    assert (added["exclude_layers"], added["exclude_layers_source"]) == (["lm_head", "*down_proj"], "explicit")
    none = view("exclude_layers=[]").plan
    assert none is not None
    assert (none["exclude_layers"], none["exclude_layers_source"]) == ([], "explicit")
    same = view("exclude_layers=lm_head")
    assert same.plan is not None and same.plan["exclude_layers_source"] == "explicit"
    assert row(same, "exclude_layers").changed


def test_override_order_is_kept() -> None:
    plan = view(overrides=("*up_proj=int8", "*gate_proj=int8", "*down_proj=ptpc_fp8")).plan
    assert plan is not None
    assert plan["layer_order"] == ["*up_proj", "*gate_proj", "*down_proj"]


def test_pattern_views_count_like_quark() -> None:
    """P-57: matches and what each pattern really decides."""
    plan = view('exclude_layers=["lm_head", "*.0.self_attn.*", "*self_attn*"]', overrides=("*proj=int8",))
    shown = [(p.kind, p.pattern, p.matches, p.effective, p.shadowed_by) for p in plan.patterns]
    assert shown == [
        ("exclude", "lm_head", 1, 1, None),
        ("exclude", "*.0.self_attn.*", 4, 4, None),
        ("exclude", "*self_attn*", 8, 4, None),
        ("override", "*proj", 14, 6, None),
    ]
    hidden = view('exclude_layers=["*self_attn*", "*q_proj"]')
    assert hidden.patterns[1].shadowed_by == "*self_attn*" and hidden.patterns[1].effective == 0
    blind = view(inventory=UNKNOWN, overrides=("lm_head=int8",))
    assert [(p.matches, p.effective, p.shadowed_by) for p in blind.patterns] == [
        (None, None, None),
        (None, None, "lm_head"),
    ]


# Each refusal: what is asked, and where.
REFUSALS: list[tuple[str, dict[str, Any]]] = [
    ("path_not_absolute", {"sets": ("output_dir=out",)}),
    ("path_not_absolute", {"sets": ("output_dir=~/out",)}),
    ("path_not_absolute", {"sets": ("template_file=t.json",), "quark": catalog("0.13")}),
    ("output_not_empty", {"around": machine(output=output(exists=True, is_dir=True, empty=False))}),
    ("output_not_empty", {"around": machine(output=output(exists=True, is_dir=False))}),
    (
        "output_is_model",
        {"around": machine(output=output(exists=True, is_dir=True, empty=False, resolved="/models/m"))},
    ),
    ("output_is_model", {"around": machine(model_resolved="/real/m", output=output(resolved="/real/m/"))}),
    ("output_in_prefix", {"around": machine(output=output(resolved="/env/lib/out"))}),
    ("output_in_prefix", {"around": machine(output=output(resolved="/env"))}),
    ("parent_not_writable", {"around": machine(output=output(parent_writable=False))}),
    ("no_space", {"around": machine(free_bytes=1000)}),
    ("scheme_missing", {"sets": ("global_scheme=none",)}),
    ("scheme_unknown", {"sets": ("global_scheme=FP8",)}),
    ("scheme_unknown", {"overrides": ("*q_proj=fp9",)}),
    ("scheme_not_exportable", {"sets": ("global_scheme=mx6",)}),
    ("scheme_not_exportable", {"overrides": ("*down_proj=mx6",)}),
    ("kv_unsupported", {"sets": ("kv_cache_scheme=mxfp4",)}),
    ("kv_unsupported", {"sets": ("kv_cache_scheme=fp8",), "model": analysis("no_kv")}),
    ("algorithm_unsupported", {"sets": ("algorithm=quarot",)}),
    ("algorithm_unsupported", {"sets": ("algorithm=gptq,awq",), "model": analysis("gpt_oss")}),
    ("algorithm_unsupported", {"sets": ("algorithm=autoround",), "quark": catalog("0.13")}),
    ("group_size_indivisible", {"sets": ("global_scheme=int4_wo_128",), "inventory": llama(hidden=96)}),
    ("group_size_indivisible", {"overrides": ("*q_proj=int4_wo_128",), "inventory": llama(hidden=96)}),
    (
        "group_size_indivisible",
        {"sets": ("global_scheme=int4_wo_128",), "inventory": UNKNOWN, "model": analysis(hidden_size=96)},
    ),
    ("batch_exceeds_samples", {"sets": ("batch_size=32", "num_calib_data=16")}),
    ("batch_exceeds_samples", {"sets": ("batch_size=513", "global_scheme=ptpc_fp8", "kv_cache_scheme=fp8")}),
    ("batch_exceeds_samples", {"sets": ("batch_size=513", "global_scheme=int4_wo_32", "algorithm=awq")}),
    ("batch_exceeds_samples", {"sets": ("batch_size=513", "global_scheme=mxfp4"), "overrides": ("*q_proj=fp8",)}),
    ("override_overlaps", {"overrides": ("*self_attn*=int8", "*q_proj=ptpc_fp8")}),
    ("override_overlaps", {"overrides": ("*=int8", "model.layers.0.mlp.up_proj=ptpc_fp8")}),
    ("override_shadowed", {"overrides": ("lm_head=int4_wo_32",)}),
    ("override_shadowed", {"overrides": ("lm_head=int4_wo_32",), "inventory": UNKNOWN}),
    ("override_shadowed", {"overrides": ("*q_proj=int8",), "excludes": ("*self_attn*",)}),
    ("pattern_matches_nothing", {"overrides": ("*o_prj=int8",)}),
    ("pattern_matches_nothing", {"excludes": ("*dwn_proj",)}),
    ("pattern_matches_nothing", {"overrides": ("*mlp.gate=int8",), "inventory": moe(), "model": analysis("qwen3_moe")}),
    ("excludes_everything", {"sets": ("exclude_layers=*",)}),
    ("excludes_everything", {"sets": ("exclude_layers=**",), "inventory": UNKNOWN}),
    ("excludes_everything", {"excludes": ("*proj",)}),
    ("compute_undecided", {"sets": ("device_strategy=none",)}),
    ("devices_missing", {"sets": ("device_strategy=single",), "around": gpus(2)}),
    ("devices_missing", {"sets": ("device_strategy=single", "devices=2"), "around": gpus(2)}),
    ("devices_missing", {"sets": ("device_strategy=single", "devices=0,1"), "around": gpus(2)}),
    ("devices_missing", {"sets": ("device_strategy=single",)}),
    ("devices_missing", {"sets": ("device_strategy=multi_device", "devices=0")}),
    ("quark_needs_gpu", {"around": machine(quark_version="0.13")}),
    ("quark_needs_gpu", {"around": gpus(1, quark_version="0.14.1")}),
    ("template_missing", {"model": analysis("gpt2")}),
    ("template_missing", {"sets": ("template_file=/t.json",)}),  # 0.12 has no such option
    ("template_missing", {"sets": ("template_file=/t.json",), "quark": catalog("0.13")}),
    (
        "template_missing",
        {
            "sets": ("template_file=/t.json",),
            "quark": catalog("0.13"),
            "around": machine(template_file=TemplateFile("gpt2")),
        },
    ),
    ("model_type_unknown", {"model": analysis(None)}),
]


@pytest.mark.parametrize(("code", "asked"), REFUSALS, ids=[f"{n}-{code}" for n, (code, _) in enumerate(REFUSALS)])
def test_refusal(code: str, asked: dict[str, Any]) -> None:
    """P-51, P-54, P-57, P-72, P-82, P-103: a block with evidence and a next step, and nothing else blocks."""
    asked = dict(asked)
    plan = view(*asked.pop("sets", ()), **asked)
    assert set(codes(plan)) == {code}
    assert not plan.confirmable
    found = finding(plan, code)
    assert found.message and found.evidence and found.next_step


# The same subjects where nothing is wrong.
ALLOWED: list[dict[str, Any]] = [
    {"around": machine(output=output(exists=True, is_dir=True, empty=True))},
    {"around": machine(output=output(resolved="/environment/out"))},
    {"around": machine(prefix="")},
    {"around": machine(free_bytes=None, memory_bytes=None)},
    {"sets": ("kv_cache_scheme=fp8",)},
    {"sets": ("algorithm=AWQ",)},
    {"sets": ("algorithm=autoround",)},  # broken in 0.13 only
    {"sets": ("global_scheme=int4_wo_128",)},
    {"sets": ("global_scheme=int4_wo_32",), "inventory": llama(hidden=96)},
    # The modules that the group size does not divide are excluded, or have another scheme.
    {
        "sets": (
            "global_scheme=int4_wo_128",
            "exclude_layers=lm_head,*q_proj,*k_proj,*v_proj,*o_proj,*gate_proj,*up_proj",
        ),
        "inventory": llama(hidden=96),
    },
    {
        "sets": ("global_scheme=int4_wo_128",),
        "overrides": ("*self_attn*=fp8", "*gate_proj=fp8", "*up_proj=fp8"),
        "inventory": llama(hidden=96),
    },
    {"sets": ("global_scheme=mxfp4",), "inventory": llama(hidden=72)},
    {"sets": ("global_scheme=mxfp4",), "inventory": UNKNOWN, "model": analysis(hidden_size=72)},
    {"sets": ("batch_size=512",)},
    {"sets": ("batch_size=513", "global_scheme=mxfp4")},
    {"sets": ("batch_size=513", "dataset=x/ultrachat_1")},
    {"overrides": ("*self_attn*=int8", "*mlp*=ptpc_fp8")},
    {"overrides": ("*self_attn*=int8", "*q_proj=int8")},
    {"sets": ("exclude_layers=*q_proj,lm_head",), "overrides": ("*self_attn*=int8",)},
    {"sets": ("exclude_layers=[]",), "overrides": ("lm_head=int4_wo_32",)},
    {"overrides": ("*anything=int8",), "inventory": UNKNOWN},
    {"excludes": ("*norm*",)},
    {"model": analysis("qwen3_moe"), "inventory": llama()},  # the template's *.gate matches nothing: no typo of hers
    {"model": analysis("qwen3_moe"), "inventory": llama(), "excludes": ("*q_proj",)},
    {"around": gpus(1), "sets": ("device_strategy=single",)},
    {"around": gpus(2), "sets": ("device_strategy=single", "devices=1")},
    {"around": gpus(2), "sets": ("device_strategy=multi_device",)},
    {"around": machine(gpu_count=8, visible=(4, 6)), "sets": ("device_strategy=single", "devices=6")},
    {
        "around": machine(template_file=TemplateFile("gpt2", exclude=("lm_head",))),
        "sets": ("template_file=/t.json",),
        "quark": catalog("0.13"),
        "model": analysis("gpt2"),
    },
]


@pytest.mark.parametrize("asked", ALLOWED, ids=range(len(ALLOWED)))
def test_what_is_right_is_not_refused(asked: dict[str, Any]) -> None:
    asked = dict(asked)
    plan = view(*asked.pop("sets", ()), **asked)
    assert codes(plan) == []


def test_the_device_outside_the_mask_is_refused() -> None:
    plan = view("device_strategy=single", "devices=0", around=machine(gpu_count=8, visible=(4, 6)))
    assert codes(plan) == ["devices_missing"]


def test_did_you_mean() -> None:
    """P-51, P-57: exact names, and what was probably meant."""
    assert "did you mean fp8?" in finding(view("global_scheme=FP8"), "scheme_unknown").message
    assert "*o_proj (2)" in finding(view(overrides=("*o_prj=int8",)), "pattern_matches_nothing").message
    assert "did you mean llama?" in finding(view(model=analysis("lama")), "template_missing").message


def test_kv_choices_are_those_that_the_code_accepts() -> None:
    """P-54: the help lists more than the code takes."""
    assert "help lists it" in finding(view("kv_cache_scheme=mxfp4"), "kv_unsupported").message


def test_group_size_names_module_count_and_what_divides() -> None:
    found = finding(view("global_scheme=int4_wo_128", inventory=llama(hidden=96)), "group_size_indivisible")
    assert "12 modules" in found.message and "has 96" in found.message
    assert "int4_wo_32" in found.next_step


def test_fewer_samples_want_a_reason() -> None:
    """P-61: taken with a low finding, silent with a reason."""
    assert "fewer_samples" in codes(view("num_calib_data=16"), "low")
    assert "fewer_samples" not in codes(view("num_calib_data=16", reasons=("num_calib_data=quick look",)), "low")
    assert "fewer_samples" not in codes(view("num_calib_data=600"), "low")


WARNINGS: list[tuple[str, str, dict[str, Any]]] = [
    ("medium", "fused_split", {"overrides": ("*q_proj=int8",)}),
    ("medium", "group_padded", {"sets": ("global_scheme=mxfp4",), "inventory": llama(hidden=72)}),
    ("medium", "fused_split", {"excludes": ("*up_proj",)}),
    ("high", "gpt_oss_bf16", {"model": analysis("gpt_oss")}),
    ("info", "glob_in_export", {"overrides": ("*mlp*=int8",)}),
    ("low", "evaluation_whole", {"sets": ("evaluation_intent=smoke",)}),
    ("low", "samples_dropped", {"sets": ("num_calib_data=18", "batch_size=4")}),
    ("low", "override_partly_shadowed", {"overrides": ("*=int8",)}),
    ("high", "override_embedding", {"overrides": ("*embed_tokens=int8",)}),
    ("medium", "patterns_unchecked", {"overrides": ("*q=int8",), "inventory": UNKNOWN}),
    ("medium", "scheme_unmeasured", {"sets": ("global_scheme=brand_new",)}),
    ("medium", "multi_device_limits", {"sets": ("device_strategy=multi_device",), "around": gpus(2)}),
    (
        "medium",
        "multi_device_algorithm",
        {"sets": ("device_strategy=multi_device", "algorithm=awq"), "around": gpus(2)},
    ),
    ("high", "remote_code_trusted", {"sets": ("trust_remote_code=true",)}),
    (
        "high",
        "remote_code_not_stopped",
        {"model": analysis(remote_code=[{"file": "tokenizer_config.json", "target": "t.T", "stopped_by_flag": False}])},
    ),
    ("high", "source_quantized", {"model": analysis(already_quantized={"method": "quark"})}),
    ("medium", "memory_tight", {"around": machine(memory_bytes=10**8)}),
    ("medium", "output_inside_model", {"around": machine(output=output(resolved="/models/m/out"))}),
    ("info", "template_pattern_unused", {"model": analysis("qwen3_moe"), "excludes": ("*q_proj",)}),
]


@pytest.mark.parametrize(("level", "code", "asked"), WARNINGS, ids=[f"{n}-{w[1]}" for n, w in enumerate(WARNINGS)])
def test_warning(level: str, code: str, asked: dict[str, Any]) -> None:
    """P-63, P-79: the limits of multi_device and trusted remote code are said."""
    asked = dict(asked)
    assert code in codes(view(*asked.pop("sets", ()), **asked), level)
    assert code not in [found.code for found in view().findings]


def test_partners_under_one_scheme_are_not_split() -> None:
    assert "fused_split" not in codes(view(overrides=("*self_attn*=int8", "*down_proj=ptpc_fp8")), "medium")


def test_the_strategy_is_open_on_a_host_without_gpu() -> None:
    """P-19, P-63: CPU is never a default; one GPU means single."""
    plan = build(Wishes(), analysis(), llama(), catalog(), machine(), "/jobs/j/out", False)
    assert row(plan, "device_strategy").value is None
    assert set(codes(plan)) == {"compute_undecided", "scheme_missing"}
    assert plan.plan is None and plan.estimate.output_bytes is None
    one = build(Wishes(), analysis(), llama(), catalog(), gpus(1), "/jobs/j/out", False)
    assert (row(one, "device_strategy").value, row(one, "devices").value) == ("single", [0])


def _change(before: Wishes, *sets: str, overrides: tuple[str, ...] = (), excludes: tuple[str, ...] = ()) -> list[str]:
    """Codes that refuse a change of ``before``."""
    after = changed(before, sets, overrides, excludes)

    def plan(wishes: Wishes) -> PlanView:
        return build(wishes, analysis(), llama(), catalog(), machine(), "/jobs/j/out", False)

    return [found.code for found in refusals(plan(before), plan(after), touched(sets, overrides, excludes))]


def test_a_change_is_refused_for_what_it_does() -> None:
    """P-69: a wrong change is refused, an open decision is not."""
    empty = Wishes()
    assert _change(empty, "seq_len=64") == []
    assert _change(empty, "global_scheme=fp9") == ["scheme_unknown"]
    assert _change(empty, overrides=("*o_prj=int8",)) == ["pattern_matches_nothing"]
    assert _change(empty, overrides=("lm_head=int8",)) == ["override_shadowed"]
    assert _change(empty, "batch_size=600") == ["batch_exceeds_samples"]
    assert _change(empty, "device_strategy=single") == ["devices_missing"]
    assert _change(empty, "exclude_layers=*nothing*") == ["pattern_matches_nothing"]
    fp8 = changed(empty, ["global_scheme=fp8"])
    assert _change(fp8, "exclude_layers=*") == ["excludes_everything"]
    assert _change(fp8, "global_scheme=none") == []
    wide = changed(empty, ["global_scheme=mxfp4", "batch_size=600"])
    assert _change(wide, "global_scheme=fp8") == ["batch_exceeds_samples"]  # caused, although the row is another


def test_a_change_is_not_refused_for_what_was_wrong_before() -> None:
    wrong = changed(Wishes(), ["global_scheme=fp9"], ["*o_prj=int8", "*q_proj=int8"])
    assert _change(wrong, "seq_len=64") == []
    assert _change(wrong, overrides=("*down_proj=int8",)) == []
    assert _change(wrong, overrides=("*o_prj=ptpc_fp8",)) == ["pattern_matches_nothing"]
    assert _change(wrong, overrides=("*o_prj=",)) == []
    assert _change(wrong, "global_scheme=fp8") == []
    assert "pattern_matches_nothing" in _change(wrong, 'layer_quant_config={"*o_prj": "int8"}')


def test_the_digest_leaves_out_confirmation_and_times() -> None:
    """P-68, P-69: confirming changes no digest, every decision does."""
    open_plan, confirmed = view().plan, view(confirmed=True).plan
    assert open_plan is not None and confirmed is not None
    assert open_plan["requires_confirmation"] is True and confirmed["requires_confirmation"] is False
    assert plan_digest(open_plan) == plan_digest({**confirmed, "confirmed_at": "2024-01-01T00:00:00Z"})
    for key in ROWS:
        assert plan_digest({**open_plan, key: "other"}) != plan_digest(open_plan), key
    order = ("*mlp*=int8", "*self_attn*=ptpc_fp8")
    one, two = view(overrides=order).plan, view(overrides=order[::-1]).plan
    assert one is not None and two is not None and plan_digest(one) != plan_digest(two)


def test_estimate_by_hand() -> None:
    plan = view("kv_cache_scheme=fp8")
    weights = 2 * (128 * 128 * 2 + 64 * 128 * 2 + 3 * 128 * 256)
    scales = 14 * 4 + 4 * 2
    rest = 2 * (2 * 1024 * 128 + 5 * 128)
    assert plan.estimate.output_bytes is not None
    header = plan.estimate.output_bytes - weights - scales - rest
    assert 4_000 < header < 8_000  # fifty tensors take about a hundred bytes each
    assert plan.estimate.peak_memory_bytes is not None and "rough" in plan.estimate.basis


def test_a_tied_output_layer_gets_bytes_only_when_it_is_quantized() -> None:
    tied = Inventory(True, "x", (Module("a", "linear", (64, 64), 4096), Module("lm_head", "linear", (128, 64), 0)))
    kept, taken = view(inventory=tied), view("exclude_layers=[]", inventory=tied)
    assert kept.estimate.output_bytes is not None and taken.estimate.output_bytes is not None
    assert 128 * 64 <= taken.estimate.output_bytes - kept.estimate.output_bytes < 128 * 64 + 400


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"inventory": UNKNOWN}, "modules"),
        ({"sets": ("global_scheme=brand_new",)}, "measured"),
        ({"model": {"model": {"model_type": "llama"}}}, "data type"),
    ],
)
def test_what_cannot_be_estimated_is_unknown(asked: dict[str, Any], word: str) -> None:
    asked = dict(asked)
    plan = view(*asked.pop("sets", ()), **asked)
    assert plan.estimate.output_bytes is None and plan.estimate.peak_memory_bytes is None
    assert word in plan.estimate.basis


def test_without_a_quark_nothing_is_claimed() -> None:
    wishes = changed(Wishes(), ["global_scheme=fp8", "device_strategy=cpu"])
    plan = build(wishes, analysis(), llama(), None, machine(quark_version=None), "/jobs/j/out", False)
    assert {"scheme_unknown", "template_missing"} <= set(codes(plan))
    assert "cannot be looked up" in finding(plan, "scheme_unknown").message


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"model_type": "a", "exclude_layers_name": ["x"], "algorithm_configs": {"AWQ": {}}}, False),
        ([], True),
        ({}, True),
        ({"model_type": 1}, True),
        ({"model_type": "a", "gate_up_layers_name": []}, True),
        ({"model_type": "a", "exclude_layers_name": "x"}, True),
        ({"model_type": "a", "q_layer_name": [1]}, True),
        ({"model_type": "a", "algorithm_configs": []}, True),
    ],
)
def test_template_files(data: Any, problem: bool) -> None:
    found = template_file(data)
    assert bool(found.problem) is problem
    if not problem:
        assert (found.exclude, found.algorithms) == (("x",), {"awq"})


_LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4)
_ANY = st.recursive(_LEAF, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner))
_FACT_NAMES = ("model_type", "dtype", "weight_bytes", "parameters", "vocab_size", "remote_code", "already_quantized")
_FACTS = st.fixed_dictionaries({}, optional=dict.fromkeys(_FACT_NAMES, _ANY))
_SETS = st.lists(
    st.tuples(
        st.sampled_from(ROWS), st.sampled_from(["fp8", "none", "1", "0,1", "*", "[]", "/x", "single", "cpu", "é"])
    ),
    max_size=4,
)
_GLOB = st.text("mod*?[]._proj0\x1b", min_size=1, max_size=6)


@given(
    st.fixed_dictionaries({}, optional={"model": _FACTS | _ANY, "facts": _FACTS}),
    _SETS,
    st.lists(_GLOB, max_size=3),
    st.lists(_GLOB, max_size=3),
    st.sampled_from([llama(), moe(), UNKNOWN, Inventory(True, "empty")]),
    st.sampled_from([machine(), gpus(2), machine(gpu_count=None, visible=None, quark_version=None)]),
)
def test_nothing_that_can_be_asked_raises(
    facts: dict[str, Any],
    sets: list[tuple[str, str]],
    globs: list[str],
    excludes: list[str],
    inventory: Any,
    around: Any,
) -> None:
    try:
        wishes = changed(Wishes(), sets, [f"{pattern}=int8" for pattern in globs], excludes)
    except WrongQuestion:
        return
    plan = build(wishes, facts, inventory, catalog(), around, "/jobs/j/out", False)
    json.dumps([plan.plan, [row.to_json() for row in plan.rows], plan.estimate.to_json()])
    for found in plan.findings:
        for text in (found.message, found.evidence, found.next_step):
            assert clean(text) == text
    if plan.plan is not None:
        assert len(plan_digest(plan.plan)) == 64
