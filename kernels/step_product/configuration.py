"""How products of generated rows are cut, by shape: found by timing them on an H200."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LEAST_MATRIX_ROWS: Final = 32
"""Rows from which tensor cores are used."""
WARPS: Final = 4
"""Of a program, so that products of different weights can be programs of one launch."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """How a product is cut. ``warps`` decides the order of sums; nothing else changes a bit.

    Attributes:
        tile: rows of the weight a program has, a multiple of ``sides``.
        warps: along K; a step of K is 32 blocks for each.
        sides: groups of such warps, which share the rows.
        ahead: the weight is loaded one step before it is needed.
        fetch: all of a program's rows are asked for before it waits for the kernel before.
        unroll: steps of K that the compiler sees together.
        matrix: 16 * ``tile`` rows of the weight on tensor cores; the bits are the same.
    """

    tile: int
    warps: int
    sides: int = 1
    ahead: bool = False
    fetch: bool = False
    unroll: int = 1
    matrix: bool = False


def configuration(rows: int, weight_rows: int, columns: int) -> Configuration:
    """For a bucket of rows and a shape; ``warps`` comes from the weight's shape alone."""
    warps = 4 if weight_rows < 2048 else 2 if columns >= 8192 or weight_rows <= 6144 else 1
    sides = WARPS // warps
    if rows >= LEAST_MATRIX_ROWS:
        return Configuration(1, warps, matrix=True)
    each = 1 if weight_rows < 2048 else 2 if columns >= 8192 else 4
    return Configuration(sides * each, warps, sides, ahead=warps > 1)


def expert_configuration(weight_rows: int, columns: int) -> Configuration:
    """For one expert's shape."""
    return Configuration(32 if weight_rows >= 2048 and columns <= 1024 else 16, 1, WARPS)


def dense_configuration(weight_rows: int) -> Configuration:
    """For a weight that is not packed."""
    return Configuration(2, 2) if weight_rows >= 2048 else Configuration(1, 4)
