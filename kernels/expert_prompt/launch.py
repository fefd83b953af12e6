"""Launches products of prompt rows with the experts that a router chose for them.

Nothing here allocates or waits: the grid is the most tiles that so many pairs can need.
"""

from __future__ import annotations

from typing import Final

import torch

from kernels.checks import KernelShapeError
from kernels.device import gpu_facts
from kernels.expert_prompt.kernel import expert_kernel
from kernels.prompt_product.launch import INTERPRETED, KIB, Tile

HOPPER: Final = (
    Tile(128, 256, 64, 8, 3, 1.0),
    Tile(128, 128, 64, 4, 3, 0.85),
    Tile(64, 256, 64, 4, 4, 0.7),
    Tile(64, 128, 64, 4, 4, 0.65),
)
"""227 KiB of shared memory and wgmma."""
AMPERE: Final = (Tile(128, 128, 32, 8, 3, 1.0), Tile(64, 128, 32, 4, 3, 0.8))
"""99 KiB of shared memory and mma."""


def expert_prompt(
    x: torch.Tensor,
    weight: torch.Tensor,
    order: torch.Tensor,
    starts: torch.Tensor,
    out: torch.Tensor,
    *,
    rows_per_pair: int,
    tile: Tile | None = None,
) -> None:
    """Write each pair's product: pair p reads row ``p // rows_per_pair`` of x.

    Args:
        x: [rows, columns] bfloat16, the last dimension contiguous.
        weight: [experts, outputs, columns] bfloat16, the last dimension contiguous.
        order: [pairs] int32, contiguous: numbers of pairs sorted by expert.
        starts: [experts + 1] int32, contiguous: where each expert's pairs start in ``order``.
        out: [pairs, outputs] bfloat16 or float32, the last dimension contiguous.
        rows_per_pair: pairs that read the same row, one after the other.
        tile: instead of the one that is chosen.

    Raises:
        KernelShapeError: shapes, dtypes or strides that this does not take.
    """
    _check(x, weight, order, starts, out, rows_per_pair)
    experts, outputs, columns = weight.shape
    cut = tile or _tile(x, len(order), experts)
    tiles = most_tiles(len(order), experts, cut.rows)
    expert_kernel[(tiles * -(-outputs // cut.columns),)](
        x, weight, order, starts, out, experts, outputs, columns, rows_per_pair,
        x.stride(0), weight.stride(0), weight.stride(1), out.stride(0),
        WHOLE=columns % cut.depth == 0, NATIVE=x.is_cuda,
        EXPERTS=1 << (experts - 1).bit_length(), ROWS=cut.rows, COLUMNS=cut.columns,
        DEPTH=cut.depth, num_warps=cut.warps, num_stages=cut.stages,
    )  # fmt: skip


def most_tiles(pairs: int, experts: int, rows: int) -> int:
    """Row tiles at most: whole ones, and one that is not whole for each expert that has pairs."""
    return pairs // rows + min(experts, pairs)


def _check(
    x: torch.Tensor,
    weight: torch.Tensor,
    order: torch.Tensor,
    starts: torch.Tensor,
    out: torch.Tensor,
    rows_per_pair: int,
) -> None:
    experts, outputs, columns = weight.shape
    pairs = len(order)
    if x.shape[1] != columns or x.shape[0] * rows_per_pair != pairs or not pairs:
        raise KernelShapeError(f"{pairs} pairs of {list(x.shape)} with {list(weight.shape)}.")
    if tuple(out.shape) != (pairs, outputs) or tuple(starts.shape) != (experts + 1,):
        raise KernelShapeError(f"{list(out.shape)} and {list(starts.shape)} for {pairs} pairs.")
    halves = x.dtype is torch.bfloat16 and weight.dtype is torch.bfloat16
    if not halves or out.dtype not in (torch.bfloat16, torch.float32):
        raise KernelShapeError(f"No product of {x.dtype} and {weight.dtype} as {out.dtype}.")
    if any(each.dtype is not torch.int32 or not each.is_contiguous() for each in (order, starts)):
        raise KernelShapeError("order and starts are contiguous int32.")
    if x.stride(1) != 1 or weight.stride(2) != 1 or out.stride(1) != 1:
        raise KernelShapeError("Rows of a product are dense.")


def _tile(x: torch.Tensor, pairs: int, experts: int) -> Tile:
    if not x.is_cuda:
        return INTERPRETED
    shared_bytes = gpu_facts(x.device.index or 0).shared_bytes
    if shared_bytes >= 200 * KIB:
        return HOPPER[0] if pairs >= 96 * experts else HOPPER[3]
    return AMPERE[0] if pairs >= 96 * experts else AMPERE[1]
