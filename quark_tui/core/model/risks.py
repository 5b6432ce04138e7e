"""What may go wrong with a model, as findings: files, weights, versions, loading."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from quark_tui.core.finding import Finding
from quark_tui.core.model.config import lookup, shown
from quark_tui.core.model.facts import Fact
from quark_tui.core.model.headers import Checkpoint
from quark_tui.core.model.quantized import Quantized
from quark_tui.core.model.remote_code import RemoteCode
from quark_tui.core.text import clean, human_bytes

_TOKENIZER = re.compile(
    r"^(tokenizer\.json|tokenizer\.model(?:\.v\d\w*)?|spiece\.model|sentencepiece(?:\.bpe)?\.model|.*\.spm|.*\.tiktoken"
    r"|tiktoken\.model|vocab\.txt|tekken\.json)$"
)
CAUSAL = re.compile(r"(ForCausalLM|LMHeadModel|ForConditionalGeneration|WithLMHead\w*)$")
STORED = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_LEARNED = frozenset({"vocab.json", "merges.txt"})

#: Quark loads these through classes that exist from a Transformers version on (source of 0.12.post1 and 0.13).
_NEEDS = {
    "llama4": ("4.51", "its own conditional-generation class"),
    "mllama": ("4.51", "its own conditional-generation class"),
    "gpt_oss": ("4.55.1", "Mxfp4Config(dequantize=True)"),
    "granitemoehybrid": ("4.55.1", "a replacement of its experts"),
    "qwen3_vl_moe": ("4.57", "its own conditional-generation class and a replacement of its experts"),
    "qwen3_5": ("5.2", "its own conditional-generation class"),
    "qwen3_5_moe": ("5.2", "its own conditional-generation class"),
    "qwen4_exp": ("5.16", "its own conditional-generation class"),
    "deepseek_vl_v2": ("", "AutoModel, with the folder's own code"),
}
_VERSION = re.compile(r"^(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")

#: Above this many unfused Linear modules Quark slows its loader down (source of 0.13), and memory is several devices'.
HUGE_LINEARS = 30_000
HUGE_BYTES = 140 * 10**9


def version(text: Any) -> tuple[int, int, int] | None:
    """The leading release numbers of a version; None when it does not start with two numbers."""
    match = _VERSION.match(text) if isinstance(text, str) else None
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def pointers(names: Sequence[str]) -> list[Finding]:
    """Files of which only the Git LFS pointer is there; those of safetensors files are told with the weights."""
    others = [name for name in names if not name.endswith(".safetensors")]
    if not others:
        return []
    return [
        Finding(
            "high",
            "file_lfs_pointer",
            f"{len(others)} files are Git LFS pointers, not what they are named for",
            _names(others),
            "Run `git lfs pull` in the model's folder.",
        )
    ]


def passed_by(names: Sequence[str]) -> list[Finding]:
    """safetensors files that are no part of the model as transformers loads it."""
    if not names:
        return []
    # A numbered shard that the index does not name is more likely a leftover of another download.
    odd = any(name.startswith("model") for name in names)
    return [
        Finding(
            "medium" if odd else "low",
            "weights_passed_by",
            f"{len(names)} safetensors files beside the model's own are not loaded: {_names(names)}",
            "transformers takes model.safetensors, else the files that model.safetensors.index.json names",
            "Check that the folder holds one model only." if odd else "",
        )
    ]


def adapter(listing: Mapping[str, int], weights_there: bool) -> list[Finding]:
    """An adapter beside a whole model: transformers follows adapter_config.json where peft is installed."""
    if "adapter_config.json" not in listing or not weights_there:
        return []
    return [
        Finding(
            "medium",
            "adapter_beside",
            "an adapter lies beside the model: where peft is installed, loading follows adapter_config.json to the"
            " adapter's base model instead",
            "adapter_config.json",
            "Move the adapter's files away, or merge it into the model first.",
        )
    ]


#: Generation settings that transformers 5.2 refuses to save (run) and that Quark does not set right before (source).
_SAMPLING = {"temperature": 1.0, "min_p": None, "top_h": None, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0}
_REPAIRED = ("top_p", "top_k", "typical_p")
_BEAMS = {"early_stopping": False, "length_penalty": 1.0}


def generation(data: Any) -> list[Finding]:
    """generation_config.json: settings that keep the result from being saved, after all the work was done."""
    if not isinstance(data, Mapping):
        return []
    wrong = []
    repaired = any(data.get(key) not in (None, 0) for key in _REPAIRED)
    if data.get("do_sample") is not True and not repaired:
        wrong += [key for key, default in _SAMPLING.items() if data.get(key) not in (None, default)]
    if data.get("num_beams") in (None, 1):
        wrong += [key for key, default in _BEAMS.items() if data.get(key) not in (None, default)]
    padding = data.get("pad_token_id")
    if type(padding) is int and padding < 0:
        wrong.append("pad_token_id")
    if not wrong:
        return []
    stated = ", ".join(f"{key} {shown(data[key])}" for key in wrong)
    return [
        Finding(
            "medium",
            "generation_config_refused",
            f"generation_config.json states {stated}: transformers 5 refuses to save such a combination, which would"
            " end the run at its export",
            "generation_config.json: " + ", ".join(wrong),
            "In a copy of the folder, set do_sample or num_beams to match, or remove these settings.",
        )
    ]


def architecture(facts: Mapping[str, Fact], remote_code: Sequence[RemoteCode]) -> list[Finding]:
    """An architecture that is no language model with an output head, and no code that brings one."""
    names = facts["architectures"].value
    if not names or any(CAUSAL.search(name) for name in names):
        return []
    if any(code.key.endswith("AutoModelForCausalLM") for code in remote_code):
        return []
    return [
        Finding(
            "medium",
            "architecture_not_causal",
            f"{_names(names)} is no causal language model: quark-cli torch-llm-ptq would load it as one, with an output"
            " head that was never trained, or not at all",
            facts["architectures"].source,
            "Use the checkpoint of the language model itself.",
        )
    ]


def stored_type(facts: Mapping[str, Fact], checkpoint: Checkpoint) -> list[Finding]:
    """Weights of several floating-point types, or of another than the configuration states."""
    if not checkpoint.sound:
        return []
    elements: dict[str, int] = {}
    for shard in checkpoint.shards:
        for tensor in shard.tensors.values():
            if len(tensor.shape) >= 2 and tensor.dtype in STORED:
                elements[tensor.dtype] = elements.get(tensor.dtype, 0) + tensor.elements
    total = sum(elements.values())
    if not total:
        return []
    parts = ", ".join(f"{count / total:.0%} {dtype}" for dtype, count in sorted(elements.items(), key=lambda e: -e[1]))
    stated = facts["dtype"].value
    if len(elements) == 1 and (stated is None or STORED[next(iter(elements))] == stated):
        return []
    return [
        Finding(
            "low",
            "stored_dtype",
            f"the matrices are stored as {parts}; the configuration states {clean(stated) if stated else 'no type'}",
            f"weight headers; dtype: {facts['dtype'].source}",
            "",
        )
    ]


def tokenizer(listing: Mapping[str, int], remote_code: Sequence[RemoteCode]) -> list[Finding]:
    """The tokenizer's files; one that code in the folder brings may have any name."""
    tops = {name for name in listing if "/" not in name}
    if any(_TOKENIZER.match(name) for name in tops) or tops >= _LEARNED:
        return []
    own = any(code.file == "tokenizer_config.json" for code in remote_code)
    return [
        Finding(
            "medium" if own else "high",
            "tokenizer_missing",
            "no tokenizer file that is known" + (", but the tokenizer has code of its own" if own else ""),
            "looked for tokenizer.json, tokenizer.model, spiece.model, sentencepiece.bpe.model, *.tiktoken, vocab.txt,"
            " tekken.json, vocab.json + merges.txt",
            "Copy the model's tokenizer files into its folder: without them quark-cli fails, or makes one up.",
        )
    ]


