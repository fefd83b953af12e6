"""IQ3_XXS and IQ3_S: 256 elements in 98 and 110 bytes, vectors of 4 from a lattice.

IQ3_XXS  byte 0..1      d  f16
         byte 2..65     index of each vector
         byte 66..97    8 u32, one per 32 elements: 4 sign patterns of 7 bits, lowest first,
                        and a scale in the top 4 bits
         value = d * (0.5 + scale) * 0.5 * sign * lattice
IQ3_S    byte 0..1      d  f16
         byte 2..65     low 8 bits of the index of each vector
         byte 66..73    ninth bit of the index: vector g in bit g % 8 of byte g // 8
         byte 74..105   sign bits, one an element
         byte 106..109  8 scales of 4 bits, low nibble first, one per 32
         value = d * (1 + 2 * scale) * sign * lattice

A 7-bit pattern is seven sign bits; the eighth makes their number even.
"""

from __future__ import annotations

import torch

from kernels.quant.bits import bits, fields, half, scaled, signs, u32
from kernels.quant.codebooks import IQ3_S, IQ3_XXS, even_signs


def iq3_xxs(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of IQ3_XXS: [block, bytes] uint8 to float32 [block, elements]."""
    vectors = IQ3_XXS.table(b.device)[b[:, 2:66].int()].view(-1, 256)
    words = u32(b, 66, 98)
    patterns = even_signs(b.device)[fields(words, 7, 4)]
    flips = signs(fields(patterns, 1, 8)).reshape(-1, 256)
    scales = half(b, 0) * (0.5 + (words >> 28 & 15).float()) * 0.5
    return scaled(vectors * flips, scales)


def iq3_s(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of IQ3_S: [block, bytes] uint8 to float32 [block, elements]."""
    index = b[:, 2:66].int() | bits(b[:, 66:74]) << 8
    vectors = IQ3_S.table(b.device)[index].view(-1, 256)
    stored = fields(b[:, 106:110].int(), 4, 2).reshape(-1, 8)
    scales = half(b, 0) * (1 + 2 * stored).float()
    return scaled(vectors * signs(bits(b[:, 74:106])), scales)
