"""Q8_0: 32 elements in 34 bytes.

byte 0..1   d  f16
byte 2..33  q  int8, one an element

value = d * q
"""

from __future__ import annotations

import torch

from kernels.quant.bits import half, join_rows, split_blocks
from kernels.quant.facts import FormatFacts


def decode(facts: FormatFacts, raw: torch.Tensor) -> torch.Tensor:
    """Decode rows of Q8_0; see ``QuantFormat.decode``."""
    b = split_blocks(facts, raw)
    q = b[:, 2:34].view(torch.int8)
    return join_rows(facts, raw, half(b, 0) * q.float())
