"""Layouts, patterns, expectations and the rules of the verdict, on values (folders: tests/engine)."""

from __future__ import annotations

import fnmatch
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.model.headers import Checkpoint, Shard, Tensor, parse_header
from quark_tui.core.model.inventory import Inventory, Module
from quark_tui.core.ptq.verify import CODES, Document, Export, Source, TokenizerFile, Verification, verify
from quark_tui.core.ptq.verify.expectation import parse_config
from quark_tui.core.ptq.verify.layout import SCHEMES, LayerSpec, differences, judge, parse_layer
from quark_tui.core.ptq.verify.modules import linear_weights, stored_modules
from quark_tui.core.ptq.verify.patterns import Patterns, align, canonical
from tests.support import exports
from tests.support.exports import Recipe, llama_linears, plain, recipe
from tests.support.safetensors import to_bytes

OUT, INNER = 128, 256


def tensors_of(made: Recipe) -> dict[str, Tensor]:
    raw = to_bytes(made.tensors)
    length = int.from_bytes(raw[:8], "little")
    tensors, problem = parse_header(raw[8 : 8 + length], len(raw) - 8 - length)
    assert not problem
    return tensors


def evidence(made: Recipe, **scalars: float) -> Export:
    """What reading the recipe's folder would give; scalars are 0.5 unless named by their ending."""
    tensors = tensors_of(made)
    ones = {name: 0.5 for name, tensor in tensors.items() if tensor.elements == 1 and "_scale" in name}
    shard = Shard("model.safetensors", 1000, 100, tensors, "ab" * 32)
    return Export(
        "/out",
        files=(("config.json", 10), ("model.safetensors", 1000)),
        config=Document("config.json", True, made.config, "cd" * 32),
        checkpoint=Checkpoint("/out", (shard,)),
        scalars={**ones, **scalars},
        tokenizer=tuple(TokenizerFile(name, 5, "ef" * 32, "", {}, "12" * 32) for name in made.tokenizer),
    )


def inventory() -> Inventory:
    modules = [Module(name, "linear", size, size[0] * size[1]) for name, size in llama_linears().items()]
    modules.append(Module("model.embed_tokens", "embedding", (exports.VOCAB, exports.HIDDEN), 1))
    return Inventory(True, "the source's modules", tuple(modules))


def plan(scheme: str, **more: Any) -> dict[str, Any]:
    return {
        "global_scheme": scheme, "kv_cache_scheme": None, "exclude_layers": ["lm_head"], "layer_quant_config": {},
        "layer_order": [], "evaluation_intent": "none", **more,
    }  # fmt: skip


def ok(result: Verification, code: str) -> bool | None:
    return next(check.ok for check in result.checks if check.code == code)


def said(result: Verification, code: str) -> str:
    return next(f"{check.message} {check.evidence}" for check in result.checks if check.code == code)


def parts(table: exports.Table) -> dict[str, Tensor]:
    return {suffix: Tensor(f"m.{suffix}", dtype, shape, 0, 0) for suffix, (dtype, shape) in table.items()}


def test_every_exportable_scheme_is_known() -> None:
    assert set(SCHEMES) == set(exports.SCHEMES)


@pytest.mark.parametrize("scheme", sorted(exports.SCHEMES))
@pytest.mark.parametrize("features", [None, (OUT, INNER)])
def test_the_tensors_of_a_scheme_are_its_own(scheme: str, features: tuple[int, int] | None) -> None:
    found = judge(SCHEMES[scheme], parts(exports.SCHEMES[scheme][0](OUT, INNER)), features)
    assert found.contradictions == ()
    assert found.missing == ()


@pytest.mark.parametrize("scheme", sorted(exports.SCHEMES))
def test_a_configuration_says_the_same_as_the_scheme_name(scheme: str) -> None:
    spec = parse_layer(exports.SCHEMES[scheme][1])
    assert spec is not None
    assert differences(SCHEMES[scheme], spec) == []


@pytest.mark.parametrize("scheme", sorted(exports.SCHEMES))
def test_schemes_differ_from_each_other_in_configuration_or_in_tensors(scheme: str) -> None:
    """Only the two names of NVFP4 are one scheme."""
    twins = {"nvfp4", "fp4_block16_scale_e4m3"}
    for other, (table, layer) in exports.SCHEMES.items():
        spec = parse_layer(layer)
        assert spec is not None
        told = bool(differences(SCHEMES[scheme], spec)) or bool(
            judge(SCHEMES[scheme], parts(table(OUT, INNER)), (OUT, INNER)).contradictions
        )
        assert told is not (scheme == other or {scheme, other} == twins), (scheme, other)


