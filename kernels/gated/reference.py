"""What gating means, in float64."""

from __future__ import annotations

import math

import torch


def activated(gate: torch.Tensor, activation: str) -> torch.Tensor:
    """``silu`` or ``gelu_tanh`` of a gate, in float64."""
    wide = gate.double()
    if activation == "silu":
        return wide * wide.sigmoid()
    inner = math.sqrt(2.0 / math.pi) * (wide + 0.044715 * wide**3)
    return 0.5 * wide * (1.0 + inner.tanh())


def gated(gate: torch.Tensor, up: torch.Tensor, activation: str) -> torch.Tensor:
    """``activation(gate) * up``."""
    return activated(gate, activation) * up.double()


def added(x: torch.Tensor, value: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """``x + value * sigmoid(gate)`` with one gate a row, [rows, 1]."""
    return x.double() + value.double() * gate.double().sigmoid()
