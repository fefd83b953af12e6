"""Launches the products of generated rows: checks, configurations, arguments.

Nothing here allocates or waits: every launch may be captured in a graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
import triton

from kernels.checks import KernelShapeError
from kernels.dependent import dependent
from kernels.packed.layout import BLOCK, PackedLayout
from kernels.packed.weight import DenseWeight, PackedWeight, Weight
from kernels.rows import MOST_ROWS, QuantizedRows
from kernels.step_product.dense import dense_experts, dense_rows
from kernels.step_product.kernel import packed_experts, packed_rows
from kernels.step_product.matrix import matrix_rows

WIDTH: Final = 32
"""Threads of a warp: blocks, or runs of a dense weight, that it takes in one step."""
MATRIX_WARPS: Final = 8
LEAST_MATRIX_ROWS: Final = 8
THREADS_AXIS: Final = 1 if tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 7) else 0
"""The dimension that threads lie along where two are alike to Triton: the last one since 3.7."""


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
    if weight_rows <= 256:
        return Configuration(1, 8)
    if weight_rows < 2048:
        return Configuration(1, 4, ahead=True)
    warps = 2 if columns >= 8192 or weight_rows <= 6144 else 1
    if rows >= LEAST_MATRIX_ROWS:
        return Configuration(1, warps, matrix=True)
    if columns >= 8192:
        return Configuration(2, 2, ahead=True)
    if weight_rows >= 32768:
        return Configuration(8, 1)
    return Configuration(2 if 8192 <= weight_rows <= 11264 else 4, warps)


def expert_configuration(weight_rows: int, columns: int) -> Configuration:
    """For one expert's shape."""
    return Configuration(8 if weight_rows >= 2048 and columns <= 1024 else 4, 1)


