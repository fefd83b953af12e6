"""What a model takes on a GPU besides its pages and recurrent states, from its header alone.

Weights are counted as the arena lays them out, scratch as the runner allocates it, by the very
functions that they are allocated by. Pure but for reading facts from an open source; no torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from engine.checkpoint.source import CheckpointSource
from engine.gpu.arena.pieces import row_count, whole_piece
from engine.gpu.arena.segments import BUFFER_BYTES, BUFFERS, SEGMENT_ELEMENTS
from engine.gpu.arena.smalls import weight_bytes
from engine.gpu.names import LOGITS
from engine.gpu.sizes import STEP_BUCKETS, chunk_sizes, step_sizes, unpacked_elements
from engine.loading.footprint import FLOAT_BYTES, WORD_BYTES
from engine.loading.reads import Part, Tensors, expert_parts, layer_parts, mixtures
from engine.memory.placement import Footprint, Streamable
from engine.models.spec import ExpertsSpec, FeedForwardSpec, Linear, ModelSpec

FEW_ROWS: Final = 64
MANY_ROWS: Final = 4096
SCRATCH_BYTES: Final = 64 << 20
"""Facts of rows, angles, what states pass through, and what torch rounds up."""
LOADING_ELEMENT_BYTES: Final = 24
"""Of what is packed or decoded at a time, at most."""
LAID_OUT: Final = "laid out in GPU memory in their own bits"
LOOKED_UP: Final = "; per-layer rows, which are only looked up, stay in the file"


def gpu_footprint(source: CheckpointSource, spec: ModelSpec) -> Footprint:
    """Bytes of weights, of rows of prompts and steps and of logits, and how the weights divide."""
    tensors = source.tensors
    fixed, row = _chunk_bytes(spec, tensors)
    loading = BUFFERS * BUFFER_BYTES + LOADING_ELEMENT_BYTES * SEGMENT_ELEMENTS
    return Footprint(
        weight_bytes=weight_bytes(spec, tensors),
        workspace_bytes=SCRATCH_BYTES + fixed,
        row_bytes=row,
        step_row_bytes=_step_row_bytes(spec),
        steps_double=True,
        logit_bytes=FLOAT_BYTES * spec.vocabulary,
        loading_bytes=loading,
        vocabulary_bytes=WORD_BYTES * spec.vocabulary,
        weights=LAID_OUT + ("" if spec.per_layer is None else LOOKED_UP),
        streamable=_streamable(spec, tensors),
    )


def _chunk_bytes(spec: ModelSpec, tensors: Tensors) -> tuple[int, int]:
    """Of scratch of prompt chunks: what any takes, and what each row adds."""
    unpacked = unpacked_elements(spec, tensors)
    few, many = (sum(chunk_sizes(spec, rows, unpacked).values()) for rows in (FEW_ROWS, MANY_ROWS))
    row = -(-(many - few) // (MANY_ROWS - FEW_ROWS))
    return max(0, few - FEW_ROWS * row), row


def _step_row_bytes(spec: ModelSpec) -> int:
    """Of scratch of steps, the most that a row takes in any recorded number of them."""
    found = []
    for rows in STEP_BUCKETS:
        sizes = step_sizes(spec, rows)
        found.append(-(-(sum(sizes.values()) - sizes[LOGITS]) // rows))
    return max(found)


def _streamable(spec: ModelSpec, tensors: Tensors) -> Streamable:
    bodies = [body for layer in spec.layers for body in mixtures(layer)]
    layers = tuple(_bytes(_linears(layer_parts(layer)), tensors) for layer in spec.layers)
    if not bodies:
        return Streamable(layers)
    sizes = [_largest_expert(body, tensors) for body in bodies]
    return Streamable(
        layer_bytes=layers,
        experts_bytes=sum(_bytes(_linears(expert_parts(body)), tensors) for body in bodies),
        expert_bytes=max(sizes),
        expert_layers=len(bodies),
        expert_count=max(len(body.experts) for body in bodies),
        active_count=max(body.active_count for body in bodies),
    )


def _largest_expert(body: ExpertsSpec, tensors: Tensors) -> int:
    """Experts of one stack differ by where their rows begin, and are counted once."""
    kinds: dict[tuple[tuple[str, int], ...], FeedForwardSpec] = {}
    for expert in body.experts:
        linears = _expert_linears(expert)
        kinds[tuple((each.weight, row_count(each, tensors)) for each in linears)] = expert
    return max(_bytes(_expert_linears(expert), tensors) for expert in kinds.values())


def _expert_linears(expert: FeedForwardSpec) -> list[Linear]:
    return [expert.gate, expert.up, expert.down]


def _linears(parts: Iterable[Part]) -> list[Linear]:
    """The products among parts, each once."""
    return list(dict.fromkeys(part for part in parts if isinstance(part, Linear)))


def _bytes(linears: Iterable[Linear], tensors: Tensors) -> int:
    """Of the rows that products use, as they are laid out."""
    counts = Counter((linear.weight, row_count(linear, tensors)) for linear in linears)
    return sum(
        times * whole_piece([Linear(name, rows=((0, rows),))], tensors).size_bytes
        for (name, rows), times in counts.items()
    )