@pytest.mark.parametrize("scheme", sorted(exports.SCHEMES))
def test_a_plain_weight_contradicts_every_scheme(scheme: str) -> None:
    assert judge(SCHEMES[scheme], {"weight": Tensor("m.weight", "BF16", (OUT, INNER), 0, 0)}, None).contradictions


@pytest.mark.parametrize("scheme", sorted(exports.SCHEMES))
def test_a_weight_of_another_size_contradicts(scheme: str) -> None:
    table = parts(exports.SCHEMES[scheme][0](OUT, INNER))
    assert judge(SCHEMES[scheme], table, (OUT, INNER * 2)).contradictions


@pytest.mark.parametrize("scheme", sorted(exports.SCHEMES))
def test_each_missing_scale_is_named(scheme: str) -> None:
    table = parts(exports.SCHEMES[scheme][0](OUT, INNER))
    for suffix in [name for name in table if name.endswith(("_scale", "_scale_2"))]:
        rest = {name: tensor for name, tensor in table.items() if name != suffix}
        assert suffix in judge(SCHEMES[scheme], rest, (OUT, INNER)).missing


def test_group_sizes_are_told_apart_without_the_source() -> None:
    table = parts(exports.SCHEMES["int4_wo_32"][0](OUT, INNER))
    assert judge(SCHEMES["int4_wo_64"], table, None).contradictions


def test_a_bias_of_another_length_contradicts() -> None:
    table = parts(exports.SCHEMES["mxfp4"][0](OUT, INNER))
    table["bias"] = Tensor("m.bias", "BF16", (OUT,), 0, 0)
    assert not judge(SCHEMES["mxfp4"], table, None).contradictions
    table["bias"] = Tensor("m.bias", "BF16", (OUT + 1,), 0, 0)
    assert judge(SCHEMES["mxfp4"], table, None).contradictions


def test_int4_rows_that_are_no_multiple_of_eight_are_packed_up() -> None:
    table = {
        "weight": Tensor("m.weight", "I32", (64, 2), 0, 0),
        "weight_scale": Tensor("m.weight_scale", "BF16", (2, 12), 0, 0),
    }
    assert judge(SCHEMES["int4_wo_32"], table, (12, 64)).contradictions == ()
    assert judge(SCHEMES["int4_wo_32"], table, None).contradictions == ()


dtypes = st.sampled_from(["BF16", "F32", "U8", "I8", "I32", "F8_E4M3", "F4", "nonsense"])
shapes = st.lists(st.integers(0, 300), max_size=4).map(tuple)
suffixes = st.sampled_from(["weight", "weight_scale", "weight_scale_2", "weight_zero_point", "input_scale", "bias"])


@given(
    st.sampled_from(sorted(SCHEMES)),
    st.dictionaries(suffixes, st.tuples(dtypes, shapes), max_size=6),
    st.none() | st.tuples(st.integers(0, 300), st.integers(0, 300)),
)
def test_no_tensors_whatever_stop_a_judgement(
    scheme: str, table: dict[str, tuple[str, tuple[int, ...]]], features: tuple[int, int] | None
) -> None:
    found = judge(SCHEMES[scheme], parts(table), features)
    if "weight" not in table or "weight_scale" not in table:
        assert found.missing or found.contradictions


names = st.lists(
    st.sampled_from(["model", "layers", "0", "1", "mlp", "gate", "up_proj", "lm_head"]), min_size=1, max_size=5
)


@given(st.text("ab*?[]!-.\\^", max_size=8), names.map(".".join))
def test_a_glob_matches_as_fnmatch_does(pattern: str, name: str) -> None:
    assert Patterns([pattern]).matches(name) is (pattern == name or fnmatch.fnmatchcase(name, pattern))


def test_exact_names_decide_before_globs_and_globs_in_order() -> None:
    patterns = Patterns(["*mlp*", "*up_proj", "model.mlp.up_proj"])
    assert patterns.first("model.mlp.up_proj") == "model.mlp.up_proj"
    assert patterns.all("model.mlp.up_proj") == ["model.mlp.up_proj", "*mlp*", "*up_proj"]
    assert patterns.first("other.mlp.up_proj") == "*mlp*"


