"""Scratch of the native programs, sized once; nothing is allocated while one runs.

Prompt chunks and steps never run at the same time, so they share everything but what only one of
them has.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.cache.pages import PAGE_ROWS, pages_for
from engine.models.parts import attention_of, feed_forward_of
from engine.models.spec import ModelSpec, RopeSpec
from kernels.cpu.library import Pool
from kernels.cpu.records import GROUP, TILE_ROWS, Activations


@dataclass(frozen=True, slots=True)
class NativeSizes:
    """Widths of the buffers, in elements a row unless said otherwise.

    Attributes:
        rows: of a prompt chunk; a step has at most ``step_rows``.
        inputs: the widest input of a product.
        outputs: the widest joint output of query, key and value, or of gate and up.
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

    @property
    def total_bytes(self) -> int:
        """Bytes of all buffers."""
        shared = self.rows * (self.hidden + self.outputs + 2 * self.inputs + self.angles)
        shared += TILE_ROWS * self.inputs
        codes = self.step_rows * (2 * self.inputs + 8 * (self.inputs // GROUP))
        a_step_row = self.partials + self.vocabulary
        scratch = self.threads * (self.dense_scratch + self.chunk_scratch)
        return 4 * (shared + self.step_rows * a_step_row + scratch) + codes


def native_sizes(spec: ModelSpec, context_tokens: int, streams: int, pool: Pool) -> NativeSizes:
    """The buffers that a model needs for chunks of one page and steps of ``streams`` rows."""
    inputs, outputs, partials, chunk_scratch = spec.hidden, spec.hidden, 0, 0
    pages = pages_for(context_tokens)
    for layer in spec.layers:
        attention, width = attention_of(layer), feed_forward_of(layer).width
        heads, kv_heads, dim = attention.head_count, attention.kv_head_count, attention.head_dim
        inputs = max(inputs, heads * dim, width)
        outputs = max(outputs, (heads + 2 * kv_heads) * dim, 2 * width)
        partials = max(partials, heads * pages * (dim + 2))
        chunk_scratch = max(chunk_scratch, pool.chunk_scratch(heads, kv_heads, dim))
    ropes = {layer.rope for layer in spec.attentions if layer.rope is not None}
    return NativeSizes(
        rows=PAGE_ROWS,
        step_rows=streams,
        threads=pool.threads,
        hidden=spec.hidden,
        inputs=inputs,
        outputs=outputs,
        partials=partials,
        partial_pages=pages,
        angles=sum(2 * len(rope.frequencies) for rope in ropes),
        vocabulary=spec.vocabulary,
        dense_scratch=pool.dense_scratch(PAGE_ROWS),
        chunk_scratch=chunk_scratch,
    )


class NativeBuffers:
    """Owns the scratch tensors; float32 but for the int16 codes."""

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
        self._codes = torch.zeros(sizes.step_rows, sizes.inputs, dtype=torch.int16)
        self._scales_and_sums = torch.zeros(2, sizes.step_rows, sizes.inputs // GROUP)
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
        return Activations(
            self.values.data_ptr(),
            self._codes.data_ptr(),
            self._scales_and_sums[0].data_ptr(),
            self._scales_and_sums[1].data_ptr(),
            self.sizes.inputs,
            self.sizes.inputs // GROUP,
        )
