"""The same products where the weight is bfloat16, float16 or float32: float32 multiply-adds.

A thread has RUN elements of K at a time: 16 bytes of the weight.
"""

import triton
import triton.language as tl

from kernels.dependent import begin


@triton.jit
def dense_tile(
    row, x_row, rows, values, value_step, x_high, x_low, x_scales,
    COLUMNS: tl.constexpr, STEP: tl.constexpr, RUN: tl.constexpr, ROWS: tl.constexpr,
    TILE: tl.constexpr, AXIS: tl.constexpr,
):  # fmt: skip
    """Products of rows ``x_row`` .. with the weight's rows ``row`` [TILE]: ROWS of [TILE]."""
    within = tl.arange(0, RUN)[None, None, :]
    row = tl.expand_dims(row, AXIS)
    zero = tl.zeros((STEP, TILE) if AXIS == 0 else (TILE, STEP), dtype=tl.float32)
    sums = (zero,)
    for _ in tl.static_range(ROWS - 1):
        sums = sums + (zero,)
    for start in range(0, COLUMNS // RUN, STEP):
        run = start + tl.expand_dims(tl.arange(0, STEP), 1 - AXIS)
        live = run < COLUMNS // RUN
        at = run[:, :, None] * RUN + within
        each = values + row[:, :, None] * value_step + at
        weight = tl.load(each, mask=live[:, :, None], other=0.0).to(tl.float32)
        added = ()
        for r in tl.static_range(ROWS):
            # Rows of a bucket that are not there are the last one again.
            at_row = tl.minimum(x_row + r, rows - 1) * COLUMNS
            high = tl.load(x_high + at_row + at, mask=live[:, :, None], other=0).to(tl.float32)
            low = tl.load(x_low + at_row + at, mask=live[:, :, None], other=0).to(tl.float32)
            scale = tl.load(x_scales + (at_row + run * RUN) // 32, mask=live, other=0.0)
            product = tl.sum(
                weight * tl.fma(high, tl.full(high.shape, 254.0, tl.float32), low), axis=2
            )
            added = added + (tl.fma(product, scale, sums[r]),)
        sums = added
    found = (tl.sum(sums[0], axis=AXIS),)
    for r in tl.static_range(1, ROWS):
        found = found + (tl.sum(sums[r], axis=AXIS),)
    return found


@triton.jit(do_not_specialize=["out_step", "rows"])
def dense_rows(
    out, out_step, bias, rows, weight_rows, values, value_step, x_high, x_low, x_scales,
    BIAS: tl.constexpr, ADD: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
    RUN: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr, AXIS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """out[r, n] = x[r] . weight[n] (+ bias[n], + out[r, n]) for ``rows`` rows, ROWS at most."""
    begin(DEPENDENT)
    place = tl.program_id(0) * TILE + tl.arange(0, TILE)
    row = tl.minimum(place, weight_rows - 1).to(tl.int64)
    found = dense_tile(
        row, 0, rows, values, value_step, x_high, x_low, x_scales, COLUMNS, STEP, RUN, ROWS, TILE,
        AXIS,
    )  # fmt: skip
    for r in tl.static_range(ROWS):
        to = out + r * out_step.to(tl.int64) + place
        there = (place < weight_rows) & (r < rows)
        value = found[r]
        if BIAS:
            value += tl.load(bias + place, mask=there, other=0.0).to(tl.float32)
        if ADD:
            value += tl.load(to, mask=there, other=0.0)
        tl.store(to, value, mask=there)


@triton.jit(do_not_specialize=["out_row", "out_expert", "chosen_row", "chosen_step", "rows"])
def dense_experts(
    out, out_row, out_expert, chosen, chosen_row, chosen_step, rows, weight_rows,
    values, value_step, x_high, x_low, x_scales,
    CHOSEN: tl.constexpr, SHARED: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
    RUN: tl.constexpr, TILE: tl.constexpr, AXIS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """out[r, a] = x . weight of expert chosen[r, a]; x is row r where SHARED, else the pair's."""
    begin(DEPENDENT)
    pair = tl.program_id(1)
    r, a = pair // CHOSEN, pair % CHOSEN
    expert = tl.load(chosen + r * chosen_row + a * chosen_step).to(tl.int64)
    place = tl.program_id(0) * TILE + tl.arange(0, TILE)
    row = expert * weight_rows + tl.minimum(place, weight_rows - 1)
    found = dense_tile(
        row, r if SHARED else pair, rows, values, value_step, x_high, x_low, x_scales,
        COLUMNS, STEP, RUN, 1, TILE, AXIS,
    )  # fmt: skip
    to = out + r.to(tl.int64) * out_row + a * out_expert + place
    tl.store(to, found[0], mask=place < weight_rows)
