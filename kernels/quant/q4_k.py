"""Q4_K: 256 elements in 144 bytes, sub-blocks of 32.

byte 0..1     d     f16
byte 2..3     dmin  f16
byte 4..15    s     8 scales and 8 minima of 6 bits, see ``scales_and_minima``
byte 16..143  qs    nibbles: element i is nibble (i % 64) // 32 of byte 32 * (i // 64) + i % 32

value = d * scale * q - dmin * minimum
"""

from __future__ import annotations

import torch

from kernels.quant.bits import half, planes, scaled


def q4_k(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of Q4_K: [block, bytes] uint8 to float32 [block, elements]."""
    scales, minima = scales_and_minima(b)
    values = scaled(planes(b[:, 16:144], 4, 32), scales)
    return values - minima.repeat_interleave(32, dim=1)


def scales_and_minima(b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sub-block factors ``d * scale`` and ``dmin * minimum``; Q5_K packs them the same way.

        s[0..3]   low six bits: scale 0..3     high two: top bits of scale 4..7
        s[4..7]   low six bits: minimum 0..3   high two: top bits of minimum 4..7
        s[8..11]  low nibble: scale 4..7       high nibble: minimum 4..7

    Returns:
        Two float32 [block, 8].
    """
    s = b[:, 4:16].int()
    first, second, third = s[:, 0:4], s[:, 4:8], s[:, 8:12]
    scales = torch.cat((first & 63, third & 15 | first >> 6 << 4), dim=1)
    minima = torch.cat((second & 63, third >> 4 | second >> 6 << 4), dim=1)
    return half(b, 0) * scales.float(), half(b, 2) * minima.float()
