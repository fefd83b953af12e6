"""Cases of experts' products: experts without pairs, odd counts, a single pair, strided views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

TOLERANCE: Final = 5e-3
"""Relative L2 of a row: the output is bfloat16, half a unit of which is 2^-9."""


@dataclass(frozen=True, slots=True)
class ExpertPromptCase:
    """Rows of which each has ``active`` experts.

    Attributes:
        shared: the experts of a row read the same one; else each pair has a row of its own.
        skewed: half of the pairs go to one expert, and some experts get none.
        gap: numbers between the rows of x and of out.
        interpreted: small enough for the interpreter.
    """

    rows: int
    active: int
    experts: int
    outputs: int
    columns: int
    shared: bool = True
    skewed: bool = False
    gap: int = 0
    interpreted: bool = True


@dataclass(frozen=True, slots=True)
class ExpertPromptInputs:
    """Tensors of one case.

    Attributes:
        experts: [pairs], the expert of each pair.
        order, starts: as the launch takes them.
    """

    x: torch.Tensor
    weight: torch.Tensor
    experts: torch.Tensor
    order: torch.Tensor
    starts: torch.Tensor


CASES: Final = (
    ExpertPromptCase(1, 1, 1, 1, 32),
    ExpertPromptCase(1, 2, 5, 33, 96, shared=False),
    ExpertPromptCase(23, 3, 5, 40, 96, skewed=True, gap=8),
    ExpertPromptCase(40, 2, 3, 33, 64, shared=False),
    ExpertPromptCase(301, 8, 64, 512, 2_048, gap=8, skewed=True, interpreted=False),
    ExpertPromptCase(4_096, 8, 256, 512, 2_048, interpreted=False),
    ExpertPromptCase(513, 8, 256, 2_048, 512, shared=False, interpreted=False),
)


def build(
    case: ExpertPromptCase, device: torch.device, generator: torch.Generator
) -> ExpertPromptInputs:
    """Inputs of a case, drawn on ``device``; what lies in the gaps is NaN."""
    pairs = case.rows * case.active
    rows = case.rows if case.shared else pairs
    x = torch.randn(rows, case.columns + case.gap, generator=generator, device=device)
    x[:, case.columns :] = torch.nan
    shape = (case.experts, case.outputs, case.columns)
    weight = torch.randn(shape, generator=generator, device=device).bfloat16() * 0.02
    experts = torch.randint(0, case.experts, (pairs,), generator=generator, device=device)
    if case.skewed:
        experts = torch.where(experts < case.experts // 2, case.experts - 1, experts)
    starts = (experts[:, None] < torch.arange(case.experts + 1, device=device)).sum(0).int()
    order = torch.argsort(experts, stable=True).int()
    return ExpertPromptInputs(x.bfloat16()[:, : case.columns], weight, experts, order, starts)
