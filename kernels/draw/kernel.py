"""The best token of a row, capped logits, and the candidates that a draw may need.

Logits are compared as whole numbers of the same order, in which both zeros are one and a NaN is the
highest.
"""

import triton
import triton.language as tl

from kernels.dependent import begin

NAN: tl.constexpr = tl.constexpr(0x7FFFFFFF)
LOWEST: tl.constexpr = tl.constexpr(-0x80000000)


@triton.jit
def ranked(values):
    """Float32 values as int32 of the same order."""
    # A zero is added so that -0 becomes 0.
    bits = (values + 0.0).to(tl.int32, bitcast=True)
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return tl.where(is_nan, NAN, bits ^ ((bits >> 31) & 0x7FFFFFFF))


@triton.jit
def best_kernel(logits, keys, vocabulary, stride, parts, TILE: tl.constexpr):
    """The best of one tile as one whole number: its rank, and below it how low its id is."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    at = part * TILE + tl.arange(0, TILE)
    inside = at < vocabulary
    rank = ranked(tl.load(logits + row * stride + at, mask=inside, other=float("-inf")))
    key = (rank.to(tl.int64) << 32) | (at ^ NAN).to(tl.int64)
    best = tl.max(tl.where(inside, key, -0x8000000000000000), axis=0)
    tl.store(keys + row * parts + part, best)


@triton.jit
def choose_kernel(keys, out, parts, WIDTH: tl.constexpr):
    """The id of the best of a row's tiles; -1 where the best is a NaN."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    key = tl.load(keys + row * parts + at, mask=at < parts, other=-0x8000000000000000)
    best = tl.max(key, axis=0)
    chosen = (best & NAN).to(tl.int32) ^ NAN
    tl.store(out + row, tl.where((best >> 32) == NAN, -1, chosen))


@triton.jit
def tanh(values):
    """By a power of e, and near zero, where that loses digits, by seven terms."""
    size = tl.abs(values)
    small = tl.exp(-2.0 * size)
    far = (1.0 - small) / (1.0 + small)
    z = size * size
    near = -17.0 / 315.0 + z * (62.0 / 2835.0 + z * (-1382.0 / 155925.0 + z * 0.003592128))
    near = size + size * z * (-1.0 / 3.0 + z * (2.0 / 15.0 + z * near))
    found = tl.where(size < 0.3, near, far)
    return tl.where(values < 0.0, -found, found)


@triton.jit
def soft_cap_kernel(logits, vocabulary, stride, cap, TILE: tl.constexpr, DEPENDENT: tl.constexpr):
    """``cap * tanh(logits / cap)`` in place."""
    begin(DEPENDENT)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = at < vocabulary
    place = logits + tl.program_id(0).to(tl.int64) * stride + at
    values = tl.load(place, mask=inside, other=0.0)
    tl.store(place, cap * tanh(values / cap), mask=inside)


@triton.jit
def maxima_kernel(
    logits, maxima, vocabulary, stride, count, TILE: tl.constexpr, GROUP: tl.constexpr
):
    """Ranks of the maxima of GROUP neighbours, of one tile."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    at = part * TILE + tl.arange(0, TILE)
    inside = at < vocabulary
    rank = ranked(tl.load(logits + row * stride + at, mask=inside, other=float("-inf")))
    rank = tl.where(inside, rank, LOWEST)
    found = tl.max(tl.reshape(rank, (TILE // GROUP, GROUP)), axis=1)
    tl.store(maxima + row * count + part * (TILE // GROUP) + tl.arange(0, TILE // GROUP), found)


@triton.jit
def bound_kernel(maxima, bounds, count, wanted, WIDTH: tl.constexpr):
    """The ``wanted``-th highest maximum of a row, bit by bit; the lowest number for fewer."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    rank = tl.load(maxima + row * count + at, mask=at < count, other=LOWEST)
    enough = tl.sum((rank >= 0).to(tl.int32), axis=0) >= wanted
    bound = tl.where(enough, 0, LOWEST)
    for bit in tl.static_range(31):
        higher = bound | (1 << (30 - bit))
        enough = tl.sum((rank >= higher).to(tl.int32), axis=0) >= wanted
        bound = tl.where(enough, higher, bound)
    tl.store(bounds + row, bound)


@triton.jit
def tally_kernel(logits, bounds, tallies, vocabulary, stride, parts, TILE: tl.constexpr):
    """How many logits of one tile are no lower than the row's bound."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    at = part * TILE + tl.arange(0, TILE)
    inside = at < vocabulary
    rank = ranked(tl.load(logits + row * stride + at, mask=inside, other=float("-inf")))
    taken = inside & (rank >= tl.load(bounds + row))
    tl.store(tallies + row * parts + part, tl.sum(taken.to(tl.int32), axis=0))


@triton.jit
def gather_kernel(
    logits,
    bounds,
    tallies,
    ids,
    values,
    found,
    vocabulary,
    stride,
    parts,
    room,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Ids, ascending, and values of the logits of one tile that are no lower than the bound."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    each = tl.arange(0, WIDTH)
    tally = tl.load(tallies + row * parts + each, mask=each < parts, other=0)
    first = tl.sum(tl.where(each < part, tally, 0), axis=0)
    if part == 0:
        tl.store(found + row, tl.sum(tally, axis=0))
    at = part * TILE + tl.arange(0, TILE)
    inside = at < vocabulary
    value = tl.load(logits + row * stride + at, mask=inside, other=float("-inf"))
    taken = inside & (ranked(value) >= tl.load(bounds + row))
    to = first + tl.cumsum(taken.to(tl.int32), axis=0) - 1
    kept = taken & (to < room)
    tl.store(ids + row * room + to, at, mask=kept)
    tl.store(values + row * room + to, value, mask=kept)
