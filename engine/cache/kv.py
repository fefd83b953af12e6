"""The KV arena: the bytes of every page, one tensor a page group.

Owns the tensors and their ledger lease. Used from the engine thread only. Which page belongs to
whom is the page pools' business (``engine.cache.pages``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from engine.cache.formats import PAGE_ROWS, KvFormat, page_bytes
from engine.errors import InvariantBroken
from engine.memory.allocation import allocating
from engine.memory.ledger import Credit
from engine.models.spec import PageGroupSpec
from engine.owner import Owner

OWNER: Final = "KV pages"
CPU: Final = torch.device("cpu")
DTYPES: Final = {
    KvFormat.FP32: torch.float32,
    KvFormat.FP16: torch.float16,
    KvFormat.BF16: torch.bfloat16,
    KvFormat.FP8: torch.uint8,
}


@dataclass(frozen=True, slots=True)
class KvLayout:
    """Where one group's rows lie, for native code; strides in bytes.

    Row ``s`` of page ``p``, K (side 0) or V (side 1), kv head ``h``, layer slot ``l`` begins at
    ``address + l * layer + p * page + side * side_stride + h * head + s * row`` and is contiguous.
    """

    address: int
    layer_stride: int
    page_stride: int
    side_stride: int
    head_stride: int
    row_stride: int


class KvArena(Owner):
    """K and V of all groups: ``tensors[g]`` is [layer, page, 2, kv_head, slot, head_dim].

    In FP8 those are uint8 codes, and ``scales[g]`` is [layer, page, 2, kv_head, slot] float32;
    otherwise there are no scales. Memory of a page that was never written may hold anything, NaN
    included.
    """

    def __init__(
        self,
        groups: Sequence[PageGroupSpec],
        page_counts: Sequence[int],
        kv_format: KvFormat,
        ledger: Credit,
        pool: str,
        *,
        device: torch.device = CPU,
    ) -> None:
        """Reserve in the ledger, then allocate; raises MemoryRefused."""
        self.groups = tuple(groups)
        self.kv_format = kv_format
        self.page_counts = tuple(page_counts)
        sizes = [
            pages * page_bytes(group, kv_format)
            for group, pages in zip(groups, page_counts, strict=True)
        ]
        self._lease = ledger.reserve(OWNER, {pool: sum(sizes)})
        shapes = [_shape(*pair) for pair in zip(groups, page_counts, strict=True)]
        dtype = DTYPES[kv_format]
        with allocating(self._lease, device):
            self.tensors = tuple(torch.empty(each, dtype=dtype, device=device) for each in shapes)
            self.scales = tuple(
                torch.empty(each[:-1], device=device) for each in shapes if kv_format.scale_bytes
            )

    def layout(self, group: int) -> KvLayout:
        """Address and strides of one group's tensor."""
        tensor = self.tensors[group]
        layer, page, side, head, row, element = (
            stride * tensor.element_size() for stride in tensor.stride()
        )
        if element != tensor.element_size():
            raise InvariantBroken("A KV row is not contiguous.")
        return KvLayout(tensor.data_ptr(), layer, page, side, head, row)

    def scale_layout(self, group: int) -> KvLayout | None:
        """The same for its scales, one float32 a row and head; None for a format without."""
        if not self.scales:
            return None
        tensor = self.scales[group]
        layer, page, side, head, row = (
            stride * tensor.element_size() for stride in tensor.stride()
        )
        return KvLayout(tensor.data_ptr(), layer, page, side, head, row)

    def close(self) -> None:
        """Free the tensors and refund their bytes; may be repeated."""
        self.tensors = self.scales = ()
        self._lease.close()


def _shape(group: PageGroupSpec, pages: int) -> tuple[int, ...]:
    return (group.layer_count, pages, 2, group.kv_head_count, PAGE_ROWS, group.head_dim)
