"""Words of codes and factors of one tile of a packed weight, as ``dp4a`` takes them.

A tile is STEP blocks of 32 elements by SIDES times PER rows of the weight; a thread has whole
blocks of PER rows, so no value ever moves from one thread to another here. Tiles are [STEP, SIDES,
PER] where ``AXIS``, the blocks' dimension, is 0, and [PER, SIDES, STEP] where it is 2: versions of
Triton lay threads along one or the other end. Pointers are one a block; ``live`` is whether a block
is there. Pointers to single entries are made with ``unit``, the number 1 where Triton cannot see
it: entries that it knew to be neighbours it would load several a thread, and then move.
"""

import triton
import triton.language as tl

from kernels.inline import fetch, looked_up


@triton.jit
def one(entry, live, MASKED: tl.constexpr):
    """What a pointer points to; 0 where MASKED and not ``live``."""
    if MASKED:
        return tl.load(entry, mask=live, other=0)
    else:  # noqa: RET505 - Triton follows a constexpr branch only so
        return tl.load(entry)


@triton.jit
def four(words, live, MASKED: tl.constexpr):
    """Four int32 words from each pointer on: four tiles."""
    each = tl.expand_dims(words, 3) + tl.arange(0, 4)[None, None, None, :]
    found = one(each, tl.expand_dims(live, 3), MASKED)
    shape: tl.constexpr = words.shape
    even, odd = tl.split(tl.reshape(found, (shape[0], shape[1], shape[2], 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def two(entries, live, MASKED: tl.constexpr):
    """Two entries from each pointer on: two tiles."""
    each = tl.expand_dims(entries, 3) + tl.arange(0, 2)[None, None, None, :]
    return tl.split(one(each, tl.expand_dims(live, 3), MASKED))


@triton.jit
def moved(word, LEFT: tl.constexpr, MASK: tl.constexpr):
    """Bits of a word, moved and masked; to the right where LEFT is below 0."""
    if LEFT >= 0:
        return (word << LEFT) & MASK
    else:  # noqa: RET505 - as above
        return (word >> -LEFT) & MASK


@triton.jit
def low_words(low, live, LOW: tl.constexpr, MASKED: tl.constexpr):
    """Words of a block of the plane ``low``: two, four or eight."""
    if LOW == 8:
        return four(low, live, MASKED) + four(low + 4, live, MASKED)
    elif LOW == 4:  # noqa: RET505 - as above
        return four(low, live, MASKED)
    else:
        return two(low, live, MASKED)


@triton.jit
def low_codes(
    words, LOW: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """The eight words of a block's low bits, a byte an element, in the order of activations."""
    if LOW == 8:
        return words
    elif LOW == 2:  # noqa: RET505 - as above
        found = ()
        for field in tl.static_range(4):
            found = found + (moved(words[0], -2 * field, 0x03030303),)
            found = found + (moved(words[1], -2 * field, 0x03030303),)
        return found
    else:
        lows, highs = (), ()
        for i in tl.static_range(4):
            if TABLE:
                one, other = looked_up(words[i], T0, T1, T2, T3, ASM)
            else:
                one, other = words[i] & 0x0F0F0F0F, moved(words[i], -4, 0x0F0F0F0F)
            lows, highs = lows + (one,), highs + (other,)
        return lows + highs


@triton.jit
def high_words(high, live, HIGH: tl.constexpr, MASKED: tl.constexpr):
    """Words of a block of the plane ``high``: one or two."""
    if HIGH == 1:
        return (one(high, live, MASKED),)
    else:  # noqa: RET505 - as above
        return two(high, live, MASKED)


@triton.jit
def with_high(codes, words, LOW: tl.constexpr, HIGH: tl.constexpr):
    """The eight words with the bits of the plane ``high`` above them."""
    found = ()
    for j in tl.static_range(8):
        if HIGH == 1:
            top = moved(words[0], LOW - j, 0x01010101 << LOW)
        else:
            top = moved(words[j // 4], LOW - 2 * (j % 4), 0x03030303 << LOW)
        found = found + (codes[j] | top,)
    return found


@triton.jit
def as_float(entry, SCALE: tl.constexpr):
    """One entry of a plane of scales, float32; where SCALE, an exponent e is 2 ** (e - 128)."""
    if SCALE:
        small = 0x00200000 << tl.minimum(entry, 1)
        return tl.where(entry < 2, small, (entry - 1) << 23).to(tl.float32, bitcast=True)
    else:  # noqa: RET505 - as above
        return entry.to(tl.float32)


@triton.jit
def widened(entry):
    """An entry in a register of its own: int32 or float32, without loss."""
    if entry.dtype.is_int():
        return entry.to(tl.int32)
    else:  # noqa: RET505 - as above
        return entry.to(tl.float32)


@triton.jit
def entries(
    plane, supers, start, live, GROUP: tl.constexpr, HAS_SUPER: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """Stored scales or minima of a block: one, or two where GROUP is 16; then what they go with.

    ``plane`` and ``supers`` point to those of the first step's blocks, ``start`` is a whole step.
    """
    if GROUP == 16:
        first, second = two(plane + start * 2, live, MASKED)
        found = (widened(first), widened(second))
    else:
        found = (widened(one(plane + start // (GROUP // 32), live, MASKED)),)
    if HAS_SUPER:
        found = found + (widened(one(supers + start // 8, live, MASKED)),)
    return found


@triton.jit
def factors(found, GROUP: tl.constexpr, SCALE: tl.constexpr, HAS_SUPER: tl.constexpr):
    """Scales or minima of a block's two halves, float32; twice the same from groups of 32 on."""
    count: tl.constexpr = 2 if GROUP == 16 else 1
    first = as_float(found[0], SCALE)
    second = as_float(found[count - 1], SCALE)
    if HAS_SUPER:
        first, second = found[count] * first, found[count] * second
    return first, second


@triton.jit
def scaled_sums(
    first, second, sums, scale, minimum, GROUP: tl.constexpr, OFFSET: tl.constexpr,
    MINIMUM: tl.constexpr,
):  # fmt: skip
    """A block's whole sums, times the weight's scales: float32, before the activations' scale.

    Args:
        first, second: codes times activations, of both halves where GROUP is 16, else of all in
            ``first``.
        sums: of activations, of both halves.
        MINIMUM: 0 where nothing is added, 1 where minima are, -1 where they are taken away.
    """
    sum_first, sum_second = sums
    if GROUP != 16:
        sum_first += sum_second
    if OFFSET:
        first -= OFFSET * sum_first
        second -= OFFSET * sum_second
    value = first.to(tl.float32) * scale[0]
    if GROUP == 16:
        value = tl.fma(second.to(tl.float32), scale[1], value)
    if MINIMUM:
        value = tl.fma(MINIMUM * sum_first.to(tl.float32), minimum[0], value)
        if GROUP == 16:
            value = tl.fma(MINIMUM * sum_second.to(tl.float32), minimum[1], value)
    return value


@triton.jit
def fetch_rows(plane, row, along, STEP: tl.constexpr, WORDS: tl.constexpr, ASM: tl.constexpr):
    """Ask for whole rows of a plane, ``WORDS`` int32 each: lines of 32 words."""
    for first in tl.static_range(0, (WORDS + 31) // 32, STEP):
        line = first + along
        fetch(plane + row * WORDS + line * 32, line * 32 < WORDS + 0 * row, ASM)


@triton.jit
def fetch_tile(
    low, high, row, along, STEP: tl.constexpr, BLOCKS: tl.constexpr, LOW: tl.constexpr,
    HIGH: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Ask for a tile's codes, nearly all that it reads."""
    fetch_rows(low, row, along, STEP, BLOCKS * LOW, ASM)
    if HIGH:
        fetch_rows(high, row, along, STEP, BLOCKS * HIGH, ASM)


@triton.jit
def places(
    row, along, low, high, scales, supers, minima, super_minima, unit,
    BLOCKS: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Where a tile's blocks of the first step lie in each plane."""
    single = along * unit
    groups: tl.constexpr = 2 * BLOCKS if GROUP == 16 else BLOCKS * 32 // GROUP
    group = along * 2 if GROUP == 16 else single // (GROUP // 32)
    return (
        low + row * (BLOCKS * LOW) + along * LOW,
        high + row * (BLOCKS * HIGH) + (single if HIGH == 1 else along * HIGH),
        scales + row * groups + group,
        supers + row * (BLOCKS // 8) + single // 8,
        minima + row * groups + group,
        super_minima + row * (BLOCKS // 8) + single // 8,
    )


@triton.jit
def rows_of_tile(SIDES: tl.constexpr, PER: tl.constexpr, AXIS: tl.constexpr):
    """Which row of a tile: [1, SIDES, PER] or [PER, SIDES, 1] int64."""
    side = tl.arange(0, SIDES).to(tl.int64)[None, :, None] * PER
    within = tl.arange(0, PER).to(tl.int64)
    if AXIS == 0:
        return side + within[None, None, :]
    else:  # noqa: RET505 - as above
        return side + within[:, None, None]


@triton.jit
def blocks_of_step(STEP: tl.constexpr, AXIS: tl.constexpr):
    """Which block of a step: [STEP, 1, 1] or [1, 1, STEP] int32."""
    if AXIS == 0:
        return tl.arange(0, STEP)[:, None, None]
    else:  # noqa: RET505 - as above
        return tl.arange(0, STEP)[None, None, :]
