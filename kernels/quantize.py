"""The part of kernels that writes QuantizedRows: the bits that ``kernels.rows.quantized`` defines.

Functions of Triton, called inside kernels of other modules.
"""

import triton
import triton.language as tl

LARGEST: tl.constexpr = tl.constexpr(32258.0)
LARGEST_RECIPROCAL: tl.constexpr = tl.constexpr(1.0 / 32258.0)
LEAST: tl.constexpr = tl.constexpr(2.0**-100)
ROUNDING: tl.constexpr = tl.constexpr(12582912.0)


@triton.jit
def quantize_blocks(values, BLOCKS: tl.constexpr):
    """Blocks of 32 as codes.

    Args:
        values: tile of BLOCKS * 32 float32 of one row in row-major order, whatever its shape.

    Returns:
        high, low [BLOCKS, 32] int8, scales [BLOCKS] float32, sums [BLOCKS, 2] int32.
    """
    tile = tl.reshape(values, (BLOCKS, 32))
    # As whole numbers magnitudes keep their order, and a NaN is the largest of all.
    bits = tile.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    largest = tl.max(bits, axis=1).to(tl.float32, bitcast=True)
    usable = (largest >= LEAST) & (largest < float("inf"))
    inverse = tl.where(usable, tl.math.div_rn(LARGEST, tl.where(usable, largest, 1.0)), 0.0)
    scales = tl.where(largest < LEAST, 0.0, largest * LARGEST_RECIPROCAL)
    # fma adds a zero so that the product is rounded before the next addition, on every machine.
    scaled = tl.fma(tile, tl.broadcast_to(inverse[:, None], tile.shape), tl.zeros_like(tile))
    nearest = (scaled + ROUNDING) - ROUNDING
    whole = tl.where(usable[:, None], nearest, 0.0).to(tl.int32)
    # 66053 / 2^24 is 1 / 254 closely enough for every number up to 32,385.
    steps = ((tl.abs(whole) + 127) * 66053) >> 24
    high = tl.where(whole < 0, -steps, steps)
    low = whole - 254 * high
    sums = tl.sum(tl.reshape(whole, (BLOCKS, 2, 16)), axis=2)
    return high.to(tl.int8), low.to(tl.int8), scales, sums


@triton.jit
def store_quantized(
    values, row, first, columns, high_to, low_to, scales_to, sums_to, BLOCKS: tl.constexpr
):
    """Quantize a tile and store what of it lies inside the row.

    Args:
        values: tile of BLOCKS * 32 float32 in row-major order: columns ``first`` and on.
        row, first: where it begins; ``first`` is a multiple of 32.
        columns: of the whole row; what the tile has beyond is dropped.
        high_to, low_to, scales_to, sums_to: the tensors of QuantizedRows.
    """
    high, low, scales, sums = quantize_blocks(values, BLOCKS)
    # Fours of elements: as threads hold them, so that none move between threads to be stored.
    four = first // 4 + tl.arange(0, BLOCKS * 8)
    inside = four < columns // 4
    start = row.to(tl.int64) * columns
    at = start + four[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(high_to + at, tl.reshape(high, (BLOCKS * 8, 4)), mask=inside[:, None])
    tl.store(low_to + at, tl.reshape(low, (BLOCKS * 8, 4)), mask=inside[:, None])
    scales = tl.reshape(tl.broadcast_to(scales[:, None], (BLOCKS, 8)), (BLOCKS * 8,))
    tl.store(scales_to + start // 32 + four // 8, scales, mask=inside & (four % 8 == 0))
    sums = tl.reshape(tl.broadcast_to(sums[:, :, None], (BLOCKS, 2, 4)), (BLOCKS * 8,))
    tl.store(sums_to + start // 16 + four // 4, sums, mask=inside & (four % 4 == 0))


@triton.jit
def narrowed(values, dtype: tl.constexpr):
    """Float32 as ``dtype``, to nearest, ties to even; a NaN stays one.

    bfloat16 by whole numbers: Triton's interpreter cuts off where a GPU rounds.
    """
    if dtype == tl.bfloat16:
        bits = values.to(tl.int32, bitcast=True)
        upper = ((bits >> 16) & 0xFFFF) + ((((bits >> 16) & 1) + (bits & 0xFFFF)) > 0x8000)
        upper = tl.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, upper)
        result = upper.to(tl.int16).to(tl.bfloat16, bitcast=True)
    else:
        result = values.to(dtype)
    return result
