"""The gated delta rule, in steps and chunks, against float64 row by row.

States of streams that are not asked for, and everything beyond a row, hold NaN.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from kernels.cpu import records, reference
from kernels.cpu.library import Pool
from kernels.cpu.records import Kind, Rows
from kernels.cpu.reference import DeltaRow, DeltaState, DeltaWeights
from tests.helpers.cpu_library import PAD, Inputs, poisoned, run, same_bits, untouched

TOLERANCE = 1e-5
"""Of the largest result: float32 sums of up to 128 products for each of up to 300 rows, each with
an exponential; measured 2e-6."""


@dataclass(frozen=True)
class Shape:
    """Geometry of one layer; ``kernel`` inputs make one output."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int = 4
    tiled: bool = False

    @property
    def keys(self) -> int:
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        return self.value_heads * self.value_dim

    @property
    def channels(self) -> int:
        return 2 * self.keys + self.values


SHAPES = (
    Shape(1, 2, 16, 16, kernel=1),
    Shape(2, 6, 32, 48),
    Shape(3, 6, 48, 80, kernel=3, tiled=True),
    Shape(2, 4, 128, 128),
    Shape(1, 2, 64, 144, kernel=9),
)
SLOTS = 5


class Layer:
    """One layer with random weights, and rows of products for several streams."""

    def __init__(self, shape: Shape, rows: int, seed: int = 0) -> None:
        self.shape, self.count = shape, rows
        self._generator = torch.Generator().manual_seed(seed)
        heads = shape.value_heads
        self.weights = DeltaWeights(
            self.normal(shape.kernel, shape.channels) * shape.kernel**-0.5,
            -self.normal(heads).exp(),
            self.normal(heads),
            1 + 0.3 * self.normal(shape.value_dim),
        )
        self.width = shape.channels + shape.values + 2 * heads
        self.rows = self.normal(rows, self.width)
        self.rows[:, shape.channels :] *= 2
        self.states = self.normal(SLOTS, 2, heads, shape.key_dim, shape.value_dim) / 4
        self.tails = self.normal(SLOTS, 2, shape.kernel - 1, shape.channels)

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=self._generator)

    def run(
        self, pool: Pool, slots: list[int], *, chunk: bool, first: int = 0, rows: int | None = None
    ) -> Ran:
        """Rows ``first ...`` on the library, with copies of the states; the layer is slot 1."""
        ran = Ran(self, codes=not chunk)
        shape, heads = self.shape, self.shape.value_heads
        record = records.Delta(
            rows=ran.rows.data_ptr(),
            convolution=self.weights.taps.data_ptr(),
            decay=self.weights.decay.data_ptr(),
            time_bias=self.weights.time_bias.data_ptr(),
            norm=self.weights.norm.data_ptr(),
            states=ran.states[:, 1].data_ptr(),
            tails=ran.tails[:, 1].data_ptr(),
            to=ctypes.pointer(ran.inputs.record),
            stride=ran.rows.stride(0),
            gate_offset=shape.channels,
            beta_offset=shape.channels + shape.values,
            alpha_offset=shape.channels + shape.values + heads,
            state_stride=ran.states.stride(0),
            tail_stride=ran.tails.stride(0),
            key_heads=shape.key_heads,
            value_heads=heads,
            key_dim=shape.key_dim,
            value_dim=shape.value_dim,
            kernel=shape.kernel,
            length_eps=1e-6,
            norm_eps=1e-6,
            tiled=int(shape.tiled),
            chunk=int(chunk),
        )
        listed = np.asarray(slots, dtype=np.int32)
        count = self.count - first if rows is None else rows
        asked = Rows(None, None, None, first, count, self.count, listed.ctypes.data)
        kinds = (Kind.DELTA_MIX, Kind.DELTA_RULE, Kind.DELTA_OUT)
        run(pool, asked, *((kind, record) for kind in kinds))
        assert ran.inputs.padding_untouched() and untouched(ran.rows[:, self.width :])
        return ran

    def wanted(self, row: int, state: DeltaState) -> torch.Tensor:
        """The reference for one row, flat; ``state`` moves on."""
        shape = self.shape
        ends = (shape.channels, shape.channels + shape.values, self.width - shape.value_heads)
        mixed, gate, beta, alpha = torch.tensor_split(self.rows[row], ends)
        products = DeltaRow(mixed, gate.view(shape.value_heads, -1), beta, alpha)
        return reference.delta_row(
            products, self.weights, state, shape.key_heads, tiled=shape.tiled
        ).flatten()

    def state(self, slot: int) -> DeltaState:
        return DeltaState(self.states[slot, 1].double(), self.tails[slot, 1].double())


