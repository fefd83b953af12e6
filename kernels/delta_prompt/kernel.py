"""A gated delta rule layer over rows of a prompt, in blocks of 64 rows, in four launches.

With G = cumulative g of a block's rows and D_ij = exp(G_i - G_j) for i >= j, else 0, a block is

    T = inverse of I + strictly lower(b K K' * D)
    V' = T (b (V - exp(G) K S)),   O = exp(G) Q S + (Q K' * D) V'
    S = exp(G_last) S + K' (exp(G_last - G) V')

``convolve_heads`` and ``solve_blocks`` do what needs no state, for all blocks at once;
``advance_blocks`` goes through the blocks with the state in registers; ``finish_rows`` takes the
gated norm. Matrix products read float16, whose 11 bits are those of tf32, and add in float32;
everything else is float32. Values and states stay far below 65,504 in trained models; what passes
it becomes NaN, for all to see. Rows beyond the last are zeros that decay nothing and add nothing,
so that a row has the bits it has in a full block.
"""

import triton
import triton.language as tl

from kernels.delta_step.kernel import key_head, sigmoid, silu, softplus
from kernels.quantize import narrowed

BLOCK: tl.constexpr = tl.constexpr(64)


@triton.jit
def convolved_rows(
    mixed, mixed_row, tail, taps, at, first, rows,
    CHANNELS: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """SiLU of the convolution of ROWS rows from ``first`` on at channels ``at``, float32.

    Args:
        EARLY: whether rows may be the first ones, whose inputs the tail has.
    """
    line = tl.arange(0, ROWS)
    inside = first + line < rows
    start = mixed + tl.cast(first, tl.int64) * mixed_row
    found = tl.zeros((ROWS, at.shape[0]), dtype=tl.float32)
    for lag in tl.static_range(SIZE):
        back = line + (lag - (SIZE - 1))
        held = inside & (first + back >= 0) if EARLY else inside
        places = start + (back * mixed_row)[:, None] + at[None, :]
        inputs = tl.load(places, mask=held[:, None], other=0.0).to(tl.float32)
        if EARLY:
            older = tail + ((first + line + lag) * CHANNELS)[:, None] + at[None, :]
            inputs += tl.load(older, mask=(inside & (first + back < 0))[:, None], other=0.0)
        weight = tl.load(taps + lag * CHANNELS + at)[None, :]
        found = tl.fma(inputs, tl.broadcast_to(weight, inputs.shape), found)
    return tl.where(inside[:, None], silu(found), 0.0)


@triton.jit
def convolved_block(
    mixed, mixed_row, tail, taps, at, first, rows,
    CHANNELS: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """``convolved_rows``, without a look at the tail where there is no need."""
    if first < SIZE - 1:
        found = convolved_rows(
            mixed, mixed_row, tail, taps, at, first, rows, CHANNELS, SIZE, ROWS, True
        )
    else:
        found = convolved_rows(
            mixed, mixed_row, tail, taps, at, first, rows, CHANNELS, SIZE, ROWS, False
        )
    return found


@triton.jit
def store_gates(
    beta, beta_row, alpha, alpha_row, decay, time_bias, gates, at, room, head, first, rows,
    VALUE_HEADS: tl.constexpr,
):  # fmt: skip
    """G in two parts, b, exp(G) and exp(G_last - G) of a block; rows beyond decay nothing.

    Args:
        gates: [5, value head, room] float32; the sum of the first two is G.
    """
    row = first + tl.arange(0, BLOCK)
    inside = row < rows
    wide = row.to(tl.int64)
    steps = tl.load(alpha + wide * alpha_row + head, mask=inside, other=0.0).to(tl.float32)
    steps = tl.load(decay + head) * softplus(steps + tl.load(time_bias + head))
    # Differences of large G keep their accuracy only if G has more bits than float32.
    total = tl.cumsum(tl.where(inside, steps, 0.0).to(tl.float64), axis=0)
    last = tl.sum(tl.where(tl.arange(0, BLOCK) == BLOCK - 1, total, 0.0), axis=0)
    high = total.to(tl.float32)
    share = sigmoid(tl.load(beta + wide * beta_row + head, mask=inside, other=0.0).to(tl.float32))
    places = gates + head * room + at + tl.arange(0, BLOCK)
    part = VALUE_HEADS * room
    tl.store(places, high)
    tl.store(places + part, (total - high.to(tl.float64)).to(tl.float32))
    tl.store(places + 2 * part, tl.where(inside, share, 0.0))
    tl.store(places + 3 * part, tl.exp(high))
    tl.store(places + 4 * part, tl.exp((last - total).to(tl.float32)))


@triton.jit(do_not_specialize=["slot", "first", "rows", "blocks"])
def convolve_heads(
    mixed, mixed_row, beta, beta_row, alpha, alpha_row, taps, decay, time_bias, unit_eps,
    tails, tail_slot, slot, first, rows, blocks, units, gates, values, values_row,
    KEY_HEADS: tl.constexpr, VALUE_HEADS: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr,
    SIZE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Queries and keys at length 1, then values: a program a head and ROWS rows of a block.

    Args:
        first, rows: of this piece of the prompt, and of the whole.
        blocks: that the scratch holds.
        units: [2 * key head, blocks * 64, KEY] float16, queries first.
        gates: see ``store_gates``.
        values: [rows, value head * VALUE] float16.
    """
    channels: tl.constexpr = 2 * KEY_HEADS * KEY + VALUE_HEADS * VALUE
    head, at = tl.program_id(0), tl.program_id(1) * ROWS
    begin = first + at
    tail = tails + tl.cast(slot, tl.int64) * tail_slot
    line = tl.arange(0, ROWS)
    if head < 2 * KEY_HEADS:
        along = tl.arange(0, KEY)
        x = convolved_block(
            mixed, mixed_row, tail, taps, head * KEY + along, begin, rows, channels, SIZE, ROWS
        )
        x *= tl.rsqrt(tl.sum(x * x, axis=1) + unit_eps)[:, None]
        start = units + (head.to(tl.int64) * blocks * BLOCK + at) * KEY
        tl.store(start + line[:, None] * KEY + along[None, :], x.to(tl.float16))
    else:
        head -= 2 * KEY_HEADS
        across = head * VALUE + tl.arange(0, VALUE)
        channel = 2 * KEY_HEADS * KEY + across
        value = convolved_block(
            mixed, mixed_row, tail, taps, channel, begin, rows, channels, SIZE, ROWS
        )
        places = values + tl.cast(begin, tl.int64) * values_row
        places += (line * values_row)[:, None] + across[None, :]
        tl.store(places, value.to(tl.float16), mask=(begin + line < rows)[:, None])
        if at % BLOCK == 0:
            store_gates(
                beta, beta_row, alpha, alpha_row, decay, time_bias, gates,
                at, blocks * BLOCK, head, begin, rows, VALUE_HEADS,
            )  # fmt: skip


@triton.jit
def inverse(lower):
    """(I + lower)^-1 of a strictly lower triangular matrix [64, 64], float32.

    Blocks of 16 on the diagonal by substitution in float32: X. With N = X (what lies below those
    blocks), of which the fourth power is zero, the whole is (I - N) (I + N N) X.
    """
    part = tl.arange(0, 4)
    line = tl.arange(0, 16)
    same = part[:, None, None, None] == part[None, None, :, None]
    tiles = tl.reshape(lower, (4, 16, 4, 16))
    diagonal = tl.sum(tl.where(same, tiles, 0.0), axis=2)
    x = tl.where(line[:, None] == line[None, :], 1.0, 0.0)[None, :, :] + tl.zeros_like(diagonal)
    for done in tl.static_range(15):
        column = tl.sum(tl.where((line == done)[None, None, :], diagonal, 0.0), axis=2)
        row = tl.sum(tl.where((line == done)[None, :, None], x, 0.0), axis=1)
        x -= column[:, :, None] * row[:, None, :]
    x = tl.reshape(tl.where(same, x[:, :, None, :], 0.0), (64, 64))
    at = tl.arange(0, 64) // 16
    below = tl.where(at[:, None] > at[None, :], lower, 0.0).to(tl.float16)
    n = tl.dot(x.to(tl.float16), below).to(tl.float16)
    squared = tl.dot(n, n).to(tl.float16)
    whole = x + tl.dot(squared, x.to(tl.float16))
    return whole - tl.dot(n, whole.to(tl.float16))


@triton.jit(do_not_specialize=["blocks"])
def solve_blocks(
    units, gates, blocks, solved,
    KEY_HEADS: tl.constexpr, VALUE_HEADS: tl.constexpr, KEY: tl.constexpr, TILED: tl.constexpr,
):  # fmt: skip
    """T and Q K' * D of a value head and a block, a program each.

    Args:
        solved: [value head, blocks, 2, 64, 64] float16: T, then the other.
    """
    head, block = tl.program_id(0), tl.program_id(1)
    line, along = tl.arange(0, BLOCK), tl.arange(0, KEY)
    serving = key_head(head, KEY_HEADS, VALUE_HEADS, TILED).to(tl.int64)
    tile = line[:, None] * KEY + along[None, :]
    query = tl.load(units + (serving * blocks + block) * (BLOCK * KEY) + tile)
    key = tl.load(units + ((KEY_HEADS + serving) * blocks + block) * (BLOCK * KEY) + tile)
    room = blocks * BLOCK
    places = gates + head * room + block * BLOCK + line
    high = tl.load(places)
    low = tl.load(places + VALUE_HEADS * room)
    share = tl.load(places + 2 * VALUE_HEADS * room)
    apart = (high[:, None] - high[None, :]) + (low[:, None] - low[None, :])
    decay = tl.exp(tl.where(line[:, None] >= line[None, :], apart, -float("inf")))
    lower = tl.dot(key, tl.trans(key)) * decay * share[:, None]
    lower = tl.where(line[:, None] > line[None, :], lower, 0.0)
    start = (head.to(tl.int64) * blocks + block) * (2 * BLOCK * BLOCK)
    square = line[:, None] * BLOCK + line[None, :]
    mixing = tl.dot(query, tl.trans(key)) * decay
    tl.store(solved + start + BLOCK * BLOCK + square, mixing.to(tl.float16))
    tl.store(solved + start + square, inverse(lower).to(tl.float16))


@triton.jit
def block_rule(state, query, key, inverted, mixing, value, share, kept, ahead, whole):
    """The state after a block, and what its queries read of it.

    Args:
        share, kept, ahead: b, exp(G) and exp(G_last - G) of each row; ``whole`` is exp(G_last).
    """
    before = state.to(tl.float16)
    # Both products of it stand together, so that the copy of the state is needed shortly.
    held = tl.dot(key, before)
    read = tl.dot(query, before)
    fresh = share[:, None] * (value - kept[:, None] * held)
    change = tl.dot(inverted, fresh.to(tl.float16))
    coming = (ahead[:, None] * change).to(tl.float16)
    found = tl.dot(mixing, change.to(tl.float16), kept[:, None] * read)
    state = tl.dot(tl.trans(key), coming, state * whole)
    return state, found


@triton.jit(do_not_specialize=["slot", "first", "rows", "blocks", "count"])
def advance_blocks(
    units, gates, solved, values, values_row, states, state_slot, state_head, slot,
    first, rows, blocks, count,
    KEY_HEADS: tl.constexpr, VALUE_HEADS: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr,
    TILED: tl.constexpr, TILE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Through ``count`` blocks: a program a value head and TILE of its values.

    ``values`` become what a query of length 1 reads, in place; the state moves on in place.
    """
    head = tl.program_id(0) // (VALUE // TILE)
    line, along = tl.arange(0, BLOCK), tl.arange(0, KEY)
    across = (tl.program_id(0) % (VALUE // TILE)) * TILE + tl.arange(0, TILE)
    serving = key_head(head, KEY_HEADS, VALUE_HEADS, TILED).to(tl.int64)
    place = states + tl.cast(slot, tl.int64) * state_slot + head.to(tl.int64) * state_head
    place += along[:, None] * VALUE + across[None, :]
    state = tl.load(place)

    tile = line[:, None] * KEY + along[None, :]
    query_at = units + serving * blocks * (BLOCK * KEY) + tile
    key_at = query_at + tl.cast(KEY_HEADS, tl.int64) * blocks * (BLOCK * KEY)
    square = line[:, None] * BLOCK + line[None, :]
    solved_at = solved + head.to(tl.int64) * blocks * (2 * BLOCK * BLOCK) + square
    room = blocks * BLOCK
    part = VALUE_HEADS * room
    gates_at = gates + head * room + line
    gates_last = gates + head * room + 3 * part + BLOCK - 1
    value_at = values + (first + line).to(tl.int64)[:, None] * values_row
    value_at += head * VALUE + across[None, :]
    for block in tl.range(0, count, num_stages=STAGES):
        begin = block * BLOCK
        inside = (first + begin + line < rows)[:, None]
        key = tl.load(key_at + begin * KEY)
        query = tl.load(query_at + begin * KEY)
        inverted = tl.load(solved_at + begin * (2 * BLOCK))
        mixing = tl.load(solved_at + begin * (2 * BLOCK) + BLOCK * BLOCK)
        spot = value_at + tl.cast(begin, tl.int64) * values_row
        value = tl.load(spot, mask=inside, other=0.0).to(tl.float32)
        share = tl.load(gates_at + begin + 2 * part)
        kept = tl.load(gates_at + begin + 3 * part)
        ahead = tl.load(gates_at + begin + 4 * part)
        whole = tl.load(gates_last + begin)
        state, found = block_rule(
            state, query, key, inverted, mixing, value, share, kept, ahead, whole
        )
        tl.store(spot, found.to(tl.float16), mask=inside)
    tl.store(place, state)


@triton.jit
def shift_tail(
    mixed, mixed_row, tail, at, rows, CHANNELS: tl.constexpr, SIZE: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """The newest inputs of channels ``at``; where the rows are few, old ones move down."""
    lag = tl.arange(0, ROWS)
    inside = (lag < SIZE - 1)[:, None] & (at < CHANNELS)[None, :]
    source = rows - (SIZE - 1) + lag
    places = mixed + source.to(tl.int64)[:, None] * mixed_row + at[None, :]
    newest = tl.load(places, mask=inside & (source >= 0)[:, None], other=0.0).to(tl.float32)
    older = (lag + rows)[:, None] * CHANNELS + at[None, :]
    newest += tl.load(tail + older, mask=inside & (source < 0)[:, None], other=0.0)
    tl.debug_barrier()
    tl.store(tail + lag[:, None] * CHANNELS + at[None, :], newest, mask=inside)


@triton.jit(do_not_specialize=["slot", "first", "rows", "tiles"])
def finish_rows(
    mixed, mixed_row, gate, gate_row, norm, norm_eps, tails, tail_slot, slot, first, rows, tiles,
    values, out, out_row,
    KEY_HEADS: tl.constexpr, VALUE_HEADS: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr,
    SIZE: tl.constexpr, ROWS: tl.constexpr, TAIL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """norm(o) * silu(gate), ROWS a program; the programs after ``tiles`` shift the tail.

    Args:
        values, out: the same memory, as float16 and as bfloat16.
        TAIL: the power of 2 that holds SIZE - 1 rows.
    """
    channels: tl.constexpr = 2 * KEY_HEADS * KEY + VALUE_HEADS * VALUE
    head, tile = tl.program_id(0), tl.program_id(1)
    if tile >= tiles:
        tail = tails + tl.cast(slot, tl.int64) * tail_slot
        at = head * WIDE + tl.arange(0, WIDE)
        shift_tail(mixed, mixed_row, tail, at, rows, channels, SIZE, TAIL)
    else:
        row = first + tile * ROWS + tl.arange(0, ROWS)
        across = tl.arange(0, VALUE)
        inside = (row < rows)[:, None]
        wide = row.to(tl.int64)[:, None]
        column = head * VALUE + across[None, :]
        found = tl.load(values + wide * out_row + column, mask=inside, other=0.0).to(tl.float32)
        found *= KEY**-0.5
        length = tl.rsqrt(tl.sum(found * found, axis=1) / VALUE + norm_eps)
        opened = tl.load(gate + wide * gate_row + column, mask=inside, other=0.0).to(tl.float32)
        found = found * length[:, None] * tl.load(norm + across)[None, :] * silu(opened)
        tl.debug_barrier()
        tl.store(out + wide * out_row + column, narrowed(found, tl.bfloat16), mask=inside)
