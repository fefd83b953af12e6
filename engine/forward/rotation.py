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
    """The turns of consecutive positions under one rule.

    Attributes:
        turns: [rows, 1, 1, pairs] complex64: cosine + i sine.
        cosine, sine: its parts.
    """

    style: RopeStyle
    turns: torch.Tensor
    cosine: torch.Tensor
    sine: torch.Tensor

    def apply(self, heads: torch.Tensor, out: torch.Tensor) -> None:
        """Turn ``heads`` into ``out``.

        Both are [rows, kv_head, head, head_dim] float32 with the last dimension dense and every
        other stride even.
        """
        pairs = self.turns.shape[-1]
        if self.style is RopeStyle.PAIRS:
            torch.mul(_complex(heads, pairs), self.turns, out=_complex(out, pairs))
        else:
            first, second = heads[..., :pairs], heads[..., pairs : 2 * pairs]
            out_first, out_second = out[..., :pairs], out[..., pairs : 2 * pairs]
            torch.mul(first, self.cosine, out=out_first).addcmul_(second, self.sine, value=-1)
            torch.mul(second, self.cosine, out=out_second).addcmul_(first, self.sine)
        if 2 * pairs < heads.shape[-1]:
            out[..., 2 * pairs :].copy_(heads[..., 2 * pairs :])


def rotation(rule: RopeSpec, rows: range) -> Rotation:
    """The rotation of rows at the given absolute positions."""
    positions = torch.arange(rows.start, rows.stop, dtype=torch.float64)
    angles = torch.outer(positions, torch.tensor(rule.frequencies, dtype=torch.float64))
    cosine = (angles.cos() * rule.magnitude).float()[:, None, None]
    sine = (angles.sin() * rule.magnitude).float()[:, None, None]
    return Rotation(rule.style, torch.complex(cosine, sine), cosine, sine)


def _complex(heads: torch.Tensor, pairs: int) -> torch.Tensor:
    return torch.view_as_complex(heads[..., : 2 * pairs].view(*heads.shape[:-1], pairs, 2))
