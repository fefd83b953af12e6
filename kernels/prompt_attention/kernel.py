"""Attention of a prompt chunk's rows: a tile of rows of one head, keys in tiles, online softmax.

Tiles of keys begin at multiples of their length from position 0. One that a row does not see
leaves the row's sums as they are, bit for bit, so rows may share a tile with any others.
"""

import triton
import triton.language as tl

from kernels.step_attention.kernel import capped, dot16, half_codes


@triton.jit
def tile_numbers(codes, dtype: tl.constexpr, CODED: tl.constexpr, NATIVE: tl.constexpr):
    """A tile of K or V as numbers that tensor cores multiply."""
    return half_codes(codes, NATIVE).to(dtype) if CODED else codes


@triton.jit
def take_tiles(
    q, top, total, mixed, begin, end, first, last, described, keys, values, s_page, kv_head,
    kv_heads, key_scales, value_scales, c_page, table, seen_begin, seen_end, grown, cap,
    D: tl.constexpr, WIDE: tl.constexpr, KEYS: tl.constexpr, DESCRIBED: tl.constexpr,
    MASKED: tl.constexpr, WINDOWED: tl.constexpr, CODED: tl.constexpr, NATIVE: tl.constexpr,
    CAPPED: tl.constexpr, TWIN: tl.constexpr,
):  # fmt: skip
    """Go over the keys ``[begin, end)``: ``first`` and ``last`` say what each row sees."""
    at = tl.arange(0, WIDE)
    slot = tl.arange(0, KEYS)
    for start in tl.range(begin, end, KEYS):
        held_page = tl.load(table + start // 256)
        page = held_page.to(tl.int64)
        own = (start % 256 + slot)[:, None] * D + at[None, :]
        if DESCRIBED and not MASKED:
            line = (held_page * 2 * kv_heads + kv_head) * 256 + start % 256
            k = described.load([line, 0])
            v = described.load([line + kv_heads * 256, 0])
        elif MASKED or WIDE != D:
            real = (start + slot >= seen_begin) & (start + slot < seen_end)
            held = real[:, None] & (at < D)[None, :]
            k = tl.load(keys + page * s_page + own, mask=held, other=0)
            v = tl.load(values + page * s_page + own, mask=held, other=0)
        else:
            k = tl.load(keys + page * s_page + own)
            v = tl.load(values + page * s_page + own)
        k = tile_numbers(k, q.dtype, CODED, NATIVE)
        scores = dot16(q, tl.trans(k), tl.zeros([q.shape[0], KEYS], tl.float32), TWIN)
        if CODED:
            real = (start + slot >= seen_begin) & (start + slot < seen_end)
            scales = page * c_page + start % 256 + slot
            scores *= tl.load(key_scales + scales, mask=real, other=0.0)[None, :]
        if CAPPED:
            scores = capped(scores * grown, cap * 1.4426950408889634)
            factor = 1.0
        else:
            factor = grown
        if MASKED:
            key = (start + slot)[None, :]
            shown = key <= last[:, None]
            if WINDOWED:
                shown = shown & (key >= first[:, None])
            scores = tl.where(shown, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1) * factor)
        finite = higher
        if WINDOWED:
            finite = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores * factor - finite[:, None])
        shrink = tl.exp2(top - finite)
        total = total * shrink + tl.sum(weights, 1)
        if CODED:
            weights *= tl.load(value_scales + scales, mask=real, other=0.0)[None, :]
        v = tile_numbers(v, q.dtype, CODED, NATIVE)
        mixed = dot16(weights.to(q.dtype), v, mixed * shrink[:, None], TWIN)
        top = higher
    return top, total, mixed


