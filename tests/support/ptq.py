"""A hand-made Quark, model and machine for tests of plans."""

from __future__ import annotations

from typing import Any

from quark_tui.core.model.inventory import Inventory, Module
from quark_tui.core.ptq.catalog import Catalog, parse_catalog
from quark_tui.core.ptq.plan import OutputState, PlanView, Surroundings, build
from quark_tui.core.ptq.wishes import Wishes, changed

TEMPLATE_PY = """
class GroupedScheme:
    pass

class Int4WeightOnlyScheme:
    def __init__(self, group_size: int):
        self.group_size = group_size

class AmdFP4Scheme:
    def __init__(self, group_size: int = 16) -> None:
        self.group_size = group_size

class FP4Block16ScaleE4M3Scheme:
    @property
    def config(self):
        return make(first=Spec(ch_axis=-1, group_size=16, is_dynamic=False))

class Collection:
    def __init__(self):
        self._schemes = {}
        self._collect()

    def _collect(self):
        self._schemes["int4_wo_32"] = Int4WeightOnlyScheme(group_size=32)
        self._schemes["int4_wo_128"] = Int4WeightOnlyScheme(128)
        self._schemes["int8"] = Int8Scheme()
        self._schemes["fp8"] = FP8Scheme()
        self._schemes["ptpc_fp8"] = PTPCFP8Scheme()
        self._schemes["mxfp4"] = MXFP4Scheme()
        self._schemes["amdfp4"] = AmdFP4Scheme()
        self._schemes["nvfp4"] = FP4Block16ScaleE4M3Scheme()
        self._schemes["old_nvfp4"] = self._schemes["nvfp4"]
        self._schemes["mx6"] = MX6Scheme()
        self._schemes["brand_new"] = BrandNewScheme()

    def register_scheme(self, name, scheme):
        self._schemes[name] = scheme

class LLMTemplate:
    _SUPPORTED_KV_CACHE_SCHEMES = ["fp8"]

COMMON = ["*k_proj", "*v_proj"]
DEFAULT_TEMPLATES = {
    "llama": {"kv_layers_name": COMMON, "q_layer_name": "*q_proj", "exclude_layers_name": ["lm_head"]},
    "qwen3_moe": {"kv_layers_name": ["*k_proj", "*v_proj"], "exclude_layers_name": ["lm_head", "*.gate"]},
    "gpt_oss": {"kv_layers_name": COMMON, "exclude_layers_name": ["lm_head", "*router*"]},
    "no_kv": {"exclude_layers_name": ["lm_head"], "converters": [Converter("a", operations=[Split(axis=0)])]},
}
"""

ALGO_PY = """
AWQ_MAP = {"llama": AWQConfig(layers=[{"a": 1}] + [{"b": f"x.{i}"} for i in range(3)])}
GPTQ_MAP = {"llama": GPTQConfig(), "gpt_oss": GPTQConfig()}
AUTOROUND_MAP = {"llama": AutoRoundConfig()}
TWO_MAP: Mapping[str, AlgoConfig] = {kind: default() for kind in ("llama", "qwen3")}
ALGORITHM_CONFIG_MAPS: dict[str, Mapping[str, AlgoConfig]] = {
    "awq": AWQ_MAP, "gptq": GPTQ_MAP, "autoround": AUTOROUND_MAP, "twobitscalar": TWO_MAP,
}
"""

CLI_PY = """
D = "pileval"

class Command:
    @staticmethod
    def register_subcommand(parser):
        device = "cuda" if torch.cuda.is_available() else "cpu"
        parser.add_argument("--model_dir", required=True)
        parser.add_argument("--device", default=device, choices=["cuda", "cpu"])
        parser.add_argument("--multi_device", action="store_true")
        parser.add_argument("--dataset", default=D, choices=["pileval", "wikitext", "ScienceQA", "x/ultrachat_1"])
        parser.add_argument("--seq_len", type=int, default=512)
        parser.add_argument("--batch_size", type=int, default=1)
        parser.add_argument("--num_calib_data", type=int, default=512)
        parser.add_argument("--quant_scheme", default=None, type=str)
        parser.add_argument("--layer_quant_scheme", action="append", nargs=2, metavar=("PATTERN", "SCHEME"))
        parser.add_argument("--kv_cache_dtype", "--kv_cache_quant_scheme", default=None, choices=["fp8", "mxfp4", None])
        parser.add_argument("--quant_algo", default=None, type=lambda s: s.split(","))
        parser.add_argument("--exclude_layers", type=str, nargs="*", default=None)
        parser.add_argument("--output_dir", default="exported_model")
        parser.add_argument("--skip_evaluation", action="store_true")
        parser.add_argument("--evaluation_dataset", default="wikitext", choices=["wikitext", "other"])
        parser.add_argument("--no_trust_remote_code", action="store_true", default=False)
"""

