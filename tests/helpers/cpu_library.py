"""One native operation at a time: tensors in, records made, outputs poisoned with NaN.

Every buffer is wider than it must be. What lies beyond, and rows that were not asked for, hold NaN
before the call; ``untouched`` says whether they still do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import torch

from kernels.cpu import records
from kernels.cpu.library import Pool
from kernels.cpu.records import GROUP, Activations, Kind, Operation, Rows, Weight
from kernels.quant import FORMATS

PAD = GROUP
NAN = float("nan")


def poisoned(*shape: int) -> torch.Tensor:
    """float32 full of NaN."""
    return torch.full(shape, NAN)


def untouched(tensor: torch.Tensor) -> bool:
    """Whether all of it is still poison."""
    return bool(tensor.isnan().all())


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal bit for bit; NaNs too, and -0 is not 0."""
    raw = [x.contiguous().view(torch.uint8) for x in (a, b)]
    return a.shape == b.shape and torch.equal(*raw)


class Inputs:
    """Activations in padded buffers: those of a step, with codes, or of a chunk, without."""

    def __init__(self, rows: int, columns: int, *, codes: bool = True) -> None:
        self.columns = columns
        self.groups = columns // GROUP
        self._all = poisoned(rows, columns + PAD)
        self._codes = torch.full((rows, columns + PAD), 12345, dtype=torch.int16)
        self._scales = poisoned(rows, self.groups + 1)
        self._sums = poisoned(rows, self.groups + 1)
        self.record = Activations(
            self._all.data_ptr(),
            self._codes.data_ptr() if codes else None,
            self._scales.data_ptr() if codes else None,
            self._sums.data_ptr() if codes else None,
            columns + PAD,
            self.groups + 1,
        )

    @classmethod
    def of(cls, pool: Pool, values: torch.Tensor, *, codes: bool = True) -> Inputs:
        """Holding ``values`` [row, column], prepared."""
        made = cls(*values.shape, codes=codes)
        made.values.copy_(values)
        if codes:
            pool.prepare(made.record, *values.shape)
        return made

    @property
    def values(self) -> torch.Tensor:
        """[row, column] float32."""
        return self._all[:, : self.columns]

    @property
    def codes(self) -> torch.Tensor:
        """[row, column] int16."""
        return self._codes[:, : self.columns]

    @property
    def scales(self) -> torch.Tensor:
        """[row, group] float32."""
        return self._scales[:, : self.groups]

    @property
    def sums(self) -> torch.Tensor:
        """[row, group] float32."""
        return self._sums[:, : self.groups]

    def padding_untouched(self) -> bool:
        """Whether nothing was written beyond the columns."""
        codes = self._codes[:, self.columns :]
        rest = (self._all[:, self.columns :], self._scales[:, -1:], self._sums[:, -1:])
        return all(untouched(part) for part in rest) and bool((codes == 12345).all())


class Matrix:
    """A stored weight [out, column], read in the file's order or from strips."""

    def __init__(self, name: str, stored: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        found = FORMATS[name]
        self.stored, self.bias = stored, bias
        self.columns = stored.shape[1] // found.block_bytes * found.block_elements
        self.decoded = found.decode(stored)
        self._strips: list[torch.Tensor] = []
        self.record = Weight(
            stored.data_ptr(),
            None if bias is None else bias.data_ptr(),
            stored.shape[0],
            self.columns,
            stored.shape[1],
            found.type_id,
            0,
        )

    def in_strips(self, pool: Pool) -> Weight:
        """The record of the same weight laid out for ``pool``."""
        arena = torch.full((pool.layout_bytes(self.record) + 64,), 0xA5, dtype=torch.uint8)
        pool.layout(self.record, arena[:-64])
        assert (arena[-64:] == 0xA5).all(), "the layout wrote past its end"
        strips = Weight.from_buffer_copy(self.record)
        strips.bytes, strips.is_strips = arena.data_ptr(), 1
        self._strips.append(arena)
        return strips


class Stream:
    """Ids, positions and block tables of rows, as a step or chunk takes them.

    ``tables[group][row]`` are page ids.
    """

    def __init__(
        self,
        positions: Sequence[int],
        tables: Sequence[Sequence[Sequence[int]]] = (),
        ids: Sequence[int] | None = None,
    ) -> None:
        self.count = len(positions)
        self._positions = np.asarray(positions, dtype=np.int32)
        self._ids = np.asarray(positions if ids is None else ids, dtype=np.int32)
        self._tables = [np.asarray(t, dtype=np.int32) for group in tables for t in group]
        self._addresses = np.asarray([t.ctypes.data for t in self._tables], dtype=np.uintp)

    def record(self, first: int = 0, rows: int | None = None) -> Rows:
        """Rows ``first ...``, all where ``rows`` is left out; valid as long as this lives."""
        return Rows(
            self._ids.ctypes.data,
            self._positions.ctypes.data,
            self._addresses.ctypes.data,
            first,
            self.count - first if rows is None else rows,
            self.count,
        )


def run(pool: Pool, rows: Rows, *entries: tuple[Kind, ctypes.Structure]) -> None:
    """Run operations in order."""
    listed = [Operation(int(kind), ctypes.addressof(record)) for kind, record in entries]
    pool.step((Operation * len(listed))(*listed), rows)


def plain_rows(count: int) -> Stream:
    """Rows of which only the number matters."""
    return Stream(range(count))


class Outputs:
    """A product's output [row, columns] in a wider buffer."""

    def __init__(self, rows: int, columns: int) -> None:
        self.columns = columns
        self.all = poisoned(rows, columns + PAD)

    @property
    def values(self) -> torch.Tensor:
        """[row, column] float32."""
        return self.all[:, : self.columns]

    def padding_untouched(self) -> bool:
        """Whether nothing was written beyond the columns."""
        return untouched(self.all[:, self.columns :])


def multiply(
    pool: Pool, inputs: Inputs, weights: Sequence[Weight], rows: Rows, *, dense: bool = False
) -> Outputs:
    """One product of up to four weights, side by side."""
    output = Outputs(rows.total, sum(weight.rows for weight in weights))
    scratch = poisoned(pool.threads, pool.dense_scratch(rows.rows))
    packed = poisoned(rows.rows + records.TILE_ROWS, weights[0].columns)
    record = records.Product(
        source=ctypes.pointer(inputs.record),
        output=output.all.data_ptr(),
        stride=output.all.stride(0),
        count=len(weights),
        scratch=scratch.data_ptr(),
        scratch_stride=scratch.stride(0),
        packed=packed.data_ptr(),
    )
    offset = 0
    for part, weight in enumerate(weights):
        record.weights[part], record.offsets[part] = weight, offset
        offset += weight.rows
    run(pool, rows, (Kind.DENSE if dense else Kind.PRODUCT, record))
    assert output.padding_untouched()
    return output
