"""MXFP4 and NVFP4: four-bit floats (E2M1) with a shared scale; E2M1 alone, its scales elsewhere.

MXFP4  32 elements in 17 bytes
       byte 0      e   exponent, E8M0
       byte 1..16  qs  nibbles: element i is nibble i // 16 of byte i % 16
NVFP4  64 elements in 36 bytes, sub-blocks of 16
       byte 0..3   s   scale of sub-block j, unsigned E4M3
       byte 4..35  qs  nibbles: element i is nibble (i % 16) // 8 of byte 8 * (i // 16) + i % 8
E2M1   2 elements in 1 byte, the low nibble first; MLX's files of the modes mxfp4 and nvfp4

value = scale * E2M1[q]. The table holds doubled values, so the scales here are halved.
A tensor NAME.scale that goes with an NVFP4 tensor multiplies the product, not the blocks.
"""

from __future__ import annotations

import torch

from kernels.quant.bits import planes, scaled

_DOUBLED = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0)


def mxfp4(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of MXFP4: [block, bytes] uint8 to float32 [block, elements]."""
    return scaled(_looked_up(planes(b[:, 1:17], 4, 16)), half_of_e8m0(b[:, 0:1]))


def nvfp4(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of NVFP4: [block, bytes] uint8 to float32 [block, elements]."""
    return scaled(_looked_up(planes(b[:, 4:36], 4, 8)), half_of_e4m3(b[:, 0:4]))


def e2m1(b: torch.Tensor) -> torch.Tensor:
    """Decode E2M1 without its scale: [block, bytes] uint8 to float32 [block, elements]."""
    return _looked_up(planes(b, 4, 1)) * 0.5


def _looked_up(q: torch.Tensor) -> torch.Tensor:
    return torch.tensor(_DOUBLED, device=q.device)[q]


def half_of_e8m0(e: torch.Tensor) -> torch.Tensor:
    """2 ** (e - 128) as float32; e = 0 and 1 are denormal."""
    e = e.int()
    return torch.where(e < 2, 0x00200000 << e.clamp(max=1), (e - 1) << 23).view(torch.float32)


def half_of_e4m3(x: torch.Tensor) -> torch.Tensor:
    """Half of an unsigned E4M3 (bias 7) as float32; 0x7F, its NaN, is 0 as in the reference."""
    exponent, fraction = x.int() >> 3 & 15, (x & 7).float()
    normal = (1.0 + fraction / 8.0) * torch.exp2((exponent - 7).float())
    value = torch.where(exponent == 0, fraction * 2.0**-9, normal) * 0.5
    return torch.where((x == 0) | (x == 0x7F), 0.0, value)
