"""Cases of the gated delta rule on rows of a prompt, and the tolerances that they meet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch

from kernels.delta_prompt.launch import prompt_scratch_bytes
from kernels.delta_step.cases import DeltaShape, delta_weights, joint_rows
from kernels.delta_step.launch import DeltaWeights

STATE_TOLERANCE: Final = 1e-3
"""Relative L2 of states: products read float16 (3e-4 of a number at most, some four in a row)."""
OUT_TOLERANCE: Final = 3e-4
"""Relative L2 of rows beyond what rounding them to bfloat16 costs, which is some 1.7e-3 and by far
the most: errors add up as squares do."""


@dataclass(frozen=True, slots=True)
class DeltaPromptCase:
    """One call.

    Attributes:
        alike: how much of each row is the same in all, from 0 to below 1: the more, the further are
            the blocks' triangular matrices from the unit matrix.
        shift: added to every alpha: large ones forget at once.
        interpreted: small enough for Triton's interpreter.
    """

    name: str
    shape: DeltaShape
    rows: int
    dtype: torch.dtype = torch.bfloat16
    alike: float = 0.0
    shift: float = 0.0
    interpreted: bool = True


_TINY = DeltaShape(1, 1, 16, 32)
CASES: Final = (
    DeltaPromptCase("one row", _TINY, 1),
    DeltaPromptCase("fewer rows than the tail has", DeltaShape(1, 1, 16, 32, 6), 2, torch.float32),
    DeltaPromptCase("a block and two rows", DeltaShape(2, 4, 16, 32), 66),
    DeltaPromptCase("tiled heads of three sizes", DeltaShape(2, 4, 32, 64, 2, True), 64),
    DeltaPromptCase("rows much alike", _TINY, 64, torch.float32, alike=0.99),
    DeltaPromptCase("all is kept", _TINY, 130, shift=-12.0),
    DeltaPromptCase("all is forgotten", _TINY, 64, shift=25.0),
    DeltaPromptCase("0.8B", DeltaShape(16, 16), 2048, interpreted=False),
    DeltaPromptCase("9B", DeltaShape(16, 32, tiled=True), 577, interpreted=False),
    DeltaPromptCase("27B", DeltaShape(16, 48), 1000, interpreted=False),
    DeltaPromptCase("27B alike", DeltaShape(16, 48), 512, alike=0.9, interpreted=False),
    DeltaPromptCase("27B kept", DeltaShape(16, 48), 1024, shift=-8.0, interpreted=False),
    DeltaPromptCase("two pieces", DeltaShape(16, 16), 8200, interpreted=False),
)


@dataclass(frozen=True, slots=True)
class DeltaPromptInputs:
    """The arguments of one call, all but ``out``; rows are views of a wider joint output."""

    mixed: torch.Tensor
    gate: torch.Tensor
    beta: torch.Tensor
    alpha: torch.Tensor
    weights: DeltaWeights
    states: torch.Tensor
    tails: torch.Tensor
    slot: int
    memory: torch.Tensor


def build(
    case: DeltaPromptCase, device: torch.device, generator: torch.Generator
) -> DeltaPromptInputs:
    """Random inputs; states and tails are a middle layer of an arena of three, scratch is NaN."""
    weights = delta_weights(case.shape, device, generator)
    heads, dims = weights.value_head_count, (weights.key_dim, weights.value_dim)
    states = torch.randn(3, 3, heads, *dims, generator=generator) / math.sqrt(dims[0])
    tails = torch.randn(3, 3, weights.size - 1, weights.channels, generator=generator)
    mixed, gate, beta, alpha = joint_rows(case.rows, weights, device, generator, case.dtype)
    mixed.mul_(1.0 - case.alike).add_(case.alike * mixed[:1].clone())
    alpha.add_(case.shift)
    size = prompt_scratch_bytes(case.rows, weights)
    return DeltaPromptInputs(
        mixed=mixed,
        gate=gate,
        beta=beta,
        alpha=alpha,
        weights=weights,
        states=states.to(device)[:, 1],
        tails=tails.to(device)[:, 1],
        slot=1,
        memory=torch.full((size,), 255, dtype=torch.uint8, device=device),
    )
