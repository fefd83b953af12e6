"""Attention layers: keys and values into pages, queries over what their rows see."""

from __future__ import annotations

import torch

from engine.cache.kv import KvArena
from engine.errors import InvariantBroken
from engine.forward.attention import attend
from engine.forward.layers.norms import Norms
from engine.forward.layers.rows import Rows, repeats
from engine.forward.pages import layer_pages
from engine.forward.products import Products
from engine.models.spec import AttentionSpec


class AttentionLayers:
    """Computes the attention layers of one model; used from the engine thread only.

    The arena of K and V, the norms and the products belong to the caller.
    """

    def __init__(self, norms: Norms, products: Products, kv: KvArena) -> None:
        self._norms = norms
        self._products = products
        self._kv = kv

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
        turned = torch.empty_like(key)
        rows.rotate(key, turned, attention.rope)
        pages = layer_pages(self._kv, attention.group, attention.slot)
        pages.write(0, page, rows.slots, turned.squeeze(2))
        pages.write(1, page, rows.slots, self._norms.after(value, attention.value_norm).squeeze(2))

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
            layer_pages(self._kv, attention.group, attention.slot),
            rows.blocks[attention.group, repeats(attention)],
            attention.scale,
        )
        by_row = mixed.view(turned.shape).transpose(0, 1).reshape(count, -1)
        if attention.gate is not None:
            by_row.mul_(self._products.multiply(normed, attention.gate).sigmoid_())
        return self._products.multiply(by_row, attention.output)
