"""IQ1_S and IQ1_M: 256 elements in 50 and 56 bytes, vectors of 8 from a ternary lattice.

IQ1_S  byte 0..1    d  f16
       byte 2..33   low 8 bits of the index of each vector
       byte 34..49  8 u16, one per 32 elements: 4 times 3 high bits of an index, lowest first,
                    then 3 bits of scale, then the sign of delta
       value = d * (2 * scale + 1) * (lattice + delta), delta = 0.125, or -0.125 if set
IQ1_M  byte 0..31   low 8 bits of the index of each vector
       byte 32..47  nibbles, one a vector: 3 high bits of its index, then the sign of delta
       byte 48..55  4 u16: 4 times 3 bits of scale, lowest first, one per 16 elements; their
                    top nibbles are the f16 d, the first one lowest
       value as in IQ1_S
"""

from __future__ import annotations

import torch

from kernels.quant.bits import fields, half, scaled, u16
from kernels.quant.codebooks import IQ1


def iq1_s(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of IQ1_S: [block, bytes] uint8 to float32 [block, elements]."""
    words = u16(b, 34, 50)
    high = fields(words, 3, 4).reshape(-1, 32)
    scales = half(b, 0) * (2 * (words >> 12 & 7) + 1).float()
    negative = (words >> 15).repeat_interleave(4, dim=1)
    return scaled(_shifted(b[:, 2:34], high, negative), scales)


def iq1_m(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of IQ1_M: [block, bytes] uint8 to float32 [block, elements]."""
    nibbles = fields(b[:, 32:48].int(), 4, 2).reshape(-1, 32)
    words = u16(b, 48, 56)
    places = torch.arange(0, 16, 4, dtype=torch.int32, device=b.device)
    pattern = (words >> 12 << places).sum(dim=1, keepdim=True, dtype=torch.int32)
    d = pattern.to(torch.int16).view(torch.float16).float()
    scales = d * (2 * fields(words, 3, 4).reshape(-1, 16) + 1).float()
    return scaled(_shifted(b[:, 0:32], nibbles & 7, nibbles >> 3), scales)


def _shifted(low: torch.Tensor, high: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
    """Lattice vectors plus or minus an eighth, [block, 256].

    Args:
        low, high: [block, 32], the index of each vector in two parts.
        negative: [block, 32], 1 where delta is subtracted.
    """
    vectors = IQ1.table(low.device)[low.int() | high << 8]
    delta = 0.125 - 0.25 * negative.float()
    return (vectors + delta.unsqueeze(-1)).view(-1, 256)
