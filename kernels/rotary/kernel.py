"""Norm, rotation and storing of heads: a program some rows of one head of q, k or v.

Angles are whole numbers, 2**64ths of a turn, whose products with positions wrap around where whole
turns do. Cosine and sine are polynomials over an eighth of a turn, the same on every machine.
"""

import triton
import triton.language as tl

from kernels.dependent import begin
from kernels.quantize import narrowed

PAGE_ROWS: tl.constexpr = tl.constexpr(256)
RADIANS: tl.constexpr = tl.constexpr(6.283185307179586 / 4294967296.0)
LARGEST_FLOAT: tl.constexpr = tl.constexpr(3.4028234663852886e38)
LARGEST_BF16: tl.constexpr = tl.constexpr(3.3895313892515355e38)
LARGEST_FP16: tl.constexpr = tl.constexpr(65504.0)
LARGEST_FP8: tl.constexpr = tl.constexpr(448.0)
LEAST_FP8: tl.constexpr = tl.constexpr(0.015625)
ROUNDING: tl.constexpr = tl.constexpr(12582912.0)


@triton.jit
def cosine_sine(angle):
    """Cosine and sine of 2**64ths of a turn, int64: within 1e-7."""
    quarter = (angle + (1 << 61)) >> 62
    rest = ((angle - (quarter << 62)) >> 32).to(tl.int32).to(tl.float32) * RADIANS
    square = rest * rest
    odd = 1.0 / 120.0 + square * (-1.0 / 5040.0 + square * (1.0 / 362880.0))
    sine = rest + rest * square * (-1.0 / 6.0 + square * odd)
    even = 1.0 / 24.0 + square * (
        -1.0 / 720.0 + square * (1.0 / 40320.0 + square * (-1.0 / 3628800.0))
    )
    cosine = 1.0 - 0.5 * square + square * square * even
    swapped = (quarter & 1) != 0
    along = tl.where(swapped, sine, cosine)
    across = tl.where(swapped, cosine, sine)
    along = tl.where(((quarter + 1) & 2) != 0, -along, along)
    across = tl.where((quarter & 2) != 0, -across, across)
    return along, across


@triton.jit
def turned_heads(
    place,
    at,
    inside,
    position,
    weight,
    turns,
    eps,
    magnitude,
    DIM: tl.constexpr,
    PAIRS: tl.constexpr,
    HALVES: tl.constexpr,
    NORMED: tl.constexpr,
):
    """One head of some rows, normed and turned: [rows, WIDTH] float32.

    Args:
        place: [rows, 1] pointers to the head's first element.
        at: [1, WIDTH] columns; ``inside`` of [rows, WIDTH] tells which of them are.
        position: [rows, 1] absolute.
    """
    own = tl.load(place + at, mask=inside, other=0.0).to(tl.float32)
    if NORMED:
        mean = tl.sum(own * own, axis=1, keep_dims=True) / DIM
        factor = tl.math.div_rn(1.0, tl.math.sqrt_rn(mean + eps))
        own = own * factor
        if weight is not None:
            own = own * tl.load(weight + at, mask=at < DIM, other=0.0)
    if PAIRS > 0:
        turning = at < 2 * PAIRS
        first = at < PAIRS if HALVES else (at & 1) == 0
        pair = tl.where(first, at, at - PAIRS) if HALVES else at // 2
        partner = tl.where(first, at + PAIRS, at - PAIRS) if HALVES else at ^ 1
        other = tl.load(place + partner, mask=inside & turning, other=0.0).to(tl.float32)
        if NORMED:
            other = other * factor
            if weight is not None:
                other = other * tl.load(weight + partner, mask=turning, other=0.0)
        turn = tl.load(turns + pair, mask=turning, other=0)
        along, across = cosine_sine(position.to(tl.int64) * turn)
        across = tl.where(first, -across, across)
        own = tl.where(turning, own * (along * magnitude) + other * (across * magnitude), own)
    return own


