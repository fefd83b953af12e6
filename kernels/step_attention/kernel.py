"""Attention of generated rows: partial sums over parts of a row's keys, then their combination.

A program of ``mix_part`` takes one row, one kv head and one part of the row's keys, in units of
UNIT keys cut at absolute positions. How many units a part has follows from the row's own length.
Numbers that are too fine for 16 bits, queries and probabilities, are multiplied as the sum of two.
"""

import triton
import triton.language as tl

from kernels.dependent import let_next_start, wait_for_inputs
from kernels.inline import fetch
from kernels.quantize import store_quantized


@triton.jit
def part_span(position, window, UNIT: tl.constexpr, PARTS: tl.constexpr, WINDOWED: tl.constexpr):
    """First position seen, first unit, units in all, units a part."""
    first = 0
    if WINDOWED:
        first = tl.maximum(position - window + 1, 0)
    first_unit = first // UNIT
    units = position // UNIT + 1 - first_unit
    return first, first_unit, units, (units + PARTS - 1) // PARTS


@triton.jit
def half_codes(codes, NATIVE: tl.constexpr):
    """Codes of e4m3fn as fp16 numbers: their values, or without NATIVE those / 256."""
    if NATIVE:
        return codes.to(tl.float8e4nv, bitcast=True).to(tl.float16)
    wide = codes.to(tl.uint16)
    return (((wide & 0x80) << 8) | ((wide & 0x7F) << 7)).to(tl.float16, bitcast=True)


@triton.jit
def capped(scores, cap):
    """``cap * tanh(scores / cap)``."""
    grown = tl.exp2(scores * (2.8853900817779268 / cap))
    return cap - 2.0 * cap / (grown + 1.0)


@triton.jit
def dot16(x, y, total, TWIN: tl.constexpr):
    """``total + x . y`` of 16-bit floats; the interpreter, which has no such product, as TWIN."""
    if TWIN:
        return tl.dot(x.to(tl.float32), y.to(tl.float32), total, input_precision="ieee")
    return tl.dot(x, y, total)


@triton.jit
def dot_in_two(x, y, total, TWIN: tl.constexpr):
    """``total + x . y`` with float32 ``x`` as the sum of two numbers of y's dtype."""
    high = x.to(y.dtype)
    low = (x - high.to(tl.float32)).to(y.dtype)
    return dot16(high, y, dot16(low, y, total, TWIN), TWIN)


@triton.jit
def scores_of(q, k, TWIN: tl.constexpr):
    """``q . k`` of float32 and 16-bit floats: two products that need not wait for each other."""
    zeros = tl.zeros([q.shape[0], k.shape[1]], tl.float32)
    high = q.to(k.dtype)
    low = ((q - high.to(tl.float32)) * 256.0).to(k.dtype)
    fine = dot16(low, k, zeros, TWIN)
    return tl.fma(fine, tl.full(fine.shape, 1.0 / 256, tl.float32), dot16(high, k, zeros, TWIN))


