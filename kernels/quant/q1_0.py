"""Q1_0: 128 elements in 18 bytes.

byte 0..1   d   f16
byte 2..17  qs  bits: element i is bit i % 8 of byte i // 8

value = d where the bit is set, else -d
"""

from __future__ import annotations

import torch

from kernels.quant.bits import bits, half, join_rows, signs, split_blocks
from kernels.quant.facts import FormatFacts


def decode(facts: FormatFacts, raw: torch.Tensor) -> torch.Tensor:
    """Decode rows of Q1_0; see ``QuantFormat.decode``."""
    b = split_blocks(facts, raw)
    return join_rows(facts, raw, half(b, 0) * -signs(bits(b[:, 2:18])))
