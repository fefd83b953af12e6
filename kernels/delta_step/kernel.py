"""One generated row a lane of a gated delta rule layer, in two launches.

``advance_states`` moves the states: a program has a row, a value head and a tile of the values, and
computes the convolution of what it reads itself, so that the tails are only read. ``finish_rows``
then shifts the tails and writes the gated norm of what was read. No program knows other rows.
"""

import triton
import triton.language as tl

from kernels.dependent import let_next_start, wait_for_inputs
from kernels.quantize import store_quantized


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x)), float32."""
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def silu(x):
    """x * sigmoid(x), float32."""
    return x / (1.0 + tl.exp(-x))


@triton.jit
def softplus(x):
    """log(1 + exp(x)), float32, accurate for every x."""
    small = tl.exp(-tl.abs(x))
    one_more = 1.0 + small
    # The quotient undoes what adding 1 rounded away.
    lost = tl.where(one_more == 1.0, 1.0, one_more - 1.0)
    log = tl.where(one_more == 1.0, small, tl.log(one_more) * (small / lost))
    return tl.maximum(x, 0.0) + log


@triton.jit
def key_head(head, KEY_HEADS: tl.constexpr, VALUE_HEADS: tl.constexpr, TILED: tl.constexpr):
    """The key head that serves a value head."""
    return head % KEY_HEADS if TILED else head // (VALUE_HEADS // KEY_HEADS)


@triton.jit
def convolved_row(mixed, tail, taps, at, CHANNELS: tl.constexpr, SIZE: tl.constexpr):
    """SiLU of the convolution at channels ``at``, float32, the oldest input first."""
    found = tl.zeros(at.shape, dtype=tl.float32)
    for lag in tl.static_range(SIZE - 1):
        found += tl.load(tail + lag * CHANNELS + at) * tl.load(taps + lag * CHANNELS + at)
    newest = tl.load(mixed + at).to(tl.float32)
    return silu(found + newest * tl.load(taps + (SIZE - 1) * CHANNELS + at))


@triton.jit
def unit_row(x, eps):
    """A vector at length 1."""
    return x * tl.rsqrt(tl.sum(x * x, axis=0) + eps)


@triton.jit
def touch(places):
    """Have memory brought near; what is read is not used, so it need not be there yet."""
    tl.load(places, volatile=True)


@triton.jit
def touch_taps(taps, at, CHANNELS: tl.constexpr, SIZE: tl.constexpr):
    """``touch`` the taps of channels ``at``."""
    for lag in tl.static_range(SIZE):
        touch(taps + lag * CHANNELS + at)


@triton.jit
def advance_states(
    mixed, mixed_row, beta, beta_row, alpha, alpha_row, taps, decay, time_bias, unit_eps,
    states, state_slot, state_head, tails, tail_slot, slots, read,
    KEY_HEADS: tl.constexpr, VALUE_HEADS: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr,
    SIZE: tl.constexpr, TILED: tl.constexpr, TILE: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """S = S * exp(g); S = S + k (b * (v - k.S))'; what q reads of S goes to ``read``.

    Args:
        read: [row, value head, value] float32.
        slots: read before the kernels launched earlier have ended: none of them writes it.
        KEY, VALUE, TILE: dimensions of a key and a value head, and values of a program.
    """
    channels: tl.constexpr = 2 * KEY_HEADS * KEY + VALUE_HEADS * VALUE
    let_next_start(DEPENDENT)
    head, row = tl.program_id(0) // (VALUE // TILE), tl.program_id(1)
    slot = tl.load(slots + row)
    along = tl.arange(0, KEY)
    across = (tl.program_id(0) % (VALUE // TILE)) * TILE + tl.arange(0, TILE)
    lane = states + tl.maximum(slot, 0).to(tl.int64) * state_slot + head.to(tl.int64) * state_head
    places = lane + along[:, None] * VALUE + across[None, :]
    tail = tails + tl.maximum(slot, 0).to(tl.int64) * tail_slot
    query_at = key_head(head, KEY_HEADS, VALUE_HEADS, TILED) * KEY + along
    key_at = KEY_HEADS * KEY + query_at
    value_at = 2 * KEY_HEADS * KEY + head * VALUE + across
    if DEPENDENT:
        touch(lane + along * VALUE + tl.min(across, axis=0))
        touch_taps(taps, query_at, channels, SIZE)
        touch_taps(taps, key_at, channels, SIZE)
        touch_taps(taps, value_at, channels, SIZE)
    wait_for_inputs(DEPENDENT)
    if slot < 0:
        return
    state = tl.load(places)
    steps = softplus(tl.load(alpha + row * alpha_row + head) + tl.load(time_bias + head))
    share = sigmoid(tl.load(beta + row * beta_row + head))
    kept = tl.exp(tl.load(decay + head) * steps)
    mixed += row.to(tl.int64) * mixed_row
    query = convolved_row(mixed, tail, taps, query_at, channels, SIZE)
    key = convolved_row(mixed, tail, taps, key_at, channels, SIZE)
    value = convolved_row(mixed, tail, taps, value_at, channels, SIZE)
    query, key = unit_row(query, unit_eps), unit_row(key, unit_eps)

    state *= kept
    change = share * (value - tl.sum(key[:, None] * state, axis=0))
    state += key[:, None] * change[None, :]
    tl.store(places, state)
    found = tl.sum(query[:, None] * state, axis=0) * (KEY**-0.5)
    tl.store(read + (row * VALUE_HEADS + head) * VALUE + across, found)


@triton.jit
def shift_tail(mixed, tail, first, CHANNELS: tl.constexpr, SIZE: tl.constexpr, WIDE: tl.constexpr):
    """Drop the oldest input of WIDE channels and take in the row's."""
    at = first + tl.arange(0, WIDE)
    inside = at < CHANNELS
    for lag in tl.static_range(SIZE - 2):
        newer = tl.load(tail + (lag + 1) * CHANNELS + at, mask=inside)
        tl.store(tail + lag * CHANNELS + at, newer, mask=inside)
    newest = tl.load(mixed + at, mask=inside).to(tl.float32)
    tl.store(tail + (SIZE - 2) * CHANNELS + at, newest, mask=inside)


