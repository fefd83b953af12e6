"""Shapes that rows of logits are tested with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

TOLERANCE: Final = 6e-7
"""Of the capped logit: a division within two units, e^x within 2^-22 of arguments below 10 where it
counts, and five roundings."""


@dataclass(frozen=True, slots=True)
class DrawCase:
    """Rows of logits.

    Attributes:
        ties: logits are whole numbers, so that many are equal.
        spread: a row lies this much further apart than it is long.
        interpreted: small enough for Triton's interpreter.
    """

    rows: int
    vocabulary: int
    ties: bool = False
    spread: int = 0
    cap: float = 30.0
    interpreted: bool = True


CASES: Final = (
    DrawCase(rows=1, vocabulary=1),
    DrawCase(rows=2, vocabulary=777, spread=3),
    DrawCase(rows=2, vocabulary=20_001, ties=True, spread=1),
    DrawCase(rows=1, vocabulary=33_000),
    DrawCase(rows=1, vocabulary=151_936, interpreted=False),
    DrawCase(rows=16, vocabulary=248_320, interpreted=False),
    DrawCase(rows=4, vocabulary=262_144, spread=32, interpreted=False),
    DrawCase(rows=4, vocabulary=262_143, ties=True, interpreted=False),
)


def build(case: DrawCase, device: torch.device, generator: torch.Generator) -> torch.Tensor:
    """Logits of a case, the same numbers on every device; ``generator`` is of the CPU."""
    wide = torch.randn(case.rows, case.vocabulary + case.spread, generator=generator) * 8.0
    return (wide.round() if case.ties else wide).to(device)[:, : case.vocabulary]
