"""Q6_K: 256 elements in 210 bytes, sub-blocks of 16.

byte 0..127    ql  low four bits; with n = i // 128 and r = i % 128:
                   nibble r // 64 of byte 64 * n + r % 64
byte 128..191  qh  high two bits: field r // 32 of byte 32 * n + r % 32
byte 192..207  sc  int8, one a sub-block
byte 208..209  d   f16

value = d * scale * (q - 32)
"""

from __future__ import annotations

import torch

from kernels.quant.bits import half, planes, scaled


def q6_k(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q6_K: [block, bytes] uint8 to float32 [block, elements]."""
    q = (planes(b[:, 0:128], 4, 64) | planes(b[:, 128:192], 2, 32) << 4) - 32
    scales = half(b, 208) * b[:, 192:208].view(torch.int8).float()
    return scaled(q, scales)
