"""Q4_0: 32 elements in 18 bytes.

byte 0..1   d   f16
byte 2..17  qs  nibbles: element i is nibble i // 16 of byte i % 16

value = d * (q - 8)
"""

from __future__ import annotations

import torch

from kernels.quant.bits import half, planes


def q4_0(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q4_0: [block, bytes] uint8 to float32 [block, elements]."""
    q = planes(b[:, 2:18], 4, 16) - 8
    return half(b, 0) * q.float()
