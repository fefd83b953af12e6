"""What all layers share about the rows being computed: places, visible pages and rotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import Lane
from engine.forward.attention import RowBlock, row_blocks
from engine.forward.rotation import Rotation, rotation
from engine.models.spec import AttentionSpec, ModelSpec, RopeSpec


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of one lane.

    Attributes:
        positions: absolute, all in one page.
        generated: whether this is one generated row rather than rows of a prompt.
        recurrent_slot: the lane's, None for a model without recurrent layers.
        pages: page id that the rows are written to, one a group.
        blocks: what the rows attend to, by group and query heads a kv head.
        rotations: by ``id`` of the layer's rope; the spec keeps the rules alive.
    """

    positions: range
    generated: bool
    recurrent_slot: int | None
    pages: tuple[int, ...]
    blocks: Mapping[tuple[int, int], tuple[RowBlock, ...]]
    rotations: Mapping[int, Rotation]

    @property
    def slots(self) -> slice:
        """Where in its page each row lies."""
        first = self.positions.start % PAGE_ROWS
        return slice(first, first + len(self.positions))

    def rotate(self, heads: torch.Tensor, out: torch.Tensor, rope: RopeSpec | None) -> None:
        """Turn ``heads`` [rows, kv_head, head, head_dim] float32 into ``out``."""
        if rope is None:
            out.copy_(heads)
        else:
            self.rotations[id(rope)].apply(heads, out)


def repeats(attention: AttentionSpec) -> int:
    """Query heads a kv head."""
    return attention.head_count // attention.kv_head_count


class RowFacts:
    """Finds the facts about rows of one model; equal rotary rules are computed once."""

    def __init__(self, spec: ModelSpec) -> None:
        self._windows = tuple(group.window for group in spec.groups)
        self._sights = {(layer.group, repeats(layer)) for layer in spec.attentions}
        self._ropes: dict[RopeSpec, list[int]] = {}
        for layer in spec.attentions:
            if layer.rope is not None:
                self._ropes.setdefault(layer.rope, []).append(id(layer.rope))

    def of(self, lane: Lane, positions: range, *, generated: bool) -> Rows:
        """The facts about rows of ``lane``, which holds their pages."""
        tables = [lane.table(group) for group in range(len(self._windows))]
        rotations: dict[int, Rotation] = {}
        for rope, keys in self._ropes.items():
            rotations.update(dict.fromkeys(keys, rotation(rope, positions)))
        return Rows(
            positions=positions,
            generated=generated,
            recurrent_slot=lane.recurrent_slot,
            pages=tuple(int(table[positions.start // PAGE_ROWS]) for table in tables),
            blocks={
                (group, repeat): row_blocks(tables[group], positions, self._windows[group], repeat)
                for group, repeat in self._sights
            },
            rotations=rotations,
        )
