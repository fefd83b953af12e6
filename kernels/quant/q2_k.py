"""Q2_K: 256 elements in 84 bytes, sub-blocks of 16.

byte 0..15   sc    low nibble: scale of sub-block j, high nibble: its minimum
byte 16..79  qs    2 bits: element i is field (i % 128) // 32 of byte 32 * (i // 128) + i % 32
byte 80..81  d     f16
byte 82..83  dmin  f16

value = d * scale * q - dmin * minimum
"""

from __future__ import annotations

import torch

from kernels.quant.bits import half, planes, scaled


def q2_k(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q2_K: [block, bytes] uint8 to float32 [block, elements]."""
    packed = b[:, 0:16]
    scales = half(b, 80) * (packed & 15).float()
    minima = half(b, 82) * (packed >> 4).float()
    values = scaled(planes(b[:, 16:80], 2, 32), scales)
    return values - minima.repeat_interleave(16, dim=1)
