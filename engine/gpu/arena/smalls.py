"""The small tensors of a model, which a GPU keeps in float32: which, and of how many numbers.

No torch. A key names a tensor and what was made of it; ``engine.gpu.arena.weights`` makes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

from engine.checkpoint.source import TensorFacts
from engine.gpu.arena.pieces import Piece, Tensors, model_pieces, row_count
from engine.models.spec import (
    AttentionSpec,
    DeltaSpec,
    ExpertsSpec,
    LayerSpec,
    Linear,
    Mixer,
    ModelSpec,
    Norm,
)
from kernels.packed.layout import aligned

FLOAT_BYTES: Final = 4
Sized = tuple[str, int]
"""A key and the numbers behind it."""


def vector_key(name: str) -> str:
    """Of a tensor as it is."""
    return name


def norm_key(norm: Norm) -> str:
    """Of a norm's weight with its offset."""
    return f"{norm.weight} + {norm.offset}"


def taps_key(name: str) -> str:
    """Of a convolution's weights by tap."""
    return f"{name} by tap"


def decay_key(name: str, *, is_log: bool) -> str:
    """Of a delta rule's factors."""
    return f"{name} as decay" if is_log else vector_key(name)


def floats_key(linear: Linear) -> str:
    """Of a product's weight decoded."""
    return f"{linear.weight} {linear.rows} decoded"


def bias_key(piece: Piece) -> str:
    """Of the biases of a piece's products."""
    return f"bias of {' '.join(f'{each.weight} {each.rows}' for each in piece.linears)}"


def smalls(spec: ModelSpec, tensors: Tensors, made: Sequence[Piece]) -> dict[str, int]:
    """Numbers by key, in the order of computation; ``made`` are the model's pieces."""
    found = dict(_found(spec, tensors))
    for piece in made:
        if piece.has_bias:
            found[bias_key(piece)] = piece.rows
    return found


def weight_bytes(spec: ModelSpec, tensors: Tensors) -> int:
    """Bytes of the arena that holds all of a model's weights."""
    made = model_pieces(spec, tensors)
    counts = smalls(spec, tensors, made).values()
    return sum(piece.size_bytes for piece in made) + sum(map(small_bytes, counts))


def small_bytes(count: int) -> int:
    """Of so many numbers in the arena."""
    return aligned(FLOAT_BYTES * count)


def _found(spec: ModelSpec, tensors: Tensors) -> Iterator[Sized]:
    for layer in spec.layers:
        yield from _of_layer(layer, tensors)
    if spec.per_layer is not None:
        yield from _norms(tensors, spec.per_layer.norm)
    yield from _norms(tensors, spec.final_norm)


def _of_layer(layer: LayerSpec, tensors: Tensors) -> Iterator[Sized]:
    yield from _norms(tensors, layer.mixer_norm, layer.mixer_post_norm, layer.branches_post_norm)
    if layer.per_layer is not None:
        yield from _norms(tensors, layer.per_layer.norm)
    if layer.scale is not None:
        yield _vector(layer.scale, tensors)
    yield from _of_mixer(layer.mixer, tensors)
    for branch in layer.branches:
        yield from _norms(tensors, branch.norm, branch.post_norm)
        if isinstance(branch.body, ExpertsSpec):
            yield from _of_mixture(branch.body, tensors)


def _of_mixer(mixer: Mixer, tensors: Tensors) -> Iterator[Sized]:
    match mixer:
        case AttentionSpec():
            yield from _norms(tensors, mixer.query_norm, mixer.key_norm, mixer.value_norm)
        case DeltaSpec():
            yield taps_key(mixer.convolution), _elements(tensors[mixer.convolution])
            key = decay_key(mixer.decay, is_log=mixer.decay_is_log)
            yield key, _elements(tensors[mixer.decay])
            yield _vector(mixer.time_bias, tensors)
            yield from _norms(tensors, mixer.norm)


def _of_mixture(body: ExpertsSpec, tensors: Tensors) -> Iterator[Sized]:
    router = body.router
    yield floats_key(router), row_count(router, tensors) * tensors[router.weight].shape[-1]
    for name in (router.bias, body.scales):
        if name is not None:
            yield _vector(name, tensors)
    yield from _norms(tensors, body.router_norm)


def _norms(tensors: Tensors, *norms: Norm | None) -> Iterator[Sized]:
    for norm in norms:
        if norm is not None and norm.weight is not None:
            yield norm_key(norm), _elements(tensors[norm.weight])


def _vector(name: str, tensors: Tensors) -> Sized:
    return vector_key(name), _elements(tensors[name])


def _elements(facts: TensorFacts) -> int:
    return prod(facts.shape)
