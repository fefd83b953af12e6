"""The KV arena is reserved first, and native code finds each row where the layout says."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
import torch

from engine.cache.formats import KvFormat, page_bytes
from engine.cache.kv import OWNER, KvArena
from engine.errors import InvariantBroken, MemoryRefused
from engine.memory.ledger import Ledger
from engine.models.spec import PageGroupSpec

GROUPS = (
    PageGroupSpec(window=None, layer_count=3, kv_head_count=2, head_dim=64),
    PageGroupSpec(window=512, layer_count=1, kv_head_count=1, head_dim=5),
)


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    ledger = Ledger({"ram": 10_000_000})
    yield ledger
    ledger.close()


def test_smollm2_takes_180_mebibytes_for_8192_rows() -> None:
    """The planner's test vector: 30 layers, 3 KV heads of 64, f16."""
    group = PageGroupSpec(window=None, layer_count=30, kv_head_count=3, head_dim=64)
    assert 32 * page_bytes(group, KvFormat.FP16) == 180 * 1024 * 1024


@pytest.mark.parametrize("kv_format", [KvFormat.FP16, KvFormat.FP32, KvFormat.BF16])
def test_a_row_lies_at_the_address_that_the_layout_gives(
    ledger: Ledger, kv_format: KvFormat
) -> None:
    with KvArena(GROUPS, (4, 3), kv_format, ledger, "ram") as arena:
        for group, tensor in enumerate(arena.tensors):
            layout, dtype = arena.layout(group), tensor.dtype
            layer, page, side, head, row = (size - 1 for size in tensor.shape[:5])
            tensor[layer, page, side, head, row] = torch.arange(tensor.shape[5]).to(dtype)
            address = (
                layout.address
                + layer * layout.layer_stride
                + page * layout.page_stride
                + side * layout.side_stride
                + head * layout.head_stride
                + row * layout.row_stride
            )
            size = tensor.shape[5] * dtype.itemsize
            found = torch.frombuffer(bytearray(ctypes.string_at(address, size)), dtype=dtype)
            assert found.tolist() == list(range(tensor.shape[5]))


def test_a_scale_lies_at_the_address_that_its_layout_gives(ledger: Ledger) -> None:
    """In a format with scales a row of codes and its scale have the same place in both tensors."""
    with KvArena(GROUPS, (4, 3), KvFormat.FP8, ledger, "ram") as arena:
        for group, tensor in enumerate(arena.scales):
            layout, codes = arena.scale_layout(group), arena.layout(group)
            assert layout is not None
            assert tensor.shape == arena.tensors[group].shape[:5]
            layer, page, side, head, row = (size - 1 for size in tensor.shape)
            tensor[layer, page, side, head, row] = 2.5
            address = (
                layout.address
                + layer * layout.layer_stride
                + page * layout.page_stride
                + side * layout.side_stride
                + head * layout.head_stride
                + row * layout.row_stride
            )
            assert ctypes.c_float.from_address(address).value == 2.5
            assert codes.row_stride * layout.page_stride == codes.page_stride * layout.row_stride
        held = 4 * page_bytes(GROUPS[0], KvFormat.FP8) + 3 * page_bytes(GROUPS[1], KvFormat.FP8)
        assert held == sum(tensor.nbytes for tensor in (*arena.tensors, *arena.scales))
        assert ledger.pool("ram").held_bytes == held


def test_a_format_without_scales_has_no_layout_of_them(ledger: Ledger) -> None:
    with KvArena(GROUPS, (4, 3), KvFormat.BF16, ledger, "ram") as arena:
        assert arena.scale_layout(0) is None


def test_the_arena_holds_exactly_its_pages_in_the_ledger(ledger: Ledger) -> None:
    arena = KvArena(GROUPS, (4, 3), KvFormat.FP16, ledger, "ram")
    expected = 4 * page_bytes(GROUPS[0], KvFormat.FP16) + 3 * page_bytes(GROUPS[1], KvFormat.FP16)
    assert ledger.pool("ram").holders == ((OWNER, expected),)
    assert ledger.pool("ram").committed_bytes == expected
    arena.close()
    arena.close()
    assert ledger.pool("ram").held_bytes == 0


def test_an_arena_that_does_not_fit_is_refused_before_anything_is_allocated(
    ledger: Ledger,
) -> None:
    with pytest.raises(MemoryRefused, match="KV pages need"):
        KvArena(GROUPS, (1000, 3), KvFormat.FP16, ledger, "ram")
    assert ledger.pool("ram").held_bytes == 0


def test_an_allocation_that_fails_gives_its_reservation_back(ledger: Ledger) -> None:
    ledger.set_capacity("ram", 2**62)
    with pytest.raises(RuntimeError):
        KvArena(GROUPS[:1], (2**38,), KvFormat.FP16, ledger, "ram")
    assert ledger.pool("ram").held_bytes == 0


def test_a_layout_with_gaps_inside_a_row_is_refused(ledger: Ledger) -> None:
    with KvArena(GROUPS, (4, 3), KvFormat.FP16, ledger, "ram") as arena:
        arena.tensors = tuple(tensor.transpose(4, 5) for tensor in arena.tensors)
        with pytest.raises(InvariantBroken, match="contiguous"):
            arena.layout(0)
