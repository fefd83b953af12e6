"""Q4_1: 32 elements in 20 bytes.

byte 0..1   d   f16
byte 2..3   m   f16
byte 4..19  qs  nibbles: element i is nibble i // 16 of byte i % 16

value = d * q + m
"""

from __future__ import annotations

import torch

from kernels.quant.bits import half, planes


def q4_1(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q4_1: [block, bytes] uint8 to float32 [block, elements]."""
    q = planes(b[:, 4:20], 4, 16)
    return half(b, 0) * q.float() + half(b, 2)
