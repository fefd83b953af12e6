"""What one row of a gated delta rule layer means, in float64; arithmetic that is plain and slow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional

from kernels.delta_step.launch import DeltaWeights


@dataclass(frozen=True, slots=True)
class Lane:
    """What a lane keeps of one layer, float64; rows move it in place.

    Attributes:
        state: [value_head, key_dim, value_dim].
        tail: [size - 1, channels], the oldest input first.
    """

    state: torch.Tensor
    tail: torch.Tensor


def advance_row(
    lane: Lane,
    mixed: torch.Tensor,
    beta: torch.Tensor,
    alpha: torch.Tensor,
    weights: DeltaWeights,
) -> torch.Tensor:
    """Move the lane over one row: [value_head, value_dim] float64, what the query reads."""
    inputs = torch.cat([lane.tail, mixed.double()[None]])
    query, key, value = _heads(functional.silu((inputs * weights.taps.double()).sum(0)), weights)
    lane.tail.copy_(inputs[1:])
    steps = functional.softplus(alpha.double() + weights.time_bias.double(), threshold=60)
    lane.state.mul_((weights.decay.double() * steps).exp()[:, None, None])
    change = value - torch.einsum("hk,hkv->hv", key, lane.state)
    lane.state.add_(torch.einsum("hk,hv->hkv", key, beta.double().sigmoid()[:, None] * change))
    return torch.einsum("hk,hkv->hv", query, lane.state) / math.sqrt(weights.key_dim)


def gated_norm(read: torch.Tensor, gate: torch.Tensor, weights: DeltaWeights) -> torch.Tensor:
    """What the output product takes in of one row: [value_head * value_dim] float64."""
    length = (read.square().mean(-1, keepdim=True) + weights.norm_eps).rsqrt()
    normed = read * length * weights.norm.double()
    return normed.flatten() * functional.silu(gate.double())


def _heads(
    mixed: torch.Tensor, weights: DeltaWeights
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Query, key and value of each value head."""
    keys, values = weights.key_head_count, weights.value_head_count
    width = keys * weights.key_dim
    query, key, value = torch.split(mixed, [width, width, weights.columns])
    heads = torch.arange(values, device=mixed.device)
    serving = heads % keys if weights.tiled else heads // (values // keys)
    unit = [_unit(part.view(keys, -1), weights.unit_eps)[serving] for part in (query, key)]
    return unit[0], unit[1], value.view(values, -1)


def _unit(x: torch.Tensor, eps: float) -> torch.Tensor:
    return x * (x.square().sum(-1, keepdim=True) + eps).rsqrt()
