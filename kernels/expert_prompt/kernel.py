"""Products of rows sorted by expert with a stack of experts' weights, one tile a program.

Pairs of one expert lie together in ``order``; each expert's are cut into tiles of its own, and a
program finds its tile from where experts start. K goes in order, as in ``prompt_product``: an
output's bits are those of its own pair.
"""

import triton
import triton.language as tl

from kernels.prompt_product.kernel import accumulated
from kernels.unpack.kernel import rounded


@triton.jit
def tile_of(number, starts, experts, EXPERTS: tl.constexpr, ROWS: tl.constexpr):
    """Expert of a row tile, and the places in ``order`` it goes from and to."""
    each = tl.arange(0, EXPERTS)
    inside = each < experts
    first = tl.load(starts + each, mask=inside, other=0)
    count = tl.load(starts + each + 1, mask=inside, other=0) - first
    ends = tl.cumsum((count + ROWS - 1) // ROWS, 0)
    expert = tl.sum((ends <= number).to(tl.int32), 0)
    there = expert < experts
    expert = tl.minimum(expert, experts - 1)
    earlier = tl.max(tl.where(each < expert, ends, 0), 0)
    last = tl.load(starts + expert + 1)
    begin = tl.load(starts + expert) + (number - earlier) * ROWS
    return expert, tl.where(there, begin, last), last


@triton.jit(do_not_specialize=["rows_per_pair"])
def expert_kernel(
    x, weight, order, starts, out, experts, outputs, columns, rows_per_pair, x_stride,
    expert_stride, weight_stride, out_stride, WHOLE: tl.constexpr, NATIVE: tl.constexpr,
    EXPERTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """One tile of pairs of one expert; column tiles of a row tile are neighbours."""
    column_tiles = tl.cdiv(outputs, COLUMNS)
    number = tl.program_id(0)
    expert, begin, last = tile_of(number // column_tiles, starts, experts, EXPERTS, ROWS)
    if begin < last:
        place = begin + tl.arange(0, ROWS)
        pair = tl.load(order + tl.minimum(place, last - 1))
        column = (number % column_tiles) * COLUMNS + tl.arange(0, COLUMNS)
        rows = x + (pair // rows_per_pair).to(tl.int64)[:, None] * x_stride
        own = weight + expert.to(tl.int64) * expert_stride
        own += tl.minimum(column, outputs - 1).to(tl.int64)[:, None] * weight_stride
        total = accumulated(rows, own, columns, ROWS, COLUMNS, DEPTH, WHOLE, "ieee", NATIVE)
        where = out + pair.to(tl.int64)[:, None] * out_stride + column[None, :]
        mask = (place < last)[:, None] & (column < outputs)[None, :]
        tl.store(where, rounded(total, out.dtype.element_ty, NATIVE), mask=mask)
