"""Every RMS norm of a model, its weight decoded once."""

from __future__ import annotations

import torch
from torch.nn import functional

from engine.forward.weights import Weights
from engine.models.spec import AttentionSpec, DeltaSpec, ExpertsSpec, LayerSpec, ModelSpec, Norm


class Norms:
    """Owns the norm weights of one model, float32, offsets added."""

    def __init__(self, spec: ModelSpec, weights: Weights) -> None:
        self._weights = {
            norm: None if norm.weight is None else weights.norm(norm) for norm in _norms(spec)
        }

    def apply(self, x: torch.Tensor, norm: Norm) -> torch.Tensor:
        """``norm`` over the last dimension of ``x``, newly allocated."""
        return functional.rms_norm(x, x.shape[-1:], self._weights[norm], norm.eps)

    def after(self, x: torch.Tensor, norm: Norm | None) -> torch.Tensor:
        """``x`` through a norm that a layer need not have."""
        return x if norm is None else self.apply(x, norm)


def _norms(spec: ModelSpec) -> set[Norm]:
    found: list[Norm | None] = [spec.final_norm]
    found += [] if spec.per_layer is None else [spec.per_layer.norm]
    for layer in spec.layers:
        found += _of_layer(layer)
    return {norm for norm in found if norm is not None}


def _of_layer(layer: LayerSpec) -> list[Norm | None]:
    found = [layer.mixer_norm, layer.mixer_post_norm, layer.branches_post_norm]
    match layer.mixer:
        case AttentionSpec(query_norm=query, key_norm=key, value_norm=value):
            found += [query, key, value]
        case DeltaSpec(norm=norm):
            found.append(norm)
    for branch in layer.branches:
        found += [branch.norm, branch.post_norm]
        if isinstance(branch.body, ExpertsSpec):
            found.append(branch.body.router_norm)
    found += [] if layer.per_layer is None else [layer.per_layer.norm]
    return found
