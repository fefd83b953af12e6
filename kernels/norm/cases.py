"""Shapes that residual and norm are tested with, and how near they come to float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

TOLERANCE: Final = 1e-6
"""Of the row's largest value: a tree of float32 sums whose depth is 16 at most (16 halves of 2^-23
of a mean, halved by the root), a root, a division, and four roundings of the element itself."""

BF16_TOLERANCE: Final = 2.0**-8
"""Of the row's largest value: half a step of bfloat16, and the float32 error beneath it."""


@dataclass(frozen=True, slots=True)
class NormCase:
    """One residual.

    Attributes:
        added: "none", "plain", or "normed": what becomes part of the residual first.
        half: what is added is bfloat16.
        spread: rows of the inputs lie this much further apart than they are long.
        interpreted: small enough for Triton's interpreter.
    """

    rows: int
    columns: int
    added: str = "none"
    weighted: bool = True
    scale: float = 1.0
    half: bool = False
    spread: int = 0
    interpreted: bool = True


@dataclass(frozen=True, slots=True)
class NormInputs:
    """Tensors of one case."""

    x: torch.Tensor
    weight: torch.Tensor | None
    added: torch.Tensor | None
    added_weight: torch.Tensor | None


CASES: Final = (
    NormCase(rows=1, columns=32),
    NormCase(rows=3, columns=96, added="plain", spread=7),
    NormCase(rows=5, columns=1_056, added="normed", scale=0.7, weighted=False),
    NormCase(rows=2, columns=2_560, added="plain", half=True),
    NormCase(rows=16, columns=640, added="normed", scale=1.5, spread=64),
    NormCase(rows=3, columns=1_312, spread=4),
    NormCase(rows=16, columns=5_120, added="plain", interpreted=False),
    NormCase(rows=16, columns=5_120, interpreted=False),
    NormCase(rows=7, columns=4_096, interpreted=False),
    NormCase(rows=4, columns=5_376, added="normed", interpreted=False),
    NormCase(rows=333, columns=4_096, added="plain", half=True, interpreted=False),
)


def build(case: NormCase, device: torch.device, generator: torch.Generator) -> NormInputs:
    """Inputs of a case, the same numbers on every device; ``generator`` is of the CPU."""

    def rows(size: float) -> torch.Tensor:
        wide = torch.randn(case.rows, case.columns + case.spread, generator=generator) * size
        return wide.to(device)[:, : case.columns]

    def vector() -> torch.Tensor:
        return torch.rand(case.columns, generator=generator).add(0.5).to(device)

    added = None if case.added == "none" else rows(3.0)
    return NormInputs(
        x=rows(10.0),
        weight=vector() if case.weighted else None,
        added=added.bfloat16() if added is not None and case.half else added,
        added_weight=vector() if case.added == "normed" else None,
    )
