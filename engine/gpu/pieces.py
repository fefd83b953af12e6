"""Which weights of a model lie on a GPU, how each is packed, and in how many bytes. No torch.

A piece is one packed weight: products that read the same input and have the same layout, their
rows one after another. The order is that of computation, the embedding and the head last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from engine.checkpoint.source import TensorFacts
from engine.models.spec import (
    AttentionSpec,
    ExpertsSpec,
    FeedForwardSpec,
    Linear,
    Mixer,
    ModelSpec,
)
from kernels.packed.layout import LAYOUTS, PackedLayout, ScaleKind, mlx_layout, packed_bytes

Tensors = Mapping[str, TensorFacts]
DENSE_BYTES: Final = {"f32": 4, "f16": 2, "bf16": 2}
DECODED: Final = "bf16"
ALIGNMENT: Final = 256
SCALE_KINDS: Final = {"f16": ScaleKind.F16, "bf16": ScaleKind.BF16, "f32": ScaleKind.F32}


@dataclass(frozen=True, slots=True)
class Piece:
    """One weight on the GPU.

    Attributes:
        layout: None for a dense weight of ``dense`` ("f32", "f16" or "bf16").
        decoded: the file's format has no product here, so it is kept decoded.
    """

    linears: tuple[Linear, ...]
    layout: PackedLayout | None
    dense: str
    decoded: bool
    rows: int
    columns: int

    @property
    def size_bytes(self) -> int:
        """In the arena, aligned."""
        if self.layout is not None:
            return packed_bytes(self.layout, self.rows, self.columns)
        size = self.rows * self.columns * DENSE_BYTES[self.dense]
        return -(-size // ALIGNMENT) * ALIGNMENT


def joints(spec: ModelSpec) -> Iterator[tuple[Linear, ...]]:
    """Products that read the same input, in order; a stack of experts is one of them."""
    for layer in spec.layers:
        yield mixer_inputs(layer.mixer)
        yield (layer.mixer.output,)
        for branch in layer.branches:
            match branch.body:
                case FeedForwardSpec() as body:
                    yield body.gate, body.up
                    yield (body.down,)
                case ExpertsSpec() as body:
                    yield from stacks(body)
            if branch.gate is not None:
                yield (branch.gate,)
    yield (Linear(spec.embedding),)
    if spec.head != spec.embedding:
        yield (Linear(spec.head),)


def stacks(body: ExpertsSpec) -> Iterator[tuple[Linear, ...]]:
    """Gate, up and down of all experts."""
    yield tuple(expert.gate for expert in body.experts)
    yield tuple(expert.up for expert in body.experts)
    yield tuple(expert.down for expert in body.experts)


def mixer_inputs(mixer: Mixer) -> tuple[Linear, ...]:
    """What reads a mixer's normed input, in the order of the joint output."""
    if isinstance(mixer, AttentionSpec):
        own = (mixer.query, mixer.gate, mixer.key, mixer.value)
        return tuple(linear for linear in own if linear is not None)
    return mixer.mixed, mixer.gate, mixer.beta, mixer.alpha


def pieces(linears: Sequence[Linear], tensors: Tensors) -> tuple[Piece, ...]:
    """The weights that products of one input become: neighbours of one layout together."""
    found = []
    for kind, run in groupby(linears, lambda linear: _kind(tensors[linear.weight])):
        parts = tuple(run)
        layout, dense, decoded = kind
        rows = sum(row_count(part, tensors) for part in parts)
        columns = tensors[parts[0].weight].shape[-1]
        found.append(Piece(parts, layout, dense, decoded, rows, columns))
    return tuple(found)


def model_pieces(spec: ModelSpec, tensors: Tensors) -> Iterator[Piece]:
    """Every weight of a model."""
    for linears in joints(spec):
        yield from pieces(linears, tensors)


def row_count(linear: Linear, tensors: Tensors) -> int:
    """Rows of a product's weight that take part."""
    if linear.rows is not None:
        return sum(count for _, count in linear.rows)
    return math.prod(tensors[linear.weight].shape[:-1])


def _kind(facts: TensorFacts) -> tuple[PackedLayout | None, str, bool]:
    """(layout, dense format, whether the file's format is given up)."""
    layout = _layout(facts)
    if layout is not None and facts.shape[-1] % layout.row_unit == 0:
        return layout, "", False
    if facts.format in DENSE_BYTES and facts.scales is None:
        return None, facts.format, False
    return None, DECODED, True


def _layout(facts: TensorFacts) -> PackedLayout | None:
    if facts.scales is None:
        return LAYOUTS.get(facts.format)
    minima, scale = facts.minima, SCALE_KINDS.get(facts.scales.format)
    if minima is None or scale is None or minima.format != facts.scales.format:
        return None
    if facts.format not in ("mlx4", "mlx8") or facts.block[0] != 1:
        return None
    return mlx_layout(int(facts.format[3:]), facts.block[1], scale)
