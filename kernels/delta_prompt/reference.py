"""What rows of a prompt mean in a gated delta rule layer: one row after the other, in float64."""

from __future__ import annotations

import torch

from kernels.delta_step.launch import DeltaWeights
from kernels.delta_step.reference import Lane, advance_row, gated_norm


def advance_rows(
    lane: Lane, inputs: tuple[torch.Tensor, ...], weights: DeltaWeights
) -> torch.Tensor:
    """Move the lane over the rows: [rows, value_head * value_dim] float64, gated and normed.

    Args:
        inputs: mixed, gate, beta and alpha, as ``delta_prompt`` takes them.
    """
    rows = []
    for mixed, gate, beta, alpha in zip(*inputs, strict=True):
        read = advance_row(lane, mixed, beta, alpha, weights)
        rows.append(gated_norm(read, gate, weights))
    return torch.stack(rows)
