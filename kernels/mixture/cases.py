"""Shapes that mixtures are tested with, and how near they come to float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

TOLERANCE: Final = 2e-6
"""Of the row's largest value: e^x within 2^-22 for the arguments here, which count twice (a share
of a sum, and of a sum of shares), and 16 roundings of a sum at most."""


@dataclass(frozen=True, slots=True)
class MixtureCase:
    """One layer's rows.

    Attributes:
        ties: logits are whole numbers, so that many experts are equally likely.
        spread: a row of logits lies this much further apart than it is long.
        half: parts are bfloat16.
        interpreted: small enough for Triton's interpreter.
    """

    rows: int
    experts: int
    active: int
    columns: int
    scaled: bool = False
    ties: bool = False
    spread: int = 0
    half: bool = False
    interpreted: bool = True


@dataclass(frozen=True, slots=True)
class MixtureInputs:
    """Tensors of one case."""

    logits: torch.Tensor
    scales: torch.Tensor | None
    parts: torch.Tensor
    x: torch.Tensor


CASES: Final = (
    MixtureCase(rows=1, experts=1, active=1, columns=1),
    MixtureCase(rows=3, experts=8, active=2, columns=37, spread=3),
    MixtureCase(rows=3, experts=28, active=4, columns=96, scaled=True, half=True),
    MixtureCase(rows=4, experts=40, active=16, columns=64, ties=True),
    MixtureCase(rows=2, experts=512, active=16, columns=32, interpreted=False),
    MixtureCase(rows=16, experts=256, active=8, columns=2_048, interpreted=False),
    MixtureCase(rows=2_049, experts=128, active=8, columns=512, ties=True, half=True,
                interpreted=False),
    MixtureCase(rows=4_096, experts=512, active=10, columns=256, half=True, interpreted=False),
)  # fmt: skip


def build(case: MixtureCase, device: torch.device, generator: torch.Generator) -> MixtureInputs:
    """Inputs of a case, the same numbers on every device; ``generator`` is of the CPU."""
    logits = torch.randn(case.rows, case.experts + case.spread, generator=generator) * 2.0
    if case.ties:
        logits = logits.round()
    parts = torch.randn(case.rows, case.active, case.columns, generator=generator).to(device)
    scales = torch.rand(case.experts, generator=generator).add(0.5).to(device)
    return MixtureInputs(
        logits=logits.to(device)[:, : case.experts],
        scales=scales if case.scaled else None,
        parts=parts.bfloat16() if case.half else parts,
        x=torch.randn(case.rows, case.columns, generator=generator).to(device),
    )
