"""Pages and slots go out and come back byte for byte, in the stated order, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from engine.cache.cuda import CudaDevice
from engine.cache.device import PageDevice
from engine.cache.formats import KvFormat
from engine.cache.host import HostDevice
from engine.cache.kv import KvArena
from engine.cache.recurrent import RecurrentArena
from engine.errors import InvariantBroken
from engine.memory.ledger import Ledger
from engine.memory.pools import RAM
from engine.models.spec import PageGroupSpec, RecurrentSpec

GROUPS = (
    PageGroupSpec(window=None, layer_count=3, kv_head_count=2, head_dim=8),
    PageGroupSpec(window=512, layer_count=1, kv_head_count=1, head_dim=5),
)
SLOTS = RecurrentSpec(layer_count=3, state_shape=(5, 7, 6), tail_shape=(3, 11))


class Memory:
    """Arenas of one format, filled with bytes that differ everywhere."""

    def __init__(self, kv_format: KvFormat, kind: str) -> None:
        self.ledger = Ledger({RAM: 10_000_000})
        self.kv = KvArena(GROUPS, (4, 3), kv_format, self.ledger, RAM)
        self.recurrent = RecurrentArena(SLOTS, 3, self.ledger, RAM)
        self.device = device_over(kind, self.kv, self.recurrent)
        draw = torch.Generator().manual_seed(4)
        for tensor in self.tensors():
            raw = tensor.view(-1).view(torch.uint8)
            raw.copy_(torch.randint(0, 256, raw.shape, generator=draw, dtype=torch.uint8))

    def tensors(self) -> list[torch.Tensor]:
        arena = self.recurrent
        return [*self.kv.tensors, *self.kv.scales, arena.states, arena.tails]

    def whole(self) -> list[bytes]:
        return [_bytes(tensor) for tensor in self.tensors()]

    def page(self, group: int, page: int) -> bytes:
        """The stated order, by torch alone."""
        found = _bytes(self.kv.tensors[group][:, page])
        return found + (_bytes(self.kv.scales[group][:, page]) if self.kv.scales else b"")


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def device_over(kind: str, kv: KvArena, recurrent: RecurrentArena | None = None) -> PageDevice:
    """The GPU's code runs on tensors of the processor too; it copies through buffers of its own."""
    if kind == "host":
        return HostDevice(kv, recurrent)
    return CudaDevice(kv, recurrent, torch.device("cpu"))


@pytest.fixture(params=["host", "cuda"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(params=list(KvFormat), ids=str)
def memory(request: pytest.FixtureRequest, kind: str) -> Iterator[Memory]:
    made = Memory(request.param, kind)
    yield made
    made.kv.close()
    made.recurrent.close()
    made.ledger.close()


@pytest.mark.parametrize("group", [0, 1])
def test_a_page_is_read_layer_by_layer_with_its_scales_at_the_end(
    memory: Memory, group: int
) -> None:
    out = bytearray(memory.device.page_bytes(group))
    for page in range(memory.kv.page_counts[group]):
        memory.device.read_page(group, page, memoryview(out))
        assert bytes(out) == memory.page(group, page)


@pytest.mark.parametrize("group", [0, 1])
def test_a_page_that_is_written_is_that_page_and_no_other(memory: Memory, group: int) -> None:
    content = bytes(np.arange(memory.device.page_bytes(group), dtype=np.uint64).astype(np.uint8))
    others = [memory.page(group, page) for page in (0, 2)], memory.page(1 - group, 1)
    memory.device.write_page(group, 1, memoryview(content))
    assert memory.page(group, 1) == content
    assert ([memory.page(group, page) for page in (0, 2)], memory.page(1 - group, 1)) == others


@pytest.mark.parametrize("group", [0, 1])
def test_a_page_is_copied_with_its_scales_and_nothing_else(memory: Memory, group: int) -> None:
    before = [memory.page(group, page) for page in range(3)]
    memory.device.copy_page(group, 2, 0)
    assert [memory.page(group, page) for page in range(3)] == [before[2], before[1], before[2]]


@pytest.mark.parametrize("group", [0, 1])
@pytest.mark.parametrize("rows", [1, 100, 255])
def test_of_a_partly_filled_page_only_its_rows_are_copied(
    memory: Memory, group: int, rows: int
) -> None:
    """What stood after them may be another chat's."""
    memory.device.copy_page(group, 2, 0, rows)
    planes = [memory.kv.tensors[group], *memory.kv.scales[group : group + 1]]
    for plane in planes:
        assert _bytes(plane[:, 0, :, :, :rows]) == _bytes(plane[:, 2, :, :, :rows])
        assert not any(_bytes(plane[:, 0, :, :, rows:]))
        assert any(_bytes(plane[:, 2, :, :, rows:])), "the control"


def test_a_slot_goes_out_and_comes_back_into_another(memory: Memory) -> None:
    out = bytearray(memory.device.slot_bytes)
    assert len(out) == SLOTS.stream_bytes
    memory.device.read_slot(1, memoryview(out))
    assert bytes(out) == _bytes(memory.recurrent.states[1]) + _bytes(memory.recurrent.tails[1])
    others = _bytes(memory.recurrent.states[:2]), _bytes(memory.recurrent.tails[:2])
    memory.device.write_slot(2, memoryview(out))
    assert _bytes(memory.recurrent.states[2]) == _bytes(memory.recurrent.states[1])
    assert _bytes(memory.recurrent.tails[2]) == _bytes(memory.recurrent.tails[1])
    assert (_bytes(memory.recurrent.states[:2]), _bytes(memory.recurrent.tails[:2])) == others


def test_a_buffer_of_another_size_changes_nothing(memory: Memory) -> None:
    device, before = memory.device, memory.whole()
    for size in (device.page_bytes(0) - 1, device.page_bytes(0) + 1, device.page_bytes(1)):
        for copy in (device.read_page, device.write_page):
            with pytest.raises(InvariantBroken, match="bytes for"):
                copy(0, 1, memoryview(bytearray(size)))
    for copy_slot in (device.read_slot, device.write_slot):
        with pytest.raises(InvariantBroken, match="bytes for"):
            copy_slot(0, memoryview(bytearray(device.slot_bytes - 4)))
    assert memory.whole() == before


def test_a_table_changes_no_page(memory: Memory) -> None:
    before = memory.whole()
    memory.device.upload_table(0, np.zeros(3, np.int32))
    assert memory.whole() == before


def test_a_model_without_recurrent_layers_has_no_slots(memory: Memory, kind: str) -> None:
    device = device_over(kind, memory.kv)
    assert device.slot_bytes == 0
    with pytest.raises(InvariantBroken, match="no slots"):
        device.read_slot(0, memoryview(bytearray(1)))


def test_no_view_outlives_the_arena(memory: Memory) -> None:
    """The ledger's bytes are refunded when the arena closes, so they must be free then."""
    memory.device.read_page(0, 0, memoryview(bytearray(memory.device.page_bytes(0))))
    memory.kv.close()
    with pytest.raises(IndexError):
        memory.device.read_page(0, 0, memoryview(bytearray(memory.device.page_bytes(0))))
