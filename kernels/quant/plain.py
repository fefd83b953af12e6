"""Formats without blocks: f32, f16, bf16, f64 and the whole numbers i8 to i64.

    f32  4 bytes | f16  2 | bf16  2, the upper half of an f32 | f64  8 | i8 1, i16 2, i32 4, i64 8

All little-endian. f32, f16 and bf16 become float32 exactly; the others round to nearest.
"""

from __future__ import annotations

import torch

from kernels.quant.bits import aligned, join_rows, split_blocks
from kernels.quant.facts import FormatFacts

_DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f64": torch.float64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}


def decode(facts: FormatFacts, raw: torch.Tensor) -> torch.Tensor:
    """Decode rows of any plain format; see ``QuantFormat.decode``."""
    elements = aligned(split_blocks(facts, raw)).view(_DTYPES[facts.name])
    return join_rows(facts, raw, elements.float())
