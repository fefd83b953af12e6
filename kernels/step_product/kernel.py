"""Products of generated rows, 1 to 16, with a weight: one pass over the weight, no shared memory.

A program has TILE rows of a packed weight and goes over K in steps of STEP blocks, 32 for each warp
along K: a thread has one block of 32 of some rows at a time, and all rows' activations of that
block. Integer sums inside a group are exact; a thread adds its blocks in order of K, then threads
are added. None of that depends on ROWS, nor on how many warps share the rows of the tile.

Before it waits for its activations a program asks for its rows (FETCH) or loads its first step;
with AHEAD each step is loaded one before its own. Multiply-adds are written out: launches turn the
compiler's own off.
"""

import triton
import triton.language as tl

from kernels.dependent import let_next_start, wait_for_inputs
from kernels.inline import dp4a, dp4a_unsigned
from kernels.step_product.codes import (
    blocks_of_step,
    entries,
    factors,
    fetch_tile,
    four,
    high_words,
    low_codes,
    low_words,
    one,
    places,
    rows_of_tile,
    scaled_sums,
    two,
    with_high,
)


@triton.jit
def chained(codes, words, FIRST: tl.constexpr, total, UNSIGNED: tl.constexpr, ASM: tl.constexpr):
    """``total`` plus the products of four words of codes with four of activations."""
    for i in tl.static_range(4):
        if UNSIGNED:
            total = dp4a_unsigned(codes[FIRST + i], words[i], total, ASM)
        else:
            total = dp4a(codes[FIRST + i], words[i], total, ASM)
    return total


@triton.jit
def group_sums(
    codes, x, live, GROUP: tl.constexpr, UNSIGNED: tl.constexpr, MASKED: tl.constexpr,
    ASM: tl.constexpr,
):  # fmt: skip
    """Whole sums of codes times one plane of activations: of both halves, or the whole and 0."""
    zero = codes[0] & 0
    first = chained(codes, four(x, live, MASKED), 0, zero, UNSIGNED, ASM)
    rest = four(x + 4, live, MASKED)
    if GROUP == 16:
        return first, chained(codes, rest, 4, zero, UNSIGNED, ASM)
    else:  # noqa: RET505 - Triton follows a constexpr branch only so
        return chained(codes, rest, 4, first, UNSIGNED, ASM), zero


