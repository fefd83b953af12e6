"""What a model takes besides its KV pages, estimated from its header.

Pure but for reading facts from an open source. The workspace is an upper estimate of the float32
rows that a prompt chunk holds at one time; the runner reserves what it really allocates.
"""

from __future__ import annotations

import math

from engine.checkpoint.source import CheckpointSource
from engine.memory.placement import Footprint
from engine.models.spec import AttentionSpec, FeedForwardSpec, LayerSpec, Linear, ModelSpec

FLOAT_BYTES = 4
LAYOUT_SHARE = 0.03
HIDDEN_COPIES = 4
WIDE_COPIES = 3
SCRATCH_BYTES = 16 << 20
"""Attention partials of a step and scratch of each thread."""


def footprint(
    source: CheckpointSource, spec: ModelSpec, chunk_rows: int, streams: int, *, wide: bool
) -> Footprint:
    """Bytes of weights as they are laid out, and of rows and logits as they are computed.

    ``wide`` is for weights decoded to float32. Otherwise their layout takes up to 3 % more than
    the file: 6-bit scales become bytes, and a strip of rows is filled up.
    """
    tensors = source.tensors
    stored = sum(facts.stored_bytes for facts in tensors.values())
    decoded = FLOAT_BYTES * sum(math.prod(facts.shape) for facts in tensors.values())
    widest = max(_rows(source, linear) for layer in spec.layers for linear in _wide_linears(layer))
    row = FLOAT_BYTES * (HIDDEN_COPIES * spec.hidden + WIDE_COPIES * widest)
    logits = FLOAT_BYTES * spec.vocabulary * (streams + 1)
    return Footprint(
        weight_bytes=decoded if wide else stored + math.ceil(LAYOUT_SHARE * stored),
        workspace_bytes=chunk_rows * row + logits + SCRATCH_BYTES,
    )


def _wide_linears(layer: LayerSpec) -> tuple[Linear, ...]:
    mixer = layer.mixer
    found = [mixer.query if isinstance(mixer, AttentionSpec) else mixer.mixed]
    found += [b.body.gate for b in layer.branches if isinstance(b.body, FeedForwardSpec)]
    return tuple(found)


def _rows(source: CheckpointSource, linear: Linear) -> int:
    if linear.rows is not None:
        return sum(count for _, count in linear.rows)
    return source.tensors[linear.weight].shape[0]
