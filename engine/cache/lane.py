"""A lane: the block tables and the recurrent state of one stream.

Owns page references, one block table a page group (``engine.cache.table``), and a recurrent slot
where the model has recurrent layers. Used from the engine thread only. Holds no token and no
tensor; the bytes lie behind ``engine.cache.device`` and are copied there by page and by slot.

All pages that the stream can ever need are promised when the lane opens, so no round runs out of
them. A page that a state holds is never written: a state cut inside a page has a copy of that page
to itself, and a lane that resumes there copies it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine.cache.device import PageDevice
from engine.cache.formats import PAGE_ROWS
from engine.cache.pages import PagePool, PageRun
from engine.cache.slots import SlotPool
from engine.cache.table import GroupTable
from engine.errors import InvariantBroken
from engine.owner import Owner


@dataclass(frozen=True, slots=True)
class LaneMemory:
    """What the lanes of one loaded model are made from; the model owns it.

    Attributes:
        pools: one a page group.
        device: the bytes of the pages.
        slots: None for a model without recurrent layers.
    """

    pools: tuple[PagePool, ...]
    device: PageDevice
    slots: SlotPool | None = None


@dataclass(frozen=True, slots=True)
class PagesRefused:
    """A group has too few pages for a stream's whole need."""

    group: int
    needed_pages: int
    available_pages: int


@dataclass(frozen=True, slots=True)
class SlotsRefused:
    """No recurrent slot is free.

    Attributes:
        slot_count: slots in all, every one taken.
    """

    slot_count: int


LaneRefused = PagesRefused | SlotsRefused


@dataclass(frozen=True, slots=True)
class LaneState:
    """What a kept state holds of the lane it was cut from, after ``rows`` rows.

    Whoever holds it owns a reference to every page of ``runs`` (one run a group) and the slot. The
    last page of a run is partly filled, and no one else's, where ``rows`` ends inside it.

    Attributes:
        slot: of the copied recurrent state; None for a model without one.
    """

    rows: int
    runs: tuple[PageRun, ...]
    slot: int | None = None

    def whole(self, group: int) -> PageRun:
        """The pages that are filled to their end, which others may hold too."""
        run = self.runs[group]
        return PageRun(run.first, run.ids[:-1]) if self.rows % PAGE_ROWS else run

    def tail(self, group: int) -> int | None:
        """The partly filled page; None where ``rows`` ends with a page."""
        return self.runs[group].ids[-1] if self.rows % PAGE_ROWS else None

    def cut(self, rows: int) -> LaneState:
        """The state after the first ``rows`` rows, a multiple of the page's, as a view.

        It owns nothing: whoever keeps it longer than this state retains the pages. Only states
        whose every run begins at page 0, and without a recurrent part, can be cut.
        """
        if rows % PAGE_ROWS or not 0 < rows <= self.rows:
            raise InvariantBroken(f"A state of {self.rows} rows was cut at {rows}.")
        if self.slot is not None or any(run.first for run in self.runs):
            raise InvariantBroken(f"A state that is not whole from row 0 was cut at {rows}.")
        pages = rows // PAGE_ROWS
        return LaneState(rows, tuple(PageRun(0, run.ids[:pages]) for run in self.runs))

    def release(self, pools: Sequence[PagePool], slots: SlotPool | None) -> None:
        """Give back what is held; to be called once."""
        for pool, run in zip(pools, self.runs, strict=True):
            pool.release_run(run)
        if slots is not None and self.slot is not None:
            slots.release(self.slot)


