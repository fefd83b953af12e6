"""Attention of a prompt chunk's rows over their lane's pages, in float64."""

from __future__ import annotations

import torch

from kernels.pages import Pages
from kernels.step_attention.reference import attend, gated


def prompt_attention(
    query: torch.Tensor,
    pages: Pages,
    table: list[int],
    position: int,
    *,
    window: int | None,
    scale: float,
    gate: torch.Tensor | None = None,
    block_ends: list[int] | None = None,
    cap: float | None = None,
) -> torch.Tensor:
    """What ``launch.prompt_attention`` writes: [rows, heads * head_dim] float64."""
    own = range(position, position + len(query))
    ends = list(own) if block_ends is None else block_ends
    spans = [
        (0 if window is None else max(0, at - window + 1), max(at, end) + 1)
        for at, end in zip(own, ends, strict=True)
    ]
    mixed = attend(query, pages, [table] * len(query), spans, scale=scale, cap=cap)
    return gated(mixed, gate)
