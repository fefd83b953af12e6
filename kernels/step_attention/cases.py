"""Shapes that attention of generated rows is tested with, and how their inputs are made.

Positions stand at borders of units, pages and windows; head_dim 80 fills no tile; a query's rows
and a gate's are strided. What no row may see is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from kernels.pages import PAGE_SLOTS, Pages

TOLERANCE: Final = 2e-4
"""Of a row's largest result. Query and probabilities have 16 bits, and the scores' errors, up to
2 ** -17 of about 10, are those of the probabilities; the result is rounded to 16 bits."""


@dataclass(frozen=True, slots=True)
class Case:
    """One layer's geometry, and the position of each row, each of a lane of its own.

    Attributes:
        dtype: of the pages; uint8 for codes of e4m3fn.
        interpreted: small enough for Triton's interpreter.
    """

    heads: int
    kv_heads: int
    head_dim: int
    positions: tuple[int, ...]
    dtype: torch.dtype = torch.bfloat16
    window: int | None = None
    cap: float | None = None
    gated: bool = False
    interpreted: bool = True

    @property
    def scale(self) -> float:
        """What multiplies the scores."""
        return float(self.head_dim**-0.5)


CASES: Final = (
    Case(3, 1, 64, (0,)),
    Case(4, 2, 32, (63, 64, 300), window=1, gated=True),
    Case(2, 2, 80, (255, 256), torch.float16),
    Case(6, 1, 64, (300, 5), torch.uint8, window=70, gated=True),
    Case(16, 1, 32, (130,), torch.uint8, cap=2.0),
    Case(1, 1, 96, (1, 62), torch.float16, window=1000, cap=30.0),
    Case(24, 4, 256, (0, 63, 64, 255, 256, 300, 4095, 9000), gated=True, interpreted=False),
    Case(24, 4, 256, (40_000, 16_384), torch.uint8, gated=True, interpreted=False),
    Case(16, 4, 256, (5_001,) * 3 + (17,), torch.float16, interpreted=False),
    Case(16, 2, 256, tuple(range(0, 6400, 400)), interpreted=False),
    Case(8, 2, 512, (3_000, 100), window=1024, interpreted=False),
    Case(8, 1, 512, (3_000,), torch.uint8, cap=50.0, interpreted=False),
    Case(9, 3, 64, (777, 2_500, 0), interpreted=False),
    Case(4, 1, 256, (32_767,), window=512, interpreted=False),
    Case(32, 8, 128, (1_000, 999), torch.uint8, interpreted=False),
    Case(12, 4, 96, (700, 12), torch.uint8, window=300, interpreted=False),
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a case gives the kernel; ``tables`` [rows, most pages] and ``positions`` are int32."""

    query: torch.Tensor
    pages: Pages
    tables: torch.Tensor
    positions: torch.Tensor
    gate: torch.Tensor | None


def build(case: Case, device: torch.device, generator: torch.Generator) -> Inputs:
    """Inputs of a case; the generator, of the CPU, fixes them but for the page ids."""
    rows, columns = len(case.positions), case.heads * case.head_dim
    query = torch.randn(rows, case.heads, 2 * case.head_dim, generator=generator)
    gate = torch.randn(rows, columns + 8, generator=generator)
    lanes = []
    for position in case.positions:
        first = 0 if case.window is None else max(0, position - case.window + 1)
        shape = (2, case.kv_heads, position + 1 - first, case.head_dim)
        lanes.append((first, torch.randn(shape, generator=generator)))
    pages, tables = paged(lanes, case.dtype, device)
    return Inputs(
        query.to(device)[..., : case.head_dim],
        pages,
        tables,
        torch.tensor(case.positions, dtype=torch.int32, device=device),
        gate.to(device)[:, :columns] if case.gated else None,
    )


def paged(
    lanes: Sequence[tuple[int, torch.Tensor]], dtype: torch.dtype, device: torch.device
) -> tuple[Pages, torch.Tensor]:
    """Put lanes into pages of random ids; all else is NaN.

    Args:
        lanes: first position, and K and V [2, kv_head, positions, head_dim] from there on.

    Returns:
        The pages, and tables [lanes, most pages] int32 that hold -1 where a lane has no page.
    """
    spans = [range(first, first + both.shape[2]) for first, both in lanes]
    held = [range(span.start // PAGE_SLOTS, (span.stop - 1) // PAGE_SLOTS + 1) for span in spans]
    ids = torch.randperm(sum(map(len, held)) + 2).tolist()
    _, kv_heads, _, head_dim = lanes[0][1].shape
    values = torch.full((len(ids), 2, kv_heads, PAGE_SLOTS, head_dim), float("nan"))
    tables = torch.full((len(lanes), max(each.stop for each in held)), -1, dtype=torch.int32)
    for lane, ((first, both), span) in enumerate(zip(lanes, spans, strict=True)):
        for index in held[lane]:
            tables[lane, index] = page = ids.pop()
            start = max(span.start, index * PAGE_SLOTS)
            end = min(span.stop, (index + 1) * PAGE_SLOTS)
            own = both[:, :, start - first : end - first]
            base = index * PAGE_SLOTS
            values[page, :, :, start - base : end - base] = own
    return _stored(values, dtype, device), tables.to(device)


def _stored(values: torch.Tensor, dtype: torch.dtype, device: torch.device) -> Pages:
    if dtype is not torch.uint8:
        return Pages(values.to(device, dtype), None)
    scales = values.abs().amax(-1) / 448.0
    codes = (values / scales.unsqueeze(-1)).to(torch.float8_e4m3fn).view(torch.uint8)
    return Pages(codes.to(device), scales.to(device))
