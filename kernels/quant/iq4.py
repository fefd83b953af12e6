"""IQ4_NL and IQ4_XS: nibbles that index one table of 16 values.

IQ4_NL  32 elements in 18 bytes
        byte 0..1    d   f16
        byte 2..17   qs  nibbles: element i is nibble i // 16 of byte i % 16
        value = d * TABLE[q]
IQ4_XS  256 elements in 136 bytes, sub-blocks of 32
        byte 0..1    d   f16
        byte 2..3    sh  u16: bits 2 j are the top two bits of scale j
        byte 4..7    sl  nibble j: the low four bits of scale j
        byte 8..135  qs  nibbles: element i is nibble (i % 32) // 16 of byte 16 * (i // 32) + i % 16
        value = d * (scale - 32) * TABLE[q]
"""

from __future__ import annotations

import torch

from kernels.quant.bits import fields, half, planes, scaled, u16

TABLE = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def iq4_nl(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of IQ4_NL: [block, bytes] uint8 to float32 [block, elements]."""
    return half(b, 0) * _looked_up(planes(b[:, 2:18], 4, 16))


def iq4_xs(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of IQ4_XS: [block, bytes] uint8 to float32 [block, elements]."""
    low = fields(b[:, 4:8].int(), 4, 2).reshape(-1, 8)
    high = fields(u16(b, 2, 4), 2, 8).reshape(-1, 8)
    scales = half(b, 0) * ((low | high << 4) - 32).float()
    return scaled(_looked_up(planes(b[:, 8:136], 4, 16)), scales)


def _looked_up(q: torch.Tensor) -> torch.Tensor:
    return torch.tensor(TABLE, dtype=torch.float32, device=q.device)[q]
