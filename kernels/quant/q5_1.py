"""Q5_1: 32 elements in 24 bytes.

byte 0..1   d   f16
byte 2..3   m   f16
byte 4..7   qh  bit i is the fifth bit of element i
byte 8..23  qs  nibbles: element i is nibble i // 16 of byte i % 16

value = d * q + m
"""

from __future__ import annotations

import torch

from kernels.quant.bits import bits, half, planes


def q5_1(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q5_1: [block, bytes] uint8 to float32 [block, elements]."""
    q = planes(b[:, 8:24], 4, 16) | bits(b[:, 4:8]) << 4
    return half(b, 0) * q.float() + half(b, 2)
