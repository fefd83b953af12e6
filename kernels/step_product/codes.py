"""Words of codes and factors of one tile of a packed weight, as ``dp4a`` takes them.

A tile is STEP blocks of 32 elements by TILE rows; a thread has whole blocks, so no value ever moves
from one thread to another here. ``AXIS`` is the blocks' dimension of the two: the one along which
Triton lays threads, which its versions see differently. Pointers are one a block; ``live`` is
whether a block is there. Pointers to single entries are made with ``unit``, the number 1 where
Triton cannot see it: entries that it knew to be neighbours it would load several a thread, and then
move.
"""

import triton
import triton.language as tl

from kernels.inline import looked_up


@triton.jit
def four(words, live):
    """Four int32 words from each pointer on: four tiles."""
    each = words[:, :, None] + tl.arange(0, 4)[None, None, :]
    found = tl.load(each, mask=live[:, :, None], other=0)
    even, odd = tl.split(tl.reshape(found, (found.shape[0], found.shape[1], 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def two(entries, live):
    """Two entries from each pointer on: two tiles."""
    each = entries[:, :, None] + tl.arange(0, 2)[None, None, :]
    return tl.split(tl.load(each, mask=live[:, :, None], other=0))


@triton.jit
def moved(word, LEFT: tl.constexpr, MASK: tl.constexpr):
    """Bits of a word, moved and masked; to the right where LEFT is below 0."""
    if LEFT >= 0:
        return (word << LEFT) & MASK
    else:  # noqa: RET505 - Triton follows a constexpr branch only so
        return (word >> -LEFT) & MASK


@triton.jit
def low_codes(
    low, live, LOW: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """The eight words of a block's low bits, a byte an element, in the order of activations."""
    if LOW == 8:
        return four(low, live) + four(low + 4, live)
    elif LOW == 2:  # noqa: RET505 - as above
        w0, w1 = two(low, live)
        found = ()
        for field in tl.static_range(4):
            found = found + (moved(w0, -2 * field, 0x03030303), moved(w1, -2 * field, 0x03030303))
        return found
    elif TABLE:
        words = four(low, live)
        lows, highs = (), ()
        for i in tl.static_range(4):
            one, other = looked_up(words[i], T0, T1, T2, T3, ASM)
            lows, highs = lows + (one,), highs + (other,)
        return lows + highs
    else:
        words = four(low, live)
        lows, highs = (), ()
        for i in tl.static_range(4):
            lows = lows + (words[i] & 0x0F0F0F0F,)
            highs = highs + (moved(words[i], -4, 0x0F0F0F0F),)
        return lows + highs


@triton.jit
def with_high(codes, high, live, LOW: tl.constexpr, HIGH: tl.constexpr):
    """The eight words with the bits of the plane ``high`` above them."""
    found = ()
    if HIGH == 1:
        word = tl.load(high, mask=live, other=0)
        for j in tl.static_range(8):
            found = found + (codes[j] | moved(word, LOW - j, 0x01010101 << LOW),)
    else:
        words = two(high, live)
        for j in tl.static_range(8):
            top = moved(words[j // 4], LOW - 2 * (j % 4), 0x03030303 << LOW)
            found = found + (codes[j] | top,)
    return found


@triton.jit
def as_float(entry, SCALE: tl.constexpr):
    """One entry of a plane of scales, float32; an exponent e is 2 ** (e - 128)."""
    if SCALE == "e8m0":
        e = entry.to(tl.int32)
        small = 0x00200000 << tl.minimum(e, 1)
        return tl.where(e < 2, small, (e - 1) << 23).to(tl.float32, bitcast=True)
    else:  # noqa: RET505 - as above
        return entry.to(tl.float32)


@triton.jit
def factors(
    plane, supers, row, block, live, unit, BLOCKS: tl.constexpr, GROUP: tl.constexpr,
    SCALE: tl.constexpr, HAS_SUPER: tl.constexpr,
):  # fmt: skip
    """Scales or minima of a block's two halves, float32: twice the same from 32 on."""
    if GROUP == 16:
        first, second = two(plane + row * (2 * BLOCKS) + block * 2, live)
        first, second = as_float(first, SCALE), as_float(second, SCALE)
    else:
        at = row * (BLOCKS * 32 // GROUP) + (block * unit) // (GROUP // 32)
        first = as_float(tl.load(plane + at, mask=live, other=0), SCALE)
        second = first
    if HAS_SUPER:
        at = row * (BLOCKS // 8) + (block * unit) // 8
        each = tl.load(supers + at, mask=live, other=0).to(tl.float32)
        first, second = each * first, each * second
    return first, second