def test_saved_names_meet_run_time_names_but_only_when_asked() -> None:
    stored, run = "language_model.model.layers.0.mlp.up_proj", "model.language_model.layers.0.mlp.up_proj"
    assert canonical(stored) == canonical(run)
    assert Patterns([run], loose=True).matches(stored)
    assert not Patterns([run]).matches(stored)
    assert align([run], [stored]) == {run: stored}
    assert align([run], [stored, "model.layers.0.mlp.up_proj"]) == {}


def test_embeddings_routers_and_norms_are_not_expected_but_leftovers_are() -> None:
    moe = {
        f"model.layers.{n}.mlp.experts.{e}.{p}": (64, 128)
        for n in (0, 1)
        for e in (0, 1)
        for p in ("gate_proj", "up_proj")
    }
    made = recipe(linears=moe, exclude=("model.layers.1.mlp.experts.1.up_proj",))
    for name, shape in (
        ("model.layers.0.mlp.gate.weight", (8, 128)), ("model.wte.weight", (9, 9)), ("model.thing.weight", (9, 9)),
        ("model.layers.0.self_attn.o_proj.weight", (128, 128)), ("model.embed_out.weight", (9, 9)),
    ):  # fmt: skip
        made.tensors[name] = ("BF16", shape)
    sure, unsure = linear_weights(stored_modules(tensors_of(made)).values())
    assert sure == {*moe, "model.layers.0.self_attn.o_proj", "model.embed_out"}
    assert unsure == {"model.thing"}


@pytest.mark.parametrize("scheme", sorted(exports.SCHEMES))
def test_a_whole_export_is_verified_against_itself_and_against_its_plan(scheme: str) -> None:
    """P-96: the verdict rests on what is on disk."""
    seen = evidence(recipe(scheme))
    alone, planned = verify(seen), verify(seen, plan=plan(scheme), inventory=inventory())
    for result in (alone, planned):
        assert (result.verdict, result.quantized, result.expected) == ("verified", 14, 14), result.findings
        assert tuple(check.code for check in result.checks) == CODES
    assert (alone.against, planned.against) == ("config", "plan")


@pytest.mark.parametrize("scheme", sorted(exports.SCHEMES))
def test_an_export_is_never_verified_against_another_scheme(scheme: str) -> None:
    seen = evidence(recipe(scheme))
    for other in exports.SCHEMES:
        if other != scheme and {other, scheme} != {"nvfp4", "fp4_block16_scale_e4m3"}:
            result = verify(seen, plan=plan(other), inventory=inventory())
            assert ok(result, "scheme_matches") is False
            assert result.verdict in ("failed", "partial")


def test_codes_are_those_of_the_contract() -> None:
    assert " ".join(CODES) == (
        "weights_present index_matches headers_sound config_present scheme_matches count_matches excludes_respected "
        "scales_present scales_calibrated kv_consistent overrides_consistent mtp_excluded tokenizer_present "
        "tokenizer_unchanged size_plausible metric_present"
    )


def test_a_source_that_is_not_quantized_fails() -> None:
    result = verify(evidence(plain()))
    assert (result.verdict, result.quantized, result.expected) == ("failed", 0, None)
    assert ok(result, "count_matches") is False


def test_excluding_everything_is_no_success() -> None:
    """P-99: a configuration that says quark is not enough."""
    made = recipe(exclude=tuple(llama_linears()))
    made.quantization["exclude"] = [*llama_linears(), "model.embed_tokens"]
    result = verify(evidence(made))
    assert (result.verdict, result.quantized, result.expected) == ("failed", 0, 0)
    assert verify(evidence(made), plan=plan("fp8", exclude_layers=["*"]), inventory=inventory()).verdict == "failed"


def test_a_module_left_unquantized_is_named() -> None:
    made = recipe()
    made.tensors["model.layers.1.mlp.up_proj.weight"] = ("BF16", (256, 128))
    for result in (verify(evidence(made)), verify(evidence(made), plan=plan("fp8"), inventory=inventory())):
        assert result.verdict == "partial"
        assert (result.quantized, result.expected) == (13, 14)
        assert "model.layers.1.mlp.up_proj" in said(result, "count_matches")


