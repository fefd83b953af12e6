"""Bytes of scratch on a GPU, from a spec alone; no torch, so that plans count exactly these.

A piece's size is the most that any layer asks of it. Pieces that are never in use at one time could
share memory; they do not, but for those that have one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from engine.checkpoint.source import TensorFacts
from engine.gpu import names
from engine.models.spec import (
    AttentionSpec,
    DeltaSpec,
    ExpertsSpec,
    FeedForwardSpec,
    LayerSpec,
    Linear,
    Mixer,
    ModelSpec,
)
from kernels.delta_prompt.sizes import prompt_bytes
from kernels.draw.sizes import WANTED, candidate_words
from kernels.mixture.sizes import count_words
from kernels.step_attention.sizes import partial_floats

Tensors = Mapping[str, TensorFacts]
FLOAT: Final = 4
HALF: Final = 2
CANDIDATES: Final = 2 * WANTED
"""Candidates of one row that there is room for."""
STEP_BUCKETS: Final = (1, 2, 4, 8, 16)
"""Rows of a recorded step; a step of other many takes the next larger one."""


def quantized_bytes(rows: int, columns: int) -> int:
    """Of rows as ``kernels.rows.QuantizedRows`` has them."""
    whole = rows * columns
    return 2 * whole + FLOAT * (whole // 32) + FLOAT * (whole // 16)


@dataclass(frozen=True, slots=True)
class _Widths:
    """Columns of a model's pieces, each the widest of all layers; 0 where no layer has one."""

    joined: int
    query: int
    inner: int
    pairs: int
    routed: int
    active: int
    read: int
    has_sums: bool


def bucket_of(rows: int) -> int:
    """The recorded step that so many rows take."""
    return next(bucket for bucket in STEP_BUCKETS if bucket >= rows)


def candidate_room(rows: int) -> int:
    """Words of the candidates of so many rows: ids, values and a count each."""
    return rows * (2 * CANDIDATES + 1)


def step_sizes(spec: ModelSpec, streams: int) -> Mapping[str, int]:
    """Bytes of each piece of scratch of a step."""
    rows, wide, hidden = bucket_of(streams), _widths(spec), spec.hidden
    pairs = rows * wide.active
    inner = max(quantized_bytes(rows, wide.inner), quantized_bytes(pairs, wide.pairs))
    found = {
        names.RESIDUAL: FLOAT * rows * hidden,
        names.NORMED: quantized_bytes(rows, hidden),
        names.JOINED: FLOAT * max(rows * wide.joined, 2 * pairs * wide.pairs),
        names.QUERY: FLOAT * rows * wide.query,
        names.INNER: max(inner, quantized_bytes(rows, hidden)),
        names.SEPARATE: FLOAT * rows * hidden,
        names.PARTIALS: FLOAT * _partials(spec, rows),
        names.READ: FLOAT * rows * wide.read,
        names.LOGITS: FLOAT * rows * spec.vocabulary,
        names.CANDIDATES: FLOAT * candidate_room(rows),
        names.BOUNDS: FLOAT * candidate_words(rows, spec.vocabulary),
    }
    if wide.has_sums:
        found |= _branch_sizes(rows, wide, hidden)
    if wide.active:
        found[names.EXPERT_OUTPUTS] = FLOAT * pairs * hidden
    return found


def unpacked_elements(spec: ModelSpec, tensors: Tensors) -> int:
    """Elements of the largest weight that is unpacked for a prompt chunk.

    Products of one input may be packed as one weight, so they count together; of a mixture each
    stack is unpacked whole.
    """
    return max(max(_unpacked(layer, tensors)) for layer in spec.layers)


def chunk_sizes(spec: ModelSpec, rows: int, unpacked: int) -> Mapping[str, int]:
    """Bytes of each piece of scratch of a prompt chunk of so many rows at most.

    Args:
        unpacked: see ``unpacked_elements``.
    """
    wide, hidden = _widths(spec), spec.hidden
    pairs = rows * wide.active
    deltas = [layer.mixer for layer in spec.layers if isinstance(layer.mixer, DeltaSpec)]
    found = {
        names.RESIDUAL: FLOAT * rows * hidden,
        names.NORMED: HALF * rows * hidden,
        names.JOINED: HALF * max(rows * wide.joined, 2 * pairs * wide.pairs),
        names.QUERY: HALF * rows * wide.query,
        names.INNER: HALF * rows * max(wide.inner, hidden),
        names.SEPARATE: FLOAT * rows * hidden,
        names.UNPACKED: HALF * unpacked,
    }
    if deltas:
        found[names.DELTA] = max(_delta_bytes(rows, each) for each in deltas)
    if wide.has_sums:
        found |= _branch_sizes(rows, wide, hidden)
    if wide.active:
        found |= {
            names.EXPERT_OUTPUTS: HALF * pairs * hidden,
            names.PAIRS: HALF * pairs * wide.pairs,
            names.ORDER: FLOAT * pairs,
            names.STARTS: FLOAT * (wide.routed + 1),
            names.COUNTS: FLOAT * count_words(pairs, wide.routed),
        }
    return found


