"""K and V of one layer in pages, as float32 rows whatever their format.

Writing rounds each element to the nearest value of the format, ties to even, and saturates: a wild
value becomes the format's largest, never an infinity. The rule of FP8's scales is in
``engine.cache.formats``; there a NaN is stored as 0 and an infinity counts as the largest float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.cache.formats import FP8_LARGEST
from engine.cache.kv import KvArena

CODES = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
"""What each FP8 code stands for, before its scale."""


@dataclass(frozen=True, slots=True)
class LayerPages:
    """The pages of one layer, of which this is a view.

    Attributes:
        stored: [page, 2, kv_head, slot, head_dim], any float dtype, or uint8 codes with ``scales``.
        scales: [page, 2, kv_head, slot] float32; None for a format without.
    """

    stored: torch.Tensor
    scales: torch.Tensor | None = None

    def write(self, side: int, page: int, slots: slice, rows: torch.Tensor) -> None:
        """Store rows [row, kv_head, head_dim] float32 as K (side 0) or V (side 1) of some slots."""
        heads = rows.transpose(0, 1)
        if self.scales is not None:
            codes, scales = fp8_codes(heads)
            self.stored[page, side, :, slots] = codes
            self.scales[page, side, :, slots] = scales
        elif self.stored.dtype is torch.float32:
            self.stored[page, side, :, slots] = heads
        else:
            largest = torch.finfo(self.stored.dtype).max
            self.stored[page, side, :, slots] = heads.clamp(-largest, largest).to(self.stored.dtype)

    def read(self, page: int, first: int, end: int) -> torch.Tensor:
        """Both sides of slots ``[first, end)``: [2, kv_head, end - first, head_dim] float32."""
        stored = self.stored[page, :, :, first:end]
        if self.scales is None:
            return stored.float()
        return CODES.take(stored.long()).mul_(self.scales[page, :, :, first:end, None])


def layer_pages(kv: KvArena, group: int, layer: int) -> LayerPages:
    """The pages of a group's ``layer``-th layer; not to be kept beyond the arena."""
    return LayerPages(kv.tensors[group][layer], kv.scales[group][layer] if kv.scales else None)


def fp8_codes(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes (uint8, the shape of ``rows``) and scales (of all but the last dimension)."""
    largest = rows.nan_to_num(nan=0.0).abs().amax(-1)
    scales = largest.clamp(max=torch.finfo(torch.float32).max) / FP8_LARGEST
    divided = (rows / scales.unsqueeze(-1)).nan_to_num(nan=0.0)
    # Torch makes NaN of what e4m3 cannot hold.
    codes = divided.clamp(-FP8_LARGEST, FP8_LARGEST).to(torch.float8_e4m3fn).view(torch.uint8)
    return codes.masked_fill((scales == 0).unsqueeze(-1), 0), scales
