"""Cases of the gated delta rule on generated rows, and the tolerances that they meet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch

from kernels.delta_step.launch import DeltaWeights

STATE_TOLERANCE: Final = 2e-6
"""Relative L2 of states: float32 with some hundred additions a number, and hardware's exp."""
OUT_TOLERANCE: Final = 6e-5
"""Relative L2 of rows: that of the state, and codes of 16 bits (at most 1.6e-5 of a block's
largest, which may be some three times the typical number)."""


@dataclass(frozen=True, slots=True)
class DeltaShape:
    """The geometry of a layer.

    Attributes:
        key_heads, value_heads: how many.
        key_dim, value_dim: elements of each.
        size: inputs that the convolution reads.
        tiled: the order of heads.
    """

    key_heads: int
    value_heads: int
    key_dim: int = 128
    value_dim: int = 128
    size: int = 4
    tiled: bool = False


@dataclass(frozen=True, slots=True)
class DeltaStepCase:
    """One call.

    Attributes:
        slots: of each row; negative for none.
        interpreted: small enough for Triton's interpreter.
    """

    name: str
    shape: DeltaShape
    slots: tuple[int, ...]
    interpreted: bool = True


CASES: Final = (
    DeltaStepCase("one row", DeltaShape(1, 1, 16, 32), (0,)),
    DeltaStepCase("three rows in grouped heads", DeltaShape(2, 4, 32, 64), (4, 0, 2)),
    DeltaStepCase(
        "tiled heads, one row without a slot", DeltaShape(2, 6, 16, 32, 4, True), (1, -1)
    ),
    DeltaStepCase("a kernel of two inputs", DeltaShape(1, 2, 16, 32, 2), (2, 1)),
    DeltaStepCase("0.8B", DeltaShape(16, 16), (3,), interpreted=False),
    DeltaStepCase("9B", DeltaShape(16, 32, tiled=True), (5, 1), interpreted=False),
    DeltaStepCase("27B", DeltaShape(16, 48), (7, 2, -1, 0, 9, 4, 1, 3), interpreted=False),
    DeltaStepCase("27B, 16 rows", DeltaShape(16, 48), tuple(range(15, -1, -1)), interpreted=False),
)


@dataclass(frozen=True, slots=True)
class DeltaStepInputs:
    """The arguments of one call, all but ``out``; rows are views of a wider joint output."""

    mixed: torch.Tensor
    gate: torch.Tensor
    beta: torch.Tensor
    alpha: torch.Tensor
    weights: DeltaWeights
    states: torch.Tensor
    tails: torch.Tensor
    slots: torch.Tensor
    scratch: torch.Tensor


def delta_weights(
    shape: DeltaShape, device: torch.device, generator: torch.Generator
) -> DeltaWeights:
    """Small tensors as trained ones are: decays from nearly nothing to nearly everything."""
    channels = 2 * shape.key_heads * shape.key_dim + shape.value_heads * shape.value_dim
    random = torch.rand(shape.value_heads, generator=generator)
    return DeltaWeights(
        taps=(torch.randn(shape.size, channels, generator=generator) * 0.5).to(device),
        decay=-(0.05 + 8.0 * random**3).to(device),
        time_bias=torch.randn(shape.value_heads, generator=generator).to(device),
        norm=(1.0 + 0.2 * torch.randn(shape.value_dim, generator=generator)).to(device),
        norm_eps=1e-6,
        unit_eps=1e-6,
        key_head_count=shape.key_heads,
        value_head_count=shape.value_heads,
        key_dim=shape.key_dim,
        value_dim=shape.value_dim,
        tiled=shape.tiled,
    )


def joint_rows(
    rows: int,
    weights: DeltaWeights,
    device: torch.device,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float32,
) -> tuple[torch.Tensor, ...]:
    """mixed, gate, beta and alpha as views of one matrix of random rows, 16 columns wider."""
    heads = weights.value_head_count
    widths = [weights.channels, weights.columns, heads, heads, 16]
    joint = torch.randn(rows, sum(widths), generator=generator)
    return torch.split(joint.to(device, dtype), widths, dim=1)[:4]


def build(case: DeltaStepCase, device: torch.device, generator: torch.Generator) -> DeltaStepInputs:
    """Random inputs; states and tails are a middle layer of an arena of three."""
    weights = delta_weights(case.shape, device, generator)
    heads, dims = weights.value_head_count, (weights.key_dim, weights.value_dim)
    slots = max(case.slots) + 2
    states = torch.randn(slots, 3, heads, *dims, generator=generator) / math.sqrt(dims[0])
    tails = torch.randn(slots, 3, weights.size - 1, weights.channels, generator=generator)
    rows = len(case.slots)
    mixed, gate, beta, alpha = joint_rows(rows, weights, device, generator)
    return DeltaStepInputs(
        mixed=mixed,
        gate=gate,
        beta=beta,
        alpha=alpha,
        weights=weights,
        states=states.to(device)[:, 1],
        tails=tails.to(device)[:, 1],
        slots=torch.tensor(case.slots, dtype=torch.int32, device=device),
        scratch=torch.full((rows, weights.channels), math.nan, device=device),
    )
