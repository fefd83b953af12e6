"""Launching the gated delta rule on one generated row a lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.checks import KernelShapeError
from kernels.delta_step.kernel import advance_states, finish_rows
from kernels.dependent import dependent
from kernels.rows import QuantizedRows

TILE: Final = 16
"""Values of a head whose state one program moves."""
ADVANCE_WARPS: Final = 1
"""One: sums over a key then stay inside a warp, and nothing waits at a barrier."""
WIDE: Final = 128
"""Channels whose tail one program shifts."""
FINISH_WARPS: Final = 1


@dataclass(frozen=True, slots=True)
class DeltaWeights:
    """The small tensors of one layer, and its numbers.

    Attributes:
        taps: [size, channels] float32, those of the newest input last.
        decay: [value head] float32, negative.
        time_bias: [value head] float32.
        norm: [value_dim] float32, the weight of the output's norm.
        unit_eps: inside the root that makes queries and keys length 1.
        tiled: key head ``h % key_head_count`` serves value head h, else
            ``h // (value_head_count / key_head_count)``.
    """

    taps: torch.Tensor
    decay: torch.Tensor
    time_bias: torch.Tensor
    norm: torch.Tensor
    norm_eps: float
    unit_eps: float
    key_head_count: int
    value_head_count: int
    key_dim: int
    value_dim: int
    tiled: bool

    def __post_init__(self) -> None:
        """Raise KernelShapeError for what the kernels do not take."""
        keys, values = self.key_head_count, self.value_head_count
        if values % keys != 0:
            raise KernelShapeError(f"{keys} key heads cannot serve {values} value heads.")
        for dim, least in ((self.key_dim, 16), (self.value_dim, 32)):
            if dim < least or dim > 256 or dim & (dim - 1):
                raise KernelShapeError(f"{dim} is no power of two from {least} to 256.")
        if self.size < 2 or self.taps.shape[1] != self.channels:
            raise KernelShapeError(f"Taps {tuple(self.taps.shape)} for {self.channels} channels.")
        shapes = ((self.decay, values), (self.time_bias, values), (self.norm, self.value_dim))
        if any(tensor.shape != (length,) for tensor, length in shapes):
            raise KernelShapeError("Decay, time bias or norm have another length.")
        for tensor in (self.taps, self.decay, self.time_bias, self.norm):
            if tensor.dtype is not torch.float32 or not tensor.is_contiguous():
                raise KernelShapeError("The small tensors are contiguous float32.")

    @property
    def size(self) -> int:
        """Inputs that the convolution reads."""
        return self.taps.shape[0]

    @property
    def channels(self) -> int:
        """Columns of queries, keys and values together."""
        return 2 * self.key_head_count * self.key_dim + self.columns

    @property
    def columns(self) -> int:
        """Columns of the values."""
        return self.value_head_count * self.value_dim


def delta_step(
    mixed: torch.Tensor,
    gate: torch.Tensor,
    beta: torch.Tensor,
    alpha: torch.Tensor,
    weights: DeltaWeights,
    states: torch.Tensor,
    tails: torch.Tensor,
    slots: torch.Tensor,
    scratch: torch.Tensor,
    out: QuantizedRows,
) -> None:
    """Move each row's state and tail over the row, and write ``norm(o) * silu(gate)``.

    Args:
        mixed: [rows, channels], the inputs of the convolution; rows may be strided.
        gate: [rows, value_head * value_dim] float32; rows may be strided.
        beta, alpha: [rows, value_head] float32, before sigmoid and softplus.
        states: [slot, value_head, key_dim, value_dim] float32; slots and heads may be strided.
        tails: [slot, size - 1, channels] float32, the oldest input first.
        slots: [rows] int32, each another; of a negative one nothing is kept, and its row of ``out``
            is zeros. Kernels launched earlier on the stream do not write them.
        scratch: float32, rows * value_head * value_dim numbers at least; what it holds is anything.
        out: [rows, value_head * value_dim].

    Raises:
        KernelShapeError: a tensor does not fit.
    """
    rows = mixed.shape[0]
    _check((mixed, gate, beta, alpha), weights, slots, scratch, out)
    check_places(weights, states, tails)
    heads = weights.value_head_count
    shape = (weights.key_head_count, heads, weights.key_dim, weights.value_dim, weights.size)
    tile = min(TILE, weights.value_dim)
    advance_states[(heads * (weights.value_dim // tile), rows)](
        mixed, mixed.stride(0), beta, beta.stride(0), alpha, alpha.stride(0),
        weights.taps, weights.decay, weights.time_bias, weights.unit_eps,
        states, states.stride(0), states.stride(1), tails, tails.stride(0), slots, scratch,
        *shape, weights.tiled, tile, num_warps=ADVANCE_WARPS, **dependent(mixed.device),
    )  # fmt: skip
    programs = heads + -(-weights.channels // WIDE)
    finish_rows[(programs, rows)](
        mixed, mixed.stride(0), gate, gate.stride(0), weights.norm, weights.norm_eps,
        tails, tails.stride(0), slots, scratch, out.high, out.low, out.scales, out.sums,
        *shape, WIDE, num_warps=FINISH_WARPS, **dependent(mixed.device),
    )  # fmt: skip


def check_places(weights: DeltaWeights, states: torch.Tensor, tails: torch.Tensor) -> None:
    """Raise KernelShapeError where states or tails are not one layer's of an arena."""
    dims = (weights.value_head_count, weights.key_dim, weights.value_dim)
    if states.shape[1:] != dims or states.stride()[2:] != (weights.value_dim, 1):
        raise KernelShapeError(f"States {tuple(states.shape)}, {tuple(states.stride())}.")
    if tails.shape[1:] != (weights.size - 1, weights.channels):
        raise KernelShapeError(f"Tails {tuple(tails.shape)} for {weights.channels} channels.")
    if tails.stride()[1:] != (weights.channels, 1):
        raise KernelShapeError("The inputs of a tail lie one after the other.")
    if states.dtype is not torch.float32 or tails.dtype is not torch.float32:
        raise KernelShapeError("States and tails are float32.")


def check_inputs(inputs: tuple[torch.Tensor, ...], weights: DeltaWeights) -> None:
    """Raise KernelShapeError where mixed, gate, beta and alpha do not belong together."""
    widths = (weights.channels, weights.columns, *[weights.value_head_count] * 2)
    for tensor, width in zip(inputs, widths, strict=True):
        if tensor.shape != (len(inputs[0]), width) or tensor.stride(1) != 1:
            raise KernelShapeError(f"{tuple(tensor.shape)} where rows have {width} columns.")


def _check(
    inputs: tuple[torch.Tensor, ...],
    weights: DeltaWeights,
    slots: torch.Tensor,
    scratch: torch.Tensor,
    out: QuantizedRows,
) -> None:
    check_inputs(inputs, weights)
    rows = len(inputs[0])
    if slots.shape != (rows,) or slots.dtype is not torch.int32:
        raise KernelShapeError(f"{rows} rows have as many slots, int32.")
    if scratch.dtype is not torch.float32 or scratch.numel() < rows * weights.columns:
        raise KernelShapeError("The scratch of a step is too small, or not float32.")
    if (out.rows, out.columns) != (rows, weights.columns):
        raise KernelShapeError(f"Room for {out.rows} rows of {out.columns} columns.")
