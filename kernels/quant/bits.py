"""Small pieces that the formats' decoders share: fields out of quant blocks.

``b`` is always [block, bytes] uint8. Fields come back as float32 or int32 with the block first.
"""

from __future__ import annotations

import torch


def aligned(raw: torch.Tensor) -> torch.Tensor:
    """A contiguous copy, which may be viewed as wider numbers wherever ``raw`` began."""
    return raw.clone(memory_format=torch.contiguous_format)


def half(b: torch.Tensor, start: int) -> torch.Tensor:
    """The f16 at byte ``start`` as float32 [block, 1]."""
    return aligned(b[:, start : start + 2]).view(torch.float16).float()


def u16(b: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    """Bytes as little-endian unsigned 16-bit numbers, int32 [block, n]."""
    return aligned(b[:, start:stop]).view(torch.int16).int() & 0xFFFF


def u32(b: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    """Bytes as little-endian 32-bit patterns, int32 [block, n]; shift, then mask the sign away."""
    return aligned(b[:, start:stop]).view(torch.int32)


def fields(words: torch.Tensor, width: int, count: int, step: int | None = None) -> torch.Tensor:
    """Unsigned bit fields of each word, lowest first.

    Args:
        words: [...], whole numbers.
        width: bits of one field.
        count: fields of one word.
        step: bits from one field to the next; ``width`` where left out.

    Returns:
        [..., count], dtype of ``words``.
    """
    shifts = torch.arange(count, device=words.device, dtype=words.dtype) * (step or width)
    return (words.unsqueeze(-1) >> shifts) & ((1 << width) - 1)


def planes(b: torch.Tensor, width: int, run: int) -> torch.Tensor:
    """Fields of ``width`` bits, where a run of bytes holds its elements plane by plane.

    Element i of a run's 8 / width * run elements is field i // run of byte i % run: for nibbles
    and a run of 16, the low halves of 16 bytes come first, then their high halves.

    Returns:
        int32 [block, elements].
    """
    runs = b.int().view(b.shape[0], -1, run)
    return fields(runs, width, 8 // width).transpose(2, 3).reshape(b.shape[0], -1)


def bits(b: torch.Tensor) -> torch.Tensor:
    """Every bit in order, lowest of the first byte first, int32 [block, 8 * bytes]."""
    return fields(b.int(), 1, 8).reshape(b.shape[0], -1)


def signs(set_bits: torch.Tensor) -> torch.Tensor:
    """-1.0 where a bit is set, else 1.0."""
    return 1.0 - 2.0 * set_bits.float()


def scaled(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Multiply the elements of each sub-block by its scale.

    Args:
        values: [block, elements].
        scales: [block, sub-blocks], float32.
    """
    count = scales.shape[1]
    split = values.float().view(values.shape[0], count, -1)
    return (scales.unsqueeze(-1) * split).view(values.shape[0], -1)
