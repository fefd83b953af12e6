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

from kernels.quant.bits import fields, half, join_rows, planes, scaled, split_blocks, u16
from kernels.quant.facts import FormatFacts

TABLE = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def decode(facts: FormatFacts, raw: torch.Tensor) -> torch.Tensor:
    """Decode rows of either format; see ``QuantFormat.decode``."""
    b = split_blocks(facts, raw)
    if facts.name == "iq4_nl":
        scales, q = half(b, 0), planes(b[:, 2:18], 4, 16)
    else:
        low = fields(b[:, 4:8].int(), 4, 2).reshape(-1, 8)
        high = fields(u16(b, 2, 4), 2, 8).reshape(-1, 8)
        scales = half(b, 0) * ((low | high << 4) - 32).float()
        q = planes(b[:, 8:136], 4, 16)
    table = torch.tensor(TABLE, dtype=torch.float32, device=raw.device)
    return join_rows(facts, raw, scaled(table[q], scales))
