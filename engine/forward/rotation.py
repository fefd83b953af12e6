"""Rotary positions applied to rows of heads.

Angles are computed in float64 and rounded once, as cosine and sine, so that a position far into
the context turns as exactly as an early one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.models.spec import RopeSpec, RopeStyle


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and sines of consecutive positions under one rule; [rows, 1, pairs] float32."""

    style: RopeStyle
    cosine: torch.Tensor
    sine: torch.Tensor

    def apply(self, heads: torch.Tensor, out: torch.Tensor) -> None:
        """Turn ``heads`` into ``out``; both [rows, head, head_dim] float32, of any strides."""
        pairs = self.cosine.shape[-1]
        turned = 2 * pairs
        if self.style is RopeStyle.PAIRS:
            first, second = heads[..., 0:turned:2], heads[..., 1:turned:2]
            out_first, out_second = out[..., 0:turned:2], out[..., 1:turned:2]
        else:
            first, second = heads[..., :pairs], heads[..., pairs:turned]
            out_first, out_second = out[..., :pairs], out[..., pairs:turned]
        torch.mul(first, self.cosine, out=out_first).addcmul_(second, self.sine, value=-1)
        torch.mul(second, self.cosine, out=out_second).addcmul_(first, self.sine)
        if turned < heads.shape[-1]:
            out[..., turned:].copy_(heads[..., turned:])


def rotation(rule: RopeSpec, position: int, rows: int) -> Rotation:
    """The rotation of rows ``position .. position + rows``."""
    positions = torch.arange(position, position + rows, dtype=torch.float64)
    angles = torch.outer(positions, torch.tensor(rule.frequencies, dtype=torch.float64))
    return Rotation(
        style=rule.style,
        cosine=(angles.cos() * rule.magnitude).float().unsqueeze(1),
        sine=(angles.sin() * rule.magnitude).float().unsqueeze(1),
    )
