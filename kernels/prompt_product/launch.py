"""Launches products of prompt rows: checks, the choice of tiles, arguments.

Nothing here allocates or waits: every launch may be captured in a graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.checks import KernelShapeError
from kernels.device import gpu_facts
from kernels.prompt_product.kernel import product_kernel

KIB: Final = 1024
ALIGNED: Final = 16
"""Bytes that addresses and rows must be multiples of to be copied by the unit for tensors."""
LEAST_DESCRIBED: Final = 50_000_000_000
"""Multiplications from which copies by that unit save more than the 33 us that the host needs to
describe two matrices; no bit depends on it."""
GROUP: Final = 8
"""Row tiles that go over all columns together."""
MOST_ROWS: Final = 8192
"""A choice of tiles is made for so many rows at most; more rows take the same."""
LEAST_ROWS: Final = 64


@dataclass(frozen=True, slots=True)
class Tile:
    """How a product is cut, of which no bit of it depends.

    Attributes:
        rows, columns: of the output, of one program; depth: of K, of one step.
        warps: of a program; stages: steps of K whose loads are under way.
        speed: of one multiprocessor with such tiles, relative to the others'.
        described: tiles are copied by the unit that copies tensors, where addresses allow it.
    """

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int
    speed: float
    described: bool = False

    @property
    def shared_bytes(self) -> int:
        """Of a program whose elements have two bytes."""
        return 2 * (self.rows + self.columns) * self.depth * self.stages


@dataclass(frozen=True, slots=True)
class Cut:
    """One launch: columns ``first`` to ``end`` of the output, in such tiles."""

    tile: Tile
    first: int
    end: int


HOPPER: Final = (
    Tile(128, 256, 64, 8, 3, 1.0, described=True),
    Tile(128, 128, 64, 4, 4, 0.85, described=True),
    Tile(64, 256, 64, 4, 4, 0.7, described=True),
    Tile(64, 128, 64, 4, 4, 0.65, described=True),
    Tile(64, 64, 64, 4, 4, 0.5, described=True),
)
"""227 KiB of shared memory, wgmma and TMA."""
AMPERE: Final = (
    Tile(128, 128, 32, 8, 3, 1.0),
    Tile(64, 128, 32, 4, 3, 0.8),
    Tile(64, 64, 32, 4, 4, 0.6),
)
"""99 KiB of shared memory and mma."""
SMALL: Final = Tile(64, 64, 32, 4, 3, 1.0)
"""For float32, whose products are three of tf32 each: routers."""
INTERPRETED: Final = Tile(32, 32, 64, 4, 1, 1.0)
PRECISION: Final = "tf32x3"
SECOND_LAUNCH: Final = 3000.0
"""What a launch costs beside its tiles, in outputs of one multiprocessor at speed 1."""


def prompt_product(
    x: torch.Tensor,
    weight: torch.Tensor,
    out: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    add: bool = False,
    tile: Tile | None = None,
) -> None:
    """Write ``x @ weight.T (+ bias)`` to ``out``, or add it to what is there.

    Args:
        x: [rows, columns] bfloat16 or float32, the last dimension contiguous.
        weight: [outputs, columns] of the same dtype, the last dimension contiguous.
        out: [rows, outputs] bfloat16 or float32, the last dimension contiguous.
        bias: [outputs], contiguous, of any float dtype.
        add: ``out`` holds float32 that is added.
        tile: instead of the one that is chosen.

    Raises:
        KernelShapeError: shapes, dtypes or strides that this does not take.
    """
    _check(x, weight, out, bias, add)
    rows, columns = x.shape
    outputs = weight.shape[0]
    cuts = (Cut(tile, 0, outputs),) if tile else _cuts(x, rows, outputs)
    for cut in cuts:
        part = slice(cut.first, cut.end)
        to, by, own = out[:, part], cut.tile, weight[part]
        count = cut.end - cut.first
        pays = rows * count * columns >= LEAST_DESCRIBED or tile is not None
        described = by.described and pays and _can_be_copied(x) and _can_be_copied(own)
        product_kernel[(-(-rows // by.rows) * -(-count // by.columns),)](
            _described(x, by.rows, by.depth) if described else x,
            _described(own, by.columns, by.depth) if described else own,
            to if bias is None else bias[part], to, rows, count, columns,
            x.stride(0), weight.stride(0), out.stride(0),
            BIAS=bias is not None, ADD=add, WHOLE=columns % by.depth == 0, NATIVE=out.is_cuda,
            PRECISION=PRECISION, DESCRIBED=described, ROWS=by.rows, COLUMNS=by.columns,
            DEPTH=by.depth, GROUP=GROUP, num_warps=by.warps, num_stages=by.stages,
        )  # fmt: skip


def _can_be_copied(values: torch.Tensor) -> bool:
    """Whether rows begin where the unit that copies tensors can read."""
    row_bytes = values.stride(0) * values.element_size()
    return not (row_bytes % ALIGNED or values.data_ptr() % ALIGNED)


def _described(values: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """A matrix in blocks of ``rows`` by ``columns``."""
    return TensorDescriptor(values, list(values.shape), list(values.stride()), [rows, columns])


def _check(
    x: torch.Tensor,
    weight: torch.Tensor,
    out: torch.Tensor,
    bias: torch.Tensor | None,
    add: bool,
) -> None:
    rows, columns = x.shape
    outputs = weight.shape[0]
    if weight.shape[1] != columns or tuple(out.shape) != (rows, outputs) or not rows:
        raise KernelShapeError(f"{list(x.shape)} x {list(weight.shape)} is no {list(out.shape)}.")
    if x.dtype is not weight.dtype or x.dtype not in (torch.bfloat16, torch.float32):
        raise KernelShapeError(f"No product of {x.dtype} and {weight.dtype}.")
    if out.dtype is not torch.float32 and (add or out.dtype is not torch.bfloat16):
        raise KernelShapeError(f"A product is not written to {out.dtype}.")
    if x.stride(1) != 1 or weight.stride(1) != 1 or out.stride(1) != 1:
        raise KernelShapeError("Rows of a product are dense.")
    if bias is not None and (tuple(bias.shape) != (outputs,) or not bias.is_contiguous()):
        raise KernelShapeError(f"bias is {list(bias.shape)}, not {outputs}.")


def _cuts(x: torch.Tensor, rows: int, outputs: int) -> tuple[Cut, ...]:
    if not x.is_cuda:
        return (Cut(INTERPRETED, 0, outputs),)
    if x.dtype is torch.float32:
        return (Cut(SMALL, 0, outputs),)
    facts = gpu_facts(x.device.index or 0)
    family = HOPPER if facts.shared_bytes >= 200 * KIB else AMPERE
    return chosen(family, bucket(rows), outputs, facts.multiprocessors)


def bucket(rows: int) -> int:
    """Row counts for which the same tiles are chosen: the power of two that is not below."""
    return min(max(1 << (rows - 1).bit_length(), LEAST_ROWS), MOST_ROWS)


@cache
def chosen(
    tiles: tuple[Tile, ...], rows: int, outputs: int, multiprocessors: int
) -> tuple[Cut, ...]:
    """The launches with which the last multiprocessor is done first.

    One, or two: whole rounds of large tiles, and what is left of the columns in smaller ones.
    """

    def duration(tile: Tile, columns: int) -> float:
        count = -(-rows // tile.rows) * -(-columns // tile.columns)
        return -(-count // multiprocessors) * tile.rows * tile.columns / tile.speed

    single = min(tiles, key=lambda tile: duration(tile, outputs))
    found: tuple[Cut, ...] = (Cut(single, 0, outputs),)
    best = duration(single, outputs)
    for large in tiles:
        row_tiles = -(-rows // large.rows)
        rounds = row_tiles * -(-outputs // large.columns) // multiprocessors
        first = rounds * multiprocessors // row_tiles * large.columns
        if not 0 < first < outputs:
            continue
        rest = min(tiles, key=lambda tile: duration(tile, outputs - first))
        both = duration(large, first) + duration(rest, outputs - first) + SECOND_LAUNCH
        if both < best:
            best, found = both, (Cut(large, 0, first), Cut(rest, first, outputs))
    return found