def weights(checkpoint: Checkpoint, listing: Mapping[str, int]) -> list[Finding]:
    """Weights that are missing, unsound, incomplete or in a format without readable headers."""
    found: list[Finding] = []
    pointers = [shard for shard in checkpoint.shards if "LFS pointer" in shard.problem]
    broken = [shard for shard in checkpoint.shards if shard.problem and shard not in pointers]
    if pointers:
        found.append(
            Finding(
                "high",
                "weights_lfs_pointer",
                f"{len(pointers)} of {len(checkpoint.shards)} weight files are Git LFS pointers, not weights",
                _names([shard.name for shard in pointers]),
                "Run `git lfs pull` in the model's folder.",
            )
        )
    if broken:
        found.append(
            Finding(
                "high",
                "weights_unsound",
                f"{len(broken)} of {len(checkpoint.shards)} weight files are unsound: {clean(broken[0].problem)}",
                _names([shard.name for shard in broken]),
                "Download these files again and compare their sizes with the source.",
            )
        )
    if checkpoint.index is not None or checkpoint.index_problem:
        for sentence in checkpoint.index_disagreements()[:8]:
            found.append(
                Finding(
                    "high",
                    "index_disagrees",
                    clean(sentence)[:400],
                    "model.safetensors.index.json",
                    "Download the missing files, or the index that belongs to these files.",
                )
            )
    if not checkpoint.shards:
        found += _other_formats(checkpoint, listing)
    return found


