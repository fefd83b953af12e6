"""Q5_K: 256 elements in 176 bytes, sub-blocks of 32.

byte 0..1     d     f16
byte 2..3     dmin  f16
byte 4..15    s     8 scales and 8 minima of 6 bits, as in Q4_K
byte 16..47   qh    bit i // 32 of byte i % 32 is the fifth bit of element i
byte 48..175  qs    nibbles: element i is nibble (i % 64) // 32 of byte 32 * (i // 64) + i % 32

value = d * scale * q - dmin * minimum
"""

from __future__ import annotations

import torch

from kernels.quant.bits import planes, scaled
from kernels.quant.q4_k import scales_and_minima


def q5_k(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q5_K: [block, bytes] uint8 to float32 [block, elements]."""
    scales, minima = scales_and_minima(b)
    q = planes(b[:, 48:176], 4, 32) | planes(b[:, 16:48], 1, 32) << 4
    return scaled(q, scales) - minima.repeat_interleave(32, dim=1)
