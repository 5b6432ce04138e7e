"""Run-time module names from headers, and counts from configuration arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.model.arithmetic import PER_LAYER, linear_count
from quark_tui.core.model.intake import Intake, examine, model_answer
from tests.support.models import LLAMA, checkpoint, decoder, feed_forward, llama, source

Tensors = Iterator[tuple[str, tuple[int, ...]]]


def names(intake: Intake, kind: str = "linear") -> set[str]:
    assert intake.inventory.known, intake.inventory.source
    return {module.name for module in intake.inventory.modules if module.kind == kind}


def look(config: dict[str, Any], shapes: Any, **more: Any) -> Intake:
    return examine(source(config, dict(shapes), **more), None, True, None)


def test_a_dense_decoder_is_read_from_its_shapes() -> None:
    """P-28, P-33: the count is of the modules that the headers show, and says so."""
    intake = look(LLAMA, llama())
    assert len(names(intake)) == intake.linear_count == 2 * 7 + 1
    assert names(intake, "embedding") == {"model.embed_tokens"}
    assert "model.norm" in names(intake, "other")
    assert "headers" in intake.count_basis
    assert intake.inventory.parameters == sum(t.elements for t in checkpoint(llama()).tensors.values())


def test_a_tied_head_is_a_linear_without_parameters() -> None:
    intake = look({**LLAMA, "tie_word_embeddings": True}, llama(head=False))
    head = next(module for module in intake.inventory.modules if module.name == "lm_head")
    assert (head.kind, head.weight, head.parameters) == ("linear", (32, 8), 0)
    assert "tied" in intake.inventory.source


def mixtral(layers: int, experts: int, hidden: int = 8, inner: int = 16) -> Tensors:
    yield from decoder(layers, hidden, inner, 4, 32, dense=range(0))
    for layer in range(layers):
        base = f"model.layers.{layer}.block_sparse_moe"
        yield f"{base}.gate.weight", (experts, hidden)
        for expert in range(experts):
            yield f"{base}.experts.{expert}.w1.weight", (inner, hidden)
            yield f"{base}.experts.{expert}.w2.weight", (hidden, inner)
            yield f"{base}.experts.{expert}.w3.weight", (inner, hidden)


MIXTRAL = {**LLAMA, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 2}


def test_mixtral_gets_the_names_that_it_has_at_run_time() -> None:
    """P-28: measured with transformers 5.2 and Quark 0.12.post1."""
    intake = look(MIXTRAL, mixtral(1, 2))
    assert "model.layers.0.mlp.experts.1.gate_proj" in names(intake)
    by_name = {module.name: module for module in intake.inventory.modules}
    assert by_name["model.layers.0.mlp.experts.0.down_proj"].weight == (8, 16)
    assert names(intake, "router") == {"model.layers.0.mlp.gate"}
    assert not any("block_sparse_moe" in name for name in by_name)


def test_the_same_disk_names_with_own_model_code_are_not_guessed() -> None:
    config = {**MIXTRAL, "auto_map": {"AutoModelForCausalLM": "modeling_x.X"}}
    intake = look(config, mixtral(1, 2))
    assert not intake.inventory.known and intake.inventory.modules == ()
    assert intake.linear_count == 2 * (4 + 2 * 3) + 1, "the count does not depend on the names"


def test_w_names_of_an_unknown_type_stay_as_they_are() -> None:
    intake = look({**MIXTRAL, "model_type": "never_heard"}, mixtral(1, 2))
    assert "model.layers.0.block_sparse_moe.experts.0.w1" in names(intake)


def fused(layers: int, experts: int, gate_up: tuple[int, int], down: tuple[int, int], router: str) -> Tensors:
    yield from decoder(layers, 8, 16, 4, 32, dense=range(0))
    for layer in range(layers):
        base = f"model.layers.{layer}.mlp"
        yield f"{base}.{router}.weight", (experts, 8)
        yield f"{base}.experts.gate_up_proj", (experts, *gate_up)
        yield f"{base}.experts.down_proj", (experts, *down)


def test_fused_experts_become_one_linear_a_projection() -> None:
    """P-30: fused experts are recorded, and named as Quark unfuses them."""
    config = {**LLAMA, "model_type": "qwen3_moe", "num_experts": 3}
    intake = look(config, fused(1, 3, (20, 8), (8, 10), "gate"))
    by_name = {module.name: module.weight for module in intake.inventory.modules}
    assert by_name["model.layers.0.mlp.experts.2.gate_proj"] == (10, 8)
    assert by_name["model.layers.0.mlp.experts.2.up_proj"] == (10, 8)
    assert by_name["model.layers.0.mlp.experts.2.down_proj"] == (8, 10)
    assert names(intake, "router") == {"model.layers.0.mlp.gate"}
    assert intake.has_non_linear_experts is True
    assert "fused_experts" in {f.code for f in intake.findings}


@pytest.mark.parametrize(("quark", "linears", "router"), [(None, 4 + 6 + 1, "router"), ("0.13", 4 + 6 + 1, "router"),
                                                          ("0.12.post1", 4 + 6 + 1 + 1, "linear")])  # fmt: skip
def test_gpt_oss_keeps_gate_and_up_together_and_its_router_depends_on_quark(
    quark: str | None, linears: int, router: str
) -> None:
    """P-28: Quark 0.12.post1 puts a Linear named ``linear`` into the router, 0.13 does not (measured)."""
    config = {**LLAMA, "model_type": "gpt_oss", "num_local_experts": 3, "num_hidden_layers": 1}
    intake = examine(source(config, dict(fused(1, 3, (8, 20), (10, 8), "router"))), None, True, None, quark)
    by_name = {module.name: module for module in intake.inventory.modules}
    assert by_name["model.layers.0.mlp.experts.0.gate_up_proj"].weight == (20, 8)
    assert by_name["model.layers.0.mlp.experts.0.down_proj"].weight == (8, 10)
    assert intake.linear_count == linears
    name = "model.layers.0.mlp.router" + (".linear" if router == "linear" else "")
    assert by_name[name].kind == router
    without = examine(source(config), None, True, None, quark)
    assert without.linear_count == linears, "arithmetic and headers agree"


def test_mxfp4_blocks_of_experts_are_unpacked_to_their_real_shape() -> None:
    shapes = dict(decoder(1, 64, 16, 4, 32, dense=range(0)))
    shapes |= {
        "model.layers.0.mlp.experts.gate_up_proj_blocks": (2, 128, 2, 16),
        "model.layers.0.mlp.experts.gate_up_proj_scales": (2, 128, 2),
        "model.layers.0.mlp.experts.down_proj_blocks": (2, 64, 2, 16),
        "model.layers.0.mlp.experts.down_proj_scales": (2, 64, 2),
    }
    dtypes = {name: "U8" for name in shapes if name.endswith(("_blocks", "_scales"))}
    config = {**LLAMA, "model_type": "gpt_oss", "hidden_size": 64, "num_hidden_layers": 1}
    intake = examine(source(config, shapes, dtypes=dtypes), None, True, None)
    by_name = {module.name: module.weight for module in intake.inventory.modules}
    assert by_name["model.layers.0.mlp.experts.1.gate_up_proj"] == (128, 64)
    assert by_name["model.layers.0.mlp.experts.1.down_proj"] == (64, 64)


def test_fused_experts_of_a_type_that_quark_is_not_known_to_unfuse_are_unknown() -> None:
    intake = look({**LLAMA, "model_type": "never_heard"}, fused(1, 3, (20, 8), (8, 10), "gate"))
    assert not intake.inventory.known
    assert "3-D" in intake.inventory.source


@pytest.mark.parametrize("experts", [10**9, 0])
def test_an_expert_count_in_a_header_that_cannot_be_is_not_followed(experts: int) -> None:
    shapes = dict(fused(1, 1, (20, 8), (8, 10), "gate"))
    shapes["model.layers.0.mlp.experts.gate_up_proj"] = (experts, 0, 8)
    shapes["model.layers.0.mlp.experts.down_proj"] = (experts, 8, 0)
    assert not look({**LLAMA, "model_type": "qwen3_moe"}, shapes).inventory.known


def test_layers_for_multi_token_prediction_are_left_out_and_told() -> None:
    """P-39: transformers does not load them."""
    config = {**LLAMA, "num_nextn_predict_layers": 1}
    intake = look(config, {**llama(3), "mtp.fc.weight": (8, 16)})
    assert intake.linear_count == 2 * 7 + 1
    assert "mtp_layers" in {f.code for f in intake.findings}
    assert "layers_disagree" not in {f.code for f in intake.findings}


def test_more_layers_in_the_weights_than_stated_is_told() -> None:
    assert "layers_disagree" in {f.code for f in look(LLAMA, llama(3)).findings}


def test_the_weights_tell_a_layer_count_that_the_configuration_does_not_state() -> None:
    config = {key: value for key, value in LLAMA.items() if key != "num_hidden_layers"}
    fact = look(config, llama(3)).facts["num_hidden_layers"]
    assert fact.value == 3
    assert fact.source.startswith("weight headers")


@pytest.mark.parametrize("kind", ["gpt2", "falcon"])
def test_projections_of_another_class_than_linear_are_not_counted(kind: str) -> None:
    intake = look(
        {**LLAMA, "model_type": kind}, {"transformer.h.0.attn.c_attn.weight": (8, 24), "lm_head.weight": (32, 8)}
    )
    assert names(intake) == {"lm_head"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("transformer.wte", "embedding"),
        ("transformer.wpe", "embedding"),
        ("model.decoder.embed_positions", "embedding"),
        ("word_embeddings_x.word_embeddings", "embedding"),
        ("visual.pos_embed", "embedding"),
        ("embed_out", "linear"),
        ("model.embedding_projection", "linear"),
        ("model.layers.0.mlp.shared_expert_gate", "linear"),
        ("model.layers.0.mlp.gate", "linear"),
    ],
)
def test_embeddings_are_told_by_name_and_a_gate_alone_is_no_router(name: str, kind: str) -> None:
    intake = look({**LLAMA, "model_type": "never_heard"}, {**llama(), f"{name}.weight": (16, 8)})
    assert name in names(intake, kind)


def test_convolutions_are_no_linear() -> None:
    intake = look(LLAMA, {**llama(), "model.layers.0.conv.weight": (8, 1, 4)})
    assert "model.layers.0.conv" in names(intake, "other")


def test_a_wrapper_with_old_names_is_unknown_and_with_present_ones_known() -> None:
    """P-33: what is not sure about a multimodal wrapper is not claimed."""
    inner = {key: value for key, value in LLAMA.items() if key != "architectures"}
    config = {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], "text_config": inner,
              "vision_config": {"depth": 1}}  # fmt: skip
    old = {f"language_model.{name}": shape for name, shape in llama().items()}
    assert not look(config, old).inventory.known
    present = {name.replace("model.", "model.language_model.", 1): shape for name, shape in llama().items()}
    present["model.visual.blocks.0.attn.qkv.weight"] = (24, 8)
    intake = look(config, present)
    assert "model.language_model.layers.0.mlp.up_proj" in names(intake)


def test_names_saved_from_the_base_model_are_unknown() -> None:
    shapes = {name.removeprefix("model."): shape for name, shape in llama(head=False).items()}
    assert not look(LLAMA, shapes).inventory.known


def test_packed_weights_of_an_earlier_quantization_make_the_inventory_unknown() -> None:
    """P-30: pre-quantized tensors."""
    shapes = llama()
    intake = look(LLAMA, shapes, dtypes={"model.layers.0.mlp.up_proj.weight": "U8"})
    assert not intake.inventory.known
    assert intake.already_quantized is not None and intake.already_quantized["method"] == "unknown"
    assert intake.linear_count == 15 and "arithmetic" in intake.count_basis


@pytest.mark.parametrize("name", ["a\x1bb.weight", "weight", "a\ud800.weight"])
def test_names_that_name_no_module_are_not_shown_as_modules(name: str) -> None:
    intake = look(LLAMA, {**llama(), name: (8, 8)})
    assert not intake.inventory.known
    assert intake.inventory.source.isprintable()


@pytest.mark.parametrize(
    ("config", "count"),
    [
        ({"model_type": "llama", "num_hidden_layers": 80}, 561),
        ({"model_type": "mixtral", "num_hidden_layers": 56, "num_local_experts": 8}, 1_569),
        ({"model_type": "qwen3_moe", "num_hidden_layers": 94, "num_experts": 128}, 36_473),
        (
            {"model_type": "deepseek_v3", "num_hidden_layers": 61, "n_routed_experts": 256, "n_shared_experts": 1,
             "first_k_dense_replace": 3, "q_lora_rank": 1536, "num_nextn_predict_layers": 1},
            45_033,
        ),
        ({"model_type": "gpt_oss", "num_hidden_layers": 36, "num_local_experts": 128}, 9_361),
    ],
)  # fmt: skip
def test_large_published_models_have_the_counts_that_were_measured(config: dict[str, Any], count: int) -> None:
    """P-33: the arithmetic is that of each architecture, and names its method."""
    intake = examine(source({**config, "hidden_size": 64}), None, True, None)
    assert intake.linear_count == count
    assert "arithmetic" in intake.count_basis
    assert intake.inventory.known is False


def deepseek(layers: int, dense: int, experts: int) -> Tensors:
    yield "model.embed_tokens.weight", (32, 8)
    yield "lm_head.weight", (32, 8)
    for layer in range(layers):
        base = f"model.layers.{layer}"
        for part in ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"):
            yield f"{base}.self_attn.{part}.weight", (8, 8)
        if layer < dense:
            yield from feed_forward(f"{base}.mlp", 8, 16)
            continue
        yield f"{base}.mlp.gate.weight", (experts, 8)
        yield from feed_forward(f"{base}.mlp.shared_experts", 8, 4)
        for expert in range(experts):
            yield from feed_forward(f"{base}.mlp.experts.{expert}", 8, 4)


def qwen_moe(layers: int, experts: int) -> Tensors:
    yield from decoder(layers, 8, 16, 4, 32, dense=range(0))
    for layer in range(layers):
        yield f"model.layers.{layer}.mlp.gate.weight", (experts, 8)
        for expert in range(experts):
            yield from feed_forward(f"model.layers.{layer}.mlp.experts.{expert}", 8, 4)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 4))
def test_headers_and_arithmetic_count_the_same(layers: int, experts: int, dense: int) -> None:
    """P-33: two independent ways to one number."""
    dense = min(dense, layers)
    base = {**LLAMA, "num_hidden_layers": layers}
    cases = [
        (base, llama(layers)),
        ({**base, "model_type": "mixtral", "num_local_experts": experts}, mixtral(layers, experts)),
        ({**base, "model_type": "qwen3_moe", "num_experts": experts}, qwen_moe(layers, experts)),
        (
            {**base, "model_type": "deepseek_v3", "n_routed_experts": experts, "n_shared_experts": 1,
             "first_k_dense_replace": dense, "q_lora_rank": 4},
            deepseek(layers, dense, experts),
        ),
    ]  # fmt: skip
    for config, shapes in cases:
        with_headers = look(config, shapes)
        assert with_headers.inventory.known
        assert with_headers.linear_count == examine(source(config), None, True, None).linear_count


@given(st.sampled_from(sorted(PER_LAYER)), st.integers(1, 200))
def test_dense_counts_grow_by_the_same_number_with_each_layer(kind: str, layers: int) -> None:
    one, more = linear_count(kind, {}, layers, None).linear, linear_count(kind, {}, layers + 1, None).linear
    assert one is not None and more is not None and more - one == PER_LAYER[kind]


def test_sparse_steps_and_dense_layers_of_qwen_moe_are_followed() -> None:
    section = {"decoder_sparse_step": 2, "mlp_only_layers": [1]}
    # layers 0 and 2 are off the step, 1 is listed, 3 is sparse
    assert linear_count("qwen3_moe", section, 4, 8).linear == 4 * 4 + 3 * 3 + 24 + 1
    assert linear_count("qwen3_moe", {"decoder_sparse_step": 0}, 4, 8).linear is None
    assert linear_count("qwen3_moe", {"mlp_only_layers": "all"}, 4, 8).linear is None


def test_latent_attention_without_a_query_rank_has_one_query_projection() -> None:
    section = {"first_k_dense_replace": 1, "n_shared_experts": 2, "q_lora_rank": None}
    # attention 4, one dense layer, two sparse ones with shared experts and a router that is Linear in deepseek_v2 alone
    assert linear_count("deepseek_v3", section, 3, 8).linear == 3 * 4 + 3 + 2 * (24 + 3) + 1
    assert linear_count("deepseek_v2", section, 3, 8).linear == 3 * 4 + 3 + 2 * (24 + 3 + 1) + 1


@pytest.mark.parametrize("problem", ["cut short", ""])
def test_unsound_shards_and_indexes_make_the_inventory_unknown(problem: str) -> None:
    folder = source(LLAMA, llama())
    shard = replace(folder.checkpoint.shards[0], problem=problem)
    index = {"model.norm.weight": "model-2.safetensors"} if not problem else None
    bad = replace(folder, checkpoint=replace(folder.checkpoint, shards=(shard,), index=index))
    intake = examine(bad, None, True, None)
    assert not intake.inventory.known
    assert intake.facts["weight_bytes"].value is None
    assert {"weights_unsound" if problem else "index_disagrees"} <= {f.code for f in intake.findings}


def test_groups_fold_numbers() -> None:
    groups = model_answer(look(LLAMA, llama()))["inventory"]["groups"]
    assert {"pattern": "model.layers.*.mlp.up_proj", "count": 2, "parameters": 256} in groups
