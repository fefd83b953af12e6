"""Shapes that gates are tested with, and how near they come to float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

TOLERANCE: Final = 1e-6
"""Of |gate * up|: e^x by a power of two whose argument is rounded to 2^-24 of itself, where the
share is not next to nothing; a sum, a division within two units, three products."""


@dataclass(frozen=True, slots=True)
class GatedCase:
    """One gated pair.

    Attributes:
        spread: columns between the gate and what it multiplies, which lie in one tensor.
        half: the inputs are bfloat16.
        interpreted: small enough for Triton's interpreter.
    """

    rows: int
    columns: int
    activation: str = "silu"
    spread: int = 0
    half: bool = False
    interpreted: bool = True


@dataclass(frozen=True, slots=True)
class GatedInputs:
    """Tensors of one case: views [rows, columns] of one tensor, and a gate of one column."""

    gate: torch.Tensor
    up: torch.Tensor
    x: torch.Tensor
    single: torch.Tensor


CASES: Final = (
    GatedCase(rows=1, columns=32),
    GatedCase(rows=3, columns=96, activation="gelu_tanh", spread=5),
    GatedCase(rows=2, columns=1_056, spread=32),
    GatedCase(rows=17, columns=544, activation="gelu_tanh", half=True),
    GatedCase(rows=16, columns=17_408, interpreted=False),
    GatedCase(rows=128, columns=512, interpreted=False),
    GatedCase(rows=77, columns=12_288, activation="gelu_tanh", half=True, interpreted=False),
)


def build(case: GatedCase, device: torch.device, generator: torch.Generator) -> GatedInputs:
    """Inputs of a case, the same numbers on every device; ``generator`` is of the CPU."""
    width = 2 * case.columns + case.spread + 1
    source = (torch.randn(case.rows, width, generator=generator) * 4.0).to(device)
    x = torch.randn(case.rows, case.columns, generator=generator).to(device)
    if case.half:
        source = source.bfloat16()
    return GatedInputs(
        gate=source[:, : case.columns],
        up=source[:, case.columns + case.spread : width - 1],
        x=x,
        single=source[:, width - 1 :],
    )