class Lane(Owner):
    """The memory of one stream; a context manager that releases it exactly once.

    A method that raises DeviceLost leaves a lane that is good for nothing but ``close``, save where
    it says otherwise.

    Attributes:
        length: rows that have pages, those being computed included.
        need_rows: rows that were promised.
    """

    def __init__(
        self,
        memory: LaneMemory,
        tables: Sequence[GroupTable],
        need_rows: int,
        chunk_rows: int,
        slot: int | None = None,
    ) -> None:
        self._slots = memory.slots
        self._tables = tuple(tables)
        self._chunk_rows = chunk_rows
        self._slot = slot
        self.need_rows = need_rows
        self.length = 0

    @classmethod
    def open(
        cls,
        memory: LaneMemory,
        need_rows: int,
        chunk_rows: int,
        resumed: LaneState | None = None,
    ) -> Self | LaneRefused:
        """Promise every page of a stream of ``need_rows`` rows in every group, or in none.

        Args:
            chunk_rows: the most rows that one ``extend`` adds.
            resumed: held by a kept state; the lane takes references to its whole pages, copies of
                the others and, of a model with recurrent layers, a slot with a copy of its own.

        Raises:
            DeviceLost: nothing was taken.
        """
        tables = [
            GroupTable(pool, memory.device, group, need_rows, chunk_rows)
            for group, pool in enumerate(memory.pools)
        ]
        groups = range(len(tables))
        whole = [None if resumed is None else resumed.whole(group) for group in groups]
        for group, table in enumerate(tables):
            required = table.required(whole[group])
            if not table.pool.fits(required):
                return PagesRefused(group, required, table.pool.available_pages)
        slot = None if memory.slots is None else _slot_of(memory.slots, resumed)
        if isinstance(slot, SlotsRefused):
            return slot
        lane = cls(memory, tables, need_rows, chunk_rows, slot)
        with ExitStack() as undo:
            undo.callback(lane.close)
            for group, table in enumerate(tables):
                table.open(whole[group], None if resumed is None else resumed.tail(group))
            undo.pop_all()
        lane.length = 0 if resumed is None else resumed.rows
        return lane

    @property
    def recurrent_slot(self) -> int | None:
        """The slot of the stream's recurrent state; None for a model without one."""
        return self._slot

    def extend(self, rows: int) -> None:
        """Give pages to the next ``rows`` rows, drawing on the promise."""
        length = self.length + rows
        if length > self.need_rows or not 0 < rows <= self._chunk_rows:
            raise InvariantBroken(
                f"A lane of {self.length} rows was extended by {rows}; {self.need_rows} were "
                f"promised, {self._chunk_rows} at a time."
            )
        for table in self._tables:
            table.extend(length)
        self.length = length

    def adopt(self, rows: int) -> tuple[PageRun, ...]:
        """Go on to ``rows`` rows whose bytes the caller writes through the device.

        Draws on the promise. A recurrent state after ``rows`` is written by the caller, too.

        Returns:
            A run a group of the pages to be written whole, all of them the lane's alone: those that
            row ``rows`` and later ones reach, from the page that holds row ``length`` on.
        """
        if not self.length < rows <= self.need_rows:
            raise InvariantBroken(
                f"A lane of {self.length} rows adopted {rows}; {self.need_rows} were promised."
            )
        runs = tuple(table.adopt(self.length, rows) for table in self._tables)
        self.length = rows
        return runs

    def swap(self, state: LaneState) -> int:
        """Hold a state's pages in place of the lane's own that have the same bytes.

        Args:
            state: kept, of a prefix or a continuation of what the lane computed by the same rules.

        Returns:
            Pages that the lane gave up.

        Raises:
            DeviceLost: the lane holds its own pages, as before.
        """
        end = min(state.rows, self.length) // PAGE_ROWS
        moved = []
        with ExitStack() as undo:
            for group, table in enumerate(self._tables):
                own = table.rename(state.whole(group), end)
                undo.callback(table.restore, own)
                moved.append(own)
            for table in self._tables:
                table.show()
            undo.pop_all()
        for table, own in zip(self._tables, moved, strict=True):
            table.settle(own)
        return sum(map(len, moved))

    def table(self, group: int) -> NDArray[np.int32]:
        """Page id by page index, one entry for every page of ``need_rows``.

        -1 stands where a page was dropped or is not taken yet. The array is contiguous and stays
        at its address as long as the lane lives.
        """
        return self._tables[group].table

    def share(self, at: int) -> LaneState | None:
        """What a state of the first ``at`` rows needs: references, and copies of what still grows.

        The caller owns it. None where a sliding group has dropped one of the pages or cannot
        promise another page in its place, where no page is free for the copy of a partly filled
        one, or no recurrent slot.

        Args:
            at: at most ``length``, all of them computed; with a recurrent state exactly
                ``length``, for that state has no other position.

        Raises:
            DeviceLost: nothing was taken.
        """
        if not 0 < at <= self.length:
            raise InvariantBroken(f"A state of {at} rows was cut from a lane of {self.length}.")
        if self._slot is not None and at != self.length:
            raise InvariantBroken(f"The recurrent state after {self.length} rows is not of {at}.")
        with ExitStack() as undo:
            runs: list[PageRun] = []
            for table in self._tables:
                run = table.share(at)
                if run is None:
                    return None
                undo.callback(table.unshare, run)
                runs.append(run)
            slot = None
            if self._slots is not None and self._slot is not None:
                slot = self._slots.take_copy(self._slot)
                if slot is None:
                    return None
            undo.pop_all()
            return LaneState(at, tuple(runs), slot)

    def close(self) -> None:
        """Release every page, promise and slot; may be repeated."""
        tables, self._tables = self._tables, ()
        slot, self._slot = self._slot, None
        for table in tables:
            table.close()
        if self._slots is not None and slot is not None:
            self._slots.release(slot)


def _slot_of(slots: SlotPool, resumed: LaneState | None) -> int | SlotsRefused:
    if resumed is None:
        slot = slots.take_cleared()
    elif resumed.slot is None:
        raise InvariantBroken("A state without its recurrent part was resumed.")
    else:
        slot = slots.take_copy(resumed.slot)
    return SlotsRefused(slots.census().slot_count) if slot is None else slot
