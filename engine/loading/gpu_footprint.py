"""What a model takes on a GPU besides its pages and recurrent states, estimated from its header.

Weights keep their original bits, laid out in planes that may need a little more. Tables that are
only looked up by rows stay in the file. Everything is an upper estimate, made before any GPU path
was measured; pure but for reading facts from an open source.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from engine.checkpoint.source import CheckpointSource
from engine.loading.footprint import (
    FLOAT_BYTES,
    HIDDEN_COPIES,
    LAYOUT_SHARE,
    WORD_BYTES,
    partial_floats,
    wide_floats,
)
from engine.loading.reads import (
    Part,
    Tensors,
    expert_parts,
    layer_parts,
    mixtures,
    products,
    small_elements,
)
from engine.memory.placement import Footprint, Streamable
from engine.models.spec import FeedForwardSpec, Linear, ModelSpec

HALF_BYTES: Final = 2
SCRATCH_BYTES: Final = 64 << 20
LAID_OUT: Final = "laid out in GPU memory in their own bits"
LOOKED_UP: Final = "; rows that are only looked up stay in the file"


def gpu_footprint(source: CheckpointSource, spec: ModelSpec) -> Footprint:
    """Bytes of weights, of rows in 16-bit numbers and of logits, and how the weights divide."""
    tensors = source.tensors
    small = FLOAT_BYTES * small_elements(spec, tensors)
    row = FLOAT_BYTES * HIDDEN_COPIES * spec.hidden + HALF_BYTES * wide_floats(spec)
    return Footprint(
        weight_bytes=_bytes(products(spec), tensors) + small,
        workspace_bytes=SCRATCH_BYTES,
        row_bytes=row,
        stream_page_bytes=FLOAT_BYTES * partial_floats(spec),
        logit_bytes=FLOAT_BYTES * spec.vocabulary,
        unpacked_bytes=HALF_BYTES * max(_elements(each, tensors) for each in _dense(spec)),
        vocabulary_bytes=WORD_BYTES * spec.vocabulary,
        weights=LAID_OUT + (LOOKED_UP if _has_lookups(spec) else ""),
        streamable=_streamable(spec, tensors),
    )


def _has_lookups(spec: ModelSpec) -> bool:
    """Whether a table of rows is no product's weight too."""
    return spec.head != spec.embedding or spec.per_layer is not None


def _streamable(spec: ModelSpec, tensors: Tensors) -> Streamable:
    bodies = [body for layer in spec.layers for body in mixtures(layer)]
    layers = tuple(_bytes(_linears(layer_parts(layer)), tensors) for layer in spec.layers)
    if not bodies:
        return Streamable(layers)
    sizes = [
        max(_bytes(_expert_linears(expert), tensors) for expert in body.experts) for body in bodies
    ]
    return Streamable(
        layer_bytes=layers,
        experts_bytes=sum(_bytes(_linears(expert_parts(body)), tensors) for body in bodies),
        expert_bytes=max(sizes),
        expert_layers=len(bodies),
        expert_count=max(len(body.experts) for body in bodies),
        active_count=max(body.active_count for body in bodies),
    )


def _dense(spec: ModelSpec) -> Iterator[Linear]:
    """Every product of a layer that is no expert's."""
    for layer in spec.layers:
        yield from _linears(layer_parts(layer))


def _expert_linears(expert: FeedForwardSpec) -> list[Linear]:
    return [expert.gate, expert.up, expert.down]


def _linears(parts: Iterable[Part]) -> list[Linear]:
    """The products among parts, each once."""
    return list(dict.fromkeys(part for part in parts if isinstance(part, Linear)))


def _elements(linear: Linear, tensors: Tensors) -> int:
    shape = tensors[linear.weight].shape
    return _rows(linear, shape) * shape[-1]


def _rows(linear: Linear, shape: tuple[int, ...]) -> int:
    return math.prod(shape[:-1]) if linear.rows is None else sum(count for _, count in linear.rows)


def _bytes(linears: Iterable[Linear], tensors: Tensors) -> int:
    """Stored bytes of the rows that products use, with what the layout adds."""
    total = 0.0
    for linear in linears:
        facts = tensors[linear.weight]
        share = _rows(linear, facts.shape) / max(1, math.prod(facts.shape[:-1]))
        total += facts.stored_bytes * share
    return math.ceil(total * (1 + LAYOUT_SHARE))
