"""One page group's share of a lane: its block table, its live pages and its promise.

Used by ``engine.cache.lane`` alone, on the engine thread. In a sliding group only the pages of the
newest ``window + chunk_rows`` rows are live. A live page that a kept state also holds is not freed
when the lane drops it, so each one keeps one page promised on top:

    promised == min(pages to come, most live pages - live pages + shared live pages)

The device sees a new table before a page that only the old one named is given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from engine.cache.device import PageDevice
from engine.cache.formats import PAGE_ROWS
from engine.cache.pages import (
    PagePool,
    PageRun,
    Promise,
    first_reached_page,
    most_live_pages,
    pages_for,
)
from engine.errors import InvariantBroken


class GroupTable:
    """Owns the references to the live pages ``[first, used)`` and the promise, until ``close``.

    Attributes:
        table: page id by page index, -1 where none is live; never moves.
    """

    def __init__(
        self, pool: PagePool, device: PageDevice, group: int, need_rows: int, chunk_rows: int
    ) -> None:
        self.pool = pool
        self.table: NDArray[np.int32] = np.full(pages_for(need_rows), -1, np.int32)
        self.first = 0
        self.used = 0
        self._device = device
        self._group = group
        self._promise = Promise(pool)
        self._most_live = most_live_pages(pool.window, need_rows, chunk_rows)
        self._reach_rows = None if pool.window is None else pool.window + chunk_rows
        self._leaving: list[int] = []
        self._shown = False

    def required(self, whole: PageRun | None = None) -> int:
        """Pages to have promised; ``whole`` pages count as adopted already."""
        if whole is None:
            live = self.table[self.first : self.used]
            used, shared = self.used, sum(1 for page in live if self.pool.references(page) > 1)
        else:
            live = np.array(whole.ids, np.int32)
            used, shared = whole.first + len(live), len(live)
        to_come = len(self.table) - used
        if self._reach_rows is None:
            return to_come
        return min(to_come, self._most_live - len(live) + shared)

    def open(self, whole: PageRun | None, tail: int | None) -> None:
        """Adopt a state's whole pages, promise the rest and copy its partly filled page.

        The pool was asked before.
        """
        if whole is not None:
            self.pool.retain_run(whole)
            self.first, self.used = whole.first, whole.first + len(whole.ids)
            self.table[self.first : self.used] = whole.ids
        self._promise_required("A lane opened although its pages do not fit.")
        if tail is not None:
            self._device.copy_page(self._group, tail, self._take())
        self.show()

    def extend(self, length: int) -> None:
        """Drop what ``length`` rows no longer reach, then take pages up to them."""
        if self._reach_rows is not None:
            self._drop_before(max(0, length - self._reach_rows) // PAGE_ROWS)
        self._take_up_to(length)

    def adopt(self, length: int, rows: int) -> PageRun:
        """Go on from ``length`` to ``rows`` rows that somebody else writes, into these pages."""
        first = first_reached_page(self.pool.window, rows)
        self._drop_before(first)
        if first > self.used:
            self.first = self.used = first
        self._promise_required("An adopted page could not be promised.")
        self._take_up_to(rows)
        start = max(first, length // PAGE_ROWS)
        return PageRun(start, self._ids(start, self.used))

    def share(self, at: int) -> PageRun | None:
        """What a state of ``at`` rows holds: references to whole pages, a copy of a partial one.

        None where pages are gone or the pool has too few.
        """
        first, whole, end = first_reached_page(self.pool.window, at), at // PAGE_ROWS, pages_for(at)
        if first < self.first or end > self.used:
            return None
        run = PageRun(first, self._ids(first, whole))
        self.pool.retain_run(run)
        with ExitStack() as undo:
            undo.callback(self.unshare, run)
            if not self._promise.resize(self.required()):
                return None
            if end > whole:
                tail = self.pool.take_spare()
                if tail is None:
                    return None
                undo.callback(self.pool.release, tail)
                # Not the rows after it: they may be another chat's, and a state goes to the disk.
                self._device.copy_page(
                    self._group, int(self.table[whole]), tail, at - whole * PAGE_ROWS
                )
                run = PageRun(first, (*run.ids, tail))
            undo.pop_all()
        return run

    def unshare(self, run: PageRun) -> None:
        """Take back what ``share`` gave, and what was promised for it."""
        self.pool.release_run(run)
        self._promise_required("A promise could not be made smaller.")

    def rename(self, run: PageRun, end: int) -> Mapping[int, int]:
        """Have the table name a state's pages before page ``end``; nothing else changes yet.

        Returns:
            The lane's own pages, by index, that the table named in their place.
        """
        own: dict[int, int] = {}
        last = min(end, self.used, run.first + len(run.ids))
        for index in range(max(self.first, run.first), last):
            page = run.ids[index - run.first]
            if self.table[index] != page:
                own[index] = int(self.table[index])
        self._write({index: run.ids[index - run.first] for index in own})
        return own

    def restore(self, own: Mapping[int, int]) -> None:
        """Undo ``rename``."""
        self._write(own)

    def settle(self, own: Mapping[int, int]) -> None:
        """Move the references after ``rename``: to the pages named now, from the lane's own."""
        for index, page in own.items():
            self.pool.retain(int(self.table[index]))
            self.pool.release(page)
        self._promise_required("A swapped page could not be promised.")

    def show(self) -> None:
        """Have the device see the table, if it changed."""
        if not self._shown:
            self._device.upload_table(self._group, self.table)
            self._shown = True

    def close(self) -> None:
        """Release the pages and the promise."""
        self._leaving += self._ids(self.first, self.used)
        self.first = self.used
        self._release_leaving()
        self._promise.close()

    def _ids(self, first: int, end: int) -> tuple[int, ...]:
        return tuple(int(page) for page in self.table[first:end])

    def _write(self, pages: Mapping[int, int]) -> None:
        for index, page in pages.items():
            self.table[index] = page
        self._shown = self._shown and not pages

    def _take(self) -> int:
        page = self._promise.take()
        self._write({self.used: page})
        self.used += 1
        return page

    def _take_up_to(self, rows: int) -> None:
        while self.used < pages_for(rows):
            self._take()
        self.show()

    def _drop_before(self, first: int) -> None:
        """Drop live pages; they are held until the device has seen that the table has not them."""
        first = min(first, self.used)
        if first > self.first:
            self._leaving += self._ids(self.first, first)
            self._write(dict.fromkeys(range(self.first, first), -1))
            self.first = first
        if self._leaving:
            self.show()
            self._release_leaving()
        self._promise_required("A dropped page could not be promised again.")

    def _release_leaving(self) -> None:
        while self._leaving:
            self.pool.release(self._leaving.pop())

    def _promise_required(self, broken: str) -> None:
        if not self._promise.resize(self.required()):
            raise InvariantBroken(broken)
