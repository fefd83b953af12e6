"""TQ1_0 and TQ2_0: ternary, 256 elements in 54 and in 66 bytes.

TQ1_0  byte 0..31   five elements a byte: element 32 * k + i is digit k of byte i
       byte 32..47  five elements a byte: element 160 + 16 * k + i is digit k of byte 32 + i
       byte 48..51  four elements a byte: element 240 + 4 * k + i is digit k of byte 48 + i
       byte 52..53  d  f16
TQ2_0  byte 0..63   2 bits: element i is field (i % 128) // 32 of byte 32 * (i // 128) + i % 32
       byte 64..65  d  f16

Digit k of a byte x is the whole part of 3 * ((x * 3**k) % 256) / 256.
value = d * (digit - 1)
"""

from __future__ import annotations

import torch

from kernels.quant.bits import half, planes


def tq1_0(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of TQ1_0: [block, bytes] uint8 to float32 [block, elements]."""
    runs = (_digits(b[:, 0:32], 5), _digits(b[:, 32:48], 5), _digits(b[:, 48:52], 4))
    return half(b, 52) * (torch.cat(runs, dim=1) - 1).float()


def tq2_0(b: torch.Tensor) -> torch.Tensor:
    """Decode blocks of TQ2_0: [block, bytes] uint8 to float32 [block, elements]."""
    return half(b, 64) * (planes(b[:, 0:64], 2, 32) - 1).float()


def _digits(run: torch.Tensor, count: int) -> torch.Tensor:
    """The first ``count`` ternary digits of every byte, digit by digit."""
    powers = 3 ** torch.arange(count, dtype=torch.int32, device=run.device)
    shifted = run.int().unsqueeze(1) * powers.view(1, -1, 1) & 255
    return (shifted * 3 >> 8).reshape(run.shape[0], -1)
