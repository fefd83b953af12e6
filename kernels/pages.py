"""K and V of one layer in pages, as the attention kernels take them; see ``Pages``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kernels.checks import KernelShapeError

PAGE_SLOTS: Final = 256
"""Rows of a page."""

FP8_LOWEST: Final = (8, 9)
"""The compute capability from which on a GPU turns e4m3 into fp16 itself."""


@dataclass(frozen=True, slots=True)
class Pages:
    """One layer's pages.

    Attributes:
        stored: [page, 2, kv_head, slot, head_dim], K before V: bfloat16, float16, or the codes of
            e4m3fn as uint8, which ``scales`` multiply. A head's slots lie one after the other.
        scales: [page, 2, kv_head, slot] float32; None for the two others.
    """

    stored: torch.Tensor
    scales: torch.Tensor | None

    def __post_init__(self) -> None:
        """Raise KernelShapeError for what the kernels do not take."""
        shape, stride = self.stored.shape, self.stored.stride()
        coded = self.stored.dtype is torch.uint8
        if len(shape) != 5 or shape[1] != 2 or shape[3] != PAGE_SLOTS:
            raise KernelShapeError(f"{tuple(shape)} is no [page, 2, kv_head, 256, head_dim].")
        if not coded and self.stored.dtype not in (torch.bfloat16, torch.float16):
            raise KernelShapeError(f"Pages of {self.stored.dtype}: bf16, fp16 or codes only.")
        if stride[3:] != (shape[4], 1):
            raise KernelShapeError("A head's slots are not one after the other.")
        if coded != (self.scales is not None):
            raise KernelShapeError("Codes have scales, and numbers have none.")
        if self.scales is not None and not _fits(self.scales, shape):
            raise KernelShapeError("The scales are not [page, 2, kv_head, 256] float32.")

    @property
    def head_dim(self) -> int:
        """Elements of a row of one head."""
        return self.stored.shape[4]

    @property
    def kv_heads(self) -> int:
        """Heads of K and V."""
        return self.stored.shape[2]

    def scale_strides(self) -> tuple[int, int, int]:
        """Of page, side and head; zeros without scales."""
        if self.scales is None:
            return 0, 0, 0
        page, side, head, _slot = self.scales.stride()
        return page, side, head

    def rows(self, table: list[int], first: int, end: int) -> torch.Tensor:
        """Positions ``[first, end)`` of a lane: [2, kv_head, end - first, head_dim] float64."""
        at = torch.arange(first, end)
        page = torch.tensor(table)[at // PAGE_SLOTS].to(self.stored.device)
        slot = (at % PAGE_SLOTS).to(self.stored.device)
        found = self.stored[page, :, :, slot]
        if self.scales is None:
            return found.double().permute(1, 2, 0, 3)
        values = found.view(torch.float8_e4m3fn).float().double()
        return (values * self.scales[page, :, :, slot, None].double()).permute(1, 2, 0, 3)


def _fits(scales: torch.Tensor, shape: torch.Size) -> bool:
    return (
        scales.shape == shape[:4] and scales.dtype is torch.float32 and scales.stride()[3:] == (1,)
    )
