"""The format table: every way a tensor's elements are packed, and how each is decoded.

Sizes and type numbers are in ``kernels.quant.facts``, which loads no torch; a format's own module
is imported when it first decodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernels.quant.facts import FACTS, FormatFacts

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class QuantFormat(FormatFacts):
    """A format with its decode."""

    def decode(self, raw: torch.Tensor) -> torch.Tensor:
        """Decode rows of quant blocks to float32.

        Args:
            raw: [rows, row_bytes] uint8, whole blocks, any strides, on any device; only read.

        Returns:
            [rows, elements] float32, newly allocated, each element as ``gguf.quants`` gives it,
            bit for bit (a NaN is a NaN). Whole numbers and f64 round to the nearest float32.

        Raises:
            KernelShapeError: ``raw`` is no such rows.
        """
        decoded: torch.Tensor = import_module("kernels.quant.decode").decode_rows(self, raw)
        return decoded


FORMATS: Mapping[str, QuantFormat] = MappingProxyType(
    {
        name: QuantFormat(
            facts.name, facts.type_id, facts.block_elements, facts.block_bytes, facts.module
        )
        for name, facts in FACTS.items()
    }
)
"""Every format by its lower-case name."""
