"""Products of many rows with a dense weight, one tile of the output a program.

K goes in order, in steps of DEPTH, and sums are float32: an output's bits are those of its own row
and column whatever tile it lies in. Rows and columns past the end read the last one and are not
stored, so that only K's end is masked.
"""

import triton
import triton.language as tl

from kernels.unpack.kernel import rounded


@triton.jit
def placed(number, row_tiles, column_tiles, GROUP: tl.constexpr):
    """Row tile and column tile of a program: GROUP row tiles go over all columns together.

    Programs that run side by side then share what the L2 cache holds.
    """
    together = GROUP * column_tiles
    group = number // together
    first = group * GROUP
    height = tl.minimum(row_tiles - first, GROUP)
    inside = number - group * together
    return first + inside % height, inside // height


@triton.jit
def accumulated(
    x, weight, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
    WHOLE: tl.constexpr, PRECISION: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Float32 [ROWS, COLUMNS] out of pointers to the beginnings of rows of both.

    NATIVE: compiled; Triton's interpreter takes bfloat16 for whole numbers.

    WHOLE: ``columns`` is a multiple of DEPTH.
    """
    k = tl.arange(0, DEPTH)
    x += k[None, :]
    weight += k[None, :]
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(tl.cdiv(columns, DEPTH)):
        if WHOLE:
            a = tl.load(x)
            b = tl.load(weight)
        else:
            inside = k[None, :] < columns - step * DEPTH
            a = tl.load(x, mask=inside, other=0.0)
            b = tl.load(weight, mask=inside, other=0.0)
        if not NATIVE:
            a, b = a.to(tl.float32), b.to(tl.float32)
        total = tl.dot(a, b.T, total, input_precision=PRECISION)
        x += DEPTH
        weight += DEPTH
    return total


@triton.jit
def copied(
    x, weight, row, column, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """As ``accumulated``, out of descriptors: tiles come by the unit that copies tensors (TMA).

    No addresses are computed then; what lies past an end is 0, as it is there.
    """
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(tl.cdiv(columns, DEPTH)):
        a = x.load([row, step * DEPTH])
        b = weight.load([column, step * DEPTH])
        if not NATIVE:
            a, b = a.to(tl.float32), b.to(tl.float32)
        total = tl.dot(a, b.T, total)
    return total


@triton.jit
def finished(
    total, bias, out, row, first, rows, outputs, out_stride, COLUMNS: tl.constexpr,
    PARTS: tl.constexpr, BIAS: tl.constexpr, ADD: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Store a tile whose columns begin with ``first``: with its bias, added, in out's dtype.

    PARTS: 2 where halves go one after the other, for what is added takes registers too.
    """
    if PARTS == 2:
        halves = tl.reshape(total, (total.shape[0], 2, COLUMNS // 2)).permute(0, 2, 1)
        left, right = tl.split(halves)
        finished(
            left, bias, out, row, first, rows, outputs, out_stride, COLUMNS // 2, 1, BIAS, ADD,
            NATIVE,
        )  # fmt: skip
        finished(
            right, bias, out, row, first + COLUMNS // 2, rows, outputs, out_stride, COLUMNS // 2,
            1, BIAS, ADD, NATIVE,
        )  # fmt: skip
    else:
        column = first + tl.arange(0, COLUMNS)
        inside = column < outputs
        if BIAS:
            total += tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)[None, :]
        place = out + row.to(tl.int64)[:, None] * out_stride + column[None, :]
        mask = (row < rows)[:, None] & inside[None, :]
        if ADD:
            total = tl.load(place, mask=mask, other=0.0) + total
        tl.store(place, rounded(total, out.dtype.element_ty, NATIVE), mask=mask)


@triton.jit(do_not_specialize=["rows"])
def product_kernel(
    x, weight, bias, out, rows, outputs, columns, x_stride, weight_stride, out_stride,
    BIAS: tl.constexpr, ADD: tl.constexpr, WHOLE: tl.constexpr, NATIVE: tl.constexpr,
    PRECISION: tl.constexpr, DESCRIBED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """``x @ weight.T`` of one tile; DESCRIBED: x and weight are descriptors of such tiles."""
    row_tile, column_tile = placed(
        tl.program_id(0), tl.cdiv(rows, ROWS), tl.cdiv(outputs, COLUMNS), GROUP
    )
    row = row_tile * ROWS + tl.arange(0, ROWS)
    if DESCRIBED:
        total = copied(
            x, weight, row_tile * ROWS, column_tile * COLUMNS, columns, ROWS, COLUMNS, DEPTH, NATIVE
        )
    else:
        column = column_tile * COLUMNS + tl.arange(0, COLUMNS)
        x += tl.minimum(row, rows - 1).to(tl.int64)[:, None] * x_stride
        weight += tl.minimum(column, outputs - 1).to(tl.int64)[:, None] * weight_stride
        total = accumulated(x, weight, columns, ROWS, COLUMNS, DEPTH, WHOLE, PRECISION, NATIVE)
    finished(
        total, bias, out, row, column_tile * COLUMNS, rows, outputs, out_stride, COLUMNS,
        2 if COLUMNS >= 128 else 1, BIAS, ADD, NATIVE,
    )  # fmt: skip
