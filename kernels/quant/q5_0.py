"""Q5_0: 32 elements in 22 bytes.

byte 0..1   d   f16
byte 2..5   qh  bit i is the fifth bit of element i
byte 6..21  qs  nibbles: element i is nibble i // 16 of byte i % 16

value = d * (q - 16)
"""

from __future__ import annotations

import torch

from kernels.quant.bits import bits, half, planes


def q5_0(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q5_0: [block, bytes] uint8 to float32 [block, elements]."""
    q = (planes(b[:, 6:22], 4, 16) | bits(b[:, 2:6]) << 4) - 16
    return half(b, 0) * q.float()
