"""Shapes that attention of a prompt chunk is tested with, and how their inputs are made.

Chunks begin and end beside the borders of tiles, pages and windows; head_dim 80 fills no tile; a
query's and a gate's rows are strided. What no row may see is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.pages import Pages
from kernels.step_attention.cases import paged

TOLERANCE: Final = 0.01
"""Of a row's largest result: probabilities and the result are rounded to bfloat16, 2 ** -9 each,
where many values of both signs may cancel."""


@dataclass(frozen=True, slots=True)
class Case:
    """One layer's geometry, and a chunk of ``rows`` rows from ``position`` on.

    Attributes:
        dtype: of the pages; uint8 for codes of e4m3fn.
        blocks: an image's first row and the one after its last, counted in the chunk; its rows see
            all of it. None without an image.
        interpreted: small enough for Triton's interpreter.
    """

    heads: int
    kv_heads: int
    head_dim: int
    position: int
    rows: int
    dtype: torch.dtype = torch.bfloat16
    window: int | None = None
    cap: float | None = None
    gated: bool = False
    blocks: tuple[int, int] | None = None
    interpreted: bool = True

    @property
    def scale(self) -> float:
        """What multiplies the scores."""
        return float(self.head_dim**-0.5)


CASES: Final = (
    Case(1, 1, 64, 0, 1),
    Case(2, 1, 64, 63, 70, gated=True),
    Case(2, 2, 80, 255, 2, torch.float16, cap=20.0),
    Case(3, 1, 32, 300, 5, torch.uint8, window=70),
    Case(1, 1, 96, 120, 20, window=1, gated=True),
    Case(2, 1, 32, 10, 150, window=40, blocks=(8, 100)),
    Case(2, 1, 32, 0, 65, torch.float16, window=1000),
    Case(24, 4, 256, 0, 300, gated=True, interpreted=False),
    Case(24, 4, 256, 4_001, 513, gated=True, interpreted=False),
    Case(16, 4, 256, 1_000, 300, torch.uint8, interpreted=False),
    Case(16, 2, 256, 77, 300, torch.float16, interpreted=False),
    Case(8, 2, 512, 900, 300, window=512, interpreted=False),
    Case(8, 1, 512, 0, 130, torch.uint8, cap=50.0, interpreted=False),
    Case(9, 3, 64, 2_000, 300, interpreted=False),
    Case(32, 8, 128, 100, 300, window=130, blocks=(20, 276), interpreted=False),
    Case(32, 8, 128, 900, 1_300, interpreted=False),
    Case(12, 4, 96, 300, 200, torch.uint8, window=300, interpreted=False),
    Case(4, 1, 256, 1_023, 300, window=512, interpreted=False),
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a case gives the kernel; ``table`` and ``block_ends`` are int32."""

    query: torch.Tensor
    pages: Pages
    table: torch.Tensor
    position: int
    gate: torch.Tensor | None
    block_ends: torch.Tensor | None


def build(case: Case, device: torch.device, generator: torch.Generator) -> Inputs:
    """Inputs of a case; the generator, of the CPU, fixes them but for the page ids."""
    columns = case.heads * case.head_dim
    query = torch.randn(case.rows, case.heads, 2 * case.head_dim, generator=generator)
    gate = torch.randn(case.rows, columns + 8, generator=generator)
    first = 0 if case.window is None else max(0, case.position - case.window + 1)
    length = case.position + case.rows - first
    both = torch.randn(2, case.kv_heads, length, case.head_dim, generator=generator)
    pages, tables = paged([(first, both)], case.dtype, device)
    return Inputs(
        query.to(device, torch.bfloat16)[..., : case.head_dim],
        pages,
        tables[0],
        case.position,
        gate.to(device, torch.bfloat16)[:, :columns] if case.gated else None,
        _block_ends(case, device),
    )


def _block_ends(case: Case, device: torch.device) -> torch.Tensor | None:
    if case.blocks is None:
        return None
    ends = torch.arange(case.position, case.position + case.rows, dtype=torch.int32)
    first, end = case.blocks
    ends[first:end] = case.position + end - 1
    return ends.to(device)