@triton.jit
def fp8_codes(values):
    """Codes as int32 of [rows, WIDTH] float32, zeros beyond a head, and scales [rows, 1]."""
    bits = values.to(tl.int32, bitcast=True)
    sized = bits & 0x7FFFFFFF
    is_number = sized <= 0x7F800000
    largest = tl.max(tl.where(is_number, sized, 0), axis=1, keep_dims=True)
    largest = tl.minimum(largest.to(tl.float32, bitcast=True), LARGEST_FLOAT)
    scales = tl.math.div_rn(largest, LARGEST_FP8)
    divisor = tl.where(scales == 0.0, 1.0, scales)
    sized = tl.where(is_number, sized, 0).to(tl.float32, bitcast=True)
    size = tl.minimum(tl.math.div_rn(sized, tl.broadcast_to(divisor, values.shape)), LARGEST_FP8)
    sized = size.to(tl.int32, bitcast=True)
    # Four bits of exponent instead of eight, three of fraction; below 2^-6 steps of 2^-9.
    normal = ((sized + 0x7FFFF + ((sized >> 20) & 1)) >> 20) - 960
    small = ((size * 512.0 + ROUNDING) - ROUNDING).to(tl.int32)
    codes = tl.where(size < LEAST_FP8, small, normal)
    codes = codes | tl.where(is_number & (bits < 0), 128, 0)
    return tl.where(scales == 0.0, 0, codes), scales


@triton.jit
def store_heads(values, at, inside, place, scale_place, held, stored, scales, FORMAT: tl.constexpr):
    """Store [rows, WIDTH] float32 in the pages' format.

    Args:
        place: [rows, 1] offsets in ``stored``; ``scale_place`` in ``scales``.
        held: [rows, 1], whether the row has a page.
    """
    dtype = stored.dtype.element_ty
    if FORMAT == 1:
        codes, found = fp8_codes(values)
        tl.store(scales + scale_place, found, mask=held)
        tl.store(stored + place + at, codes.to(dtype), mask=inside & held)
    else:
        largest = LARGEST_FP16 if dtype == tl.float16 else LARGEST_BF16
        values = tl.where(values > largest, largest, values)
        values = tl.where(values < -largest, -largest, values)
        tl.store(stored + place + at, narrowed(values, dtype), mask=inside & held)


@triton.jit(do_not_specialize=["row_count", "position"])
def rotary_kernel(
    source,
    query_weight,
    key_weight,
    value_weight,
    turns,
    positions,
    tables,
    stored,
    scales,
    out,
    row_count,
    position,
    source_stride,
    table_stride,
    page_stride,
    side_stride,
    head_stride,
    slot_stride,
    scale_page_stride,
    scale_side_stride,
    scale_head_stride,
    out_stride,
    out_head_stride,
    query_at,
    key_at,
    value_at,
    query_eps,
    key_eps,
    value_eps,
    magnitude,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    PAIRS: tl.constexpr,
    HALVES: tl.constexpr,
    QUERY_NORMED: tl.constexpr,
    KEY_NORMED: tl.constexpr,
    VALUE_NORMED: tl.constexpr,
    FORMAT: tl.constexpr,
    ROWS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Heads of q to ``out``, of k and v to their rows' pages.

    Positions are a tensor, one a row, or None: consecutive from ``position``. A row without a page
    (an id below 0, or a position below 0) is not stored.
    """
    begin(DEPENDENT)
    head = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    at = tl.arange(0, WIDTH)[None, :]
    real = row < row_count
    inside = real & (at < DIM)
    if positions is not None:
        where = tl.load(positions + row, mask=real, other=-1)
    else:
        where = position + row
    place = source + row.to(tl.int64) * source_stride
    if head < HEADS:
        query = turned_heads(
            place + query_at + head * DIM, at, inside, where, query_weight, turns, query_eps,
            magnitude, DIM, PAIRS, HALVES, QUERY_NORMED,
        )  # fmt: skip
        query_to = out + row.to(tl.int64) * out_stride + head * out_head_stride + at
        tl.store(query_to, narrowed(query, out.dtype.element_ty), mask=inside)
    else:
        known = real & (where >= 0)
        table = tables + row.to(tl.int64) * table_stride + where // PAGE_ROWS
        page = tl.load(table, mask=known, other=-1).to(tl.int64)
        slot = where % PAGE_ROWS
        is_value = head >= HEADS + KV_HEADS
        kv_head = head - HEADS
        if is_value:
            kv_head -= KV_HEADS
            values = turned_heads(
                place + value_at + kv_head * DIM, at, inside, where, value_weight, turns,
                value_eps, magnitude, DIM, 0, HALVES, VALUE_NORMED,
            )  # fmt: skip
        else:
            values = turned_heads(
                place + key_at + kv_head * DIM, at, inside, where, key_weight, turns, key_eps,
                magnitude, DIM, PAIRS, HALVES, KEY_NORMED,
            )  # fmt: skip
        side = is_value.to(tl.int64)
        page_to = (
            page * page_stride + side * side_stride + kv_head * head_stride + slot * slot_stride
        )
        scale_to = page * scale_page_stride + side * scale_side_stride
        scale_to = scale_to + kv_head * scale_head_stride + slot
        store_heads(values, at, inside, page_to, scale_to, page >= 0, stored, scales, FORMAT)
