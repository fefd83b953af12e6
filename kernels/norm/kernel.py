"""Residual and norm in one pass: a program a row, the row in registers.

Where the residual stays as it is, generated rows are shared among programs: each reads the whole
row for its mean and writes a part, for what takes long is quantizing. Sums run over a tile of WIDTH
columns, zeros beyond the row, so their order depends on the row's length alone. Tensors that are
not wanted are None.
"""

import triton
import triton.language as tl

from kernels.dependent import let_next_start, wait_for_inputs
from kernels.quantize import narrowed, store_quantized


@triton.jit
def inverse_root(values, columns, eps):
    """``1 / sqrt(mean(values ** 2) + eps)`` of one row; ``values`` are zero beyond it."""
    mean = tl.sum(values * values, axis=0) / columns
    return tl.math.div_rn(1.0, tl.math.sqrt_rn(mean + eps))


@triton.jit
def normed(values, factors, columns, eps):
    """RMS norm of one row, times ``factors``."""
    return values * inverse_root(values, columns, eps) * factors


@triton.jit
def residual(
    x,
    added,
    added_weight,
    added_factors,
    row,
    at,
    inside,
    columns,
    x_stride,
    added_stride,
    added_eps,
    scale,
):
    """One row of the residual after what is added and the scale; stored where it changed."""
    place = x + row.to(tl.int64) * x_stride + at
    values = tl.load(place, mask=inside, other=0.0)
    if added is not None:
        gain = tl.load(added + row.to(tl.int64) * added_stride + at, mask=inside, other=0.0)
        gain = gain.to(tl.float32)
        if added_weight is not None:
            gain = normed(gain, added_factors, columns, added_eps)
        values += gain
    if scale is not None:
        values *= scale
    if (added is not None) or (scale is not None):
        tl.store(place, values, mask=inside)
    return values


@triton.jit
def norm_part_kernel(
    x,
    weight,
    plain,
    high,
    low,
    scales,
    sums,
    columns,
    x_stride,
    plain_stride,
    eps,
    WIDTH: tl.constexpr,
    PART: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """PART columns of a row's norm, as QuantizedRows, as float32, or both; ``x`` is only read."""
    let_next_start(DEPENDENT)
    row = tl.program_id(0)
    first = tl.program_id(1) * PART
    own = first + tl.arange(0, PART)
    inside = own < columns
    factors = 1.0
    if weight is not None:
        factors = tl.load(weight + own, mask=inside, other=0.0)
    wait_for_inputs(DEPENDENT)
    at = tl.arange(0, WIDTH)
    place = x + row.to(tl.int64) * x_stride
    values = tl.load(place + at, mask=at < columns, other=0.0)
    part = tl.load(place + own, mask=inside, other=0.0)
    result = part * inverse_root(values, columns, eps) * factors
    if plain is not None:
        tl.store(plain + row.to(tl.int64) * plain_stride + own, result, mask=inside)
    if high is not None:
        store_quantized(result, row, first, columns, high, low, scales, sums, PART // 32)


@triton.jit
def norm_step_kernel(
    x,
    added,
    added_weight,
    weight,
    plain,
    high,
    low,
    scales,
    sums,
    columns,
    x_stride,
    added_stride,
    plain_stride,
    eps,
    added_eps,
    scale,
    WIDTH: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Residual, norm, and the norm as QuantizedRows, as float32, or both."""
    let_next_start(DEPENDENT)
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    inside = at < columns
    factors = 1.0
    if weight is not None:
        factors = tl.load(weight + at, mask=inside, other=0.0)
    added_factors = 1.0
    if added_weight is not None:
        added_factors = tl.load(added_weight + at, mask=inside, other=0.0)
    wait_for_inputs(DEPENDENT)
    values = residual(
        x,
        added,
        added_weight,
        added_factors,
        row,
        at,
        inside,
        columns,
        x_stride,
        added_stride,
        added_eps,
        scale,
    )
    result = normed(values, factors, columns, eps)
    if plain is not None:
        tl.store(plain + row.to(tl.int64) * plain_stride + at, result, mask=inside)
    if high is not None:
        store_quantized(result, row, 0, columns, high, low, scales, sums, WIDTH // 32)


@triton.jit
def norm_prompt_kernel(
    x,
    added,
    added_weight,
    weight,
    plain,
    out,
    columns,
    x_stride,
    added_stride,
    plain_stride,
    out_stride,
    eps,
    added_eps,
    scale,
    WIDTH: tl.constexpr,
):
    """Residual, norm, and the norm in bf16, as float32, or both."""
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    inside = at < columns
    factors = 1.0
    if weight is not None:
        factors = tl.load(weight + at, mask=inside, other=0.0)
    added_factors = 1.0
    if added_weight is not None:
        added_factors = tl.load(added_weight + at, mask=inside, other=0.0)
    values = residual(
        x,
        added,
        added_weight,
        added_factors,
        row,
        at,
        inside,
        columns,
        x_stride,
        added_stride,
        added_eps,
        scale,
    )
    result = normed(values, factors, columns, eps)
    if plain is not None:
        tl.store(plain + row.to(tl.int64) * plain_stride + at, result, mask=inside)
    if out is not None:
        place = out + row.to(tl.int64) * out_stride + at
        tl.store(place, narrowed(result, out.dtype.element_ty), mask=inside)
