"""The same products for four rows and more, on tensor cores: the same bits.

A program has TILES * 16 rows of the weight, and eight warps share K: warp w has the blocks that are
w modulo 8. Blocks of one class, the same modulo 32 * ALONG, are what one thread of the kernel for
few rows adds in order of K, where ALONG is its warps along K; a warp here keeps each of its classes
apart, 4 * ALONG of them. Classes are then added in pairs as that kernel's threads are: 16 apart
first, down to neighbours, then warps. Whole sums are exact and what follows is the same function,
so no bit differs.

A thread stands for row t // 4 of a tile of the weight and the one 8 below, and for one of four rows
of activations, t % 4. Columns of a tile are the high and the low plane of four rows, in turn.
"""

import triton
import triton.language as tl

from kernels.dependent import let_next_start, wait_for_inputs
from kernels.inline import looked_up, tile_16x8, tile_16x8_of_32
from kernels.step_product.codes import entries, factors, moved, one, places, scaled_sums, two

WARPS: tl.constexpr = tl.constexpr(8)


@triton.jit
def code_pair(
    low, high, word, live, LOW: tl.constexpr, HIGH: tl.constexpr, TABLE: tl.constexpr,
    T0: tl.constexpr, T1: tl.constexpr, T2: tl.constexpr, T3: tl.constexpr, MASKED: tl.constexpr,
    ASM: tl.constexpr,
):  # fmt: skip
    """Words ``word`` and ``word + 4``, 0 to 3, of a block's codes.

    ``low`` points to the word that holds the first of them, ``high`` to the block's first.
    """
    if LOW == 8:
        first, second = one(low, live, MASKED), one(low + 4, live, MASKED)
    elif LOW == 4:
        words = one(low, live, MASKED)
        if TABLE:
            first, second = looked_up(words, T0, T1, T2, T3, ASM)
        else:
            first, second = words & 0x0F0F0F0F, moved(words, -4, 0x0F0F0F0F)
    else:
        words = one(low, live, MASKED) >> (2 * (word // 2))
        first, second = words & 0x03030303, moved(words, -4, 0x03030303)
    if HIGH == 1:
        tops = one(high, live, MASKED) >> word
        first |= moved(tops, LOW, 0x01010101 << LOW)
        second |= moved(tops, LOW - 4, 0x01010101 << LOW)
    elif HIGH == 2:
        top_first, top_second = two(high, live, MASKED)
        first |= moved(top_first >> (2 * word), LOW, 0x03030303 << LOW)
        second |= moved(top_second >> (2 * word), LOW, 0x03030303 << LOW)
    return first, second


@triton.jit
def both_rows(
    above, below, activations, GROUP: tl.constexpr, UNSIGNED: tl.constexpr, ASM: tl.constexpr
):
    """Whole sums of a block for the two rows of a thread: of both halves, or the whole and 0."""
    a0, a2 = above
    a1, a3 = below
    b0, b1 = activations
    if GROUP == 16:
        c0, c1, c2, c3 = tile_16x8(a0, a1, b0, UNSIGNED, ASM)
        d0, d1, d2, d3 = tile_16x8(a2, a3, b1, UNSIGNED, ASM)
        return (c0 * 254 + c1, d0 * 254 + d1), (c2 * 254 + c3, d2 * 254 + d3)
    else:  # noqa: RET505 - Triton follows a constexpr branch only so
        c0, c1, c2, c3 = tile_16x8_of_32(a0, a1, a2, a3, b0, b1, UNSIGNED, ASM)
        return (c0 * 254 + c1, c0 & 0), (c2 * 254 + c3, c0 & 0)


@triton.jit
def row_parts(
    at, start, word, live, LOW: tl.constexpr, HIGH: tl.constexpr, GROUP: tl.constexpr,
    SCALE: tl.constexpr, SCALE_SUPER: tl.constexpr, ADDED: tl.constexpr, ADDED_SUPER: tl.constexpr,
    MINIMUM: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, MASKED: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Codes, scales and minima of the blocks ``start``, a multiple of eight, after ``at``."""
    codes = code_pair(
        at[0] + start * LOW, at[1] + start * HIGH, word, live, LOW, HIGH, TABLE, T0, T1, T2, T3,
        MASKED, ASM,
    )  # fmt: skip
    found = entries(at[2], at[3], start, live, GROUP, SCALE_SUPER, MASKED)
    scale = factors(found, GROUP, SCALE, SCALE_SUPER)
    minimum = scale
    if MINIMUM:
        found = entries(at[4], at[5], start, live, GROUP, ADDED_SUPER, MASKED)
        minimum = factors(found, GROUP, ADDED, ADDED_SUPER)
    return codes, scale, minimum


@triton.jit
def row_places(
    group, word, warp, rows, x_high, x_low, x_scales, x_sums, unit, BLOCKS: tl.constexpr,
    FOURS: tl.constexpr,
):  # fmt: skip
    """Where a thread's column, and its row's scales and sums, lie for each four rows."""
    x_high = x_high.to(tl.pointer_type(tl.int32), bitcast=True)
    x_low = x_low.to(tl.pointer_type(tl.int32), bitcast=True)
    plane = tl.where(group % 2 == 0, x_high, x_low) + warp * 8 + word * unit
    found = ()
    for four_rows in tl.static_range(FOURS):
        # Rows of a bucket that are not there are the last one again.
        column = tl.minimum(4 * four_rows + group // 2, rows - 1) * BLOCKS
        own = tl.minimum(4 * four_rows + word, rows - 1) * BLOCKS + warp
        found = found + ((plane + column * 8, x_scales + own, x_sums + own * 2),)
    return found


@triton.jit
def row_values(at, start, live, OFFSET: tl.constexpr, MINIMUM: tl.constexpr, MASKED: tl.constexpr):
    """A thread's column of a block, and its row's scale and sums."""
    column = (one(at[0] + start * 8, live, MASKED), one(at[0] + start * 8 + 4, live, MASKED))
    sums = column
    if OFFSET or MINIMUM:
        sums = two(at[2] + start * 2, live, MASKED)
    return column, one(at[1] + start, live, MASKED), sums


@triton.jit
def warp_sum(sums, FIRST: tl.constexpr, APART: tl.constexpr):
    """Four classes, and those of eight warps, added as a warp adds its threads': [32]."""
    total = sums[FIRST] + sums[FIRST + 2 * APART]
    total += sums[FIRST + APART] + sums[FIRST + 3 * APART]
    return tl.sum(tl.reshape(total, (WARPS, 32)), axis=0)


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
def put(
    out, out_step, bias, place, r, value, rows, weight_rows, BIAS: tl.constexpr, ADD: tl.constexpr
):
    """Write what one thread has of row ``r`` at ``place``."""
    there = (place < weight_rows) & (r < rows)
    to = out + r.to(tl.int64) * out_step + place
    if BIAS:
        value += tl.load(bias + place, mask=there, other=0.0).to(tl.float32)
    if ADD:
        value += tl.load(to, mask=there, other=0.0)
    tl.store(to, value, mask=there)


@triton.jit
def class_sums(
    sums, at, x_at, start, word, live, C: tl.constexpr, FOURS: tl.constexpr, TILES: tl.constexpr,
    LOW: tl.constexpr, HIGH: tl.constexpr, GROUP: tl.constexpr, SCALE: tl.constexpr,
    SCALE_SUPER: tl.constexpr, ADDED: tl.constexpr, ADDED_SUPER: tl.constexpr,
    OFFSET: tl.constexpr, MINIMUM: tl.constexpr, UNSIGNED: tl.constexpr, TABLE: tl.constexpr,
    T0: tl.constexpr, T1: tl.constexpr, T2: tl.constexpr, T3: tl.constexpr, MASKED: tl.constexpr,
    ASM: tl.constexpr,
):  # fmt: skip
    """The sums of class C, 2 * TILES * FOURS of ``sums``, with the blocks at ``start``."""
    parts = ()
    for half in tl.static_range(2 * TILES):
        parts = parts + (
            row_parts(
                at[half], start, word, live, LOW, HIGH, GROUP, SCALE, SCALE_SUPER, ADDED,
                ADDED_SUPER, MINIMUM, TABLE, T0, T1, T2, T3, MASKED, ASM,
            ),
        )  # fmt: skip
    new = ()
    for four_rows in tl.static_range(FOURS):
        x, x_scale, x_sum = row_values(x_at[four_rows], start, live, OFFSET, MINIMUM, MASKED)
        for tile in tl.static_range(TILES):
            upper, lower = parts[2 * tile], parts[2 * tile + 1]
            whole = both_rows(upper[0], lower[0], x, GROUP, UNSIGNED, ASM)
            above = scaled_sums(
                whole[0][0], whole[0][1], x_sum, upper[1], upper[2], GROUP, OFFSET, MINIMUM
            )
            below = scaled_sums(
                whole[1][0], whole[1][1], x_sum, lower[1], lower[2], GROUP, OFFSET, MINIMUM
            )
            new = new + (
                tl.fma(above, x_scale, sums[2 * ((C * FOURS + four_rows) * TILES + tile)]),
                tl.fma(below, x_scale, sums[2 * ((C * FOURS + four_rows) * TILES + tile) + 1]),
            )
    return new


@triton.jit(do_not_specialize=["out_step", "rows", "unit"])
def matrix_rows(
    out, out_step, bias, rows, weight_rows, low, high, scales, supers, minima, super_minima,
    x_high, x_low, x_scales, x_sums, unit,
    BIAS: tl.constexpr, ADD: tl.constexpr, BLOCKS: tl.constexpr, FOURS: tl.constexpr,
    TILES: tl.constexpr, ALONG: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    GROUP: tl.constexpr, SCALE: tl.constexpr, SCALE_SUPER: tl.constexpr, ADDED: tl.constexpr,
    ADDED_SUPER: tl.constexpr, OFFSET: tl.constexpr, MINIMUM: tl.constexpr,
    UNSIGNED: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, ASM: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """out[r, n] = x[r] . weight[n] (+ bias[n], + out[r, n]) for ``rows`` of 4 * FOURS rows."""
    let_next_start(DEPENDENT)
    masked: tl.constexpr = BLOCKS % (32 * ALONG) != 0
    each: tl.constexpr = 2 * TILES * FOURS
    thread = tl.arange(0, 32 * WARPS)[:, None, None]
    warp, group, word = thread // 32, thread // 4 % 8, thread % 4
    first = tl.program_id(0).to(tl.int64) * (16 * TILES)
    at = ()
    for half in tl.static_range(2 * TILES):
        row = tl.minimum(first + 8 * half + group, weight_rows - 1)
        at = at + (
            places(
                row, warp, low + (word % 2 if LOW == 2 else word) * unit, high, scales, supers,
                minima, super_minima, unit, BLOCKS, LOW, HIGH, GROUP,
            ),
        )  # fmt: skip
    x_at = row_places(group, word, warp, rows, x_high, x_low, x_scales, x_sums, unit, BLOCKS, FOURS)
    wait_for_inputs(DEPENDENT)
    found = ()
    for part in tl.static_range(ALONG):
        sums = (tl.zeros((32 * WARPS, 1, 1), dtype=tl.float32),)
        for _ in tl.static_range(4 * each - 1):
            sums = sums + (sums[0],)
        for begin in tl.range(32 * part, BLOCKS, 32 * ALONG):
            new = ()
            for c in tl.static_range(4):
                new = new + class_sums(
                    sums, at, x_at, begin + c * WARPS, word, warp < BLOCKS - begin - c * WARPS, c,
                    FOURS, TILES, LOW, HIGH, GROUP, SCALE, SCALE_SUPER, ADDED, ADDED_SUPER,
                    OFFSET, MINIMUM, UNSIGNED, TABLE, T0, T1, T2, T3, masked, ASM,
                )  # fmt: skip
            sums = new
        for one_of in tl.static_range(each):
            found = found + (warp_sum(sums, one_of, each),)
    lane = tl.arange(0, 32)
    for one_of in tl.static_range(each):
        put(
            out, out_step, bias, first + 8 * (one_of % (2 * TILES)) + lane // 4,
            4 * (one_of // (2 * TILES)) + lane % 4, parts_added(found, one_of, each, ALONG),
            rows, weight_rows, BIAS, ADD,
        )  # fmt: skip