def test_a_module_that_is_not_there_at_all_is_named() -> None:
    made = recipe()
    made.tensors = {name: entry for name, entry in made.tensors.items() if "layers.1.mlp.up_proj" not in name}
    result = verify(evidence(made), plan=plan("fp8"), inventory=inventory())
    assert (result.verdict, ok(result, "count_matches")) == ("partial", False)
    assert "not there at all: model.layers.1.mlp.up_proj" in said(result, "count_matches")


def test_a_quantized_module_that_is_excluded_is_named() -> None:
    made = recipe(exclude=())
    made.quantization["exclude"] = ["lm_head"]
    for result in (verify(evidence(made)), verify(evidence(made), plan=plan("fp8"), inventory=inventory())):
        assert (result.verdict, ok(result, "excludes_respected")) == ("partial", False)
        assert "lm_head" in said(result, "excludes_respected")
        assert (result.quantized, result.expected) == (15, 14)


def test_plan_patterns_and_exported_names_are_compared_as_sets_of_modules() -> None:
    downs = tuple(name for name in llama_linears() if name.endswith("down_proj"))
    made = recipe(exclude=("lm_head", *downs))
    wish = plan("fp8", exclude_layers=["*down_proj", "lm_head"])
    assert verify(evidence(made), plan=wish, inventory=inventory()).verdict == "verified"
    assert verify(evidence(made)).expected == 12
    made.quantization["exclude"] = ["lm_head"]
    result = verify(evidence(made), plan=wish, inventory=inventory())
    assert ok(result, "excludes_respected") is False


def test_a_missing_scale_is_partial() -> None:
    made = recipe("mxfp4")
    del made.tensors["model.layers.0.self_attn.q_proj.weight_scale"]
    result = verify(evidence(made))
    assert (result.verdict, ok(result, "scales_present"), result.quantized) == ("partial", False, 14)
    assert "q_proj lacks weight_scale" in said(result, "scales_present")


def test_all_input_scales_at_one_is_uncalibrated_and_some_is_a_low_finding() -> None:
    seen = evidence(recipe())
    inputs = [name for name in seen.scalars if name.endswith("input_scale")]
    result = verify(replace(seen, scalars={**seen.scalars, **dict.fromkeys(inputs, 1.0)}))
    assert (result.verdict, ok(result, "scales_calibrated")) == ("partial", False)
    some = verify(replace(seen, scalars={**seen.scalars, inputs[0]: 1.0}))
    assert (some.verdict, ok(some, "scales_calibrated")) == ("verified", True)
    assert [finding.level for finding in some.findings if finding.code == "scales_partly_uncalibrated"] == ["low"]


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_scales_that_are_no_numbers_to_divide_by_are_not_accepted(value: float) -> None:
    seen = evidence(recipe())
    for ending, code in ((".input_scale", "scales_calibrated"), (".weight_scale", "scales_present")):
        name = next(name for name in seen.scalars if name.endswith(ending))
        assert ok(verify(replace(seen, scalars={**seen.scalars, name: value})), code) is False


def test_scales_that_could_not_be_read_leave_the_verdict_unknown() -> None:
    result = verify(replace(evidence(recipe()), scalars={}, scalars_problem="gone"))
    assert (result.verdict, ok(result, "scales_calibrated")) == ("unknown", None)


def test_kv_cache_scales_belong_to_the_plan_the_configuration_and_the_tensors() -> None:
    wish = plan("fp8", kv_cache_scheme="fp8")
    good = verify(evidence(recipe(kv=True)), plan=wish, inventory=inventory())
    assert (good.verdict, ok(good, "kv_consistent"), ok(good, "overrides_consistent")) == ("verified", True, None)

    lost = recipe(kv=True)
    del lost.tensors["model.layers.1.self_attn.v_proj.output_scale"]
    empty = recipe(kv=True)
    empty.quantization["kv_cache_quant_config"] = {}
    group = recipe(kv=True)
    group.quantization["export"]["kv_cache_group"] = []
    stray = recipe()
    stray.tensors["model.layers.0.mlp.up_proj.output_scale"] = ("BF16", ())
    promised = recipe()
    promised.quantization["export"]["kv_cache_group"] = ["*k_proj"]
    for made in (lost, empty, group, stray, promised):
        assert (verify(evidence(made)).verdict, ok(verify(evidence(made)), "kv_consistent")) == ("partial", False)
    assert ok(verify(evidence(recipe()), plan=wish, inventory=inventory()), "kv_consistent") is False
    assert ok(verify(evidence(recipe(kv=True)), plan=plan("fp8"), inventory=inventory()), "kv_consistent") is False
    assert ok(verify(evidence(recipe())), "kv_consistent") is None


