"""Q3_K: 256 elements in 110 bytes, sub-blocks of 16.

byte 0..31     hmask  bit i // 32 of byte i % 32 is the third bit of element i
byte 32..95    qs     2 bits: element i is field (i % 128) // 32 of byte 32 * (i // 128) + i % 32
byte 96..107   s      16 scales of 6 bits: low four of sub-block j in nibble j // 8 of s[j % 8],
                      high two in field j // 4 of s[8 + j % 4]; stored plus 32
byte 108..109  d      f16

value = d * (scale - 32) * (q - 4), q with its third bit
"""

from __future__ import annotations

import torch

from kernels.quant.bits import half, planes, scaled


def q3_k(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q3_K: [block, bytes] uint8 to float32 [block, elements]."""
    q = (planes(b[:, 32:96], 2, 32) | planes(b[:, 0:32], 1, 32) << 2) - 4
    six_bits = planes(b[:, 96:104], 4, 8) | planes(b[:, 104:108], 2, 4) << 4
    scales = half(b, 108) * (six_bits - 32).float()
    return scaled(q, scales)
