"""How many parts a row's keys are cut into, and what room their sums take."""

from __future__ import annotations

from typing import Final

PROGRAMS: Final = 264
"""Programs of one row at most: two a processor of a large GPU."""
MOST_PARTS: Final = 256


def part_count(kv_heads: int) -> int:
    """Parts at most that a row's keys are cut into."""
    return min(MOST_PARTS, max(1, PROGRAMS // kv_heads))


def partial_floats(rows: int, heads: int, head_dim: int, kv_heads: int) -> int:
    """Floats of the scratch that ``step_attention`` takes as ``partials``."""
    return rows * part_count(kv_heads) * heads * (head_dim + 2)