def test_older_configurations_tell_of_the_kv_cache_by_outputs_alone() -> None:
    made = recipe(kv=True)
    del made.quantization["kv_cache_quant_config"]
    del made.quantization["export"]["kv_cache_group"]
    assert ok(verify(evidence(made)), "kv_consistent") is True
    del made.tensors["model.layers.0.self_attn.k_proj.output_scale"]
    assert ok(verify(evidence(made)), "kv_consistent") is False


def test_kv_scales_that_no_sample_reached() -> None:
    seen = evidence(recipe("mxfp4", kv=True))
    outputs = [name for name in seen.scalars if name.endswith("output_scale")]
    assert ok(verify(seen), "scales_calibrated") is True
    assert ok(verify(replace(seen, scalars=dict.fromkeys(outputs, 1.0))), "scales_calibrated") is False


def test_a_configuration_without_a_global_scheme_is_undecided() -> None:
    made = recipe()
    made.quantization["global_quant_config"] = None
    assert verify(evidence(made)).verdict in ("unknown", "failed", "partial")
    assert ok(verify(evidence(made)), "scheme_matches") is None


def test_a_lost_half_does_not_make_the_other_half_the_expectation() -> None:
    made = recipe()
    made.tensors = {name: entry for name, entry in made.tensors.items() if ".0." in name and "mlp" in name}
    result = verify(evidence(made), plan=plan("fp8"), inventory=inventory())
    assert (result.quantized, result.expected, ok(result, "count_matches")) == (3, 14, False)


def test_kv_scales_of_a_latent_attention_and_of_excluded_layers() -> None:
    linears = {f"model.layers.{n}.self_attn.kv_b_proj": (64, 32) for n in (0, 1)}
    mlp = {f"model.layers.{n}.mlp.up_proj": (64, 128) for n in (0, 1)}
    made = recipe(linears={**linears, **mlp}, exclude=tuple(linears))
    for name in linears:
        made.tensors[f"{name}.output_scale"] = ("BF16", ())
    made.quantization["kv_cache_quant_config"] = {"*kv_b_proj": exports.SCHEMES["fp8"][1]}
    made.quantization["export"]["kv_cache_group"] = ["*kv_b_proj"]
    result = verify(evidence(made))
    assert (result.verdict, ok(result, "kv_consistent"), result.quantized) == ("verified", True, 2)


def test_overrides_decide_for_the_modules_that_they_reach() -> None:
    downs = [name for name in llama_linears() if name.endswith("down_proj")]
    wish = plan("fp8", layer_quant_config={"*down_proj": "mxfp4"}, layer_order=["*down_proj"])
    made = recipe(overrides={"*down_proj": ("mxfp4", downs)})
    for result in (verify(evidence(made)), verify(evidence(made), plan=wish, inventory=inventory())):
        assert (result.verdict, ok(result, "overrides_consistent")) == ("verified", True)
    # The order to use mxfp4 was not heeded: everything is fp8, though the configuration tells of the override.
    ignored = recipe(overrides={"*down_proj": ("mxfp4", [])})
    for result in (verify(evidence(ignored)), verify(evidence(ignored), plan=wish, inventory=inventory())):
        assert (result.verdict, ok(result, "overrides_consistent")) == ("partial", False)
        assert ok(result, "scheme_matches") is True


def test_of_two_overrides_the_plan_takes_the_first_and_an_exact_name_comes_before_both() -> None:
    name = "model.layers.0.self_attn.q_proj"
    schemes = {"*self_attn*": "ptpc_fp8", "*q_proj": "int8", name: "mxfp4"}
    others = [module for module in llama_linears() if "self_attn" in module and module != name]
    made = recipe(overrides={"*self_attn*": ("ptpc_fp8", others), "*q_proj": ("int8", []), name: ("mxfp4", [name])})
    first = plan("fp8", layer_quant_config=schemes, layer_order=["*self_attn*", "*q_proj", name])
    assert verify(evidence(made), plan=first, inventory=inventory()).verdict == "verified"
    turned = plan("fp8", layer_quant_config=schemes, layer_order=["*q_proj", "*self_attn*", name])
    assert ok(verify(evidence(made), plan=turned, inventory=inventory()), "overrides_consistent") is False
    # The configuration has its keys sorted: the order is lost, so either pattern may have been the first.
    assert verify(evidence(made)).verdict == "verified"


