"""Shapes that heads are turned and stored with, and how near they come to float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.rotary.launch import HeadColumns, HeadNorms, Turns
from kernels.rotary.turns import turns_of

TOLERANCE: Final = 1e-6
"""Of the head's largest value: cosine and sine within 1e-7, a mean of float32 squares, a root, and
five roundings of the element itself."""

ANGLE_TOLERANCE: Final = 1e-6
"""Radians, at any position: an angle is cut to 2^-32 of a turn, its cosine and sine are rounded to
float32."""

BF16_TOLERANCE: Final = 2.0**-8
"""Of the head's largest value: half a step of bfloat16 and the float32 error beneath it."""

EPS: Final = 1e-6
PAGES: Final = 6


@dataclass(frozen=True, slots=True)
class RotaryCase:
    """One layer's rows.

    Attributes:
        pairs: that turn; 0 for no rotation.
        norms: "none", "plain" (without weights), or "weighted".
        keys: "own", "none" (the layer owns no K and V), or "shared": values are the keys.
        page_format: of K and V: "bf16", "fp16" or "fp8".
        first: position of the first row.
        spread: columns of a row beyond q, k and v.
        interpreted: small enough for Triton's interpreter.
    """

    rows: int
    heads: int
    kv_heads: int
    dim: int
    pairs: int
    first: int = 0
    halves: bool = True
    magnitude: float = 1.0
    norms: str = "weighted"
    keys: str = "own"
    page_format: str = "bf16"
    half_source: bool = False
    spread: int = 0
    interpreted: bool = True


@dataclass(frozen=True, slots=True)
class RotaryInputs:
    """Tensors of one case; pages hold ``poison`` where nothing is stored."""

    source: torch.Tensor
    columns: HeadColumns
    norms: HeadNorms
    turns: Turns | None
    frequencies: torch.Tensor
    table: torch.Tensor


CASES: Final = (
    RotaryCase(rows=1, heads=1, kv_heads=1, dim=16, pairs=8, norms="none"),
    RotaryCase(rows=3, heads=3, kv_heads=1, dim=48, pairs=8, first=255, spread=5),
    RotaryCase(rows=2, heads=4, kv_heads=2, dim=64, pairs=32, first=511, halves=False),
    RotaryCase(rows=5, heads=2, kv_heads=1, dim=32, pairs=0, norms="none", page_format="fp8"),
    RotaryCase(rows=4, heads=2, kv_heads=2, dim=96, pairs=48, first=300, page_format="fp8",
               keys="shared", norms="plain"),
    RotaryCase(rows=2, heads=2, kv_heads=2, dim=80, pairs=40, page_format="fp16", magnitude=1.2,
               half_source=True),
    RotaryCase(rows=3, heads=2, kv_heads=1, dim=32, pairs=16, first=77, keys="none"),
    RotaryCase(rows=16, heads=24, kv_heads=4, dim=256, pairs=32, first=1_000, interpreted=False),
    RotaryCase(rows=700, heads=8, kv_heads=4, dim=512, pairs=64, first=255, half_source=True,
               page_format="fp8", interpreted=False),
    RotaryCase(rows=511, heads=16, kv_heads=8, dim=128, pairs=64, half_source=True,
               interpreted=False),
)  # fmt: skip


def frequencies_of(pairs: int) -> list[float]:
    """Radians a position: the plain rule with a base of 10,000."""
    return [10_000.0 ** (-pair / max(pairs, 1)) for pair in range(pairs)]


def build(case: RotaryCase, device: torch.device, generator: torch.Generator) -> RotaryInputs:
    """Inputs of a case, the same numbers on every device; ``generator`` is of the CPU."""
    queries, keys = case.heads * case.dim, case.kv_heads * case.dim
    total = queries + 2 * keys + case.spread
    source = (torch.randn(case.rows, total, generator=generator) * 5.0).to(device)

    def vector() -> torch.Tensor | None:
        made = torch.rand(case.dim, generator=generator).add(0.5).to(device)
        return made if case.norms == "weighted" else None

    key = -1 if case.keys == "none" else queries
    value = key if case.keys in ("none", "shared") else queries + keys
    eps = None if case.norms == "none" else EPS
    value_eps = EPS if case.norms == "plain" else None
    found = frequencies_of(case.pairs)
    turns = torch.from_numpy(turns_of(found)).to(device)
    return RotaryInputs(
        source=source.bfloat16() if case.half_source else source,
        columns=HeadColumns(0, key, value, case.heads, case.kv_heads, case.dim),
        norms=HeadNorms(vector(), eps, vector(), eps, None, value_eps),
        turns=Turns(turns, case.magnitude, case.halves) if case.pairs else None,
        frequencies=torch.tensor(found, dtype=torch.float64, device=device),
        table=torch.randperm(PAGES, generator=generator).int().to(device),
    )
