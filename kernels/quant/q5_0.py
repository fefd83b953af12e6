"""Q5_0: 32 elements in 22 bytes.

byte 0..1   d   f16
byte 2..5   qh  bit i is the fifth bit of element i
byte 6..21  qs  nibbles: element i is nibble i // 16 of byte i % 16

value = d * (q - 16)
"""

from __future__ import annotations

import torch

from kernels.quant.bits import bits, half, join_rows, planes, split_blocks
from kernels.quant.facts import FormatFacts


def decode(facts: FormatFacts, raw: torch.Tensor) -> torch.Tensor:
    """Decode rows of Q5_0; see ``QuantFormat.decode``."""
    b = split_blocks(facts, raw)
    q = (planes(b[:, 6:22], 4, 16) | bits(b[:, 2:6]) << 4) - 16
    return join_rows(facts, raw, half(b, 0) * q.float())
