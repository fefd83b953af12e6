"""A model as lists of native operations, made once when it is loaded.

A step is one list. A prompt chunk is three: ``body`` runs every row up to the last layer's keys
and values, ``tail`` the rest of that layer for a row whose logits are wanted, ``end`` makes them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from engine.cache.kv import KvArena
from engine.cache.lane import Lane
from engine.forward.products import linears
from engine.models.parts import attention_of, feed_forward_of, projections
from engine.models.spec import FeedForwardSpec, LayerSpec, ModelSpec, Norm
from engine.native.buffers import NativeBuffers
from engine.native.operations import Entry, OperationBuilder
from engine.native.weights import StoredWeights
from kernels.cpu.library import Pool
from kernels.cpu.records import GROUP, Activations, Operation, Rows

HEAD_MULTIPLE = 16


def unsupported_by_native(spec: ModelSpec) -> str | None:
    """Why this model cannot run natively, in one sentence; None where it can.

    The native code computes whole groups of 32 columns and 16 elements of a head at a time, as
    every published model has them.
    """
    if spec.hidden % GROUP:
        return f"Its width of {spec.hidden} is no multiple of {GROUP}."
    if (missing := _missing(spec)) is not None:
        return missing
    for layer in spec.layers:
        attention, width = attention_of(layer), feed_forward_of(layer).width
        if width % GROUP:
            return f"Its feed-forward width of {width} is no multiple of {GROUP}."
        if attention.head_dim % HEAD_MULTIPLE:
            return f"Its heads of {attention.head_dim} are no multiple of {HEAD_MULTIPLE}."
        if attention.head_count * attention.head_dim % GROUP:
            return f"Its {attention.head_count} heads are no multiple of {GROUP} columns together."
    return None


def _missing(spec: ModelSpec) -> str | None:
    """What the model has that no native operation does."""
    linears_cut = any(linear.rows is not None for linear in linears(spec))
    if spec.recurrent or spec.per_layer or spec.logit_cap or linears_cut:
        return f"The {spec.family} family has parts without native code."
    for layer in spec.layers:
        plain = len(layer.branches) == 1 and layer.scale is None and layer.branches[0].gate is None
        if not (plain and isinstance(layer.branches[0].body, FeedForwardSpec)):
            return f"The {spec.family} family has layers without native code."
        attention = attention_of(layer)
        if attention.gate or attention.value_norm or not (attention.key and attention.value):
            return f"The {spec.family} family has attention without native code."
    return None


class Program:
    """A list of operations and the records behind it. Owns the records, not the buffers."""

    def __init__(self, pool: Pool, builder: OperationBuilder, entries: Sequence[Entry]) -> None:
        self._pool = pool
        self._kept = (builder, tuple(record for _, record in entries))
        self._list = (Operation * len(entries))(
            *(Operation(int(kind), ctypes.addressof(record)) for kind, record in entries)
        )

    def run(self, rows: Rows) -> None:
        """Run every operation for ``rows``."""
        self._pool.step(self._list, rows)


class RowArrays:
    """Ids, positions and block tables of some rows, as the library reads them."""

    def __init__(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int], groups: int
    ) -> None:
        self._ids = np.asarray(ids, dtype=np.int32)
        self._positions = np.asarray(positions, dtype=np.int32)
        self._tables = [lane.table(group) for group in range(groups) for lane in lanes]
        self._addresses = np.asarray([t.ctypes.data for t in self._tables], dtype=np.uintp)

    def rows(self, first: int, count: int) -> Rows:
        """The record of ``count`` rows from ``first``; valid as long as this object lives."""
        return Rows(
            self._ids.ctypes.data,
            self._positions.ctypes.data,
            self._addresses.ctypes.data,
            first,
            count,
            len(self._ids),
        )


class NativePrograms:
    """The step, body and tail programs of one model."""

    def __init__(
        self,
        spec: ModelSpec,
        weights: StoredWeights,
        kv: KvArena,
        pool: Pool,
        buffers: NativeBuffers,
    ) -> None:
        def builder(inputs: Activations) -> OperationBuilder:
            return OperationBuilder(spec, weights, kv, buffers, inputs)

        step = builder(buffers.step_inputs())
        chunk = builder(buffers.chunk_inputs())
        end = _end(step)
        self.step = Program(pool, step, [*_body(step), *_tail(step), *end])
        self.body = Program(pool, chunk, _body(chunk))
        self.tail = Program(pool, chunk, _tail(chunk))
        self.end = Program(pool, step, end)


def _body(build: OperationBuilder) -> list[Entry]:
    """From the ids to the last layer's keys and values."""
    spec = build.spec
    ropes = [attention_of(layer).rope for layer in spec.layers]
    found = [build.embed()]
    found += [build.angles(rope) for rope in dict.fromkeys(ropes) if rope is not None]
    added: Norm | None = None
    for index, layer in enumerate(spec.layers):
        found.append(build.residual(adds=index > 0, post=added, then=layer.mixer_norm))
        attention = attention_of(layer)
        found.append(build.product(projections(attention)))
        found.append(build.rotate(attention))
        if index + 1 < len(spec.layers):
            found += _after_keys(build, layer)
        added = layer.branches_post_norm
    return found


def _tail(build: OperationBuilder) -> list[Entry]:
    """From the last layer's attention to its last product."""
    return _after_keys(build, build.spec.layers[-1])


def _end(build: OperationBuilder) -> list[Entry]:
    """From the last product to the logits."""
    spec = build.spec
    post = spec.layers[-1].branches_post_norm
    return [build.residual(adds=True, post=post, then=spec.final_norm), build.head()]


def _after_keys(build: OperationBuilder, layer: LayerSpec) -> list[Entry]:
    attention, feed_forward = attention_of(layer), feed_forward_of(layer)
    return [
        *build.attend(attention),
        build.product([attention.output]),
        build.residual(adds=True, post=layer.mixer_post_norm, then=layer.branches[0].norm),
        build.product([feed_forward.gate, feed_forward.up]),
        build.gate(feed_forward),
        build.product([feed_forward.down]),
    ]
