"""How large the output will be, and roughly how much memory the run takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quark_tui.core.model.inventory import Inventory, Module
from quark_tui.core.ptq.analysis import element_bytes, integer
from quark_tui.core.ptq.schemes import SchemeFacts
from quark_tui.core.text import clean, human_bytes

#: Peak resident memory of quark-cli beside model and output, bytes: tiny models took 1.2 to 1.3 GB with 0.12.post1 on a
#: CPU and 2.1 GB with 0.13 on a GPU (measured; the imports alone 0.6 to 0.7 GB).
BASE_MEMORY = 1_300_000_000

# A header entry without its name, dtype, shape and offsets, and what those take on average.
_HEADER_ENTRY = 46 + 4 + 8 + 16


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes of the weight files to be written and of peak memory; None where nothing supports a number.

    ``basis`` says what the numbers rest on and how rough they are.
    """

    output_bytes: int | None
    peak_memory_bytes: int | None
    basis: str

    def to_json(self) -> dict[str, Any]:
        return {
            "output_bytes": self.output_bytes,
            "peak_memory_bytes": self.peak_memory_bytes,
            "basis": self.basis,
        }


def estimate(
    inventory: Inventory,
    schemes: Sequence[str | None],
    linears: Sequence[Module],
    facts: Mapping[str, SchemeFacts | None],
    kv_outputs: int,
    analysis: Mapping[str, Any],
    batch_size: int | None,
    seq_len: int | None,
) -> Estimate:
    """The estimate for ``linears`` quantized as ``schemes`` says (name, or None where a module stays as it is).

    ``kv_outputs`` modules get an output scale. Every other tensor keeps its bytes. The sizes per scheme are those of
    real exports; two exports of a small llama were within 2 %.
    """
    width = element_bytes(analysis)
    if not inventory.known:
        return Estimate(None, None, "the modules are not known, so no size can be told")
    if width is None:
        return Estimate(None, None, "the data type of the weights is not known, so no size can be told")
    total = inventory.parameters * width
    kinds: Counter[tuple[str, tuple[int, ...], int]] = Counter()
    names = 0
    for module, scheme in zip(linears, schemes, strict=True):
        if scheme is not None:
            kinds[scheme, module.weight, module.parameters] += 1
    own = "F32" if width == 4 else "BF16"
    header = 8 + 32
    for module in inventory.modules:
        names += len(module.name) + 7
    header += names + len(inventory.modules) * _HEADER_ENTRY
    mean = names / len(inventory.modules) if inventory.modules else 0
    output: float = total + kv_outputs * 2
    tensors = kv_outputs
    for (scheme, shape, parameters), count in kinds.items():
        known = facts.get(scheme)
        written = known.tensors(shape[0], shape[1], own) if known is not None and len(shape) == 2 else None
        if written is None:
            return Estimate(None, None, f"no export of {clean(scheme)} was ever measured, so no size can be told")
        # A tied output layer has no bytes of its own in the source, and gets some.
        kept = min(shape[0] * shape[1], parameters)
        output += count * (sum(tensor.nbytes for tensor in written) - kept * width)
        tensors += count * (len(written) - 1)
    output_bytes = int(output + header + tensors * (mean + _HEADER_ENTRY + 8))
    vocabulary = integer(analysis, "vocab_size")
    activations = 4 * (batch_size or 1) * (seq_len or 512) * (vocabulary or 0)
    peak = int(total + output_bytes + BASE_MEMORY + activations)
    return Estimate(
        output_bytes,
        peak,
        f"output: {clean(inventory.source)}, tensors per scheme as real exports have them, weight files only; "
        f"memory: source {human_bytes(int(total))} + output + {human_bytes(BASE_MEMORY)} for the program, very rough",
    )
