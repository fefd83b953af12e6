"""Decodes rows of any format, a slice at a time, so that the work needs little memory.

A format's own decode is the function of its name in ``kernels.quant.<module>``, from uint8
[block, block_bytes] to float32 [block, block_elements]. It takes some 20 bytes of intermediates
an element, and whole tables of embeddings pass through here.
"""

from __future__ import annotations

from importlib import import_module

import torch

from kernels.checks import KernelShapeError
from kernels.quant.facts import FormatFacts

SLICE_ELEMENTS = 1 << 22


def decode_rows(facts: FormatFacts, raw: torch.Tensor) -> torch.Tensor:
    """Decode [rows, row_bytes] uint8 to float32 [rows, elements]; see ``QuantFormat.decode``."""
    if raw.dtype is not torch.uint8 or raw.dim() != 2:
        raise KernelShapeError(
            f"{facts.name} decodes uint8 [rows, row_bytes], not {raw.dtype} {list(raw.shape)}"
        )
    blocks, rest = divmod(raw.shape[1], facts.block_bytes)
    if rest:
        raise KernelShapeError(
            f"rows of {raw.shape[1]} bytes are no whole {facts.name} blocks of {facts.block_bytes}"
        )
    elements = blocks * facts.block_elements
    decoded = torch.empty(raw.shape[0], elements, dtype=torch.float32, device=raw.device)
    decode = getattr(import_module(f"kernels.quant.{facts.module}"), facts.name)
    at_once = max(1, SLICE_ELEMENTS // max(elements, 1))
    for first in range(0, raw.shape[0], at_once):
        part = raw[first : first + at_once]
        rows = part.shape[0]
        values = decode(part.reshape(rows * blocks, facts.block_bytes))
        decoded[first : first + rows] = values.view(rows, elements)
    return decoded
