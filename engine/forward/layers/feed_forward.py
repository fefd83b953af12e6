"""Feed-forwards: one gated pair of products, or the likeliest few of many."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from engine.forward.layers.norms import Norms
from engine.forward.products import Products
from engine.forward.weights import Weights
from engine.models.spec import (
    Activation,
    Branch,
    ExpertsSpec,
    FeedForwardSpec,
    LayerSpec,
    ModelSpec,
)


class FeedForwards:
    """Computes the second half of layers; used from the engine thread only.

    Owns the experts' scales. An expert multiplies all rows that chose it at once, so a row's bits
    follow from the chunk it came in, which the prompt's grid fixes.
    """

    def __init__(self, spec: ModelSpec, weights: Weights, norms: Norms, products: Products) -> None:
        self._norms = norms
        self._products = products
        names = {
            branch.body.scales
            for layer in spec.layers
            for branch in layer.branches
            if isinstance(branch.body, ExpertsSpec) and branch.body.scales is not None
        }
        self._scales = {name: weights.vector(name) for name in names}

    def branches(self, x: torch.Tensor, layer: LayerSpec) -> torch.Tensor:
        """The sum of a layer's branches, each of the residual ``x``; ``x`` is only read."""
        total, normed, before = None, x, None
        for branch in layer.branches:
            if branch.norm != before:
                normed, before = self._norms.apply(x, branch.norm), branch.norm
            fed = self._branch(x, normed, branch)
            total = fed if total is None else total.add_(fed)
        assert total is not None
        return total

    def _branch(self, x: torch.Tensor, normed: torch.Tensor, branch: Branch) -> torch.Tensor:
        match branch.body:
            case FeedForwardSpec() as body:
                fed = self._feed_forward(normed, body)
            case ExpertsSpec() as body:
                fed = self._experts(x, normed, body)
        if branch.gate is not None:
            fed.mul_(self._products.multiply(normed, branch.gate).sigmoid_())
        return self._norms.after(fed, branch.post_norm)

    def _feed_forward(self, normed: torch.Tensor, spec: FeedForwardSpec) -> torch.Tensor:
        gate = activated(self._products.multiply(normed, spec.gate), spec.activation)
        gate.mul_(self._products.multiply(normed, spec.up))
        return self._products.multiply(gate, spec.down)

    def _experts(self, x: torch.Tensor, normed: torch.Tensor, spec: ExpertsSpec) -> torch.Tensor:
        weights, chosen = self._routed(x, normed, spec)
        entries = chosen.flatten().sort(stable=True).indices
        counts = torch.bincount(chosen.flatten(), minlength=len(spec.experts)).tolist()
        rows, weights = entries // spec.active_count, weights.flatten()[entries].unsqueeze(1)
        out, first = torch.zeros_like(normed), 0
        for expert, count in zip(spec.experts, counts, strict=True):
            if count == 0:
                continue
            part = slice(first, first + count)
            fed = self._feed_forward(normed[rows[part]], expert)
            out.index_add_(0, rows[part], fed.mul_(weights[part]))
            first += count
        return out

    def _routed(
        self, x: torch.Tensor, normed: torch.Tensor, spec: ExpertsSpec
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights and experts, both [rows, active_count]."""
        read = normed if spec.router_norm is None else self._norms.apply(x, spec.router_norm)
        if spec.router_scale != 1.0:
            read = read * spec.router_scale
        likely = self._products.multiply(read, spec.router).softmax(-1)
        # A stable sort leaves the lower index first among equals; topk promises nothing there.
        ordered = torch.sort(likely, stable=True, dim=-1, descending=True)
        chosen = ordered.indices[:, : spec.active_count]
        weights = ordered.values[:, : spec.active_count]
        weights = weights / weights.sum(-1, keepdim=True)
        if spec.scales is not None:
            weights = weights * self._scales[spec.scales][chosen]
        return weights, chosen


def activated(x: torch.Tensor, activation: Activation) -> torch.Tensor:
    """The activation of ``x``, which may be overwritten."""
    match activation:
        case Activation.SILU:
            return functional.silu(x, inplace=True)
        case Activation.GELU_TANH:
            return _gelu_tanh(x)


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """``x / 2 * (1 + tanh(z))`` as ``x * sigmoid(2 z)``, z = sqrt(2 / pi) * (x + 0.044715 x^3).

    The same function; torch's own takes three times as long on a CPU.
    """
    slope = 2.0 * (2.0 / math.pi) ** 0.5
    turn = (x * x).mul_(0.044715 * slope).add_(slope)
    return turn.mul_(x).sigmoid_().mul_(x)
