"""The gated delta rule and its convolution, in float32: one row, or a block of rows at once.

Both forms compute, a value head at a time, with a state S of [key_dim, value_dim]:

    S = S * exp(g);  S = S + k (b * (v - k.S))';  o = q.S

A block (the WY form, arXiv 2412.06464) solves one unit lower triangular system instead of going
row by row. With G = cumulative g of the block's rows and D_ij = exp(G_i - G_j) for i >= j, else 0:

    (I + strictly lower(b K K' * D)) V' = b (V - exp(G) K S)
    O = exp(G) Q S + (Q K' * D) V'
    S = exp(G_last) S + (exp(G_last - G) K)' V'

Differences of G are taken in float64: a large |G| would cost D its accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional

BLOCK_ROWS = 64
"""Rows of a block, which begins at a multiple of this in absolute positions."""


@dataclass(frozen=True, slots=True)
class DeltaInputs:
    """What the rule reads of consecutive rows, each key head repeated for the values it serves.

    Attributes:
        query, key: [value_head, rows, key_dim], of length 1 (query times key_dim ** -0.5).
        value: [value_head, rows, value_dim].
        decay: [value_head, rows], the log of what is kept of the state, 0 or less.
        beta: [value_head, rows].
    """

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    decay: torch.Tensor
    beta: torch.Tensor

    def cut(self, first: int, end: int) -> DeltaInputs:
        """Rows ``[first, end)``."""
        parts = (self.query, self.key, self.value, self.decay, self.beta)
        return DeltaInputs(*(part[:, first:end] for part in parts))


def convolved(tail: torch.Tensor, mixed: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """Causal depthwise convolution and SiLU; moves ``tail`` on to the newest inputs.

    Args:
        tail: [size - 1, channels], the inputs before the first row, the oldest first; overwritten.
        mixed: [rows, channels], the inputs.
        kernel: [size, channels], the newest input last.

    Returns:
        [rows, channels], newly allocated.
    """
    rows, size = len(mixed), len(kernel)
    inputs = torch.cat([tail, mixed])
    found = inputs[:rows] * kernel[0]
    for lag in range(1, size):
        found.addcmul_(inputs[lag : lag + rows], kernel[lag])
    tail.copy_(inputs[rows:])
    return functional.silu(found, inplace=True)


def unit_length(x: torch.Tensor, eps: float) -> torch.Tensor:
    """``x / sqrt(sum(x*x) + eps)`` over the last dimension."""
    return x * (x.square().sum(-1, keepdim=True) + eps).rsqrt_()


def prompt_rule(state: torch.Tensor, inputs: DeltaInputs, position: int) -> torch.Tensor:
    """Rows of a prompt in blocks; the state moves on in place.

    A block's numbers follow from its own inputs and the state before it, so cutting the rows at
    other multiples of ``BLOCK_ROWS`` changes no bit.

    Args:
        state: [value_head, key_dim, value_dim].
        position: absolute, of the first row.

    Returns:
        [value_head, rows, value_dim].
    """
    out = torch.empty_like(inputs.value)
    first, rows = 0, inputs.value.shape[1]
    while first < rows:
        end = min(rows, first + BLOCK_ROWS - (position + first) % BLOCK_ROWS)
        out[:, first:end] = _block(state, inputs.cut(first, end))
        first = end
    return out


def step_rule(state: torch.Tensor, inputs: DeltaInputs) -> torch.Tensor:
    """One generated row: [value_head, 1, value_dim]; the state moves on in place."""
    state.mul_(inputs.decay.exp().unsqueeze(2))
    change = inputs.beta.unsqueeze(2) * (inputs.value - torch.bmm(inputs.key, state))
    state.baddbmm_(inputs.key.transpose(1, 2), change)
    return torch.bmm(inputs.query, state)


def _block(state: torch.Tensor, rows: DeltaInputs) -> torch.Tensor:
    total = rows.decay.double().cumsum(1)
    later = torch.ones(total.shape[1], total.shape[1], dtype=torch.bool).triu_(1)
    apart = (total.unsqueeze(2) - total.unsqueeze(1)).masked_fill_(later, -math.inf)
    decay = apart.float().exp_()
    kept = total.float().exp_().unsqueeze(2)
    ahead = (total[:, -1:] - total).float().exp_().unsqueeze(2)
    beta, keys = rows.beta.unsqueeze(2), rows.key.transpose(1, 2)
    system = torch.bmm(rows.key, keys).mul_(decay).mul_(beta)
    fresh = torch.bmm(rows.key, state).mul_(kept).neg_().add_(rows.value).mul_(beta)
    change = torch.linalg.solve_triangular(system, fresh, upper=False, unitriangular=True)
    out = torch.bmm(rows.query, state).mul_(kept)
    out.baddbmm_(torch.bmm(rows.query, keys).mul_(decay), change)
    state.mul_(kept[:, -1:]).baddbmm_((rows.key * ahead).transpose(1, 2), change)
    return out