@triton.jit
def both_planes(
    codes, x_high, x_low, live, GROUP: tl.constexpr, UNSIGNED: tl.constexpr, PARTS: tl.constexpr,
    MASKED: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Whole sums of codes times ``254 * high + low``; of 254 * high alone where PARTS is 1."""
    first, second = group_sums(codes, x_high, live, GROUP, UNSIGNED, MASKED, ASM)
    first, second = first * 254, second * 254
    if PARTS == 2:
        low_first, low_second = group_sums(codes, x_low, live, GROUP, UNSIGNED, MASKED, ASM)
        first, second = first + low_first, second + low_second
    return first, second


@triton.jit
def block_values(
    codes, scale, minimum, x_high, x_low, x_sums, live,
    GROUP: tl.constexpr, OFFSET: tl.constexpr, MINIMUM: tl.constexpr, UNSIGNED: tl.constexpr,
    PARTS: tl.constexpr, MASKED: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Products of one row's blocks with the tile's, before the row's scales: float32."""
    first, second = both_planes(codes, x_high, x_low, live, GROUP, UNSIGNED, PARTS, MASKED, ASM)
    sums = (first, second)
    if OFFSET or MINIMUM:
        sums = two(x_sums, live, MASKED)
    return scaled_sums(first, second, sums, scale, minimum, GROUP, OFFSET, MINIMUM)


@triton.jit
def stored(
    at, start, live, LOW: tl.constexpr, HIGH: tl.constexpr, GROUP: tl.constexpr,
    SCALE_SUPER: tl.constexpr, ADDED_SUPER: tl.constexpr, MINIMUM: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """What the planes hold of a step's blocks, as it is: low, high, scales, minima."""
    words = low_words(at[0] + start * LOW, live, LOW, MASKED)
    tops = words
    if HIGH:
        tops = high_words(at[1] + start * HIGH, live, HIGH, MASKED)
    scale = entries(at[2], at[3], start, live, GROUP, SCALE_SUPER, MASKED)
    added = scale
    if MINIMUM:
        added = entries(at[4], at[5], start, live, GROUP, ADDED_SUPER, MASKED)
    return words, tops, scale, added


@triton.jit
def tile_product(
    row, x_row, rows, low, high, scales, supers, minima, super_minima,
    x_high, x_low, x_scales, x_sums, unit,
    BLOCKS: tl.constexpr, STEP: tl.constexpr, ROWS: tl.constexpr, SIDES: tl.constexpr,
    UNROLL: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, GROUP: tl.constexpr,
    SCALE: tl.constexpr, SCALE_SUPER: tl.constexpr, ADDED: tl.constexpr, ADDED_SUPER: tl.constexpr,
    OFFSET: tl.constexpr, MINIMUM: tl.constexpr, UNSIGNED: tl.constexpr, TABLE: tl.constexpr,
    T0: tl.constexpr, T1: tl.constexpr, T2: tl.constexpr, T3: tl.constexpr, AHEAD: tl.constexpr,
    FETCH: tl.constexpr, PARTS: tl.constexpr, FULL: tl.constexpr, ASM: tl.constexpr,
    AXIS: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Products of rows ``x_row`` .. with the weight's rows ``row``: ROWS sums."""
    masked: tl.constexpr = BLOCKS % STEP != 0
    along = blocks_of_step(STEP, AXIS)
    # Each side of a tile reads the activations itself.
    own = along + 0 * tl.arange(0, SIDES)[None, :, None]
    x_high = x_high.to(tl.pointer_type(tl.int32), bitcast=True) + own * 8
    x_low = x_low.to(tl.pointer_type(tl.int32), bitcast=True) + own * 8
    x_scales += own * unit
    x_sums += own * 2
    zero = (along + row).to(tl.float32) * 0.0
    sums = (zero,)
    for _ in tl.static_range(ROWS - 1):
        sums = sums + (zero,)
    at = places(
        row, along, low, high, scales, supers, minima, super_minima, unit,
        BLOCKS, LOW, HIGH, GROUP,
    )  # fmt: skip
    if AHEAD:
        ahead = stored(
            at, 0, along < BLOCKS, LOW, HIGH, GROUP, SCALE_SUPER, ADDED_SUPER, MINIMUM, masked
        )
    if FETCH and DEPENDENT:
        fetch_tile(low, high, row, along, STEP, BLOCKS, LOW, HIGH, ASM)
    wait_for_inputs(DEPENDENT)
    for start in tl.range(0, BLOCKS, STEP, loop_unroll_factor=UNROLL):
        live = along < BLOCKS - start
        if AHEAD:
            words, tops, scale, added = ahead
            ahead = stored(
                at, start + STEP, along < BLOCKS - STEP - start, LOW, HIGH, GROUP, SCALE_SUPER,
                ADDED_SUPER, MINIMUM, True,
            )  # fmt: skip
        else:
            words, tops, scale, added = stored(
                at, start, live, LOW, HIGH, GROUP, SCALE_SUPER, ADDED_SUPER, MINIMUM, masked
            )
        codes = low_codes(words, LOW, TABLE, T0, T1, T2, T3, ASM)
        if HIGH:
            codes = with_high(codes, tops, LOW, HIGH)
        scale = factors(scale, GROUP, SCALE, SCALE_SUPER)
        if MINIMUM:
            added = factors(added, GROUP, ADDED, ADDED_SUPER)
        new = ()
        for r in tl.static_range(ROWS):
            # Rows of a bucket that are not there are the last one again.
            of_row = (x_row + r if FULL else tl.minimum(x_row + r, rows - 1)) * BLOCKS + start
            value = block_values(
                codes, scale, added, x_high + of_row * 8, x_low + of_row * 8, x_sums + of_row * 2,
                live, GROUP, OFFSET, MINIMUM, UNSIGNED, PARTS, masked, ASM,
            )  # fmt: skip
            x_scale = one(x_scales + of_row, live, masked)
            new = new + (tl.fma(value, x_scale, sums[r]),)
        sums = new
    products = (tl.sum(sums[0], axis=AXIS),)
    for r in tl.static_range(1, ROWS):
        products = products + (tl.sum(sums[r], axis=AXIS),)
    return products


@triton.jit
def write_tile(
    tile, part, rows, out_step, x_high, x_low, x_scales, x_sums, unit, ADD: tl.constexpr,
    BLOCKS: tl.constexpr, ROWS: tl.constexpr, PLANES: tl.constexpr, FULL: tl.constexpr,
    C: tl.constexpr, ASM: tl.constexpr, AXIS: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """One tile of one weight: ``part`` and ``C`` are ``launch.part_of``'s."""
    out, bias, weight_rows = part[0], part[1], part[2]
    step: tl.constexpr = C[0]
    sides: tl.constexpr = C[1]
    per: tl.constexpr = C[2]
    # In 64 bits from the start, the compiler sees that rows lie a constant apart.
    place = tile.to(tl.int64) * (sides * per) + rows_of_tile(sides, per, AXIS)
    row = place if C[3] else tl.minimum(place, weight_rows - 1)
    found = tile_product(
        row, 0, rows, part[3], part[4], part[5], part[6], part[7], part[8],
        x_high, x_low, x_scales, x_sums, unit, BLOCKS, step, ROWS, sides, C[4], C[5], C[6], C[7],
        C[8], C[9], C[10], C[11], C[12], C[13], C[14], C[15], C[16], C[17], C[18], C[19],
        C[20], C[21], PLANES, FULL, ASM, AXIS, DEPENDENT,
    )  # fmt: skip
    place = tl.reshape(place, (sides, per) if AXIS == 0 else (per, sides))
    for r in tl.static_range(ROWS):
        to = out + r * out_step.to(tl.int64) + place
        there = (place < weight_rows) & (r < rows)
        value = found[r]
        if C[22]:
            value += tl.load(bias + place, mask=there, other=0.0).to(tl.float32)
        if ADD:
            value += tl.load(to, mask=there, other=0.0)
        tl.store(to, value, mask=there)


@triton.jit(do_not_specialize=["tiles", "more_tiles", "out_step", "rows", "unit"])
def packed_rows(
    first, second, third, tiles, more_tiles, rows, out_step, x_high, x_low, x_scales, x_sums, unit,
    ADD: tl.constexpr, BLOCKS: tl.constexpr, ROWS: tl.constexpr, PLANES: tl.constexpr,
    FULL: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, THIRD: tl.constexpr,
    COUNT: tl.constexpr, ASM: tl.constexpr, AXIS: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """out[r, n] = x[r] . weight[n] (+ bias[n], + out[r, n]) for ``rows`` rows, ROWS at most.

    COUNT weights, one after the other: the first has ``tiles`` programs, the second ``more_tiles``.
    """
    let_next_start(DEPENDENT)
    tile = tl.program_id(0)
    if COUNT == 1:
        write_tile(
            tile, first, rows, out_step, x_high, x_low, x_scales, x_sums, unit, ADD, BLOCKS, ROWS,
            PLANES, FULL, FIRST, ASM, AXIS, DEPENDENT,
        )  # fmt: skip
    elif tile < tiles:
        write_tile(
            tile, first, rows, out_step, x_high, x_low, x_scales, x_sums, unit, ADD, BLOCKS, ROWS,
            PLANES, FULL, FIRST, ASM, AXIS, DEPENDENT,
        )  # fmt: skip
    elif COUNT == 2:
        write_tile(
            tile - tiles, second, rows, out_step, x_high, x_low, x_scales, x_sums, unit, ADD,
            BLOCKS, ROWS, PLANES, FULL, SECOND, ASM, AXIS, DEPENDENT,
        )  # fmt: skip
    elif tile < tiles + more_tiles:
        write_tile(
            tile - tiles, second, rows, out_step, x_high, x_low, x_scales, x_sums, unit, ADD,
            BLOCKS, ROWS, PLANES, FULL, SECOND, ASM, AXIS, DEPENDENT,
        )  # fmt: skip
    else:
        write_tile(
            tile - tiles - more_tiles, third, rows, out_step, x_high, x_low, x_scales, x_sums,
            unit, ADD, BLOCKS, ROWS, PLANES, FULL, THIRD, ASM, AXIS, DEPENDENT,
        )  # fmt: skip


@triton.jit(
    do_not_specialize=["out_row", "out_expert", "chosen_row", "chosen_step", "rows", "unit"]
)
def packed_experts(
    out, out_row, out_expert, chosen, chosen_row, chosen_step, rows, weight_rows,
    low, high, scales, supers, minima, super_minima, x_high, x_low, x_scales, x_sums, unit,
    CHOSEN: tl.constexpr, SHARED: tl.constexpr,
    BLOCKS: tl.constexpr, STEP: tl.constexpr, SIDES: tl.constexpr, PER: tl.constexpr,
    UNROLL: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, GROUP: tl.constexpr,
    SCALE: tl.constexpr, SCALE_SUPER: tl.constexpr, ADDED: tl.constexpr, ADDED_SUPER: tl.constexpr,
    OFFSET: tl.constexpr, MINIMUM: tl.constexpr, UNSIGNED: tl.constexpr, TABLE: tl.constexpr,
    T0: tl.constexpr, T1: tl.constexpr, T2: tl.constexpr, T3: tl.constexpr,
    AHEAD: tl.constexpr,
    PARTS: tl.constexpr, EVEN: tl.constexpr, ASM: tl.constexpr, AXIS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """out[r, a] = x . weight of expert chosen[r, a]; x is row r where SHARED, else the pair's."""
    let_next_start(DEPENDENT)
    wait_for_inputs(DEPENDENT)
    pair = tl.program_id(1)
    r, a = pair // CHOSEN, pair % CHOSEN
    expert = tl.load(chosen + r * chosen_row + a * chosen_step).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * (SIDES * PER) + rows_of_tile(SIDES, PER, AXIS)
    row = expert * weight_rows + (place if EVEN else tl.minimum(place, weight_rows - 1))
    found = tile_product(
        row, r if SHARED else pair, rows, low, high, scales, supers, minima, super_minima,
        x_high, x_low, x_scales, x_sums, unit, BLOCKS, STEP, 1, SIDES, UNROLL, LOW, HIGH, GROUP,
        SCALE, SCALE_SUPER, ADDED, ADDED_SUPER, OFFSET, MINIMUM, UNSIGNED, TABLE, T0, T1, T2, T3,
        AHEAD, False, PARTS, True, ASM, AXIS, False,
    )  # fmt: skip
    place = tl.reshape(place, (SIDES, PER) if AXIS == 0 else (PER, SIDES))
    to = out + r.to(tl.int64) * out_row + a * out_expert + place
    tl.store(to, found[0], mask=place < weight_rows)