def _other_formats(checkpoint: Checkpoint, listing: Mapping[str, int]) -> list[Finding]:
    pickled = [name for name in checkpoint.other_weights if name.lower().endswith((".bin", ".pt", ".pth", ".ckpt"))]
    if pickled:
        return [
            Finding(
                "medium",
                "bin_only",
                "weights only as pickled PyTorch files: no headers to read, so module names and sizes are not known;"
                " loading a pickle can execute code",
                _names(pickled),
                "Prefer a safetensors copy of the model.",
            )
        ]
    if "adapter_config.json" in listing:
        return [
            Finding(
                "high",
                "adapter_only",
                "the folder holds an adapter, not a whole model",
                "adapter_config.json",
                "Merge the adapter into its base model and save that.",
            )
        ]
    others = list(checkpoint.other_weights)
    return [
        Finding(
            "high",
            "weights_missing",
            "no safetensors file" + (f"; {_names(others)} cannot be quantized by Quark" if others else ""),
            clean(checkpoint.directory),
            "Download the model's weights as safetensors into this folder.",
        )
    ]


def _names(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(clean(name) for name in names[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def remote(remote_code: Sequence[RemoteCode]) -> list[Finding]:
    """Custom code: what the flag stops, and what it does not."""
    found = []
    by_flag = [code for code in remote_code if code.stopped_by_flag]
    not_by_flag = [code for code in remote_code if not code.stopped_by_flag]
    if by_flag:
        found.append(
            Finding(
                "medium",
                "remote_code",
                f"loading the model can execute code of its folder: {_names(_unique(by_flag))}",
                _names(list(dict.fromkeys(f"{code.file}: {code.key}" for code in by_flag))),
                "Read these files. Without trust_remote_code only transformers' own classes are used, if it has them.",
            )
        )
    if not_by_flag:
        found.append(
            Finding(
                "high",
                "remote_code_tokenizer",
                f"loading the tokenizer or processor executes code of its folder: {_names(_unique(not_by_flag))};"
                " --no_trust_remote_code does not stop it",
                _names(list(dict.fromkeys(f"{code.file}: {code.key}" for code in not_by_flag))),
                "Read these files, or remove auto_map from a copy of the folder.",
            )
        )
    missing = [c for c in remote_code if c.sha256 is None]
    if missing:
        found.append(
            Finding(
                "medium",
                "remote_code_missing",
                f"code that is asked for is not in the folder: {_names(_unique(missing))}",
                _names(list(dict.fromkeys(c.file for c in missing))),
                "It would be fetched from the Hub, or loading fails; get the files from the model's source.",
            )
        )
    return found


def _unique(codes: Sequence[RemoteCode]) -> list[str]:
    return list(dict.fromkeys(code.target for code in codes))


def transformers(facts: Mapping[str, Fact], model_type: str | None, installed: str | None) -> list[Finding]:
    """The Transformers version that the model declares or its architecture needs, against the installed one.

    Never one minimum for all models: only what this architecture's loading in Quark names.
    """
    found = []
    declared, source = facts["transformers_version"].value, facts["transformers_version"].source
    have, wrote = version(installed), version(declared)
    need, how = _NEEDS.get(model_type or "", ("", ""))
    if how:
        wanted = version(need)
        short = have is not None and wanted is not None and have < wanted
        found.append(
            Finding(
                "high" if short else "info",
                "loading",
                f"Quark loads {clean(model_type)} through {how}"
                + (f"; this needs Transformers {need} or newer" if need else "")
                + (f", installed is {clean(installed)}" if have and need else ""),
                "Quark's loading code",
                f"Install Transformers {need} or newer within the range that amd-quark[cli] allows." if short else "",
            )
        )
    if have and wrote and wrote[:2] > have[:2]:
        found.append(
            Finding(
                "medium",
                "transformers_mismatch",
                f"the model was saved with Transformers {clean(declared)}, installed is {clean(installed)}",
                clean(source),
                "If loading fails, install that version within the range that amd-quark[cli] allows.",
            )
        )
    elif have and wrote and wrote[0] < have[0]:
        found.append(
            Finding(
                "low",
                "transformers_mismatch",
                f"the model was saved with Transformers {clean(declared)}, installed is {clean(installed)}:"
                " interfaces changed between major versions",
                clean(source),
                "",
            )
        )
    return found


def quantized(already: Quantized | None, model_type: str | None, config: Mapping[str, Any]) -> list[Finding]:
    """Input that is quantized already, and the one architecture that is misread when it is not."""
    found = []
    if already is not None:
        method = clean(already.method)
        told = {
            "quark": (
                "high",
                "Quark refuses to export it again (measured, at the end of the run).",
                "Start from the original model.",
            ),
            "fp8": (
                "medium",
                "Quark dequantizes it while it calibrates.",
                "The result inherits the loss of the first quantization.",
            ),
            "mxfp4": ("low" if model_type == "gpt_oss" else "medium", "Transformers dequantizes it while loading.", ""),
        }.get(
            already.method.lower(),
            ("high", "Whether Quark can start from it is not known.", "Prefer the original model."),
        )
        found.append(
            Finding(
                told[0],  # type: ignore[arg-type]
                "prequantized",
                f"the model is quantized already ({method}). {told[1]}",
                already.evidence,
                told[2],
            )
        )
        if already.contradiction:
            found.append(
                Finding(
                    "medium",
                    "quantization_contradiction",
                    f"the files disagree about how it is quantized: {already.contradiction}",
                    already.evidence,
                    "Ask the model's source which is right.",
                )
            )
    if model_type == "gpt_oss" and not lookup(config, "quantization_config.modules_to_not_convert"):
        found.append(
            Finding(
                "high",
                "gpt_oss_dequantized",
                "a gpt_oss model without quantization_config.modules_to_not_convert: Quark takes lm_head, routers and"
                " attention for dequantized MXFP4 layers and quantizes them whatever is excluded (measured)",
                "config.json: quantization_config.modules_to_not_convert is not stated",
                "Start from the published MXFP4 checkpoint, whose config.json has that field.",
            )
        )
    return found


def size(linear_count: int | None, weight_bytes: int | None, experts: int | None) -> list[Finding]:
    """Models that want several devices or much memory. Sizes in bytes; thresholds are rules of thumb."""
    if not ((linear_count or 0) > HUGE_LINEARS or (weight_bytes or 0) > HUGE_BYTES):
        return []
    parts = []
    if linear_count is not None:
        parts.append(f"{linear_count:,} Linear modules")
    if experts:
        parts.append(f"{experts} experts a layer")
    if weight_bytes:
        parts.append(f"{human_bytes(weight_bytes)} of weights")
    return [
        Finding(
            "medium",
            "huge_model",
            f"a large model ({', '.join(parts)}): it is likely to need several devices or much host memory",
            "inventory and weight sizes",
            "Compare the plan's memory estimate with what is free; consider device_strategy multi_device.",
        )
    ]


def structure(fused_experts: bool, mtp: int, checkpoint: Checkpoint) -> list[Finding]:
    """Shapes of models that need care: fused experts, layers for multi-token prediction."""
    found = []
    if fused_experts:
        found.append(
            Finding(
                "medium",
                "fused_experts",
                "experts are stored as fused 3-D tensors; a Linear pattern matches them only after Quark unfused them",
                "weight headers: tensors of three or more dimensions below experts",
                "Check the matches of each pattern in the plan.",
            )
        )
    in_headers = any(re.search(r"(^|\.)mtp\b", name) for shard in checkpoint.shards for name in shard.tensors)
    if mtp or in_headers:
        found.append(
            Finding(
                "low",
                "mtp_layers",
                "the model has layers for multi-token prediction, which transformers does not load: they are not"
                " quantized, and the export has to exclude or omit them",
                f"config.json states {mtp}" if mtp else "weight headers: tensors named mtp",
                "Verification checks mtp_excluded.",
            )
        )
    return found
