"""Attention over gathered K and V in float64: the oracle of the paged form."""

from __future__ import annotations

import torch


def gathered(pages: torch.Tensor, table: list[int], rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V [kv_head, rows, head_dim] of the first ``rows`` positions of a lane."""
    both = torch.cat([pages[page] for page in table], dim=2)[:, :, :rows].double()
    return both[0], both[1]


def contiguous_attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    *,
    position: int,
    window: int | None,
    scale: float,
) -> torch.Tensor:
    """Softmax attention of ``query`` [head, rows, head_dim] from ``position`` on; float64."""
    heads, rows, _ = query.shape
    repeat = heads // keys.shape[0]
    keys, values = keys.repeat_interleave(repeat, 0), values.repeat_interleave(repeat, 0)
    scores = query.double() @ keys.transpose(1, 2) * scale
    row = torch.arange(position, position + rows).unsqueeze(1)
    key = torch.arange(keys.shape[1])
    hidden = key > row
    if window is not None:
        hidden |= key <= row - window
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    # A weight of 0 times NaN is NaN: what no row sees must not be read.
    seen = ~hidden.all(0)
    return weights[:, :, seen] @ values[:, seen]
