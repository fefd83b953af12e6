"""Cases of unpacking: every layout, first rows that are not 0, one row; no tolerance, bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.packed.layout import LAYOUTS, ScaleKind
from kernels.packed.weight import PackedWeight, Weight
from kernels.step_product.cases import DENSE, MLX, random_weight

EXTREMES: Final = (0, 1, 2, 250)
"""Exponents whose scales are no normal numbers, the first that is one, and one far above."""


@dataclass(frozen=True, slots=True)
class UnpackCase:
    """One weight.

    Attributes:
        packing: a name of ``LAYOUTS``, or of the MLX or dense packings of ``step_product``.
        rows: of the weight; of them ``taken`` are unpacked, from ``first`` on.
        interpreted: small enough for the interpreter.
    """

    packing: str
    rows: int
    columns: int
    first: int = 0
    taken: int = 1
    interpreted: bool = True


@dataclass(frozen=True, slots=True)
class UnpackInputs:
    """What ``build`` makes; ``ids`` are numbers of rows, the first and last out of range."""

    weight: Weight
    ids: torch.Tensor


CASES: Final = (
    *(UnpackCase(name, 5, 256, first=1, taken=3) for name in (*LAYOUTS, *MLX)),
    *(UnpackCase(name, 5, 96, first=2, taken=2) for name in DENSE),
    UnpackCase("q8_0", 1, 32),
    UnpackCase("q5_1", 7, 1_056, first=0, taken=7),
    *(UnpackCase(name, 515, 5_120, first=3, taken=511, interpreted=False) for name in LAYOUTS),
    *(UnpackCase(name, 515, 5_120, first=3, taken=511, interpreted=False) for name in MLX),
    UnpackCase("q6_k", 1_024, 17_408, taken=1_024, interpreted=False),
)


def build(case: UnpackCase, device: torch.device, generator: torch.Generator) -> UnpackInputs:
    """Inputs of a case, drawn on ``device``."""
    weight = random_weight(case.packing, case.rows, case.columns, device, generator)
    if isinstance(weight, PackedWeight) and weight.layout.scale is ScaleKind.E8M0:
        for place, exponent in enumerate(EXTREMES):
            weight.scales[case.first, place] = exponent
    ids = torch.tensor(
        [-3, 0, case.rows // 2, case.rows - 1, case.rows + 9], dtype=torch.int32, device=device
    )
    return UnpackInputs(weight, ids)
