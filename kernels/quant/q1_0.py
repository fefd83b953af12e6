"""Q1_0: 128 elements in 18 bytes.

byte 0..1   d   f16
byte 2..17  qs  bits: element i is bit i % 8 of byte i // 8

value = d where the bit is set, else -d
"""

from __future__ import annotations

import torch

from kernels.quant.bits import bits, half, signs


def q1_0(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q1_0: [block, bytes] uint8 to float32 [block, elements]."""
    return half(b, 0) * -signs(bits(b[:, 2:18]))
