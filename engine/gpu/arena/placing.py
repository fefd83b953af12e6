"""Puts rows as a file has them into a weight on the device: packed, copied, or decoded to bfloat16.

Exact but for decoding, which rounds. Whole-number and float32 operations of torch on whatever
device the bytes are; scales that stand for several rows are spread there.
"""

from __future__ import annotations

import torch

from engine.checkpoint.source import TensorFacts
from engine.gpu.arena.segments import Segment, scale_rows
from kernels.packed.pack import pack, pack_mlx, rows_between
from kernels.packed.weight import DenseWeight, PackedWeight, Weight
from kernels.quant import FORMATS

Parts = list[torch.Tensor]


def place(segment: Segment, parts: Parts, weight: Weight, *, decoded: bool) -> None:
    """Write a segment's rows of ``weight``.

    Args:
        parts: its spans' bytes, flat, each aligned.
        decoded: the weight keeps values, not the file's bits.
    """
    first, stop = segment.at, segment.at + segment.rows
    by_row = [part.view(-1) for part in parts]
    match weight:
        case DenseWeight() if decoded:
            weight.values[first:stop].copy_(_decoded(segment, by_row))
        case DenseWeight():
            target = weight.values[first:stop]
            target.copy_(by_row[0].view(target.dtype).view(target.shape))
        case PackedWeight():
            target_rows = rows_between(weight, first, stop)
            codes = by_row[0].view(segment.rows, -1)
            if len(parts) == 1:
                pack(segment.facts.format, codes, target_rows)
                return
            dtype = target_rows.scales.dtype
            scales, minima = (part.view(dtype).view(segment.rows, -1) for part in by_row[1:])
            pack_mlx(codes, scales, minima, target_rows)


def _decoded(segment: Segment, parts: Parts) -> torch.Tensor:
    """[rows, columns] float32: ``code * scale + minimum``, as ``engine.forward.Weights`` has it."""
    facts = segment.facts
    values = FORMATS[facts.format].decode(parts[0].view(segment.rows, -1))
    rest = iter(parts[1:])
    if facts.scales is not None:
        values *= _spread(segment, facts.scales, next(rest))
    if facts.minima is not None:
        values += _spread(segment, facts.minima, next(rest))
    return values


def _spread(segment: Segment, companion: TensorFacts, raw: torch.Tensor) -> torch.Tensor:
    """The scales or minima of a segment's rows, one an element."""
    facts, (height, width) = segment.facts, segment.facts.block
    rows = len(scale_rows(facts, companion, segment.start, segment.rows))
    found = FORMATS[companion.format].decode(raw.view(rows, -1))
    if height > 1:
        inside = segment.start % facts.shape[-2] % height
        found = found.repeat_interleave(height, dim=0)[inside : inside + segment.rows]
    if found.shape[1] == 1:
        return found
    return found.repeat_interleave(width, dim=1)[:, : facts.shape[-1]]