def step_product(
    x: QuantizedRows,
    weight: Weight,
    out: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    add: bool = False,
    cut: Configuration | None = None,
    parts: int = 2,
) -> None:
    """Write x @ weight.T (+ bias) to ``out``, or add it to what is there.

    Args:
        x: 1 to 16 rows of ``weight.columns``.
        out: [rows, weight rows] float32, the last dimension contiguous.
        bias: [weight rows], contiguous, of any float dtype.
        add: ``out`` holds numbers that are added.
        cut: instead of ``configuration``'s.
        parts: 1 leaves the low plane of x out, to time what it costs.

    Raises:
        KernelShapeError: shapes, dtypes or strides that this does not take.
    """
    rows = x.rows
    if not 1 <= rows <= MOST_ROWS or x.columns != weight.columns:
        raise KernelShapeError(f"{rows} rows of {x.columns} against columns {weight.columns}.")
    if tuple(out.shape) != (rows, weight.rows) or not _written(out):
        raise KernelShapeError(f"out is {out.dtype} {list(out.shape)}, not {rows}, {weight.rows}.")
    if bias is not None and (tuple(bias.shape) != (weight.rows,) or not bias.is_contiguous()):
        raise KernelShapeError(f"bias is {list(bias.shape)}, not {weight.rows}.")
    bucket = 1 << (rows - 1).bit_length()
    cut = cut or configuration(bucket, weight.rows, weight.columns)
    grid = (-(-weight.rows // cut.tile),)
    common = (out, out.stride(0), out if bias is None else bias, rows, weight.rows)
    flags = {"BIAS": bias is not None, "ADD": add, "ROWS": bucket}
    if isinstance(weight, DenseWeight):
        dense_rows[grid](*common, *_dense(x, weight), **flags, **_dense_cut(weight, cut))
    elif cut.matrix:
        matrix_rows[(-(-weight.rows // (16 * cut.tile)),)](
            *common,
            *_planes(x, weight),
            BIAS=bias is not None,
            ADD=add,
            FOURS=-(-bucket // 4),
            **_matrix_cut(x, weight, cut),
        )
    else:
        packed_rows[grid](
            *common,
            *_planes(x, weight),
            **flags,
            **_cut(x, weight, cut),
            FETCH=cut.fetch,
            FULL=rows == bucket,
            EVEN=weight.rows % cut.tile == 0,
            PARTS=parts,
        )


def step_experts(
    x: QuantizedRows,
    weight: Weight,
    chosen: torch.Tensor,
    out: torch.Tensor,
    *,
    cut: Configuration | None = None,
) -> None:
    """Write the product of each row with each of its experts.

    Args:
        x: R rows, which all experts of a row read, or R * A, one for each pair.
        weight: a stack: the n rows of expert 0, then those of expert 1, ..
        chosen: [R, A] int32: experts, each below ``weight.rows / n``.
        out: [R, A, n] float32, the last dimension contiguous.

    Raises:
        KernelShapeError: shapes, dtypes or strides that this does not take.
    """
    rows, experts = chosen.shape
    n = out.shape[-1]
    if x.rows not in (rows, rows * experts) or x.columns != weight.columns or rows < 1:
        raise KernelShapeError(f"{x.rows} rows of {x.columns} against {list(chosen.shape)}.")
    if tuple(out.shape) != (rows, experts, n) or weight.rows % n or not _written(out):
        raise KernelShapeError(f"out is {out.dtype} {list(out.shape)} for {weight.rows} rows.")
    if chosen.dtype is not torch.int32:
        raise KernelShapeError(f"chosen is {chosen.dtype}, not int32.")
    cut = cut or expert_configuration(n, weight.columns)
    grid = (-(-n // cut.tile), rows * experts)
    common = (out, out.stride(0), out.stride(1), chosen, chosen.stride(0), chosen.stride(1))
    flags = {"CHOSEN": experts, "SHARED": x.rows == rows}
    if isinstance(weight, DenseWeight):
        dense_experts[grid](
            *common, x.rows, n, *_dense(x, weight), **flags, **_dense_cut(weight, cut)
        )
    else:
        packed_experts[grid](
            *common,
            x.rows,
            n,
            *_planes(x, weight),
            **flags,
            **_cut(x, weight, cut),
            EVEN=n % cut.tile == 0,
            PARTS=2,
        )


def _written(out: torch.Tensor) -> bool:
    return out.dtype is torch.float32 and out.stride(-1) == 1


def _planes(x: QuantizedRows, weight: PackedWeight) -> tuple[Any, ...]:
    planes = (weight.high, weight.scales, weight.supers, weight.minima, weight.super_minima)
    present = (weight.low if plane is None else plane for plane in planes)
    return (weight.low, *present, x.high, x.low, x.scales, x.sums, 1)


def _cut(x: QuantizedRows, weight: PackedWeight, cut: Configuration) -> dict[str, Any]:
    return {
        "BLOCKS": weight.columns // BLOCK,
        "STEP": WIDTH * cut.warps,
        "SIDES": cut.sides,
        "PER": cut.tile // cut.sides,
        "UNROLL": cut.unroll,
        "AHEAD": cut.ahead,
        "ASM": x.high.is_cuda,
        "AXIS": 2 * THREADS_AXIS,
        "num_warps": cut.warps * cut.sides,
        "enable_fp_fusion": False,
        **dependent(x.high.device),
        **layout_constants(weight.layout),
    }


def _matrix_cut(x: QuantizedRows, weight: PackedWeight, cut: Configuration) -> dict[str, Any]:
    return {
        "BLOCKS": weight.columns // BLOCK,
        "TILES": cut.tile,
        "ALONG": cut.warps,
        "ASM": x.high.is_cuda,
        "num_warps": MATRIX_WARPS,
        "enable_fp_fusion": False,
        **dependent(x.high.device),
        **layout_constants(weight.layout),
    }


def layout_constants(layout: PackedLayout) -> dict[str, Any]:
    """What the kernel is told of a layout."""
    table = bytes(value & 255 for value in layout.table or (0,) * 16)
    words = [int.from_bytes(table[at : at + 4], "little", signed=True) for at in range(0, 16, 4)]
    minimum = layout.minimum
    return {
        "LOW": layout.low_bits,
        "HIGH": layout.high_bits,
        "GROUP": layout.group,
        "SCALE": layout.scale.value,
        "SCALE_SUPER": layout.scale.has_super,
        "ADDED": layout.scale.value if minimum is None else minimum.value,
        "ADDED_SUPER": minimum is not None and minimum.has_super,
        "OFFSET": layout.offset,
        "MINIMUM": 0 if minimum is None else -1 if layout.subtracts else 1,
        "UNSIGNED": layout.low_bits == 8 and not layout.signed,
        "TABLE": layout.table is not None,
        **{f"T{place}": word for place, word in enumerate(words)},
    }


def _dense(x: QuantizedRows, weight: DenseWeight) -> tuple[Any, ...]:
    if weight.values.stride(1) != 1:
        raise KernelShapeError("a dense weight's rows are contiguous.")
    return (weight.values, weight.values.stride(0), x.high, x.low, x.scales)


def _dense_cut(weight: DenseWeight, cut: Configuration) -> dict[str, Any]:
    return {
        "COLUMNS": weight.columns,
        "STEP": WIDTH * cut.warps,
        "RUN": 16 // weight.values.element_size(),
        "TILE": cut.tile,
        "AXIS": THREADS_AXIS,
        "num_warps": cut.warps * cut.sides,
        "enable_fp_fusion": False,
        **dependent(weight.values.device),
    }