@triton.jit(
    do_not_specialize=["position", "rows"], do_not_specialize_on_alignment=["table", "block_ends"]
)
def attend_rows(
    query, q_row, q_head, described, stored, s_page, s_side, s_head, scales, c_page, c_side, c_head,
    table, position, rows, out, o_row, gate, g_row, block_ends, window, scale, cap,
    HEADS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, DESCRIBED: tl.constexpr, WINDOWED: tl.constexpr,
    BLOCKED: tl.constexpr, CODED: tl.constexpr, NATIVE: tl.constexpr, CAPPED: tl.constexpr,
    GATED: tl.constexpr, TWIN: tl.constexpr,
):  # fmt: skip
    """A tile of ROWS rows of one head; the tiles with most keys come first."""
    head = tl.program_id(0) % HEADS
    tile = (rows + ROWS - 1) // ROWS - 1 - tl.program_id(0) // HEADS
    row = tile * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, WIDE)
    held = (row < rows)[:, None] & (at < D)[None, :]
    own = row.to(tl.int64)[:, None]
    q = tl.load(query + own * q_row + head * q_head + at[None, :], mask=held, other=0.0)
    if stored.dtype.element_ty == tl.float16:
        wide = q.to(tl.float32)
        q = tl.minimum(tl.maximum(wide, -65504.0), 65504.0).to(tl.float16)
    first = tl.zeros([ROWS], tl.int32)
    # A row past the chunk sees what its last row sees.
    last = position + tl.minimum(row, rows - 1)
    lowest = position + tile * ROWS
    if WINDOWED:
        first = tl.maximum(last - window + 1, 0)
    if BLOCKED:
        last = tl.maximum(last, tl.load(block_ends + row, mask=row < rows, other=0))
    end = tl.max(last, 0) + 1
    unmasked = (lowest + 1) // KEYS * KEYS
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, WIDE], tl.float32)
    kv_head = head // GROUP
    keys = stored + kv_head * s_head
    values = keys + s_side
    key_scales = scales + kv_head * c_head
    value_scales = key_scales + c_side
    grown = scale * 1.4426950408889634
    if CODED and not NATIVE:
        grown *= 256.0
    oldest = 0
    begin = 0
    if WINDOWED:
        oldest = tl.maximum(lowest - window + 1, 0)
        begin = oldest // KEYS * KEYS
        whole = tl.maximum(lowest + ROWS - window, 0)
        whole = tl.minimum((whole + KEYS - 1) // KEYS * KEYS, unmasked)
        top, total, mixed = take_tiles(
            q, top, total, mixed, begin, whole, first, last, described, keys, values, s_page,
            kv_head, HEADS // GROUP, key_scales, value_scales, c_page, table, oldest, end, grown,
            cap, D, WIDE, KEYS, DESCRIBED, True, WINDOWED, CODED, NATIVE, CAPPED, TWIN,
        )  # fmt: skip
        begin = tl.maximum(begin, whole)
    top, total, mixed = take_tiles(
        q, top, total, mixed, begin, unmasked, first, last, described, keys, values, s_page,
        kv_head, HEADS // GROUP, key_scales, value_scales, c_page, table, oldest, end, grown,
        cap, D, WIDE, KEYS, DESCRIBED, False, WINDOWED, CODED, NATIVE, CAPPED, TWIN,
    )  # fmt: skip
    begin = tl.maximum(begin, unmasked)
    top, total, mixed = take_tiles(
        q, top, total, mixed, begin, end, first, last, described, keys, values, s_page,
        kv_head, HEADS // GROUP, key_scales, value_scales, c_page, table, oldest, end, grown,
        cap, D, WIDE, KEYS, DESCRIBED, True, WINDOWED, CODED, NATIVE, CAPPED, TWIN,
    )  # fmt: skip
    if CODED and not NATIVE:
        mixed *= 256.0
    mixed = mixed / total[:, None]
    if GATED:
        opened = tl.load(gate + own * g_row + head * D + at[None, :], mask=held, other=0.0)
        mixed = mixed / (1.0 + tl.exp(-opened.to(tl.float32)))
    tl.store(out + own * o_row + head * D + at[None, :], mixed.to(tl.bfloat16), mask=held)
