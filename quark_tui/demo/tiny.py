"""Runs in the *target* interpreter: ``python -P tiny.py OUT NAME…`` makes small random causal language models.

Weights are random with a fixed seed, so what they say is noise, but files, names and shapes are those of the real
architectures (transformers 5). Each gets the same byte-level BPE tokenizer, trained on the interpreter's own library.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
from pathlib import Path
from typing import Any

VOCABULARY = 1024

#: Name → (model type, settings that differ from the common ones, least number of weight files).
MODELS: dict[str, tuple[str, dict[str, Any], int]] = {
    "tiny-llama": ("llama", {}, 1),
    "tiny-llama-sharded": ("llama", {}, 3),
    "tiny-llama-h96": ("llama", {"hidden_size": 96, "intermediate_size": 192}, 1),  # 96 is no multiple of 64 or 128
    "tiny-llama-tied": ("llama", {"tie_word_embeddings": True}, 1),
    "tiny-qwen3-moe": (
        "qwen3_moe",
        {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 128,
            "head_dim": 32,
            "decoder_sparse_step": 1,
        },
        1,
    ),
    "tiny-gpt2": ("gpt2", {}, 1),  # a model type that Quark 0.12 and 0.13 have no template for
}

_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}
_GPT2 = {"vocab_size": VOCABULARY, "n_embd": 128, "n_layer": 2, "n_head": 4, "n_positions": 2048}
_SPECIAL = {"pad_token": "<|pad|>", "bos_token": "<|bos|>", "eos_token": "<|eos|>"}
_CHAT = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}<|eos|>\n{% endfor %}"


def library_text(limit: int = 1_200_000) -> list[str]:
    """Source files of the standard library, in order of name, up to ``limit`` characters."""
    texts: list[str] = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        texts.append(path.read_text(encoding="utf-8", errors="replace"))
        limit -= len(texts[-1])
        if limit < 0:
            break
    return texts


def train_tokenizer() -> Any:
    tokenizers = importlib.import_module("tokenizers")
    byte_level = importlib.import_module("tokenizers.pre_tokenizers").ByteLevel
    tokenizer = tokenizers.Tokenizer(importlib.import_module("tokenizers.models").BPE())
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False)
    tokenizer.decoder = importlib.import_module("tokenizers.decoders").ByteLevel()
    trainer = importlib.import_module("tokenizers.trainers").BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(_SPECIAL.values()),
        initial_alphabet=byte_level.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(library_text(), trainer)
    fast = importlib.import_module("transformers").PreTrainedTokenizerFast
    return fast(tokenizer_object=tokenizer, model_max_length=2048, chat_template=_CHAT, **_SPECIAL)


def make(name: str, out: Path, tokenizer: Any) -> None:
    # By name, because this program's own process must never import them: only the target does.
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    model_type, changes, files = MODELS[name]
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    settings = (_GPT2 if model_type == "gpt2" else _COMMON) | ids | changes
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **settings)
    model = transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16).eval()
    size = sum(item.numel() * item.element_size() for item in model.parameters())
    split = {"max_shard_size": f"{size // files // 1000}KB"} if files > 1 else {}
    model.save_pretrained(out, **split)
    tokenizer.save_pretrained(out)


def main(argv: list[str]) -> int:
    out, names = Path(argv[0]), argv[1:]
    tokenizer = train_tokenizer()
    for name in names:
        make(name, out / name, tokenizer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