TEMPLATE_FILE_OPTION = '\n        parser.add_argument("--template_file", default=None, type=str)\n'


def catalog(version: str = "0.12.post1") -> Catalog:
    """The hand-made Quark, as 0.12.post1 or (with ``--template_file``) as a later version."""
    cli = CLI_PY if version.startswith("0.12") else CLI_PY.rstrip("\n") + TEMPLATE_FILE_OPTION
    return parse_catalog(version, "/env/lib/site-packages", TEMPLATE_PY, ALGO_PY, cli)


def llama(layers: int = 2, hidden: int = 128, inner: int = 256, vocabulary: int = 1024) -> Inventory:
    """The modules of a small llama: seven Linears a layer, lm_head, an embedding and norms."""
    modules = [Module("model.embed_tokens", "embedding", (vocabulary, hidden), vocabulary * hidden)]

    def linear(name: str, out: int, inp: int) -> None:
        modules.append(Module(name, "linear", (out, inp), out * inp))

    for layer in range(layers):
        prefix = f"model.layers.{layer}"
        modules.append(Module(f"{prefix}.input_layernorm", "other", (hidden,), hidden))
        for leaf, out in (("q_proj", hidden), ("k_proj", hidden // 2), ("v_proj", hidden // 2), ("o_proj", hidden)):
            linear(f"{prefix}.self_attn.{leaf}", out, hidden)
        linear(f"{prefix}.mlp.gate_proj", inner, hidden)
        linear(f"{prefix}.mlp.up_proj", inner, hidden)
        linear(f"{prefix}.mlp.down_proj", hidden, inner)
        modules.append(Module(f"{prefix}.post_attention_layernorm", "other", (hidden,), hidden))
    modules.append(Module("model.norm", "other", (hidden,), hidden))
    linear("lm_head", vocabulary, hidden)
    return Inventory(True, "hand-made", tuple(modules))


def moe(layers: int = 2, experts: int = 4) -> Inventory:
    """Expert Linears by run-time names, and one router a layer."""
    modules: list[Module] = []
    for layer in range(layers):
        modules.append(Module(f"model.layers.{layer}.mlp.gate", "router", (experts, 64), experts * 64))
        for expert in range(experts):
            for leaf in ("gate_proj", "up_proj", "down_proj"):
                modules.append(Module(f"model.layers.{layer}.mlp.experts.{expert}.{leaf}", "linear", (64, 64), 4096))
        modules.append(Module(f"model.layers.{layer}.self_attn.q_proj", "linear", (64, 64), 4096))
    modules.append(Module("lm_head", "linear", (128, 64), 128 * 64))
    return Inventory(True, "hand-made", tuple(modules))


def analysis(model_type: str | None = "llama", **facts: Any) -> dict[str, Any]:
    model: dict[str, Any] = {"model_path": "/models/m", "dtype": "bfloat16", "vocab_size": 1024, **facts}
    if model_type is not None:
        model["model_type"] = model_type
    return {"analysis_status": "complete", "model": model, "quantization_targets": {}, "risks": []}


def output(path: str = "/jobs/j/out", **facts: Any) -> OutputState:
    return OutputState(path, **{"resolved": path, **facts})


def machine(**facts: Any) -> Surroundings:
    """A machine without GPU, with Quark 0.12.post1, unless said otherwise."""
    return Surroundings(
        **{
            "quark_version": "0.12.post1",
            "gpu_count": 0,
            "visible": (),
            "prefix": "/env",
            "free_bytes": 10**12,
            "memory_bytes": 10**12,
            "output": output(),
            "model_dir": "/models/m",
            "model_resolved": "/models/m",
            **facts,
        }
    )


#: Enough to make the hand-made plan confirmable.
COMPLETE = ("global_scheme=fp8", "device_strategy=cpu")


def view(
    *sets: str,
    overrides: tuple[str, ...] = (),
    excludes: tuple[str, ...] = (),
    reasons: tuple[str, ...] = (),
    model: dict[str, Any] | None = None,
    inventory: Inventory | None = None,
    quark: Catalog | None = None,
    around: Surroundings | None = None,
    confirmed: bool = False,
) -> PlanView:
    """A plan of the hand-made model with ``sets`` after :data:`COMPLETE`."""
    wishes = changed(Wishes(), (*COMPLETE, *sets), overrides, excludes, reasons)
    return build(
        wishes,
        model if model is not None else analysis(),
        inventory if inventory is not None else llama(),
        quark if quark is not None else catalog(),
        around if around is not None else machine(),
        "/jobs/j/out",
        confirmed,
        "/jobs/j/model_analysis.json",
    )


def codes(plan: PlanView, level: str = "block") -> list[str]:
    return [finding.code for finding in plan.findings if finding.level == level]
