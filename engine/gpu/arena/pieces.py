"""Which weights of a model lie on a GPU, how each is packed, and in how many bytes. No torch.

A piece is one packed weight: products that read the same input and have the same layout, their
rows one after another; all experts' rows of one projection are one too. The order is that of
computation, the embedding and the head last. Beside them are small float32 tensors.
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
    LayerSpec,
    Linear,
    Mixer,
    ModelSpec,
)
from kernels.packed.layout import (
    LAYOUTS,
    PackedLayout,
    ScaleKind,
    aligned,
    mlx_layout,
    packed_bytes,
)

Tensors = Mapping[str, TensorFacts]
DENSE_BYTES: Final = {"f32": 4, "f16": 2, "bf16": 2}
DECODED: Final = "bf16"
SCALE_KINDS: Final = {"f16": ScaleKind.F16, "bf16": ScaleKind.BF16, "f32": ScaleKind.F32}

_Form = tuple[PackedLayout | None, str, bool]
"""Layout, dense format, whether the file's format is given up."""
_DECODED: Final[_Form] = (None, DECODED, True)


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
        return aligned(self.rows * self.columns * DENSE_BYTES[self.dense])

    @property
    def has_bias(self) -> bool:
        """Whether one of its products has a bias."""
        return any(linear.bias is not None for linear in self.linears)


def model_pieces(spec: ModelSpec, tensors: Tensors) -> tuple[Piece, ...]:
    """Every weight of a model, each once."""
    found: dict[Piece, None] = {}
    for layer in spec.layers:
        for linears in _joints(layer):
            found |= dict.fromkeys(pieces(linears, tensors))
        for stack in _stacks(layer):
            found.setdefault(whole_piece(stack, tensors))
    if spec.per_layer is not None:
        found |= dict.fromkeys(pieces([spec.per_layer.projection], tensors))
    for name in (spec.embedding, spec.head):
        found.setdefault(whole_piece([Linear(name)], tensors))
    return tuple(found)


def pieces(linears: Sequence[Linear], tensors: Tensors) -> tuple[Piece, ...]:
    """The weights that products of one input become: neighbours of one layout together."""
    runs = groupby(linears, lambda linear: _form(tensors[linear.weight]))
    return tuple(_piece(tuple(run), form, tensors) for form, run in runs)


def whole_piece(linears: Sequence[Linear], tensors: Tensors) -> Piece:
    """Products whose rows make one weight, decoded if the file has them in several forms."""
    names = {linear.weight for linear in linears}
    forms = {_form(tensors[name]) for name in names}
    form = forms.pop()
    return _piece(tuple(linears), _DECODED if forms else form, tensors)


def mixer_inputs(mixer: Mixer) -> tuple[Linear, ...]:
    """What reads a mixer's normed input, in the order of the joint output."""
    if isinstance(mixer, AttentionSpec):
        own = (mixer.query, mixer.gate, mixer.key, mixer.value)
        return tuple(linear for linear in own if linear is not None)
    return mixer.mixed, mixer.gate, mixer.beta, mixer.alpha


def _joints(layer: LayerSpec) -> Iterator[tuple[Linear, ...]]:
    """Products that read the same input, in order."""
    yield mixer_inputs(layer.mixer)
    yield (layer.mixer.output,)
    for branch in layer.branches:
        if isinstance(branch.body, FeedForwardSpec):
            yield branch.body.gate, branch.body.up
            yield (branch.body.down,)
        if branch.gate is not None:
            yield (branch.gate,)
    if layer.per_layer is not None:
        yield (layer.per_layer.gate,)
        yield (layer.per_layer.project,)


def _stacks(layer: LayerSpec) -> Iterator[list[Linear]]:
    """Gate, up and down of all experts."""
    for branch in layer.branches:
        if isinstance(branch.body, ExpertsSpec):
            experts = branch.body.experts
            yield [expert.gate for expert in experts]
            yield [expert.up for expert in experts]
            yield [expert.down for expert in experts]


def _piece(linears: tuple[Linear, ...], form: _Form, tensors: Tensors) -> Piece:
    rows = sum(row_count(linear, tensors) for linear in linears)
    return Piece(linears, *form, rows, tensors[linears[0].weight].shape[-1])


def row_count(linear: Linear, tensors: Tensors) -> int:
    """Rows of a product's weight that take part."""
    if linear.rows is not None:
        return sum(count for _, count in linear.rows)
    return math.prod(tensors[linear.weight].shape[:-1])


def _form(facts: TensorFacts) -> _Form:
    layout = _layout(facts)
    if layout is not None and facts.shape[-1] % layout.row_unit == 0:
        return layout, "", False
    if facts.format in DENSE_BYTES and facts.scales is None:
        return None, facts.format, False
    return _DECODED


def _layout(facts: TensorFacts) -> PackedLayout | None:
    if facts.scales is None:
        return LAYOUTS.get(facts.format)
    minima, scale = facts.minima, SCALE_KINDS.get(facts.scales.format)
    if minima is None or scale is None or minima.format != facts.scales.format:
        return None
    if facts.format not in ("mlx4", "mlx8") or facts.block[0] != 1:
        return None
    return mlx_layout(int(facts.format[3:]), facts.block[1], scale)
