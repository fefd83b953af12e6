"""Products of activations and weights, behind one Protocol, and their float32 reference."""

from __future__ import annotations

from typing import Protocol

import torch

from engine.forward.weights import Weights
from engine.models.spec import Linear, ModelSpec


class Products(Protocol):
    """Whatever multiplies rows by a checkpoint's weights; used from the engine thread only."""

    def multiply(self, x: torch.Tensor, linear: Linear) -> torch.Tensor:
        """``x @ weight.T + bias``.

        Args:
            x: [rows, in] float32, contiguous. The same tensor object may be passed several times
                in a row (query, key, value); it is not changed between those calls.

        Returns:
            [rows, out] float32, contiguous. The caller may overwrite it and keeps it no longer
            than until the same ``linear`` is multiplied again.
        """

    def close(self) -> None:
        """Free the weights and scratch; may be repeated."""


class DequantizedProducts:
    """Every weight decoded to float32 once and kept: slow, large, and what others are judged by.

    Owns the decoded weights.
    """

    def __init__(self, spec: ModelSpec, weights: Weights) -> None:
        """Decode all weights of ``spec``; 4 bytes an element."""
        self._transposed = {
            linear.weight: weights.whole(linear.weight).t() for linear in linears(spec)
        }
        self._biases = {
            linear.bias: weights.whole(linear.bias) for linear in linears(spec) if linear.bias
        }

    def multiply(self, x: torch.Tensor, linear: Linear) -> torch.Tensor:
        """See ``Products.multiply``."""
        weight = self._transposed[linear.weight]
        if linear.bias is None:
            return torch.mm(x, weight)
        return torch.addmm(self._biases[linear.bias], x, weight)

    def close(self) -> None:
        """Free the weights; may be repeated."""
        self._transposed.clear()
        self._biases.clear()


def linears(spec: ModelSpec) -> tuple[Linear, ...]:
    """Every product of a model in the order of computation, the head last."""
    found: list[Linear] = []
    for layer in spec.layers:
        attention, feed_forward = layer.attention, layer.feed_forward
        found += [attention.query, attention.key, attention.value, attention.output]
        found += [feed_forward.gate, feed_forward.up, feed_forward.down]
    return (*found, Linear(spec.head))
