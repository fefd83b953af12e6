"""Attention layers: keys and values into pages, queries over what their rows see."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.errors import InvariantBroken
from engine.forward.attention import attend
from engine.forward.layers.norms import Norms
from engine.forward.layers.rows import Rows, repeats
from engine.forward.products import Products
from engine.models.spec import AttentionSpec


class AttentionLayers:
    """Computes the attention layers of one model; used from the engine thread only.

    The arenas ([layer, page, 2, kv_head, slot, head_dim], one a group, any float dtype), the norms
    and the products belong to the caller.
    """

    def __init__(self, norms: Norms, products: Products, arenas: Sequence[torch.Tensor]) -> None:
        self._norms = norms
        self._products = products
        self._arenas = tuple(arenas)

    def store(self, normed: torch.Tensor, attention: AttentionSpec, rows: Rows) -> None:
        """Write the rows' K and V into their page; nothing where the layer owns none."""
        if attention.key is None:
            return
        shape = (-1, attention.kv_head_count, 1, attention.head_dim)
        projected = self._products.multiply(normed, attention.key).view(shape)
        if attention.value is None:
            value = projected
        else:
            value = self._products.multiply(normed, attention.value).view(shape)
        key = self._norms.after(projected, attention.key_norm)
        page = rows.pages[attention.group]
        if page < 0:
            raise InvariantBroken(f"Row {rows.positions.start} is written to a page not held.")
        slots = self._arenas[attention.group][attention.slot, page, :, :, rows.slots]
        target = slots.transpose(1, 2).unsqueeze(3)
        rows.rotate(key, target[0], attention.rope)
        target[1].copy_(self._norms.after(value, attention.value_norm))

    def mix(self, normed: torch.Tensor, attention: AttentionSpec, rows: Rows) -> torch.Tensor:
        """What the rows take in: [rows, hidden]. Their K and V are in the pages already."""
        count, kv_heads = len(rows.positions), attention.kv_head_count
        projected = self._products.multiply(normed, attention.query)
        query = self._norms.after(
            projected.view(count, kv_heads, -1, attention.head_dim), attention.query_norm
        )
        turned = query.new_empty(kv_heads, count, query.shape[2], attention.head_dim)
        rows.rotate(query, turned.transpose(0, 1), attention.rope)
        mixed = attend(
            turned.view(kv_heads, -1, attention.head_dim),
            self._arenas[attention.group][attention.slot],
            rows.blocks[attention.group, repeats(attention)],
            attention.scale,
        )
        by_row = mixed.view(turned.shape).transpose(0, 1).reshape(count, -1)
        if attention.gate is not None:
            by_row.mul_(self._products.multiply(normed, attention.gate).sigmoid_())
        return self._products.multiply(by_row, attention.output)
