"""IQ2_XXS, IQ2_XS and IQ2_S: 256 elements in 66, 74 and 82 bytes, vectors of 8 from a lattice.

IQ2_XXS  byte 0..1    d  f16
         byte 2..65   8 chunks of 32 elements: four bytes that index one vector each, then a
                      u32: 4 sign patterns of 7 bits, lowest first, and a scale in the top 4
         value = d * (0.5 + scale) * 0.25 * sign * lattice, one scale per 32
IQ2_XS   byte 0..1    d  f16
         byte 2..65   32 u16, one a vector: index in the low 9 bits, sign pattern in the high 7
         byte 66..73  16 scales of 4 bits, low nibble first, one per 16
         value = d * (0.5 + scale) * 0.25 * sign * lattice
IQ2_S    byte 0..1    d  f16
         byte 2..33   low 8 bits of the index of each vector
         byte 34..65  sign bits, one an element
         byte 66..73  high 2 bits of the indices: vector g in field g % 4 of byte g // 4
         byte 74..81  scales as in IQ2_XS

A 7-bit pattern is seven sign bits; the eighth makes their number even.
"""

from __future__ import annotations

import torch

from kernels.quant.bits import bits, fields, half, scaled, signs, u16, u32
from kernels.quant.codebooks import IQ2_S, IQ2_XS, IQ2_XXS, even_signs


def iq2_xxs(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of IQ2_XXS: [block, bytes] uint8 to float32 [block, elements]."""
    chunks = b[:, 2:66].reshape(-1, 8, 8)
    vectors = IQ2_XXS.table(b.device)[chunks[:, :, 0:4].int()].view(-1, 256)
    words = u32(chunks[:, :, 4:8].reshape(-1, 32), 0, 32)
    patterns = even_signs(b.device)[fields(words, 7, 4)]
    flips = signs(fields(patterns, 1, 8)).reshape(-1, 256)
    scales = half(b, 0) * (0.5 + (words >> 28 & 15).float()) * 0.25
    return scaled(vectors * flips, scales)


def iq2_xs(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of IQ2_XS: [block, bytes] uint8 to float32 [block, elements]."""
    words = u16(b, 2, 66)
    vectors = IQ2_XS.table(b.device)[words & 511].view(-1, 256)
    flips = signs(fields(even_signs(b.device)[words >> 9], 1, 8)).reshape(-1, 256)
    return scaled(vectors * flips, _nibble_scales(b, 66))


def iq2_s(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of IQ2_S: [block, bytes] uint8 to float32 [block, elements]."""
    high = fields(b[:, 66:74].int(), 2, 4).reshape(-1, 32)
    vectors = IQ2_S.table(b.device)[b[:, 2:34].int() | high << 8].view(-1, 256)
    return scaled(vectors * signs(bits(b[:, 34:66])), _nibble_scales(b, 74))


def _nibble_scales(b: torch.Tensor, start: int) -> torch.Tensor:
    stored = fields(b[:, start : start + 8].int(), 4, 2).reshape(-1, 16)
    return half(b, 0) * (0.5 + stored.float()) * 0.25