def test_an_exclude_beats_an_override_and_a_dead_pattern_is_said() -> None:
    """P-119: an override without effect is named."""
    made = recipe(overrides={"lm_head": ("int4_wo_32", [])})
    wish = plan("fp8", layer_quant_config={"lm_head": "int4_wo_32"}, layer_order=["lm_head"])
    assert verify(evidence(made), plan=wish, inventory=inventory()).verdict == "verified"
    typo = verify(evidence(recipe(overrides={"*o_prj": ("mxfp4", [])})))
    assert "override_matches_nothing" in [finding.code for finding in typo.findings]


def test_layers_for_further_tokens_are_quantized_or_excluded() -> None:
    assert ok(verify(evidence(recipe())), "mtp_excluded") is None
    for key, at in (("num_nextn_predict_layers", "model.layers.2"), ("mtp_num_hidden_layers", "mtp.layers.0")):
        made = recipe(extra={f"{at}.mlp.up_proj.weight": ("BF16", (256, 128)), f"{at}.norm.weight": ("BF16", (128,))})
        made.config[key] = 1
        result = verify(evidence(made))
        assert (result.verdict, ok(result, "mtp_excluded")) == ("partial", False)
        made.quantization["exclude"].append(f"{at}.mlp.up_proj")
        assert ok(verify(evidence(made)), "mtp_excluded") is True
        assert verify(evidence(made)).verdict == "verified"
    none = recipe()
    none.config["num_nextn_predict_layers"] = 1
    assert ok(verify(evidence(none)), "mtp_excluded") is None


def test_per_expert_modules_count_one_by_one_and_routers_do_not() -> None:
    linears = {f"model.layers.0.mlp.experts.{e}.{p}": (64, 128) for e in range(8) for p in ("gate_proj", "up_proj")}
    made = recipe(linears=linears, extra={"model.layers.0.mlp.gate.weight": ("BF16", (8, 128))})
    result = verify(evidence(made))
    assert (result.verdict, result.quantized, result.expected) == ("verified", 16, 16)


@pytest.mark.parametrize(
    "quantization",
    [
        {"quant_method": "gptq", "bits": 4}, {"quant_method": "fp8"}, {"quant_method": "awq"}, {"bits": 4},
        {"quant_method": "compressed-tensors", "format": "float-quantized"}, {"quant_method": "modelopt"},
    ],
)  # fmt: skip
def test_another_method_is_named_and_not_judged(quantization: dict[str, Any]) -> None:
    made = recipe()
    made.config["quantization_config"] = quantization
    result = verify(evidence(made))
    assert (result.verdict, result.quantized, result.expected) == ("unknown", None, None)
    assert "other_method" in [finding.code for finding in result.findings]


def test_another_method_known_only_from_its_own_file() -> None:
    other = Document("hf_quant_config.json", True, {"producer": {"name": "modelopt"}})
    seen = replace(evidence(plain()), other_config=other)
    assert verify(seen).verdict == "unknown"


def test_quantized_tensors_that_the_configuration_hides_fail() -> None:
    made = recipe()
    del made.config["quantization_config"]
    for result in (verify(evidence(made)), verify(evidence(made), plan=plan("fp8"), inventory=inventory())):
        assert (result.verdict, ok(result, "scheme_matches"), result.quantized) == ("failed", False, 14)


def test_a_configuration_that_disagrees_with_the_plan_where_tensors_cannot_tell() -> None:
    result = verify(evidence(recipe("mxfp4_weight_only")), plan=plan("mxfp4"), inventory=inventory())
    assert (result.verdict, ok(result, "scheme_matches")) == ("partial", False)
    assert "input" in said(result, "scheme_matches")


def test_an_inventory_with_other_names_falls_back_to_the_headers() -> None:
    other = Inventory(True, "elsewhere", tuple(Module(f"block.{n}.w", "linear", (8, 8), 64) for n in range(20)))
    result = verify(evidence(recipe()), plan=plan("fp8"), inventory=other)
    assert (result.verdict, result.expected) == ("verified", 14)


