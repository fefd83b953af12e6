"""The same products for more rows, on tensor cores: the same bits.

A program has 16 * TILES rows of the weight, and eight warps share K: a step is 32 blocks, of which
warp w has blocks 4w to 4w + 3. Thread t of a warp stands for row t // 4 of a tile of the weight
and the one 8 below, and for block t % 4 of its warp's: what one thread of the kernel for few rows
has. It adds its blocks in order of K; threads are then added as that kernel's are: warps 4, 2 and 1
apart, then threads 2 and 1 apart. Whole sums are exact and what follows is the same function, so
no bit differs. ALONG is that kernel's warps along K, one after the other here.

So that a product of matrices keeps blocks apart, its columns are the four blocks' high and low
planes of one row, and a column has zeros for the other three blocks.
"""

import triton
import triton.language as tl

from kernels.dependent import let_next_start, wait_for_inputs
from kernels.inline import tile_16x8
from kernels.step_product.codes import (
    factors,
    four,
    low_codes,
    one,
    places,
    scaled_sums,
    two,
    with_high,
)
from kernels.step_product.kernel import stored

WARPS: tl.constexpr = tl.constexpr(8)


@triton.jit
def half_sums(
    totals, upper, lower, x, FIRST: tl.constexpr, UNSIGNED: tl.constexpr, ASM: tl.constexpr
):
    """``totals`` plus the products of words FIRST to FIRST + 3 of two rows' codes and of ``x``."""
    for i in tl.static_range(FIRST, FIRST + 4, 2):
        totals = tile_16x8(
            totals, upper[i], lower[i], upper[i + 1], lower[i + 1], x[i], x[i + 1], UNSIGNED, ASM
        )
    return totals


@triton.jit
def both_rows(upper, lower, x, GROUP: tl.constexpr, UNSIGNED: tl.constexpr, ASM: tl.constexpr):
    """Whole sums of a thread's two rows: of both halves of its block, or of all of it and 0."""
    zero = x[0] & 0
    zeros = (zero, zero, zero, zero)
    a = half_sums(zeros, upper, lower, x, 0, UNSIGNED, ASM)
    if GROUP == 16:
        b = half_sums(zeros, upper, lower, x, 4, UNSIGNED, ASM)
        return (a[0] * 254 + a[1], b[0] * 254 + b[1]), (a[2] * 254 + a[3], b[2] * 254 + b[3])
    else:  # noqa: RET505 - Triton follows a constexpr branch only so
        a = half_sums(a, upper, lower, x, 4, UNSIGNED, ASM)
        return (a[0] * 254 + a[1], zero), (a[2] * 254 + a[3], zero)


