"""A model as lists of native operations, made once when it is loaded.

A step is one list. A prompt chunk is three: ``body`` runs every row up to the last layer's keys
and values, ``tail`` the rest of that layer for a row whose logits are wanted, ``end`` makes them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from engine.cache.lane import Lane
from engine.native.branches import per_layer_inputs, second_half
from engine.native.mixers import mixer_rest, mixer_rows
from engine.native.operations import Added, Entry, NativeParts, OperationBuilder
from kernels.cpu.library import Pool
from kernels.cpu.records import Operation, Rows


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
    """Ids, positions, block tables and recurrent slots of some rows, as the library reads them."""

    def __init__(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int], groups: int
    ) -> None:
        self._ids = np.asarray(ids, dtype=np.int32)
        self._positions = np.asarray(positions, dtype=np.int32)
        self._tables = [lane.table(group) for group in range(groups) for lane in lanes]
        self._addresses = np.asarray([t.ctypes.data for t in self._tables], dtype=np.uintp)
        slots = [-1 if lane.recurrent_slot is None else lane.recurrent_slot for lane in lanes]
        self._slots = np.asarray(slots, dtype=np.int32)

    def rows(self, first: int, count: int) -> Rows:
        """The record of ``count`` rows from ``first``; valid as long as this object lives."""
        return Rows(
            self._ids.ctypes.data,
            self._positions.ctypes.data,
            self._addresses.ctypes.data,
            first,
            count,
            len(self._ids),
            self._slots.ctypes.data,
        )


class NativePrograms:
    """The step, body, tail and end programs of one model."""

    def __init__(self, parts: NativeParts, pool: Pool) -> None:
        step = OperationBuilder(parts, parts.buffers.step_inputs())
        chunk = OperationBuilder(parts, parts.buffers.chunk_inputs())
        tail, added = _tail(step)
        end = _end(step, added)
        self.step = Program(pool, step, [*_body(step), *tail, *end])
        self.body = Program(pool, chunk, _body(chunk))
        self.tail = Program(pool, chunk, _tail(chunk)[0])
        self.end = Program(pool, step, end)


def _body(build: OperationBuilder) -> list[Entry]:
    """From the ids to what the last layer's mixer leaves in pages or states."""
    spec = build.spec
    ropes = dict.fromkeys(layer.rope for layer in spec.attentions)
    found = [build.embed(), *(build.angles(rope) for rope in ropes if rope is not None)]
    if spec.per_layer is not None:
        found += per_layer_inputs(build, spec.per_layer)
    added: Added | None = None
    for index, layer in enumerate(spec.layers):
        found.append(build.residual(added, layer.mixer_norm))
        found += mixer_rows(build, layer.mixer)
        if index + 1 < len(spec.layers):
            rest, added = _rest(build, index)
            found += rest
    return found


def _tail(build: OperationBuilder) -> tuple[list[Entry], Added]:
    """The rest of the last layer, and what the residual gains next."""
    return _rest(build, len(build.spec.layers) - 1)


def _end(build: OperationBuilder, added: Added) -> list[Entry]:
    """From the last product to the logits."""
    return [build.residual(added, build.spec.final_norm), *build.head()]


def _rest(build: OperationBuilder, index: int) -> tuple[list[Entry], Added]:
    """A layer from its mixer's state on."""
    layer = build.spec.layers[index]
    mixed = Added(build.parts.buffers.outputs, layer.mixer_post_norm)
    found, added = second_half(build, layer, index, mixed)
    return [*mixer_rest(build, layer.mixer), *found], added
