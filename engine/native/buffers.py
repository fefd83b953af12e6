"""Scratch of the native programs, sized once; nothing is allocated while one runs.

Prompt chunks and steps never run at the same time, so they share everything but what only one of
them has.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.cache.formats import PAGE_ROWS
from engine.cache.pages import pages_for
from engine.models.spec import (
    AttentionSpec,
    DeltaSpec,
    ExpertsSpec,
    LayerSpec,
    ModelSpec,
    RopeSpec,
)
from engine.native.branch_buffers import BranchBuffers, BranchSizes, Codes, branch_sizes
from kernels.cpu.library import Pool
from kernels.cpu.records import TILE_ROWS, Activations


@dataclass(frozen=True, slots=True)
class NativeSizes:
    """Widths of the buffers, in elements a row unless said otherwise.

    Attributes:
        rows: of a prompt chunk; a step has at most ``step_rows``.
        inputs: the widest input of a product.
        outputs: the widest joint output of products of one input.
        partials: of a step's attention over every page of the longest context.
        angles: two a pair, all rotary rules together.
        dense_scratch, chunk_scratch: floats a thread.
    """

    rows: int
    step_rows: int
    threads: int
    hidden: int
    inputs: int
    outputs: int
    partials: int
    partial_pages: int
    angles: int
    vocabulary: int
    dense_scratch: int
    chunk_scratch: int
    branches: BranchSizes

    @property
    def total_bytes(self) -> int:
        """Bytes of all buffers."""
        shared = self.rows * (self.hidden + self.outputs + 2 * self.inputs + self.angles)
        shared += TILE_ROWS * self.inputs
        a_step_row = self.partials + self.vocabulary
        scratch = self.threads * (self.dense_scratch + self.chunk_scratch)
        floats = shared + self.step_rows * a_step_row + scratch
        codes = Codes.total_bytes(self.step_rows, self.inputs)
        return 4 * floats + codes + self.branches.total_bytes


def native_sizes(spec: ModelSpec, context_tokens: int, streams: int, pool: Pool) -> NativeSizes:
    """The buffers that a model needs for chunks of one page and steps of ``streams`` rows."""
    pages = pages_for(context_tokens)
    widths = [_widths(spec, layer) for layer in spec.layers]
    branches = branch_sizes(spec, PAGE_ROWS, streams)
    attentions = [
        (part.head_count, part.kv_head_count, part.head_dim)
        for part in dict.fromkeys(spec.attentions)
    ]
    ropes = {layer.rope for layer in spec.attentions if layer.rope is not None}
    return NativeSizes(
        rows=PAGE_ROWS,
        step_rows=streams,
        threads=pool.threads,
        hidden=spec.hidden,
        inputs=max(inputs for inputs, _ in widths),
        outputs=max(branches.per_layer, *(outputs for _, outputs in widths)),
        partials=max((heads * pages * (dim + 2) for heads, _, dim in attentions), default=0),
        partial_pages=pages,
        angles=sum(2 * len(rope.frequencies) for rope in ropes),
        vocabulary=spec.vocabulary,
        dense_scratch=pool.dense_scratch(PAGE_ROWS),
        chunk_scratch=max((pool.chunk_scratch(*each) for each in attentions), default=0),
        branches=branches,
    )


def _widths(spec: ModelSpec, layer: LayerSpec) -> tuple[int, int]:
    """The widest inputs and outputs of a layer's products, experts apart."""
    inputs, outputs = _mixer_widths(layer.mixer)
    for branch in layer.branches:
        if not isinstance(branch.body, ExpertsSpec):
            inputs, outputs = max(inputs, branch.body.width), max(outputs, 2 * branch.body.width)
    if spec.per_layer is not None:
        inputs = max(inputs, spec.per_layer.width)
    return max(inputs, spec.hidden), max(outputs, spec.hidden)


def _mixer_widths(mixer: AttentionSpec | DeltaSpec) -> tuple[int, int]:
    if isinstance(mixer, DeltaSpec):
        values = mixer.value_head_count * mixer.value_dim
        return values, mixer.channels + values + 2 * mixer.value_head_count
    queries = mixer.head_count * mixer.head_dim
    own = queries if mixer.gate is None else 2 * queries
    return queries, own + 2 * mixer.kv_head_count * mixer.head_dim


class NativeBuffers:
    """Owns the scratch tensors; float32 but for the codes and the experts' numbers."""

    def __init__(self, sizes: NativeSizes) -> None:
        self.sizes = sizes
        self.residual = torch.zeros(sizes.rows, sizes.hidden)
        self.outputs = torch.zeros(sizes.rows, sizes.outputs)
        self.values = torch.zeros(sizes.rows, sizes.inputs)
        self.packed = torch.zeros(sizes.rows + TILE_ROWS, sizes.inputs)
        self.partials = torch.empty(sizes.step_rows, sizes.partials)
        self.logits = torch.zeros(sizes.step_rows, sizes.vocabulary)
        self.dense_scratch = torch.zeros(sizes.threads, sizes.dense_scratch)
        self.chunk_scratch = torch.zeros(sizes.threads, sizes.chunk_scratch)
        self.branches = BranchBuffers(sizes.branches)
        self._codes = Codes(sizes.step_rows, sizes.inputs)
        self._angles: dict[RopeSpec, torch.Tensor] = {}

    def angles(self, rope: RopeSpec) -> torch.Tensor:
        """Cosines and sines of a rotary rule, [row, 2, pair]; the same table on every call."""
        if rope not in self._angles:
            self._angles[rope] = torch.zeros(self.sizes.rows, 2, len(rope.frequencies))
        return self._angles[rope]

    def chunk_inputs(self) -> Activations:
        """Product inputs of a prompt chunk: values only."""
        return Activations(self.values.data_ptr(), None, None, None, self.sizes.inputs, 0)

    def step_inputs(self) -> Activations:
        """Product inputs of a step: values, and the same as int16 codes with scales."""
        return self._codes.inputs(self.values)
