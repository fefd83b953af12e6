"""Inputs for each layer, made of a token's id and its embedding, and how a layer takes them in."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.forward.layers.feed_forward import activated
from engine.forward.layers.norms import Norms
from engine.forward.products import Products
from engine.forward.weights import Weights
from engine.models.spec import PerLayerInputs, PerLayerSpec


class PerLayer:
    """Makes and applies per-layer inputs; used from the engine thread only, owns nothing."""

    def __init__(self, weights: Weights, norms: Norms, products: Products) -> None:
        self._weights = weights
        self._norms = norms
        self._products = products

    def inputs(
        self, spec: PerLayerInputs, ids: Sequence[int], embedded: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """[rows, width] for each layer; ``embedded`` is the scaled embedding."""
        rows = len(ids)
        projected = self._products.multiply(embedded, spec.projection).mul_(spec.projection_scale)
        found = self._norms.apply(projected.view(rows, -1, spec.width), spec.norm)
        stored = self._weights.rows(spec.embedding, ids).view(found.shape)
        found.add_(stored, alpha=spec.embedding_scale).mul_(spec.scale)
        return found.unbind(1)

    def taken_in(
        self, x: torch.Tensor, layer_input: torch.Tensor, spec: PerLayerSpec
    ) -> torch.Tensor:
        """What the residual ``x`` gains: [rows, hidden]."""
        gate = activated(self._products.multiply(x, spec.gate), spec.activation)
        fed = self._products.multiply(gate.mul_(layer_input), spec.project)
        return self._norms.apply(fed, spec.norm)
