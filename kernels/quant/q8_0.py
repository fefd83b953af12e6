"""Q8_0: 32 elements in 34 bytes.

byte 0..1   d  f16
byte 2..33  q  int8, one an element

value = d * q
"""

from __future__ import annotations

import torch

from kernels.quant.bits import half


def q8_0(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q8_0: [block, bytes] uint8 to float32 [block, elements]."""
    q = b[:, 2:34].view(torch.int8)
    return half(b, 0) * q.float()
