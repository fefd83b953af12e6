"""A device that can fail at any call: real pools and lanes over bytes that a test can read.

A row's K and V are one number, its token; a page is 256 of them and begins as poison. A recurrent
slot is a chain over tokens (``tests.helpers.fake_slots``). Tables are seen as they were uploaded
last, so that a forgotten upload shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import LaneMemory
from engine.cache.pages import PagePool
from engine.cache.slots import SlotPool
from engine.errors import DeviceLost
from tests.helpers.fake_slots import SLOT_BYTES, FakeSlots

POISON = -1
ROW_BYTES = 8


class FakeDevice:
    """Implements ``engine.cache.device.PageDevice``.

    Attributes:
        memory: the pools, this device and, for ``slot_count`` > 0, slots, for lanes and stores.
        rows: [page, row] tokens, one array a group.
        slots: the slots' content; None where there are none.
        calls: the name of every call, failed ones included, those of the slots among them.
    """

    def __init__(self, pools: Sequence[PagePool], slot_count: int = 0) -> None:
        self.rows = [np.full((pool.page_count, PAGE_ROWS), POISON, np.int64) for pool in pools]
        self.slots = FakeSlots(slot_count) if slot_count else None
        self.calls: list[str] = []
        self._fails_at: int | None = None
        self._tables: dict[int, NDArray[np.int32]] = {}
        slot_pool = None
        if self.slots is not None:
            self.slots.before = self._called
            slot_pool = SlotPool(self.slots)
        self.memory = LaneMemory(tuple(pools), self, slot_pool)

    def fail_at(self, call: int | None) -> None:
        """The ``call``-th call from now, the next one being 1, raises DeviceLost; None: none."""
        self._fails_at = None if call is None else len(self.calls) + call

    @property
    def failed(self) -> bool:
        """Whether the call that ``fail_at`` named has come."""
        return self._fails_at is not None and len(self.calls) >= self._fails_at

    def page_bytes(self, group: int) -> int:
        return self.rows[group].shape[1] * ROW_BYTES

    @property
    def slot_bytes(self) -> int:
        return 0 if self.slots is None else SLOT_BYTES

    def read_page(self, group: int, page: int, out: memoryview) -> None:
        self._called("read_page")
        out[:] = memoryview(self.rows[group][page].tobytes())

    def write_page(self, group: int, page: int, content: memoryview) -> None:
        self._called("write_page")
        self.rows[group][page] = np.frombuffer(content, np.int64)

    def copy_page(self, group: int, source: int, target: int, rows: int = PAGE_ROWS) -> None:
        self._called("copy_page")
        self.rows[group][target] = POISON
        self.rows[group][target][:rows] = self.rows[group][source][:rows]

    def read_slot(self, slot: int, out: memoryview) -> None:
        self._called("read_slot")
        assert self.slots is not None
        out[:] = self.slots.chains[slot]

    def write_slot(self, slot: int, content: memoryview) -> None:
        self._called("write_slot")
        assert self.slots is not None
        assert len(content) == SLOT_BYTES
        self.slots.chains[slot] = bytes(content)

    def upload_table(self, group: int, table: NDArray[np.int32]) -> None:
        self._called("upload_table")
        assert group < len(self.rows)
        self._tables[id(table)] = table.copy()

    def seen(self, table: NDArray[np.int32]) -> NDArray[np.int32]:
        """A lane's table as it was uploaded last; it must be what the lane has now."""
        found = self._tables[id(table)]
        assert np.array_equal(found, table), "the device has not seen the lane's table"
        return found

    def poison(self, group: int, page: int) -> None:
        """Forget a page's rows."""
        self.rows[group][page] = POISON

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) == self._fails_at:
            raise DeviceLost(f"Injected into {name}.")


def left_behind(memory: LaneMemory) -> list[str]:
    """What is still held or promised, in words; empty once every lane and state is closed."""
    found = []
    for group, pool in enumerate(memory.pools):
        census = pool.census()
        if census.held_pages or census.promised_pages:
            found.append(f"group {group}: {census}")
    if memory.slots is not None:
        slots = memory.slots.census()
        if slots.free_slots != slots.slot_count:
            found.append(str(slots))
    return found