@triton.jit
def finish_rows(
    mixed, mixed_row, gate, gate_row, norm, norm_eps, tails, tail_slot, slots, read,
    high, low, scales, sums,
    KEY_HEADS: tl.constexpr, VALUE_HEADS: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr,
    SIZE: tl.constexpr, WIDE: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """The first VALUE_HEADS programs write rows, the others shift tails, WIDE channels each.

    Args:
        slots: as for ``advance_states``.
    """
    let_next_start(DEPENDENT)
    channels: tl.constexpr = 2 * KEY_HEADS * KEY + VALUE_HEADS * VALUE
    head, row = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slots + row)
    wait_for_inputs(DEPENDENT)
    if head < VALUE_HEADS:
        at = tl.arange(0, VALUE)
        found = tl.load(read + (row * VALUE_HEADS + head) * VALUE + at, mask=slot >= 0, other=0.0)
        opened = silu(tl.load(gate + row.to(tl.int64) * gate_row + head * VALUE + at))
        found *= tl.rsqrt(tl.sum(found * found, axis=0) / VALUE + norm_eps) * tl.load(norm + at)
        # A row without a slot is zeros whatever its gate holds.
        values = tl.where(slot >= 0, found * opened, 0.0)
        columns: tl.constexpr = VALUE_HEADS * VALUE
        store_quantized(
            values, row, head * VALUE, columns, high, low, scales, sums, BLOCKS=VALUE // 32
        )
    elif slot >= 0:
        tail = tails + slot.to(tl.int64) * tail_slot
        source = mixed + row.to(tl.int64) * mixed_row
        shift_tail(source, tail, (head - VALUE_HEADS) * WIDE, channels, SIZE, WIDE)
