"""A lane: the block tables and the recurrent state of one stream.

Owns page references, one block table a page group, and a recurrent slot where the model has
recurrent layers. Used from the engine thread only. Holds no token and no tensor; the bytes lie in
``engine.cache.kv`` and ``engine.cache.recurrent``.

All pages that the stream can ever need are promised when the lane opens, so no round runs out of
them. In a sliding group only the pages of the newest ``window + chunk_rows`` rows are live. A live
page that a kept state also holds is not freed when the lane drops it, so each one keeps one page
promised on top:

    promised == min(pages to come, most live pages - live pages + shared live pages)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.cache.pages import PagePool, PageRun, Promise, first_reached_page, pages_for
from engine.cache.slots import SlotPool
from engine.errors import InvariantBroken
from engine.owner import Owner


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

    Whoever holds it owns a reference to every page of ``runs`` (one run a group) and the slot.

    Attributes:
        slot: of the copied recurrent state; None for a model without one.
    """

    rows: int
    runs: tuple[PageRun, ...]
    slot: int | None = None

    def release(self, pools: Sequence[PagePool], slots: SlotPool | None) -> None:
        """Give back what is held; to be called once."""
        for pool, run in zip(pools, self.runs, strict=True):
            pool.release_run(run)
        if slots is not None and self.slot is not None:
            slots.release(self.slot)


def most_live_pages(window: int | None, need_rows: int, chunk_rows: int) -> int:
    """Pages of one group that a stream of ``need_rows`` rows holds at most at one time."""
    whole = pages_for(need_rows)
    return whole if window is None else min(whole, pages_for(window + chunk_rows) + 1)


class _GroupTable:
    """One group's share of a lane: its block table, live pages ``[first, used)`` and promise."""

    def __init__(self, pool: PagePool, need_rows: int, chunk_rows: int) -> None:
        self.pool = pool
        self.table: NDArray[np.int32] = np.full(pages_for(need_rows), -1, np.int32)
        self.first = 0
        self.used = 0
        self._promise = Promise(pool)
        self._most_live = most_live_pages(pool.window, need_rows, chunk_rows)
        self._reach_rows = None if pool.window is None else pool.window + chunk_rows

    def required(self, run: PageRun | None = None) -> int:
        """Pages to have promised; ``run`` counts as adopted already."""
        first = self.first if run is None else run.first
        used = self.used if run is None else run.first + len(run.ids)
        shared = used - first
        if run is None:
            shared = sum(1 for page in self.table[first:used] if self.pool.references(page) > 1)
        to_come = len(self.table) - used
        if self._reach_rows is None:
            return to_come
        return min(to_come, self._most_live - (used - first) + shared)

    def open(self, run: PageRun | None) -> None:
        """Adopt a run's pages and promise the rest; the pool was asked before."""
        if run is not None:
            self.pool.retain_run(run)
            self.first, self.used = run.first, run.first + len(run.ids)
            self.table[self.first : self.used] = run.ids
        self._promise_required("A lane opened although its pages do not fit.")

    def extend(self, length: int) -> None:
        """Drop what ``length`` rows no longer reach, then take pages up to them."""
        if self._reach_rows is not None:
            self._release_before(max(0, length - self._reach_rows) // PAGE_ROWS)
            self._promise_required("A dropped page could not be promised again.")
        for index in range(self.used, pages_for(length)):
            self.table[index] = self._promise.take()
            self.used = index + 1

    def share(self, first: int, end: int) -> PageRun | None:
        """A run of live pages with one reference more, None where they are gone or do not fit."""
        if first < self.first or end > self.used:
            return None
        run = PageRun(first, tuple(int(page) for page in self.table[first:end]))
        self.pool.retain_run(run)
        if self._promise.resize(self.required()):
            return run
        self.pool.release_run(run)
        return None

    def close(self) -> None:
        """Release the live pages and the promise."""
        self._release_before(self.used)
        self._promise.close()

    def _promise_required(self, broken: str) -> None:
        if not self._promise.resize(self.required()):
            raise InvariantBroken(broken)

    def _release_before(self, first: int) -> None:
        while self.first < min(first, self.used):
            self.pool.release(int(self.table[self.first]))
            self.table[self.first] = -1
            self.first += 1


class Lane(Owner):
    """The memory of one stream; a context manager that releases it exactly once.

    Attributes:
        length: rows that have pages, those being computed included.
        need_rows: rows that were promised.
    """

    def __init__(
        self,
        tables: Sequence[_GroupTable],
        need_rows: int,
        chunk_rows: int,
        slots: SlotPool | None = None,
        slot: int | None = None,
    ) -> None:
        self._tables = tuple(tables)
        self._chunk_rows = chunk_rows
        self._slots = slots
        self._slot = slot
        self.need_rows = need_rows
        self.length = 0

    @classmethod
    def open(
        cls,
        pools: Sequence[PagePool],
        need_rows: int,
        chunk_rows: int,
        resumed: LaneState | None = None,
        slots: SlotPool | None = None,
    ) -> Self | LaneRefused:
        """Promise every page of a stream of ``need_rows`` rows in every group, or in none.

        Args:
            chunk_rows: the most rows that one ``extend`` adds.
            resumed: held by a kept state; the lane takes references and a slot of its own.
            slots: of a model with recurrent layers. The lane takes one, cleared or, resumed, a copy
                of the state's.
        """
        tables = [_GroupTable(pool, need_rows, chunk_rows) for pool in pools]
        runs = (None,) * len(tables) if resumed is None else resumed.runs
        for group, (table, run) in enumerate(zip(tables, runs, strict=True)):
            if not table.pool.fits(table.required(run)):
                return PagesRefused(group, table.required(run), table.pool.available_pages)
        slot = None if slots is None else _slot_of(slots, resumed)
        if isinstance(slot, SlotsRefused):
            return slot
        lane = cls(tables, need_rows, chunk_rows, slots, slot)
        lane.length = 0 if resumed is None else resumed.rows
        try:
            for table, run in zip(tables, runs, strict=True):
                table.open(run)
        except InvariantBroken:
            lane.close()
            raise
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

    def table(self, group: int) -> NDArray[np.int32]:
        """Page id by page index, one entry for every page of ``need_rows``.

        -1 stands where a page was dropped or is not taken yet. The array is contiguous and stays
        at its address as long as the lane lives.
        """
        return self._tables[group].table

    def share(self, at: int) -> LaneState | None:
        """What a state of the first ``at`` rows needs: references to its pages, a slot's copy.

        The caller owns it. None where a sliding group has dropped one of the pages or cannot
        promise another page in its place, or where no recurrent slot is free.

        Args:
            at: a multiple of the page's rows, at most ``length``; with a recurrent state exactly
                ``length``, all of them computed, for that state has no other position.
        """
        if at % PAGE_ROWS or not 0 < at <= self.length:
            raise InvariantBroken(f"A state of {at} rows was cut from a lane of {self.length}.")
        if self._slot is not None and at != self.length:
            raise InvariantBroken(f"The recurrent state after {self.length} rows is not of {at}.")
        with ExitStack() as undo:
            runs: list[PageRun] = []
            for table in self._tables:
                run = table.share(first_reached_page(table.pool.window, at), at // PAGE_ROWS)
                if run is None:
                    return None
                undo.callback(table.pool.release_run, run)
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
