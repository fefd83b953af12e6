"""Cases of the products of generated rows: every layout, odd shapes, one expert or many.

A product is held against the float64 product of the same quantized rows, relative L2 a case. All
differences are float32 roundings of sums that the reference rounds nowhere: some 1e-7 each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.packed.layout import LAYOUTS, PackedLayout, ScaleKind, mlx_layout, packed_bytes
from kernels.packed.weight import DenseWeight, Weight, packed_views
from kernels.rows import QuantizedRows, quantized

TOLERANCE: Final = 2e-6

DENSE: Final = {
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f32": torch.float32,
}
MLX: Final = {
    "mlx4_32_f16": (4, 32, ScaleKind.F16),
    "mlx4_64_bf16": (4, 64, ScaleKind.BF16),
    "mlx8_64_bf16": (8, 64, ScaleKind.BF16),
    "mlx8_128_f32": (8, 128, ScaleKind.F32),
}


@dataclass(frozen=True, slots=True)
class StepProductCase:
    """One case.

    Attributes:
        packing: a name of ``LAYOUTS``, ``MLX`` or ``DENSE``.
        rows: of activations; weight_rows: of the weight, or of one expert.
        chosen: experts of a row; 0 where there are none. experts: in the stack.
        shared: a row's experts read the same activations.
        bias, add: as the launch's.
        gap: numbers between the rows of ``out``, which is then not contiguous.
        interpreted: small enough for the interpreter.
    """

    name: str
    packing: str
    rows: int
    weight_rows: int
    columns: int
    chosen: int = 0
    experts: int = 1
    shared: bool = True
    bias: bool = False
    add: bool = False
    gap: int = 0
    interpreted: bool = True


@dataclass(frozen=True, slots=True)
class StepProductInputs:
    """What ``build`` makes.

    Attributes:
        chosen: [rows, chosen] int32; None where there are no experts.
        before: what ``out`` holds at first, [rows, weight_rows], where it is added.
        bias: [weight_rows] bfloat16, or None.
    """

    x: QuantizedRows
    weight: Weight
    chosen: torch.Tensor | None
    before: torch.Tensor
    bias: torch.Tensor | None


def layout_of(packing: str) -> PackedLayout | None:
    """None for a dense weight."""
    if packing in MLX:
        return mlx_layout(*MLX[packing])
    return LAYOUTS.get(packing)


def random_weight(
    packing: str, rows: int, columns: int, device: torch.device, generator: torch.Generator
) -> Weight:
    """A weight of random codes with scales like a checkpoint's, its values about 0.02."""
    layout = layout_of(packing)
    if layout is None:
        values = torch.randn(rows, columns, generator=generator, device=device) * 0.02
        return DenseWeight(values.to(DENSE[packing]))
    buffer = torch.empty(packed_bytes(layout, rows, columns), dtype=torch.uint8, device=device)
    weight = packed_views(buffer, layout, rows, columns)
    for plane in (weight.low, weight.high):
        if plane is not None:
            plane.view(torch.uint8).random_(0, 256, generator=generator)
    _fill(weight.scales, weight.supers, layout.scale, 0.0008, generator)
    if weight.minima is not None and layout.minimum is not None:
        _fill(weight.minima, weight.super_minima, layout.minimum, 0.006, generator)
    return weight


def _fill(
    plane: torch.Tensor,
    supers: torch.Tensor | None,
    kind: ScaleKind,
    size: float,
    generator: torch.Generator,
) -> None:
    if kind is ScaleKind.E8M0:
        plane.random_(116, 121, generator=generator)
    elif supers is None:
        plane.copy_(_around(plane, size, generator))
    else:
        plane.random_(0 if kind is ScaleKind.SUPER_U8 else -31, 32, generator=generator)
        supers.copy_(_around(supers, size / 16, generator))


def _around(plane: torch.Tensor, size: float, generator: torch.Generator) -> torch.Tensor:
    spread = torch.rand(plane.shape, generator=generator, device=plane.device)
    return size * (0.5 + spread)


def build(
    case: StepProductCase, device: torch.device, generator: torch.Generator
) -> StepProductInputs:
    """Inputs of a case; the generator belongs to the device."""
    weight = random_weight(
        case.packing, case.experts * case.weight_rows, case.columns, device, generator
    )
    sets = case.rows if case.shared or not case.chosen else case.rows * case.chosen
    values = torch.randn(sets, case.columns, generator=generator, device=device)
    values[:, ::37] *= 30.0
    values[:, :32] = 0.0
    chosen = None
    if case.chosen:
        shape = (case.rows, case.chosen)
        chosen = torch.randint(0, case.experts, shape, generator=generator, device=device).int()
    shape = (case.rows, case.weight_rows)
    before = torch.randn(shape, generator=generator, device=device)
    bias = before[0].to(torch.bfloat16) if case.bias else None
    return StepProductInputs(quantized(values), weight, chosen, before, bias)


def _each_packing() -> list[StepProductCase]:
    found = []
    for place, packing in enumerate((*LAYOUTS, *MLX, *DENSE)):
        rows = 2 if packing in ("q4_k", "q6_k", "q8_0", "bf16") else 1
        found.append(StepProductCase(f"{packing}, odd rows", packing, rows, 5 + place % 3, 768))
    return found


CASES: Final = (
    *_each_packing(),
    StepProductCase("one row of one", "q8_0", 1, 1, 32),
    StepProductCase("one block", "iq4_nl", 2, 3, 32, bias=True),
    StepProductCase("bias, odd rows", "q4_k", 3, 9, 256, bias=True),
    StepProductCase("added to what is there", "q6_k", 1, 7, 1280, add=True),
    StepProductCase("bias and added, gaps", "q5_0", 2, 6, 160, bias=True, add=True, gap=3),
    StepProductCase("dense, bias and added, gaps", "bf16", 2, 6, 96, bias=True, add=True, gap=5),
    StepProductCase("K beyond one step", "q4_k", 1, 3, 4352),
    StepProductCase("experts", "q4_k", 2, 6, 256, chosen=3, experts=4),
    StepProductCase("experts, each its row", "q6_k", 2, 5, 256, chosen=2, experts=3, shared=False),
    StepProductCase("dense experts", "bf16", 3, 5, 64, chosen=2, experts=3),
    *(
        StepProductCase(f"{packing}, large", packing, 16, 4099, 5120, bias=True, interpreted=False)
        for packing in (*LAYOUTS, *MLX, *DENSE)
    ),
    StepProductCase("long K", "q4_k", 8, 5120, 17408, add=True, interpreted=False),
    StepProductCase("long K of bytes", "q8_0", 7, 48, 17408, interpreted=False),
    StepProductCase("wide", "q6_k", 5, 40001, 1024, interpreted=False),
    StepProductCase("tall dense", "f32", 11, 256, 2048, interpreted=False),
    StepProductCase(
        "experts, large", "q4_k", 8, 1024, 2048, chosen=8, experts=64, interpreted=False
    ),
    StepProductCase(
        "experts down, large", "q6_k", 4, 2048, 512, 8, 64, shared=False, interpreted=False
    ),
)
