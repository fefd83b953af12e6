"""Launching the gated delta rule on rows of one lane's prompt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch

from kernels.checks import KernelShapeError
from kernels.delta_prompt.kernel import advance_blocks, convolve_heads, finish_rows, solve_blocks
from kernels.delta_prompt.sizes import BLOCK_ROWS, GATES, piece_blocks, prompt_bytes
from kernels.delta_step.launch import DeltaWeights, check_inputs, check_places

CONVOLVE_ROWS: Final = 32
"""Rows whose convolution one program takes, a divisor of a block's."""
FINISH_ROWS: Final = 16
"""Rows whose norm one program takes."""


@dataclass(frozen=True, slots=True)
class PromptConfiguration:
    """How the launches are cut; no bit of a result depends on it.

    Attributes:
        tile: values of a head that one program takes through the blocks.
        stages: how many blocks' inputs are on their way at a time.
    """

    convolve_warps: int = 8
    solve_warps: int = 4
    tile: int = 32
    advance_warps: int = 4
    stages: int = 2
    finish_warps: int = 4


CONFIGURATION: Final = PromptConfiguration()


@dataclass(frozen=True, slots=True)
class PromptScratch:
    """What the launches hand on; what it holds before is anything.

    Attributes:
        units: [2 * key_head, piece, key_dim] float16.
        gates: [5, value_head, piece] float32.
        solved: [value_head, piece / 64, 2, 64, 64] float16.
    """

    units: torch.Tensor
    gates: torch.Tensor
    solved: torch.Tensor

    @property
    def blocks(self) -> int:
        """Of 64 rows, in a piece."""
        return self.solved.shape[1]


def prompt_scratch_bytes(rows: int, weights: DeltaWeights) -> int:
    """Bytes that ``prompt_scratch`` takes for chunks of up to ``rows`` rows."""
    keys, heads = weights.key_head_count, weights.value_head_count
    return prompt_bytes(rows, keys, heads, weights.key_dim)


def prompt_scratch(rows: int, weights: DeltaWeights, memory: torch.Tensor) -> PromptScratch:
    """Scratch for ``rows`` rows in ``memory``, bytes that begin at a multiple of 16.

    Raises:
        KernelShapeError: the memory is too small.
    """
    if memory.dtype is not torch.uint8 or memory.numel() < prompt_scratch_bytes(rows, weights):
        raise KernelShapeError(f"{memory.numel():,} bytes of scratch for {rows} rows.")
    blocks = piece_blocks(rows)
    heads, room = weights.value_head_count, blocks * BLOCK_ROWS
    shapes = (
        ((2 * weights.key_head_count, room, weights.key_dim), torch.float16),
        ((GATES, heads, room), torch.float32),
        ((heads, blocks, 2, BLOCK_ROWS, BLOCK_ROWS), torch.float16),
    )
    views, at = [], 0
    for shape, dtype in shapes:
        size = math.prod(shape) * dtype.itemsize
        views.append(memory[at : at + size].view(dtype).view(shape))
        at += size
    return PromptScratch(*views)


def delta_prompt(
    mixed: torch.Tensor,
    gate: torch.Tensor,
    beta: torch.Tensor,
    alpha: torch.Tensor,
    weights: DeltaWeights,
    states: torch.Tensor,
    tails: torch.Tensor,
    slot: int,
    scratch: PromptScratch,
    out: torch.Tensor,
    configuration: PromptConfiguration = CONFIGURATION,
) -> None:
    """Move a lane's state and tail over rows of its prompt, and write ``norm(o) * silu(gate)``.

    The first row's absolute position is a multiple of 64. A prompt cut at other multiples of 64
    gives the same bits.

    Args:
        mixed: [rows, channels] float32 or bfloat16, the inputs of the convolution.
        gate: [rows, value_head * value_dim], as ``mixed``.
        beta, alpha: [rows, value_head], before sigmoid and softplus; rows of all may be strided.
        states: [slot, value_head, key_dim, value_dim] float32; slots and heads may be strided.
        tails: [slot, size - 1, channels] float32, the oldest input first.
        scratch: for as many rows or more.
        out: [rows, value_head * value_dim] bfloat16; rows may be strided. Holds other numbers on
            the way.

    Raises:
        KernelShapeError: a tensor does not fit.
    """
    check_inputs((mixed, gate, beta, alpha), weights)
    check_places(weights, states, tails)
    rows = mixed.shape[0]
    _check(rows, weights, states, slot, out)
    piece = scratch.blocks * BLOCK_ROWS
    for first in range(0, rows, piece):
        end = min(rows, first + piece)
        _convolve_and_solve(
            mixed, beta, alpha, weights, tails, slot, first, end, scratch, out, configuration
        )
        _advance(weights, states, slot, first, end, scratch, out, configuration)
        _finish(mixed, gate, weights, tails, slot, first, end, out, configuration)


