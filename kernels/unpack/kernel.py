"""Packed weights back to numbers, eight elements at a time.

A unit is 8 consecutive elements: a quarter of a block of 32. Its low bits come from one or two
words, its high bits from one, and it lies in one group, so that all its numbers are a thread's own:
what a thread loads is what it stores. ``unit`` counts over the whole weight, whose rows are whole
blocks. Multiply-adds are written out: launches turn the compiler's own off.
"""

import triton
import triton.language as tl

from kernels.dependent import begin
from kernels.inline import looked_up
from kernels.quantize import narrowed


@triton.jit
def rounded(numbers, dtype: tl.constexpr, NATIVE: tl.constexpr):
    """Float32 as ``dtype``, to nearest even: by the GPU's own instruction, or its twin."""
    if NATIVE:
        return numbers.to(dtype)
    else:  # noqa: RET505 - Triton follows a constexpr branch only so
        return narrowed(numbers, dtype)


@triton.jit
def spread(first, second, BITS: tl.constexpr, STEP: tl.constexpr):
    """Fields of the bytes of two words, [units, 8] int32: of element e the lowest BITS of its byte.

    STEP: 0 where there are two words; else ``first`` holds both, the second one STEP bits higher.
    """
    e = tl.arange(0, 8)[None, :]
    if STEP:
        return (first[:, None] >> (8 * (e % 4) + STEP * (e // 4))) & ((1 << BITS) - 1)
    else:  # noqa: RET505 - as above
        return (tl.where(e < 4, first[:, None], second[:, None]) >> (8 * (e % 4))) & (
            (1 << BITS) - 1
        )


@triton.jit
def low_words(
    low, unit, inside, LOW: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Two words of a unit whose bytes begin with its elements' low bits, or are table's entries."""
    part = (unit & 3).to(tl.int32)
    block = unit >> 2
    if LOW == 8:
        at = unit
    elif LOW == 4:
        at = block * 2 + (part & 1)
    else:
        at = block
    both = tl.load(low.to(tl.pointer_type(tl.int64)) + at, mask=inside, other=0)
    first, second = both.to(tl.int32), (both >> 32).to(tl.int32)
    if TABLE:
        evens, odds = looked_up(first, T0, T1, T2, T3, ASM)
        more_evens, more_odds = looked_up(second, T0, T1, T2, T3, ASM)
        return tl.where(part < 2, evens, odds), tl.where(part < 2, more_evens, more_odds)
    elif LOW == 8:  # noqa: RET505 - as above
        return first, second
    elif LOW == 4:
        return first >> (4 * (part >> 1)), second >> (4 * (part >> 1))
    else:
        return first >> (2 * part), second >> (2 * part)


@triton.jit
def codes(
    low, high, unit, inside, LOW: tl.constexpr, HIGH: tl.constexpr, UNSIGNED: tl.constexpr,
    OFFSET: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Whole numbers that are scaled, int32 [units, 8]."""
    first, second = low_words(low, unit, inside, LOW, TABLE, T0, T1, T2, T3, ASM)
    found = spread(first, second, 8 if TABLE else LOW, 0)
    if TABLE or (LOW == 8 and not UNSIGNED):
        found = (found << 24) >> 24
    if HIGH:
        part = (unit & 3).to(tl.int32)
        at = (unit >> 2) if HIGH == 1 else (unit >> 1)
        moved = 2 * part if HIGH == 1 else 4 * (part & 1)
        words = tl.load(high + at, mask=inside, other=0) >> moved
        found |= spread(words, words, HIGH, HIGH) << LOW
    return found - OFFSET


@triton.jit
def as_float(entry, SCALE: tl.constexpr):
    """Stored scales or minima as float32; an exponent e is 2 ** (e - 128)."""
    if SCALE:
        e = entry.to(tl.int32)
        small = 0x00200000 << tl.minimum(e, 1)
        return tl.where(e < 2, small, (e - 1) << 23).to(tl.float32, bitcast=True)
    else:  # noqa: RET505 - as above
        return entry.to(tl.float32)


@triton.jit
def factor(
    plane, supers, unit, inside, GROUP: tl.constexpr, SCALE: tl.constexpr, HAS_SUPER: tl.constexpr
):
    """A unit's scale or minimum, float32 [units]."""
    found = as_float(tl.load(plane + unit // (GROUP // 8), mask=inside, other=0), SCALE)
    if HAS_SUPER:
        found = tl.load(supers + (unit >> 5), mask=inside, other=0).to(tl.float32) * found
    return found


@triton.jit
def values(
    low, high, scales, supers, minima, super_minima, unit, inside, LOW: tl.constexpr,
    HIGH: tl.constexpr, GROUP: tl.constexpr, SCALE: tl.constexpr, SCALE_SUPER: tl.constexpr,
    ADDED: tl.constexpr, ADDED_SUPER: tl.constexpr, OFFSET: tl.constexpr, MINIMUM: tl.constexpr,
    UNSIGNED: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """What units stand for, float32 [units, 8]."""
    whole = codes(low, high, unit, inside, LOW, HIGH, UNSIGNED, OFFSET, TABLE, T0, T1, T2, T3, ASM)
    scale = factor(scales, supers, unit, inside, GROUP, SCALE, SCALE_SUPER)
    found = scale[:, None] * whole.to(tl.float32)
    if MINIMUM:
        added = factor(minima, super_minima, unit, inside, GROUP, ADDED, ADDED_SUPER)[:, None]
        found = found + added if MINIMUM > 0 else found - added
    return found


@triton.jit(do_not_specialize=["first_row", "rows"])
def unpack_kernel(
    low, high, scales, supers, minima, super_minima, out, first_row, rows, row_units,
    UNITS: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, GROUP: tl.constexpr,
    SCALE: tl.constexpr, SCALE_SUPER: tl.constexpr, ADDED: tl.constexpr,
    ADDED_SUPER: tl.constexpr, OFFSET: tl.constexpr, MINIMUM: tl.constexpr,
    UNSIGNED: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """Rows from ``first_row`` on, one after the other, as bfloat16."""
    at = tl.program_id(0).to(tl.int64) * UNITS + tl.arange(0, UNITS)
    inside = at < rows.to(tl.int64) * row_units
    unit = at + first_row.to(tl.int64) * row_units
    found = values(
        low, high, scales, supers, minima, super_minima, unit, inside, LOW, HIGH, GROUP, SCALE,
        SCALE_SUPER, ADDED, ADDED_SUPER, OFFSET, MINIMUM, UNSIGNED, TABLE, T0, T1, T2, T3, ASM,
    )  # fmt: skip
    place = out + at[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(place, rounded(found, tl.bfloat16, ASM), mask=inside[:, None])


@triton.jit
def rows_kernel(
    ids, low, high, scales, supers, minima, super_minima, out, out_stride, rows, row_units, gain,
    UNITS: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, GROUP: tl.constexpr,
    SCALE: tl.constexpr, SCALE_SUPER: tl.constexpr, ADDED: tl.constexpr,
    ADDED_SUPER: tl.constexpr, OFFSET: tl.constexpr, MINIMUM: tl.constexpr,
    UNSIGNED: tl.constexpr, TABLE: tl.constexpr, T0: tl.constexpr, T1: tl.constexpr,
    T2: tl.constexpr, T3: tl.constexpr, ASM: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Rows by number, times ``gain``, as float32."""
    begin(DEPENDENT)
    row = tl.program_id(0)
    number = tl.minimum(tl.maximum(tl.load(ids + row), 0), rows - 1)
    at = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    inside = at < row_units
    unit = number.to(tl.int64) * row_units + at
    found = values(
        low, high, scales, supers, minima, super_minima, unit, inside, LOW, HIGH, GROUP, SCALE,
        SCALE_SUPER, ADDED, ADDED_SUPER, OFFSET, MINIMUM, UNSIGNED, TABLE, T0, T1, T2, T3, ASM,
    )  # fmt: skip
    place = out + row.to(tl.int64) * out_stride + at[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(place, found * gain, mask=inside[:, None])


@triton.jit
def dense_rows_kernel(
    ids, table, table_stride, out, out_stride, rows, columns, gain, TILE: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """The same of a weight that is not packed."""
    begin(DEPENDENT)
    row = tl.program_id(0)
    number = tl.minimum(tl.maximum(tl.load(ids + row), 0), rows - 1)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = at < columns
    found = tl.load(table + number.to(tl.int64) * table_stride + at, mask=inside, other=0)
    tl.store(out + row.to(tl.int64) * out_stride + at, found.to(tl.float32) * gain, mask=inside)
