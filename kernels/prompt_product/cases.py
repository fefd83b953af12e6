"""Cases of products of prompt rows: odd counts, one row, K that fills no step, strided views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

TOLERANCES: Final = {
    (torch.bfloat16, torch.bfloat16): 5e-3,
    (torch.bfloat16, torch.float32): 2e-5,
    (torch.float32, torch.float32): 2e-6,
}
"""By dtypes of inputs and output, relative L2 of a row: half a unit of bfloat16 is 2^-9; matrix
instructions cut sums of products where float32 would round, so K of some thousands costs 1e-5; with
float32 each product is three of tf32, which leave 2^-22 of it out."""


@dataclass(frozen=True, slots=True)
class PromptProductCase:
    """One product.

    Attributes:
        gap: numbers between the rows of x and of out, which are then not contiguous.
        wide: the output is float32; exact: so are the inputs.
        interpreted: small enough for the interpreter.
    """

    rows: int
    outputs: int
    columns: int
    gap: int = 0
    wide: bool = False
    exact: bool = False
    bias: bool = False
    add: bool = False
    interpreted: bool = True


@dataclass(frozen=True, slots=True)
class PromptProductInputs:
    """Tensors of one case; ``before`` is what ``out`` holds at first where the product is added."""

    x: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor | None
    before: torch.Tensor

    @property
    def dtype(self) -> torch.dtype:
        """Of the inputs."""
        return self.x.dtype


CASES: Final = (
    PromptProductCase(1, 1, 32),
    PromptProductCase(1, 33, 96, wide=True, add=True),
    PromptProductCase(37, 31, 160, gap=8, bias=True),
    PromptProductCase(33, 65, 64, gap=8, wide=True, add=True, bias=True),
    PromptProductCase(35, 5, 96, wide=True, exact=True, bias=True),
    PromptProductCase(1_000, 1_001, 2_080, gap=16, bias=True, interpreted=False),
    PromptProductCase(1_000, 256, 2_048, wide=True, exact=True, interpreted=False),
    PromptProductCase(1_000, 5_120, 6_144, wide=True, add=True, interpreted=False),
    PromptProductCase(4_096, 2_560, 17_408, gap=8, interpreted=False),
)


def build(
    case: PromptProductCase, device: torch.device, generator: torch.Generator
) -> PromptProductInputs:
    """Inputs of a case, drawn on ``device``; what lies in the gaps is NaN."""
    dtype = torch.float32 if case.exact else torch.bfloat16
    shape = (case.rows, case.columns + case.gap)
    x = torch.randn(shape, generator=generator, device=device).to(dtype)
    x[:, case.columns :] = torch.nan
    weight = torch.randn(case.outputs, case.columns, generator=generator, device=device) * 0.02
    bias = torch.randn(case.outputs, generator=generator, device=device).bfloat16()
    before = torch.randn(case.rows, case.outputs, generator=generator, device=device)
    return PromptProductInputs(
        x[:, : case.columns], weight.to(dtype), bias if case.bias else None, before
    )