def _unpacked(layer: LayerSpec, tensors: Tensors) -> Iterator[int]:
    match layer.mixer:
        case AttentionSpec() as mixer:
            own = (mixer.query, mixer.gate, mixer.key, mixer.value)
            yield _together(own, tensors)
        case DeltaSpec() as mixer:
            yield _together((mixer.mixed, mixer.gate, mixer.beta, mixer.alpha), tensors)
    yield _together((mixer.output,), tensors)
    for branch in layer.branches:
        body = branch.body
        if isinstance(body, FeedForwardSpec):
            yield _together((body.gate, body.up), tensors)
            yield _together((body.down,), tensors)
        else:
            yield len(body.experts) * _together((body.experts[0].gate,), tensors)


def _together(linears: Iterable[Linear | None], tensors: Tensors) -> int:
    return sum(_elements(each, tensors) for each in linears if each is not None)


def _elements(linear: Linear, tensors: Tensors) -> int:
    shape = tensors[linear.weight].shape
    rows = linear.rows
    taken = prod(shape[:-1]) if rows is None else sum(count for _, count in rows)
    return taken * shape[-1]


def _branch_sizes(rows: int, wide: _Widths, hidden: int) -> dict[str, int]:
    """What layers with several branches or experts take besides."""
    return {
        names.PLAIN: FLOAT * rows * hidden,
        names.TOTAL: FLOAT * rows * hidden,
        names.FED: FLOAT * rows * hidden,
        names.ROW_GATE: FLOAT * rows,
        names.ROUTED: FLOAT * rows * wide.routed,
        names.EXPERT_WEIGHTS: FLOAT * rows * wide.active,
        names.CHOSEN: FLOAT * rows * wide.active,
    }


def _widths(spec: ModelSpec) -> _Widths:
    mixers = [layer.mixer for layer in spec.layers]
    bodies = [branch.body for layer in spec.layers for branch in layer.branches]
    dense = [body.width for body in bodies if isinstance(body, FeedForwardSpec)]
    mixtures = [body for body in bodies if isinstance(body, ExpertsSpec)]
    return _Widths(
        joined=max([*map(_joined, mixers), *(2 * width for width in dense)]),
        query=max([_query(mixer) for mixer in mixers]),
        inner=max([*map(_taken_in, mixers), *dense]),
        pairs=max([body.experts[0].width for body in mixtures], default=0),
        routed=max([len(body.experts) for body in mixtures], default=0),
        active=max([body.active_count for body in mixtures], default=0),
        read=max([_taken_in(each) for each in mixers if isinstance(each, DeltaSpec)], default=0),
        has_sums=any(_has_sum(layer) for layer in spec.layers),
    )


def _has_sum(layer: LayerSpec) -> bool:
    first = layer.branches[0]
    alone = len(layer.branches) == 1 and first.gate is None
    return not (alone and isinstance(first.body, FeedForwardSpec))


def _joined(mixer: Mixer) -> int:
    match mixer:
        case AttentionSpec():
            queries = mixer.head_count * mixer.head_dim * (1 if mixer.gate is None else 2)
            return queries + 2 * mixer.kv_head_count * mixer.head_dim
        case DeltaSpec():
            return mixer.channels + mixer.value_head_count * (mixer.value_dim + 2)


def _query(mixer: Mixer) -> int:
    return mixer.head_count * mixer.head_dim if isinstance(mixer, AttentionSpec) else 0


def _taken_in(mixer: Mixer) -> int:
    """Columns of what the output product reads."""
    if isinstance(mixer, AttentionSpec):
        return mixer.head_count * mixer.head_dim
    return mixer.value_head_count * mixer.value_dim


def _delta_bytes(rows: int, delta: DeltaSpec) -> int:
    return prompt_bytes(rows, delta.key_head_count, delta.value_head_count, delta.key_dim)


def _partials(spec: ModelSpec, rows: int) -> int:
    return max(
        (
            partial_floats(rows, each.head_count, each.head_dim, each.kv_head_count)
            for each in spec.attentions
        ),
        default=0,
    )
