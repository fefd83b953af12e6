"""Launches that turn weights back into numbers: whole runs of rows, or rows by number.

Nothing here allocates or waits: every launch may be captured in a graph.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from kernels.checks import KernelShapeError
from kernels.dependent import dependent
from kernels.packed.weight import DenseWeight, PackedWeight, Weight
from kernels.step_product.launch import layout_constants
from kernels.unpack.kernel import dense_rows_kernel, rows_kernel, unpack_kernel

UNIT: Final = 8
"""Elements that a thread unpacks together."""
UNITS: Final = 512
WARPS: Final = 4
ROW_UNITS: Final = 128
ROW_TILE: Final = 1024


def unpack(weight: Weight, first_row: int, out: torch.Tensor) -> None:
    """Write rows ``first_row`` on to ``out``: the exact float32 values, rounded to nearest even.

    Args:
        out: [n, columns] bfloat16, contiguous; n tells how many rows.

    Raises:
        KernelShapeError: rows that the weight does not have, or an ``out`` that is not so.
    """
    rows, columns = out.shape
    if columns != weight.columns or not 0 <= first_row <= weight.rows - rows:
        raise KernelShapeError(
            f"Rows {first_row} to {first_row + rows} of {columns}: the weight has"
            f" {weight.rows} of {weight.columns}."
        )
    if out.dtype is not torch.bfloat16 or not out.is_contiguous():
        raise KernelShapeError(f"Rows are unpacked to contiguous bfloat16, not {out.dtype}.")
    if isinstance(weight, DenseWeight):
        out.copy_(weight.values[first_row : first_row + rows])
        return
    row_units = columns // UNIT
    unpack_kernel[(-(-rows * row_units // UNITS),)](
        *_planes(weight),
        out,
        first_row,
        rows,
        row_units,
        UNITS=UNITS,
        num_warps=WARPS,
        **_constants(weight),
    )


def unpack_rows(weight: Weight, ids: torch.Tensor, out: torch.Tensor, scale: float) -> None:
    """Write ``decoded row * scale`` of each number.

    Args:
        ids: [R] int32, contiguous; one out of range counts as the nearest that is in it.
        out: [R, columns] float32, the last dimension contiguous.

    Raises:
        KernelShapeError: shapes, dtypes or strides that this does not take.
    """
    (rows,) = ids.shape
    if ids.dtype is not torch.int32 or not ids.is_contiguous():
        raise KernelShapeError(f"Numbers of rows are contiguous int32, not {ids.dtype}.")
    if tuple(out.shape) != (rows, weight.columns) or out.dtype is not torch.float32:
        raise KernelShapeError(f"{list(out.shape)} for {rows} rows of {weight.columns} float32.")
    if out.stride(1) != 1:
        raise KernelShapeError("Rows are unpacked to dense rows.")
    chain = dependent(out.device)
    if isinstance(weight, DenseWeight):
        table = weight.values
        if table.stride(1) != 1:
            raise KernelShapeError("a dense weight's rows are contiguous.")
        dense_rows_kernel[(rows, -(-weight.columns // ROW_TILE))](
            ids, table, table.stride(0), out, out.stride(0), weight.rows, weight.columns, scale,
            TILE=ROW_TILE, num_warps=WARPS, **chain,
        )  # fmt: skip
        return
    row_units = weight.columns // UNIT
    rows_kernel[(rows, -(-row_units // ROW_UNITS))](
        ids, *_planes(weight), out, out.stride(0), weight.rows, row_units, scale,
        UNITS=ROW_UNITS, num_warps=WARPS, **chain, **_constants(weight),
    )  # fmt: skip


def _planes(weight: PackedWeight) -> tuple[torch.Tensor, ...]:
    planes = (weight.high, weight.scales, weight.supers, weight.minima, weight.super_minima)
    return (weight.low, *(weight.low if plane is None else plane for plane in planes))


def _constants(weight: PackedWeight) -> dict[str, Any]:
    return {
        "ASM": weight.low.is_cuda,
        "enable_fp_fusion": False,
        **layout_constants(weight.layout),
    }