@triton.jit
def fetch_unit(
    keys, values, page, s_page, unit, live,
    D: tl.constexpr, WIDE: tl.constexpr, UNIT: tl.constexpr, TWIN: tl.constexpr,
):  # fmt: skip
    """Ask for a unit's keys and values, so that they are in the cache when they are loaded."""
    LINE: tl.constexpr = 1024 // keys.dtype.element_ty.primitive_bitwidth
    line = tl.arange(0, UNIT * WIDE // LINE) * LINE
    own = page.to(tl.int64) * s_page + unit * UNIT % 256 * D + line
    live = (line < UNIT * D) & (page >= 0) & live
    fetch(keys + own, live, not TWIN)
    fetch(values + own, live, not TWIN)


@triton.jit(do_not_specialize_on_alignment=["tables", "positions"])
def mix_part(
    query, q_row, q_head, stored, s_page, s_side, s_head, scales, c_page, c_side, c_head,
    tables, t_row, most_keys, positions, partials, p_row, window, scale, cap,
    HEADS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, WIDE: tl.constexpr,
    TILE_HEADS: tl.constexpr, UNIT: tl.constexpr, PARTS: tl.constexpr, WINDOWED: tl.constexpr,
    CODED: tl.constexpr, NATIVE: tl.constexpr, CAPPED: tl.constexpr, TWIN: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """One row's, one kv head's, one part's largest scores, sums of weights and of values."""
    let_next_start(DEPENDENT)
    row = tl.program_id(0)
    kv_head = tl.program_id(1)
    part = tl.program_id(2)
    position = tl.minimum(tl.load(positions + row), most_keys - 1)
    first, first_unit, units, each = part_span(position, window, UNIT, PARTS, WINDOWED)
    start = first_unit + part * each
    end = tl.minimum(start + each, first_unit + units)
    if start >= end:
        # One program of each row waits, so that this kernel ends after those before it.
        if part == 0:
            wait_for_inputs(DEPENDENT)
        return
    table = tables + row * t_row
    keys = stored + kv_head * s_head
    values = keys + s_side
    page = tl.load(table + start * UNIT // 256)
    fetch_unit(keys, values, page, s_page, start, True, D, WIDE, UNIT, TWIN)
    second = tl.minimum(start + 1, end - 1)
    following = tl.load(table + second * UNIT // 256)
    fetch_unit(keys, values, following, s_page, second, second > start, D, WIDE, UNIT, TWIN)
    wait_for_inputs(DEPENDENT)
    head = tl.arange(0, TILE_HEADS)
    at = tl.arange(0, WIDE)
    slot = tl.arange(0, UNIT)
    inside = at < D
    heads = (kv_head * GROUP + head)[:, None]
    held = (head < GROUP)[:, None] & inside[None, :]
    q = tl.load(query + row * q_row + heads * q_head + at[None, :], mask=held, other=0.0)
    # The largest element is 1 from here on, so that fp16 has room for every query.
    largest = tl.maximum(tl.max(tl.abs(q), 1), 1e-30)
    q = q / largest[:, None]
    grown = largest * (scale * 1.4426950408889634)
    if CODED and not NATIVE:
        grown *= 256.0
    top = tl.full([TILE_HEADS], float("-inf"), tl.float32)
    total = tl.zeros([TILE_HEADS], tl.float32)
    mixed = tl.zeros([TILE_HEADS, WIDE], tl.float32)
    key_scales = scales + kv_head * c_head
    value_scales = key_scales + c_side
    for unit in range(start, end):
        following = tl.load(table + tl.minimum(unit + 1, end - 1) * UNIT // 256)
        key = unit * UNIT + slot
        seen = (key >= first) & (key <= position) & (page >= 0)
        own = (unit * UNIT % 256 + slot)[:, None] * D + at[None, :]
        base = page.to(tl.int64) * s_page
        shown = seen[:, None] & inside[None, :]
        k = tl.load(keys + base + own, mask=shown, other=0)
        v = tl.load(values + base + own, mask=shown, other=0)
        if CODED:
            k = half_codes(k, NATIVE)
            v = half_codes(v, NATIVE)
        scores = scores_of(q, tl.trans(k), TWIN)
        scores *= grown[:, None]
        if CODED:
            own_scales = page.to(tl.int64) * c_page + unit * UNIT % 256 + slot
            scores *= tl.load(key_scales + own_scales, mask=seen, other=0.0)[None, :]
        if CAPPED:
            scores = capped(scores, cap * 1.4426950408889634)
        scores = tl.where(seen[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        finite = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - finite[:, None])
        shrink = tl.exp2(top - finite)
        total = total * shrink + tl.sum(weights, 1)
        if CODED:
            v_scales = tl.load(value_scales + own_scales, mask=seen, other=0.0)
            widest = tl.maximum(tl.max(v_scales, 0), 1e-30)
            weights *= (v_scales / widest)[None, :]
            added = dot_in_two(weights, v, tl.zeros([TILE_HEADS, WIDE], tl.float32), TWIN)
            mixed = mixed * shrink[:, None] + added * (widest * (1.0 if NATIVE else 256.0))
        else:
            mixed = dot_in_two(weights, v, mixed * shrink[:, None], TWIN)
        top = higher
        page = following
    out = partials + row * p_row
    owner = part * HEADS + kv_head * GROUP + head
    facts = out + PARTS * HEADS * D + owner * 2
    tl.store(facts, top, mask=head < GROUP)
    tl.store(facts + 1, total, mask=head < GROUP)
    tl.store(out + owner[:, None] * D + at[None, :], mixed, mask=held)


@triton.jit(do_not_specialize_on_alignment=["positions"])
def combine_parts(
    partials, p_row, positions, most_keys, gate, g_row, high, low, scales, sums, window,
    HEADS: tl.constexpr, D: tl.constexpr, UNIT: tl.constexpr, PARTS: tl.constexpr,
    PARTS_WIDE: tl.constexpr, WINDOWED: tl.constexpr, GATED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """One row's 32 columns: sum the parts, apply the gate, write as ``kernels.rows`` says."""
    let_next_start(DEPENDENT)
    row = tl.program_id(0)
    block = tl.program_id(1)
    position = tl.minimum(tl.load(positions + row), most_keys - 1)
    _first, _unit, units, each = part_span(position, window, UNIT, PARTS, WINDOWED)
    wait_for_inputs(DEPENDENT)
    column = block * 32 + tl.arange(0, 32)
    part = tl.arange(0, PARTS_WIDE)
    used = (part * each < units)[:, None]
    own = partials + row * p_row
    mixed = tl.load(own + part[:, None] * (HEADS * D) + column[None, :], mask=used, other=0.0)
    head = column // D
    if D % 32 == 0:
        head = block * 32 // D + tl.arange(0, 1)
    facts = own + PARTS * HEADS * D + (part[:, None] * HEADS + head[None, :]) * 2
    tops = tl.load(facts, mask=used, other=float("-inf"))
    totals = tl.load(facts + 1, mask=used, other=0.0)
    top = tl.max(tops, 0)
    weights = tl.exp2(tops - tl.where(top == float("-inf"), 0.0, top)[None, :])
    total = tl.sum(weights * totals, 0)
    value = tl.sum(weights * mixed, 0) / tl.where(total > 0, total, 1.0)
    if GATED:
        value = value / (1.0 + tl.exp(-tl.load(gate + row * g_row + column)))
    store_quantized(value, row, block * 32, HEADS * D, high, low, scales, sums, 1)
