"""Eight-bit floats without blocks, their scales elsewhere: F8_E4M3 and the scales E8M0.

f8_e4m3  sign, 4 bits of exponent (bias 7), 3 of fraction; 0x7F and 0xFF are NaN, none infinite
e8m0     2 ** (byte - 127); 255 is NaN
"""

from __future__ import annotations

import torch

from kernels.quant.bits import aligned


def f8_e4m3(b: torch.Tensor) -> torch.Tensor:
    """Decode F8_E4M3: [element, 1] uint8 to float32 [element, 1]."""
    return aligned(b).view(torch.float8_e4m3fn).float()


def e8m0(b: torch.Tensor) -> torch.Tensor:
    """Decode E8M0: [element, 1] uint8 to float32 [element, 1]."""
    exponent = b.int()
    # The exponent's bits are those of a float32; 2 ** -127 is denormal and 255 already NaN's.
    pattern = torch.where(exponent == 0, 0x00400000, exponent << 23)
    nan = torch.full_like(pattern, 0x7FC00000)
    return torch.where(exponent == 255, nan, pattern).view(torch.float32)
