"""Gates element by element: a program a row and tile of columns."""

import triton
import triton.language as tl

from kernels.dependent import begin
from kernels.quantize import narrowed, store_quantized

# 2 * sqrt(2 / pi), and 0.044715 times that.
SLOPE: tl.constexpr = tl.constexpr(1.5957691216057308)
CUBIC: tl.constexpr = tl.constexpr(0.07135481282052516)


@triton.jit
def sigmoid(values):
    """``1 / (1 + exp(-values))``, by an exponent that never overflows."""
    small = tl.exp(-tl.abs(values))
    return tl.where(values < 0.0, small, 1.0) / (1.0 + small)


@triton.jit
def gated(gate, up, row, at, inside, gate_stride, up_stride, GELU: tl.constexpr):
    """``activation(gate) * up`` of one tile, in float32."""
    start = row.to(tl.int64)
    wide = tl.load(gate + start * gate_stride + at, mask=inside, other=0.0).to(tl.float32)
    value = tl.load(up + start * up_stride + at, mask=inside, other=0.0).to(tl.float32)
    # x / 2 * (1 + tanh(z)) is x * sigmoid(2 z).
    inner = wide * (wide * wide * CUBIC + SLOPE) if GELU else wide
    return wide * sigmoid(inner) * value


@triton.jit
def gated_step_kernel(
    gate,
    up,
    high,
    low,
    scales,
    sums,
    columns,
    gate_stride,
    up_stride,
    GELU: tl.constexpr,
    TILE: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """The gated tile as codes."""
    begin(DEPENDENT)
    row = tl.program_id(0)
    first = tl.program_id(1) * TILE
    at = first + tl.arange(0, TILE)
    values = gated(gate, up, row, at, at < columns, gate_stride, up_stride, GELU)
    store_quantized(values, row, first, columns, high, low, scales, sums, TILE // 32)


@triton.jit
def gated_prompt_kernel(
    gate,
    up,
    out,
    columns,
    gate_stride,
    up_stride,
    out_stride,
    GELU: tl.constexpr,
    TILE: tl.constexpr,
):
    """The gated tile in the output's dtype."""
    row = tl.program_id(0)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = at < columns
    values = gated(gate, up, row, at, inside, gate_stride, up_stride, GELU)
    place = out + row.to(tl.int64) * out_stride + at
    tl.store(place, narrowed(values, out.dtype.element_ty), mask=inside)


@triton.jit
def add_gated_kernel(
    x,
    value,
    gate,
    columns,
    x_stride,
    value_stride,
    gate_stride,
    TILE: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """``x += value * sigmoid(gate)``, one gate a row."""
    begin(DEPENDENT)
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = at < columns
    share = sigmoid(tl.load(gate + row * gate_stride).to(tl.float32))
    gain = tl.load(value + row * value_stride + at, mask=inside, other=0.0).to(tl.float32)
    place = x + row * x_stride + at
    tl.store(place, tl.load(place, mask=inside, other=0.0) + gain * share, mask=inside)
