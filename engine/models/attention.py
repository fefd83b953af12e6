"""Attention layers by kind: what those that share a page group have in common.

A family says which kinds it has and adds its own norms; this file names the tensors, fused ones
too, and says where K and V lie. No torch here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from engine.models.layers import Geometry
from engine.models.metadata import FamilyKeys
from engine.models.spec import AttentionSpec, Linear, PageGroupSpec, RopeSpec, RowRuns
from engine.models.tensors import TensorNames


@dataclass(frozen=True, slots=True)
class Kind:
    """Layers with the same heads, window and rotary rule.

    Attributes:
        group: index into the model's page groups.
        window: rows attended, None for all.
        rope: None where positions are not marked.
    """

    group: int
    head_count: int
    kv_head_count: int
    head_dim: int
    scale: float
    window: int | None
    rope: RopeSpec | None

    @property
    def query_width(self) -> int:
        """Numbers of one row's queries."""
        return self.head_count * self.head_dim

    @property
    def kv_width(self) -> int:
        """Numbers of one row's keys."""
        return self.kv_head_count * self.head_dim

    def pages(self, layer_count: int) -> PageGroupSpec:
        """The page group of ``layer_count`` layers of this kind."""
        return PageGroupSpec(self.window, layer_count, self.kv_head_count, self.head_dim)


def full_attention(keys: FamilyKeys, geometry: Geometry, rope: RopeSpec | None) -> Kind:
    """The kind of a model whose attention layers all see every row.

    Raises:
        CheckpointUnreadable: the file's scale of scores is no number above 0.
    """
    return Kind(
        group=0,
        head_count=geometry.head_count,
        kv_head_count=geometry.kv_head_count,
        head_dim=geometry.head_dim,
        scale=keys.positive("attention.scale", geometry.head_dim**-0.5),
        window=None,
        rope=rope,
    )


def attention(
    tensors: TensorNames,
    layer: int,
    hidden: int,
    kind: Kind,
    slot: int,
    *,
    keys_are_values: bool = False,
) -> AttentionSpec:
    """A layer that owns K and V; families add norms with ``replace``.

    Args:
        keys_are_values: the layer has no value projection.
    """
    stem = f"blk.{layer}.attn"
    widths = (kind.query_width, kind.kv_width, kind.kv_width)
    value: Linear | None
    if tensors.has(f"{stem}_qkv.weight"):
        query, key, value = _parted(tensors, f"{stem}_qkv", hidden, widths)
    else:
        query = tensors.linear(f"{stem}_q", kind.query_width, hidden)
        key = tensors.linear(f"{stem}_k", kind.kv_width, hidden)
        value = None
        if not keys_are_values:
            value = tensors.linear(f"{stem}_v", kind.kv_width, hidden)
    output = tensors.linear(f"{stem}_output", hidden, kind.query_width)
    return replace(_reading(kind, slot, query, output), key=key, value=value)


def gated_attention(
    tensors: TensorNames, layer: int, hidden: int, kind: Kind, slot: int
) -> AttentionSpec:
    """A layer whose query projection holds, head by head, a query and the gate of its output."""
    both = replace(kind, head_count=2 * kind.head_count)
    stem = f"blk.{layer}.attn"
    widths = (both.query_width, kind.kv_width, kind.kv_width)
    if tensors.has(f"{stem}_qkv.weight"):
        query, key, value = _parted(tensors, f"{stem}_qkv", hidden, widths)
    else:
        query, key, value = (
            tensors.linear(f"{stem}_{part}", width, hidden)
            for part, width in zip("qkv", widths, strict=True)
        )
    output = tensors.linear(f"{stem}_output", hidden, kind.query_width)
    queries, gates = (
        Linear(query.weight, query.bias, _every_other(kind, first)) for first in (0, kind.head_dim)
    )
    return replace(_reading(kind, slot, queries, output), key=key, value=value, gate=gates)


def sharing_attention(
    tensors: TensorNames, layer: int, hidden: int, kind: Kind, slot: int
) -> AttentionSpec:
    """A layer that reads the K and V of the earlier layer at ``slot``; its own are left alone."""
    stem = f"blk.{layer}.attn"
    if tensors.has(f"{stem}_qkv.weight"):
        widths = (kind.query_width, kind.kv_width, kind.kv_width)
        query, _, _ = _parted(tensors, f"{stem}_qkv", hidden, widths)
    else:
        query = tensors.linear(f"{stem}_q", kind.query_width, hidden)
    unused = ("k.weight", "k.bias", "v.weight", "v.bias", "k_norm.weight", "v_norm.weight")
    tensors.leave(*(f"{stem}_{name}" for name in unused))
    output = tensors.linear(f"{stem}_output", hidden, kind.query_width)
    return _reading(kind, slot, query, output)


def kv_slots(kinds: Sequence[Hashable], own_count: int) -> tuple[int, ...]:
    """For each layer the place of the K and V that it reads among those of its kind.

    Layers from ``own_count`` on own none: they read those of the last earlier layer of their kind,
    of which there must be one.

    Args:
        kinds: one a layer, equal where the kind is.
    """
    owned: Counter[Hashable] = Counter()
    slots = []
    for layer, kind in enumerate(kinds):
        owned[kind] += layer < own_count
        slots.append(owned[kind] - 1)
    return tuple(slots)


def _reading(kind: Kind, slot: int, query: Linear, output: Linear) -> AttentionSpec:
    return AttentionSpec(
        group=kind.group,
        slot=slot,
        head_count=kind.head_count,
        kv_head_count=kind.kv_head_count,
        head_dim=kind.head_dim,
        scale=kind.scale,
        window=kind.window,
        rope=kind.rope,
        query=query,
        key=None,
        value=None,
        output=output,
    )


def _parted(
    tensors: TensorNames, stem: str, hidden: int, widths: tuple[int, int, int]
) -> tuple[Linear, Linear, Linear]:
    fused = tensors.linear(stem, sum(widths), hidden)
    first = (0, widths[0], widths[0] + widths[1])
    query, key, value = (
        Linear(fused.weight, fused.bias, ((start, width),))
        for start, width in zip(first, widths, strict=True)
    )
    return query, key, value


def _every_other(kind: Kind, offset: int) -> RowRuns:
    """``head_dim`` rows of every ``2 * head_dim``, one run a head, from ``offset`` on."""
    stride = 2 * kind.head_dim
    return tuple((head * stride + offset, kind.head_dim) for head in range(kind.head_count))
