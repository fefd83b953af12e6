"""Attention of generated rows over their pages, one row after the other, in float64."""

from __future__ import annotations

import torch

from kernels.pages import Pages


def attend(
    query: torch.Tensor,
    pages: Pages,
    tables: list[list[int]],
    spans: list[tuple[int, int]],
    *,
    scale: float,
    cap: float | None,
) -> torch.Tensor:
    """Softmax attention: [rows, heads * head_dim] float64.

    Args:
        query: [rows, heads, head_dim].
        tables: page ids of each row's lane.
        spans: first position that a row sees, and the one after its last.
        scale: multiplies the scores.
        cap: scores become ``cap * tanh(score / cap)``.
    """
    rows = zip(query.double(), tables, spans, strict=True)
    return torch.stack([_row(q, pages.rows(table, *span), scale, cap) for q, table, span in rows])


def gated(mixed: torch.Tensor, gate: torch.Tensor | None) -> torch.Tensor:
    """``mixed`` times the gate's sigmoid; both [rows, heads * head_dim]."""
    return mixed if gate is None else mixed * gate.double().sigmoid()


def step_spans(positions: list[int], window: int | None) -> list[tuple[int, int]]:
    """What rows at these positions see: all up to themselves, or the last ``window``."""
    return [(0 if window is None else max(0, at - window + 1), at + 1) for at in positions]


def _row(query: torch.Tensor, both: torch.Tensor, scale: float, cap: float | None) -> torch.Tensor:
    keys, values = both
    heads = query.view(keys.shape[0], -1, query.shape[-1])
    scores = heads @ keys.transpose(1, 2) * scale
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    mixed: torch.Tensor = scores.softmax(-1) @ values
    return mixed.reshape(-1)
