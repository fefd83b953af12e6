"""Launches the products of generated rows: checks, configurations, arguments.

Nothing here allocates or waits: every launch may be captured in a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import torch
import triton

from kernels.checks import KernelShapeError
from kernels.dependent import dependent
from kernels.packed.layout import BLOCK, PackedLayout, ScaleKind
from kernels.packed.weight import DenseWeight, PackedWeight, Weight
from kernels.rows import MOST_ROWS, QuantizedRows
from kernels.step_product.configuration import (
    LEAST_MATRIX_ROWS,
    Configuration,
    configuration,
    dense_configuration,
    expert_configuration,
)
from kernels.step_product.dense import dense_experts, dense_rows
from kernels.step_product.kernel import packed_experts, packed_rows
from kernels.step_product.matrix import matrix_rows

WIDTH: Final = 32
"""Threads of a warp: blocks, or runs of a dense weight, that it takes in one step."""
MATRIX_WARPS: Final = 8
MOST_TOGETHER: Final = 3
THREADS_AXIS: Final = 1 if tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 7) else 0
"""The dimension that threads lie along where two are alike to Triton: the last one since 3.7."""


@dataclass(frozen=True, slots=True)
class Product:
    """One of the products that read the same rows: the arguments of ``step_product``."""

    weight: Weight
    out: torch.Tensor
    bias: torch.Tensor | None = None


def step_products(x: QuantizedRows, products: Sequence[Product], *, add: bool = False) -> None:
    """Several products of the same rows, in one launch where their weights are packed.

    Args:
        products: their outputs have one row stride, as views of one joint output have.

    Raises:
        KernelShapeError: as ``step_product``; or row strides differ.
    """
    bucket = bucket_of(x.rows)
    steps = {each.out.stride(0) for each in products}
    if len(steps) > 1:
        raise KernelShapeError(f"outputs of one launch have one row stride, not {sorted(steps)}.")
    alone = bucket >= LEAST_MATRIX_ROWS
    together = [each for each in products if isinstance(each.weight, PackedWeight) and not alone]
    for first in range(0, len(together), MOST_TOGETHER):
        _launch_together(x, together[first : first + MOST_TOGETHER], add)
    for each in products:
        if alone or isinstance(each.weight, DenseWeight):
            step_product(x, each.weight, each.out, bias=each.bias, add=add)


def bucket_of(rows: int) -> int:
    """The power of two for which kernels of so many rows are compiled."""
    return 1 << (rows - 1).bit_length()


def _launch_together(x: QuantizedRows, products: Sequence[Product], add: bool) -> None:
    bucket = bucket_of(x.rows)
    parts = []
    for each in products:
        _check(x, each)
        assert isinstance(each.weight, PackedWeight)
        cut = configuration(bucket, each.weight.rows, each.weight.columns)
        parts.append((*part_of(each.weight, each.out, each.bias, cut), cut))
    _launch_parts(x, parts, products[0].out.stride(0), add, 2)


def _launch_parts(
    x: QuantizedRows,
    parts: Sequence[tuple[tuple[Any, ...], tuple[Any, ...], Configuration]],
    out_step: int,
    add: bool,
    planes: int,
) -> None:
    """One launch of up to three parts, whose programs have the same warps."""
    counts = [-(-tensors[2] // cut.tile) for tensors, _, cut in parts]
    tensors = [each[0] for each in parts] + [parts[0][0]] * (MOST_TOGETHER - len(parts))
    constants = [each[1] for each in parts] + [None] * (MOST_TOGETHER - len(parts))
    cut = parts[0][2]
    packed_rows[(sum(counts),)](
        *tensors,
        counts[0],
        counts[1] if len(counts) > 1 else 0,
        x.rows,
        out_step,
        x.high,
        x.low,
        x.scales,
        x.sums,
        1,
        ADD=add,
        BLOCKS=x.columns // BLOCK,
        ROWS=bucket_of(x.rows),
        PLANES=planes,
        FULL=x.rows == bucket_of(x.rows),
        FIRST=constants[0],
        SECOND=constants[1],
        THIRD=constants[2],
        COUNT=len(parts),
        ASM=x.high.is_cuda,
        AXIS=2 * THREADS_AXIS,
        num_warps=cut.warps * cut.sides,
        enable_fp_fusion=False,
        **dependent(x.high.device),
    )


def part_of(
    weight: PackedWeight, out: torch.Tensor, bias: torch.Tensor | None, cut: Configuration
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What the kernel is given of one weight, and what it is compiled for."""
    told = layout_constants(weight.layout)
    tensors = (out, out if bias is None else bias, weight.rows, *_plane_tensors(weight))
    constants = (
        WIDTH * cut.warps, cut.sides, cut.tile // cut.sides, weight.rows % cut.tile == 0,
        cut.unroll, *told.values(), cut.ahead, cut.fetch, bias is not None,
    )  # fmt: skip
    return tensors, constants


