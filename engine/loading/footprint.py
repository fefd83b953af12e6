"""What a model takes besides its pages and recurrent states, estimated from its header.

Pure but for reading facts from an open source. Everything is an upper estimate; the runner reserves
what it really allocates.
"""

from __future__ import annotations

import math
from typing import Final

from engine.cache.formats import PAGE_ROWS
from engine.checkpoint.source import CheckpointSource, TensorFacts
from engine.loading.reads import Tensors, decoded_elements, products, small_elements
from engine.memory.placement import Footprint
from engine.models.native_limits import unsupported_by_native
from engine.models.spec import (
    AttentionSpec,
    DeltaSpec,
    ExpertsSpec,
    LayerSpec,
    Linear,
    Mixer,
    ModelSpec,
)
from kernels.cpu.records import GROUP, STRIP_BITS
from kernels.quant.facts import FACTS

FLOAT_BYTES: Final = 4
WORD_BYTES: Final = 560
"""Of a word in the tokenizer, its strings, merges and tables: measured with 49,152 and 262,144."""
LAYOUT_SHARE: Final = 0.03
LAID_OUT: Final = "laid out in memory for this processor"
STRIP_ROWS: Final = 16
HIDDEN_COPIES: Final = 4
WIDE_COPIES: Final = 2
SCRATCH_BYTES: Final = 8 << 20
"""What grows neither with the rows nor with the model."""
MOST_THREADS: Final = 16
BLOCK_ROWS: Final = 64
PANEL_FLOATS: Final = 48 << 10
"""Scores and packed rows of one thread."""


def footprint(source: CheckpointSource, spec: ModelSpec, *, wide: bool) -> Footprint:
    """Bytes of weights as they are laid out, and of rows and logits as they are computed.

    ``wide`` asks for weights decoded to float32, each tensor once; what the native library cannot
    run is decoded too. Rows that are only looked up are not. Otherwise the layout takes up to 3 %
    more than the file (6-bit scales become bytes), codes of 2 and 3 bits take 4, and strips of
    rows are filled up.
    """
    tensors = source.tensors
    reason = "as it was asked for" if wide else unsupported_by_native(spec)
    wide = reason is not None
    if wide:
        weights = FLOAT_BYTES * decoded_elements(spec, tensors)
    else:
        weights = _laid_out_bytes(spec, tensors) + FLOAT_BYTES * small_elements(spec, tensors)
    return Footprint(
        weight_bytes=weights,
        workspace_bytes=_scratch_bytes(spec),
        row_bytes=FLOAT_BYTES * (HIDDEN_COPIES * spec.hidden + wide_floats(spec)),
        stream_page_bytes=FLOAT_BYTES * partial_floats(spec),
        logit_bytes=FLOAT_BYTES * spec.vocabulary,
        vocabulary_bytes=WORD_BYTES * spec.vocabulary,
        loading_bytes=FLOAT_BYTES * _most_regrouped(spec, tensors) if wide else 0,
        weights=LAID_OUT if reason is None else f"as 32-bit numbers: {reason}",
    )


def wide_floats(spec: ModelSpec) -> int:
    """Numbers a prompt row beside the residual and its norms, in the widest layer."""
    most = max(_layer_floats(layer, spec) for layer in spec.layers)
    if spec.per_layer is not None:
        most += WIDE_COPIES * len(spec.layers) * spec.per_layer.width
    return most


def _laid_out_bytes(spec: ModelSpec, tensors: Tensors) -> int:
    return sum(_matrix_bytes(tensors[linear.weight], linear) for linear in products(spec))


def _matrix_bytes(facts: TensorFacts, linear: Linear) -> int:
    """One product's rows, filled up to whole strips."""
    all_rows, columns = math.prod(facts.shape[:-1]), facts.shape[-1]
    rows = all_rows if linear.rows is None else sum(count for _, count in linear.rows)
    filled = -(-rows // STRIP_ROWS) * STRIP_ROWS
    if FACTS[facts.format].type_id is None:
        return filled * _joined_row_bytes(facts, columns)
    return math.ceil(facts.stored_bytes / max(1, all_rows) * filled * (1 + LAYOUT_SHARE))


def _joined_row_bytes(facts: TensorFacts, columns: int) -> int:
    """A row of codes whose scales lie apart, in strips or decoded to float32."""
    bits = STRIP_BITS.get(facts.format)
    group = columns if facts.scales is None else facts.block[1]
    if bits is None or group % GROUP:
        return FLOAT_BYTES * columns
    head = FLOAT_BYTES
    if facts.scales is not None and facts.minima is not None:
        head = FACTS[facts.scales.format].block_bytes + FACTS[facts.minima.format].block_bytes
    return columns * bits // 8 + head * -(-columns // group)


def _layer_floats(layer: LayerSpec, spec: ModelSpec) -> int:
    """Floats a row beside the residual and its norms."""
    found = WIDE_COPIES * _mixer_floats(layer.mixer)
    for branch in layer.branches:
        body = branch.body
        if isinstance(body, ExpertsSpec):
            width = max(expert.width for expert in body.experts)
            a_pair = 2 * spec.hidden + 4 * width
            found = max(found, WIDE_COPIES * len(body.experts) + body.active_count * a_pair)
        else:
            found = max(found, WIDE_COPIES * 3 * body.width)
    return found + (spec.hidden if len(layer.branches) > 1 else 0)


def _mixer_floats(mixer: Mixer) -> int:
    """What the products of a mixer put out and take in, the widest copies of both."""
    match mixer:
        case AttentionSpec():
            queries = mixer.head_count * mixer.head_dim
            return queries * (2 if mixer.gate is None else 3) + (
                2 * mixer.kv_head_count * mixer.head_dim
            )
        case DeltaSpec():
            return 2 * (mixer.channels + 2 * mixer.value_head_count * mixer.value_dim)


def _scratch_bytes(spec: ModelSpec) -> int:
    """Attention's own: keys, values and sums of one page for each thread, scores of all heads."""
    most = 0
    for part in spec.attentions:
        shared = part.head_count // part.kv_head_count
        a_thread = (2 * PAGE_ROWS + BLOCK_ROWS * shared) * part.head_dim + PANEL_FLOATS
        scores = part.head_count * BLOCK_ROWS * PAGE_ROWS
        most = max(most, MOST_THREADS * a_thread, HIDDEN_COPIES * scores)
    return SCRATCH_BYTES + FLOAT_BYTES * most


def partial_floats(spec: ModelSpec) -> int:
    """Floats of one generated row's attention for every page of its context."""
    return max((part.head_count * (part.head_dim + 2) for part in spec.attentions), default=0)


def _most_regrouped(spec: ModelSpec, tensors: Tensors) -> int:
    """Elements of the largest tensor whose rows are put together anew when it was decoded."""
    scattered = {
        linear.weight
        for linear in products(spec)
        if linear.rows is not None and len(linear.rows) > 1
    }
    return max((math.prod(tensors[name].shape) for name in scattered), default=0)
