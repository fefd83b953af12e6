"""How K and V are stored: the formats, and the bytes of a row and a page. Pure.

FP8 keeps each row of each head as 8-bit codes (e4m3fn: 1 sign, 4 exponent, 3 mantissa bits, largest
448) and one float32 scale:

    scale = largest magnitude / 448          code = e4m3(value / scale), to nearest, ties to even
    value = scale * decode(code)             a row of zeros has scale 0 and codes 0
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from engine.models.spec import PageGroupSpec

PAGE_ROWS: Final = 256
FP8_LARGEST: Final = 448.0


class KvFormat(Enum):
    """A format of K and V; the value is its name in states, plans and messages."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"

    @property
    def element_bytes(self) -> int:
        """Of one element."""
        return {KvFormat.FP32: 4, KvFormat.FP8: 1}.get(self, 2)

    @property
    def scale_bytes(self) -> int:
        """Of the scale of one row of one head, 0 where there is none."""
        return 4 if self is KvFormat.FP8 else 0


def row_bytes(group: PageGroupSpec, kv_format: KvFormat) -> int:
    """Bytes of one row over all layers of a group, K and V with their scales."""
    head = group.head_dim * kv_format.element_bytes + kv_format.scale_bytes
    return group.layer_count * 2 * group.kv_head_count * head


def page_bytes(group: PageGroupSpec, kv_format: KvFormat) -> int:
    """Bytes of one page over all layers of a group."""
    return PAGE_ROWS * row_bytes(group, kv_format)