class Ran:
    """What a run left behind."""

    def __init__(self, layer: Layer, *, codes: bool) -> None:
        self.rows = poisoned(layer.count, layer.width + PAD)
        self.rows[:, : layer.width] = layer.rows
        self.states, self.tails = layer.states.clone(), layer.tails.clone()
        self.inputs = Inputs(layer.count, -(-layer.shape.values // 32) * 32, codes=codes)

    @property
    def values(self) -> torch.Tensor:
        return self.inputs.values


def assert_near(found: torch.Tensor, wanted: torch.Tensor) -> None:
    assert found.isfinite().all()
    assert (found - wanted).abs().max() <= TOLERANCE * wanted.abs().max().clamp(min=1.0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_step_s_rows_are_right_and_move_their_own_states(
    pools: dict[int, Pool], shape: Shape, threads: int
) -> None:
    layer, slots = Layer(shape, 4), [3, 0, 4, 1]
    ran = layer.run(pools[threads], slots, chunk=False, first=1, rows=2)
    for row in (1, 2):
        state = layer.state(slots[row])
        assert_near(ran.values[row, : shape.values], layer.wanted(row, state))
        assert_near(ran.states[slots[row], 1], state.state)
        assert same_bits(ran.tails[slots[row], 1], state.tail.float())
    for slot in (1, 2, 3):
        assert same_bits(ran.states[slot], layer.states[slot])
        assert same_bits(ran.tails[slot], layer.tails[slot])
    assert same_bits(ran.states[:, 0], layer.states[:, 0]), "the layer before"
    assert untouched(ran.values[0]) and untouched(ran.values[3])
    codes = reference.prepared(ran.values[1:3].contiguous())
    assert torch.equal(ran.inputs.codes[1:3], codes.codes)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rows", [1, 2, 17, 65])
def test_a_chunk_s_rows_follow_one_another(pool: Pool, shape: Shape, rows: int) -> None:
    layer = Layer(shape, rows)
    ran = layer.run(pool, [2] * rows, chunk=True)
    state = layer.state(2)
    for row in range(rows):
        assert_near(ran.values[row, : shape.values], layer.wanted(row, state))
    assert_near(ran.states[2, 1], state.state)
    assert same_bits(ran.tails[2, 1], state.tail.float())
    assert untouched(ran.inputs.scales), "a chunk has no codes"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_chunk_and_steps_give_the_same_bits(pools: dict[int, Pool], shape: Shape) -> None:
    """So a prompt may be cut anywhere, and any number of threads may compute it."""
    layer = Layer(shape, 37)
    whole = layer.run(pools[1], [2] * 37, chunk=True)
    states, tails = layer.states.clone(), layer.tails.clone()
    found = poisoned(37, shape.values)
    for first, rows, chunk in ((0, 5, True), (5, 1, False), (6, 30, True), (36, 1, False)):
        part = layer.run(pools[3], [2] * 37, chunk=chunk, first=first, rows=rows)
        found[first : first + rows] = part.values[first : first + rows, : shape.values]
        layer.states, layer.tails = part.states, part.tails
    assert same_bits(found, whole.values[:, : shape.values])
    assert same_bits(layer.states[2], whole.states[2])
    assert same_bits(layer.tails[2], whole.tails[2])
    assert not same_bits(states[2, 1], whole.states[2, 1]), "the control"
    assert shape.kernel == 1 or not same_bits(tails[2, 1], whole.tails[2, 1]), "the control"


def test_a_row_has_the_same_bits_beside_others(pools: dict[int, Pool]) -> None:
    layer, slots = Layer(SHAPES[1], 4), [3, 0, 4, 1]
    together = layer.run(pools[2], slots, chunk=False)
    for row in range(4):
        alone = layer.run(pools[1], slots, chunk=False, first=row, rows=1)
        assert same_bits(alone.values[row], together.values[row])
        assert same_bits(alone.states[slots[row]], together.states[slots[row]])


@pytest.mark.parametrize("changed", ["tiled", "decay", "tail"])
def test_another_layer_is_another_result(pool: Pool, changed: str) -> None:
    """The control: what the reference has in common with the library is seen."""
    layer = Layer(SHAPES[1], 3)
    ran = layer.run(pool, [2] * 3, chunk=True)
    state = layer.state(2)
    if changed == "tiled":
        layer.shape = Shape(2, 6, 32, 48, tiled=True)
    elif changed == "decay":
        layer.weights.decay.mul_(2)
    else:
        state.tail = state.tail.flip(0)
    wanted = torch.stack([layer.wanted(row, state) for row in range(3)])
    assert (ran.values - wanted).abs().max() > 1e-2


def test_a_state_of_no_numbers_reaches_the_rows(pool: Pool) -> None:
    layer = Layer(SHAPES[1], 2)
    layer.states[2, 1, 0, 0, 0] = float("nan")
    ran = layer.run(pool, [2, 3], chunk=False)
    assert ran.values[0].isnan().any()
    assert ran.values[1].isfinite().all(), "the control: another stream"
