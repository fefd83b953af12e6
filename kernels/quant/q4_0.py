"""Q4_0: 32 elements in 18 bytes.

byte 0..1   d   f16
byte 2..17  qs  nibbles: element i is nibble i // 16 of byte i % 16

value = d * (q - 8)
"""

from __future__ import annotations

import torch

from kernels.quant.bits import half, join_rows, planes, split_blocks
from kernels.quant.facts import FormatFacts


def decode(facts: FormatFacts, raw: torch.Tensor) -> torch.Tensor:
    """Decode rows of Q4_0; see ``QuantFormat.decode``."""
    b = split_blocks(facts, raw)
    q = planes(b[:, 2:18], 4, 16) - 8
    return join_rows(facts, raw, half(b, 0) * q.float())
