"""What the norm of a residual means, in float64."""

from __future__ import annotations

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> torch.Tensor:
    """``x / sqrt(mean(x * x) + eps) * weight`` over the last dimension, in float64."""
    wide = x.double()
    normed = wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt()
    return normed if weight is None else normed * weight.double()


def residual_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    eps: float,
    *,
    added: torch.Tensor | None = None,
    added_weight: torch.Tensor | None = None,
    added_eps: float = 0.0,
    scale: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The residual as it leaves and its norm, both [rows, columns] float64.

    ``x += added``, through a norm of its own where it has a weight; ``x *= scale``.
    """
    total = x.double()
    if added is not None and added_weight is not None:
        total = total + rms_norm(added, added_weight, added_eps)
    elif added is not None:
        total = total + added.double()
    total = total * scale
    return total, rms_norm(total, weight, eps)
