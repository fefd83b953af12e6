"""Scales and minima that lie in tensors of their own, one row of them for each row of a matrix."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.checkpoint.source import TensorFacts
from engine.models.spec import RowRuns
from kernels.cpu.records import JOINED, SCALES, Weight

Bytes = NDArray[np.uint8]


def is_joined(facts: TensorFacts) -> bool:
    """Whether the library knows these codes and the format of their scales."""
    parts = (part for part in (facts.scales, facts.minima) if part is not None)
    return facts.format in JOINED and all(part.format in SCALES for part in parts)


def describe(weight: Weight, facts: TensorFacts) -> None:
    """Fill in what does not depend on where the scales lie."""
    scales = facts.scales
    weight.group = facts.shape[-1] if scales is None else facts.block[1]
    weight.scale_format = SCALES["f32" if scales is None else scales.format]


def companion_rows(
    facts: TensorFacts, companion: TensorFacts, stored: Bytes, runs: RowRuns | None
) -> Bytes:
    """The scales or minima of a matrix's rows: [rows, bytes], contiguous.

    A view of ``stored``, the companion's bytes, where every row has its own there and the rows
    follow one another; else a copy.
    """
    by_row = stored.reshape(math.prod(companion.shape[:-1]), -1)
    runs = ((0, math.prod(facts.shape[:-1])),) if runs is None else runs
    if facts.block[0] == 1 and len(runs) == 1:
        first, count = runs[0]
        return by_row[first : first + count]
    rows = np.concatenate([np.arange(first, first + count) for first, count in runs])
    matrix, row = np.divmod(rows, facts.shape[-2])
    found: Bytes = by_row[matrix * companion.shape[-2] + row // facts.block[0]]
    return found