def _convolve_and_solve(
    mixed: torch.Tensor,
    beta: torch.Tensor,
    alpha: torch.Tensor,
    weights: DeltaWeights,
    tails: torch.Tensor,
    slot: int,
    first: int,
    end: int,
    scratch: PromptScratch,
    out: torch.Tensor,
    configuration: PromptConfiguration,
) -> None:
    keys, heads = weights.key_head_count, weights.value_head_count
    count = -(-(end - first) // BLOCK_ROWS)
    convolve_heads[(2 * keys + heads, count * (BLOCK_ROWS // CONVOLVE_ROWS))](
        mixed, mixed.stride(0), beta, beta.stride(0), alpha, alpha.stride(0),
        weights.taps, weights.decay, weights.time_bias, weights.unit_eps,
        tails, tails.stride(0), slot, first, end, scratch.blocks,
        scratch.units, scratch.gates, out.view(torch.float16), out.stride(0),
        keys, heads, weights.key_dim, weights.value_dim, weights.size, CONVOLVE_ROWS,
        num_warps=configuration.convolve_warps,
    )  # fmt: skip
    solve_blocks[(heads, count)](
        scratch.units, scratch.gates, scratch.blocks, scratch.solved,
        keys, heads, weights.key_dim, weights.tiled, num_warps=configuration.solve_warps,
    )  # fmt: skip


def _advance(
    weights: DeltaWeights,
    states: torch.Tensor,
    slot: int,
    first: int,
    end: int,
    scratch: PromptScratch,
    out: torch.Tensor,
    configuration: PromptConfiguration,
) -> None:
    tile = min(configuration.tile, weights.value_dim)
    heads, count = weights.value_head_count, -(-(end - first) // BLOCK_ROWS)
    advance_blocks[(heads * (weights.value_dim // tile),)](
        scratch.units, scratch.gates, scratch.solved, out.view(torch.float16), out.stride(0),
        states, states.stride(0), states.stride(1), slot, first, end, scratch.blocks, count,
        weights.key_head_count, heads, weights.key_dim, weights.value_dim, weights.tiled,
        tile, configuration.stages, num_warps=configuration.advance_warps,
    )  # fmt: skip


def _finish(
    mixed: torch.Tensor,
    gate: torch.Tensor,
    weights: DeltaWeights,
    tails: torch.Tensor,
    slot: int,
    first: int,
    end: int,
    out: torch.Tensor,
    configuration: PromptConfiguration,
) -> None:
    heads = weights.value_head_count
    tiles = -(-(end - first) // FINISH_ROWS)
    # Pieces before the last shift no tail: its inputs are read until then.
    shifting = int(end == mixed.shape[0])
    finish_rows[(heads, tiles + shifting)](
        mixed, mixed.stride(0), gate, gate.stride(0), weights.norm, weights.norm_eps,
        tails, tails.stride(0), slot, first, end, tiles,
        out.view(torch.float16), out, out.stride(0),
        weights.key_head_count, heads, weights.key_dim, weights.value_dim, weights.size,
        FINISH_ROWS, _power_of_2(weights.size - 1), _power_of_2(-(-weights.channels // heads)),
        num_warps=configuration.finish_warps,
    )  # fmt: skip


def _power_of_2(least: int) -> int:
    """The lowest that is no less."""
    return 1 << (least - 1).bit_length()


def _check(
    rows: int, weights: DeltaWeights, states: torch.Tensor, slot: int, out: torch.Tensor
) -> None:
    if rows < 1 or not 0 <= slot < len(states):
        raise KernelShapeError(f"{rows} rows of slot {slot} of {len(states)}.")
    if out.shape != (rows, weights.columns) or out.stride(1) != 1:
        raise KernelShapeError(f"Room for {tuple(out.shape)}.")
    if out.dtype is not torch.bfloat16:
        raise KernelShapeError(f"Rows of a prompt are bfloat16, not {out.dtype}.")