def step_product(
    x: QuantizedRows,
    weight: Weight,
    out: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    add: bool = False,
    cut: Configuration | None = None,
    planes: int = 2,
) -> None:
    """Write x @ weight.T (+ bias) to ``out``, or add it to what is there.

    Args:
        x: 1 to 16 rows of ``weight.columns``.
        out: [rows, weight rows] float32, the last dimension contiguous.
        bias: [weight rows], contiguous, of any float dtype.
        add: ``out`` holds numbers that are added.
        cut: instead of ``configuration``'s.
        planes: 1 leaves the low plane of x out, to time what it costs.

    Raises:
        KernelShapeError: shapes, dtypes or strides that this does not take.
    """
    _check(x, Product(weight, out, bias))
    bucket = bucket_of(x.rows)
    cut = cut or _own_cut(bucket, weight)
    common = (out, out.stride(0), out if bias is None else bias, x.rows, weight.rows)
    flags = {"BIAS": bias is not None, "ADD": add}
    if isinstance(weight, DenseWeight):
        grid = (-(-weight.rows // cut.tile),)
        dense_rows[grid](
            *common, *_dense(x, weight), ROWS=bucket, **flags, **_dense_cut(weight, cut)
        )
    elif cut.matrix:
        matrix_rows[(-(-weight.rows // (16 * cut.tile)),)](
            *common, *_planes(x, weight), ROWS=bucket, **flags,
            **_matrix_cut(x, weight, cut),
        )  # fmt: skip
    else:
        part = (*part_of(weight, out, bias, cut), cut)
        _launch_parts(x, [part], out.stride(0), add, planes)


def _own_cut(bucket: int, weight: Weight) -> Configuration:
    if isinstance(weight, DenseWeight):
        return dense_configuration(weight.rows)
    return configuration(bucket, weight.rows, weight.columns)


def _check(x: QuantizedRows, product: Product) -> None:
    weight, out, bias = product.weight, product.out, product.bias
    if not 1 <= x.rows <= MOST_ROWS or x.columns != weight.columns:
        raise KernelShapeError(f"{x.rows} rows of {x.columns} against columns {weight.columns}.")
    if tuple(out.shape) != (x.rows, weight.rows) or not _written(out):
        raise KernelShapeError(
            f"out is {out.dtype} {list(out.shape)}, not {x.rows}, {weight.rows}."
        )
    if bias is not None and (tuple(bias.shape) != (weight.rows,) or not bias.is_contiguous()):
        raise KernelShapeError(f"bias is {list(bias.shape)}, not {weight.rows}.")


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
    packed = isinstance(weight, PackedWeight)
    cut = cut or (expert_configuration(n, weight.columns) if packed else dense_configuration(n))
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


def _plane_tensors(weight: PackedWeight) -> tuple[torch.Tensor, ...]:
    """All planes; the low one again in the place of each that is not there."""
    planes = (weight.high, weight.scales, weight.supers, weight.minima, weight.super_minima)
    return (weight.low, *(weight.low if plane is None else plane for plane in planes))


def _planes(x: QuantizedRows, weight: PackedWeight) -> tuple[Any, ...]:
    return (*_plane_tensors(weight), x.high, x.low, x.scales, x.sums, 1)


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


@cache
def layout_constants(layout: PackedLayout) -> dict[str, Any]:
    """What the kernel is told of a layout; only read, for every launch asks."""
    table = bytes(value & 255 for value in layout.table or (0,) * 16)
    words = [int.from_bytes(table[at : at + 4], "little", signed=True) for at in range(0, 16, 4)]
    minimum = layout.minimum
    return {
        "LOW": layout.low_bits,
        "HIGH": layout.high_bits,
        "GROUP": layout.group,
        "SCALE": int(layout.scale is ScaleKind.E8M0),
        "SCALE_SUPER": layout.scale.has_super,
        "ADDED": 0,
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