def test_an_evaluation_that_was_asked_for_needs_its_metric() -> None:
    """P-96: requested metrics are reported, not assumed."""
    seen, wish = evidence(recipe()), plan("fp8", evaluation_intent="full")
    assert ok(verify(seen, plan=plan("fp8"), inventory=inventory()), "metric_present") is None
    for metric, answer in ((None, False), (float("nan"), False), (12.5, True)):
        result = verify(seen, plan=wish, inventory=inventory(), source=Source(None, None, metric))
        assert ok(result, "metric_present") is answer
        assert result.verdict == ("verified" if answer else "partial")


def test_size_and_tokenizer_changes_are_said_and_cost_nothing() -> None:
    seen = evidence(recipe())
    source = tuple(replace(file, sha256="00" * 32, settings={"padding": None}) for file in seen.tokenizer)
    changed = replace(
        seen, tokenizer=tuple(replace(file, settings={"padding": {"direction": "Left"}}) for file in seen.tokenizer)
    )
    result = verify(changed, plan=plan("fp8"), inventory=inventory(), source=Source(source, 5000, None))
    assert (result.verdict, ok(result, "tokenizer_unchanged"), ok(result, "size_plausible")) == (
        "verified",
        False,
        False,
    )
    assert "padding: none → direction=Left" in said(result, "tokenizer_unchanged")
    same = verify(seen, plan=plan("fp8"), inventory=inventory(), source=Source(seen.tokenizer, 1050, None))
    assert (ok(same, "tokenizer_unchanged"), ok(same, "size_plausible")) == (True, True)


def test_a_vocabulary_that_the_source_never_had_is_said() -> None:
    """transformers 5.2 makes up an empty tokenizer where there is none, and quark-cli ends with 0."""
    seen = evidence(recipe())
    bare = tuple(file for file in seen.tokenizer if file.name == "tokenizer_config.json")
    for source in ((), bare):
        result = verify(seen, plan=plan("fp8"), inventory=inventory(), source=Source(source, None, None))
        assert ok(result, "tokenizer_unchanged") is False and "made up" in said(result, "tokenizer_unchanged")


def test_the_digest_follows_what_was_observed() -> None:
    seen = evidence(recipe())
    first = verify(seen).digest
    assert first == verify(seen).digest
    assert len(first) == 64
    for other in (
        replace(seen, files=(*seen.files, ("x", 1))),
        replace(seen, config=replace(seen.config, sha256="00" * 32)),
        replace(seen, checkpoint=Checkpoint("/out", (replace(seen.checkpoint.shards[0], header_sha256="00" * 32),))),
        replace(seen, scalars=dict.fromkeys(seen.scalars, 1.0)),
    ):
        assert verify(other).digest != first


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800\x1b[2J"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    ["exclude", "export", "global_quant_config", "kv_cache_quant_config", "layer_quant_config",
     "layer_type_quant_config", "quant_method", "version"]
)  # fmt: skip


@given(st.dictionaries(keys, junk, max_size=8), st.dictionaries(st.sampled_from(list(plan("x"))), junk))
def test_no_configuration_and_no_plan_stop_a_verdict(found: dict[str, Any], wish: dict[str, Any]) -> None:
    made = recipe(linears={"model.layers.0.mlp.up_proj": (64, 128)})
    made.quantization.update(found)
    made.config["num_hidden_layers"] = found.get("version")
    for result in (verify(evidence(made)), verify(evidence(made), plan=wish, inventory=inventory())):
        assert result.verdict in ("verified", "partial", "failed", "unknown")
        for finding in result.findings:
            text = f"{finding.message}{finding.evidence}{finding.next_step}"
            assert "\x1b" not in text
            assert "\ud800" not in text


@given(junk)
def test_any_layer_configuration_is_understood_or_none(value: Any) -> None:
    assert parse_layer(value) is None or isinstance(parse_layer(value), LayerSpec)


@given(junk, junk)
def test_any_configuration_is_parsed(value: Any, other: Any) -> None:
    assert parse_config({"quantization_config": value, "text_config": other}, other) is not None


@pytest.mark.parametrize(
    "part",
    [{"exclude": "lm_head"}, {"exclude": [1]}, {"layer_quant_config": []}, {"layer_quant_config": {"*": 3}},
     {"export": 4}, {"global_quant_config": {"weight": 5}}],
)  # fmt: skip
def test_a_configuration_of_wrong_types_is_unsound(part: dict[str, Any]) -> None:
    made = recipe()
    made.quantization.update(part)
    result = verify(evidence(made))
    assert (result.verdict, ok(result, "config_present")) == ("failed", False)