@triton.jit
def row_parts(
    at, start, live, LOW: tl.constexpr, HIGH: tl.constexpr, GROUP: tl.constexpr,
    SCALE: tl.constexpr, SCALE_SUPER: tl.constexpr, ADDED: tl.constexpr, ADDED_SUPER: tl.constexpr,
    MINIMUM: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, MASKED: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Codes, scales and minima of a step's blocks of one row."""
    words, tops, scale, added = stored(
        at, start, live, LOW, HIGH, GROUP, SCALE_SUPER, ADDED_SUPER, MINIMUM, MASKED
    )
    codes = low_codes(words, LOW, TABLE, T0, T1, T2, T3, ASM)
    if HIGH:
        codes = with_high(codes, tops, LOW, HIGH)
    scale = factors(scale, GROUP, SCALE, SCALE_SUPER)
    if MINIMUM:
        added = factors(added, GROUP, ADDED, ADDED_SUPER)
    return codes, scale, added


@triton.jit
def step_sums(
    sums, at, x_at, start, live, column, rows, BLOCKS: tl.constexpr, ROWS: tl.constexpr,
    TILES: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, GROUP: tl.constexpr,
    SCALE: tl.constexpr, SCALE_SUPER: tl.constexpr, ADDED: tl.constexpr, ADDED_SUPER: tl.constexpr,
    OFFSET: tl.constexpr, MINIMUM: tl.constexpr, UNSIGNED: tl.constexpr, TABLE: tl.constexpr,
    T0: tl.constexpr, T1: tl.constexpr, T2: tl.constexpr, T3: tl.constexpr, MASKED: tl.constexpr,
    ASM: tl.constexpr,
):  # fmt: skip
    """``sums`` with one step's blocks; ``column`` is whether a thread's column has its block."""
    parts = ()
    for half in tl.static_range(2 * TILES):
        parts = parts + (
            row_parts(
                at[half], start, live, LOW, HIGH, GROUP, SCALE, SCALE_SUPER, ADDED, ADDED_SUPER,
                MINIMUM, TABLE, T0, T1, T2, T3, MASKED, ASM,
            ),
        )  # fmt: skip
    new = ()
    for r in tl.static_range(ROWS):
        # Rows of a bucket that are not there are the last one again.
        of_row = tl.minimum(r, rows - 1) * BLOCKS + start
        x = four(x_at[0] + of_row * 8, column & live, True)
        x = x + four(x_at[0] + of_row * 8 + 4, column & live, True)
        x_scale = one(x_at[1] + of_row, live, MASKED)
        x_sum = x
        if OFFSET or MINIMUM:
            x_sum = two(x_at[2] + of_row * 2, live, MASKED)
        for tile in tl.static_range(TILES):
            upper, lower = parts[2 * tile], parts[2 * tile + 1]
            whole = both_rows(upper[0], lower[0], x, GROUP, UNSIGNED, ASM)
            above = scaled_sums(
                whole[0][0], whole[0][1], (x_sum[0], x_sum[1]), upper[1], upper[2], GROUP, OFFSET,
                MINIMUM,
            )  # fmt: skip
            below = scaled_sums(
                whole[1][0], whole[1][1], (x_sum[0], x_sum[1]), lower[1], lower[2], GROUP, OFFSET,
                MINIMUM,
            )  # fmt: skip
            new = new + (
                tl.fma(above, x_scale, sums[2 * (r * TILES + tile)]),
                tl.fma(below, x_scale, sums[2 * (r * TILES + tile) + 1]),
            )
    return new


@triton.jit
def threads_added(sums):
    """Eight rows' sums, of all threads that share one."""
    warps_added = tl.sum(tl.reshape(sums, (WARPS, 32)), axis=0)
    return tl.sum(tl.reshape(warps_added, (8, 4)), axis=1)


@triton.jit
def parts_added(found, FIRST: tl.constexpr, APART: tl.constexpr, ALONG: tl.constexpr):
    """Sums of the warps along K, two apart first."""
    if ALONG == 1:
        return found[FIRST]
    elif ALONG == 2:  # noqa: RET505 - as above
        return found[FIRST] + found[FIRST + APART]
    else:
        even = found[FIRST] + found[FIRST + 2 * APART]
        return even + (found[FIRST + APART] + found[FIRST + 3 * APART])


@triton.jit
def put(out, bias, place, there, value, BIAS: tl.constexpr, ADD: tl.constexpr):
    """Write one row's sums at ``place``, where ``there``."""
    if BIAS:
        value += tl.load(bias + place, mask=there, other=0.0).to(tl.float32)
    if ADD:
        value += tl.load(out + place, mask=there, other=0.0)
    tl.store(out + place, value, mask=there)


@triton.jit(do_not_specialize=["out_step", "rows", "unit"])
def matrix_rows(
    out, out_step, bias, rows, weight_rows, low, high, scales, supers, minima, super_minima,
    x_high, x_low, x_scales, x_sums, unit,
    BIAS: tl.constexpr, ADD: tl.constexpr, BLOCKS: tl.constexpr, ROWS: tl.constexpr,
    TILES: tl.constexpr, ALONG: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    GROUP: tl.constexpr, SCALE: tl.constexpr, SCALE_SUPER: tl.constexpr, ADDED: tl.constexpr,
    ADDED_SUPER: tl.constexpr, OFFSET: tl.constexpr, MINIMUM: tl.constexpr,
    UNSIGNED: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, ASM: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """out[r, n] = x[r] . weight[n] (+ bias[n], + out[r, n]) for ``rows`` rows, ROWS at most."""
    let_next_start(DEPENDENT)
    masked: tl.constexpr = BLOCKS % (32 * ALONG) != 0
    each: tl.constexpr = 2 * TILES * ROWS
    thread = tl.arange(0, 32 * WARPS)[:, None, None]
    group, along = thread // 4 % 8, thread // 32 * 4 + thread % 4
    first = tl.program_id(0).to(tl.int64) * (16 * TILES)
    at = ()
    for half in tl.static_range(2 * TILES):
        row = tl.minimum(first + 8 * half + group, weight_rows - 1)
        at = at + (
            places(
                row, along, low, high, scales, supers, minima, super_minima, unit, BLOCKS, LOW,
                HIGH, GROUP,
            ),
        )  # fmt: skip
    x_high = x_high.to(tl.pointer_type(tl.int32), bitcast=True)
    x_low = x_low.to(tl.pointer_type(tl.int32), bitcast=True)
    plane = tl.where(group % 2 == 0, x_high, x_low) + along * 8
    x_at = (plane, x_scales + along * unit, x_sums + along * 2)
    wait_for_inputs(DEPENDENT)
    found = ()
    for part in tl.static_range(ALONG):
        sums = (tl.zeros((32 * WARPS, 1, 1), dtype=tl.float32),)
        for _ in tl.static_range(each - 1):
            sums = sums + (sums[0],)
        for start in tl.range(32 * part, BLOCKS, 32 * ALONG):
            sums = step_sums(
                sums, at, x_at, start, along < BLOCKS - start, group // 2 == thread % 4, rows,
                BLOCKS, ROWS, TILES, LOW, HIGH, GROUP, SCALE, SCALE_SUPER, ADDED, ADDED_SUPER,
                OFFSET, MINIMUM, UNSIGNED, TABLE, T0, T1, T2, T3, masked, ASM,
            )  # fmt: skip
        for number in tl.static_range(each):
            found = found + (threads_added(sums[number]),)
    for number in tl.static_range(each):
        place = first + 8 * (number % (2 * TILES)) + tl.arange(0, 8)
        put(
            out + (number // (2 * TILES)) * out_step.to(tl.int64), bias, place,
            (place < weight_rows) & (number // (2 * TILES) < rows),
            parts_added(found, number, each, ALONG), BIAS, ADD,
        )  # fmt: skip
