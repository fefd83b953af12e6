"""Page pool: the fixed-size KV pages of one page group, shared by streams and kept states.

Owns the page ids, their reference counts and the promises on them, not the bytes (those lie in
``engine.cache.kv``). Used from the engine thread only. Knows nothing about tokens.

Invariant, checked by ``census``:
    free + held + promised == page_count, and no page is held by nobody.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import gcd

from engine.cache.formats import PAGE_ROWS
from engine.errors import InvariantBroken


def pages_for(rows: int) -> int:
    """Pages that hold ``rows`` rows counted from position 0."""
    return -(-rows // PAGE_ROWS)


def first_reached_page(window: int | None, at: int) -> int:
    """The first page that row ``at`` and later ones may still attend to."""
    return 0 if window is None else max(0, at - window + 1) // PAGE_ROWS


def most_live_pages(window: int | None, need_rows: int, chunk_rows: int) -> int:
    """Pages of one group that a stream of ``need_rows`` rows holds at most at one time."""
    whole = pages_for(need_rows)
    return whole if window is None else min(whole, pages_for(window + chunk_rows) + 1)


def state_pages(window: int | None, at: int) -> int:
    """Pages of one group that a state after ``at`` rows holds, its last partly filled one too."""
    return pages_for(at) - first_reached_page(window, at)


def most_state_pages(window: int | None, need_rows: int, grid_rows: int) -> int:
    """The most of ``state_pages`` at any multiple of ``grid_rows`` up to ``need_rows``."""
    whole = pages_for(need_rows)
    if window is None:
        return whole
    # Of all tails the shortest leaves most rows to the pages before it.
    tail = grid_rows % PAGE_ROWS
    before = pages_for(max(0, window - 1 - gcd(tail, PAGE_ROWS)))
    return min(whole, max(pages_for(window - 1), 1 + before if tail else 0))


def tail_pages(grid_rows: int) -> int:
    """Pages of one group that a state may hold alone: the copy of a partly filled page."""
    return 1 if grid_rows % PAGE_ROWS else 0


@dataclass(frozen=True, slots=True)
class PageCensus:
    """One pool as it stands; ``free_pages`` are neither held nor promised."""

    page_count: int
    free_pages: int
    held_pages: int
    promised_pages: int


@dataclass(frozen=True, slots=True)
class PageRun:
    """Consecutive pages of one group: ``ids[i]`` holds the rows of page ``first + i``."""

    first: int
    ids: tuple[int, ...]


class Promise:
    """Pages that one stream may still take, whatever others do.

    Owns a share of its pool's free pages until ``close``, which may be repeated.
    """

    def __init__(self, pool: PagePool) -> None:
        self._pool = pool
        self._pages = 0

    @property
    def pages(self) -> int:
        """Pages not yet taken."""
        return self._pages

    def resize(self, pages: int) -> bool:
        """Make the promise ``pages`` large; False, and unchanged, where the pool has too few."""
        if not self._pool.fits(pages - self._pages):
            return False
        self._pool.add_promised(pages - self._pages)
        self._pages = pages
        return True

    def take(self) -> int:
        """One promised page with one reference, the lowest id that is free."""
        if self._pages == 0:
            raise InvariantBroken("A stream took a page that was not promised to it.")
        self._pages -= 1
        self._pool.add_promised(-1)
        return self._pool.take()

    def close(self) -> None:
        """Give back what was not taken."""
        self._pool.add_promised(-self._pages)
        self._pages = 0


class PagePool:
    """The pages of one group.

    Attributes:
        page_count: pages in all.
        window: rows that the group's layers attend to, None for all.
    """

    def __init__(self, page_count: int, window: int | None = None) -> None:
        self.page_count = page_count
        self.window = window
        self._free = list(range(page_count))
        self._references = [0] * page_count
        self._promised = 0

    @property
    def available_pages(self) -> int:
        """Pages that are neither held nor promised."""
        return len(self._free) - self._promised

    def fits(self, pages: int) -> bool:
        """Whether ``pages`` more can be promised now."""
        return pages <= self.available_pages

    def add_promised(self, pages: int) -> None:
        """Change the sum of all promises; only ``Promise`` calls this, after ``fits``."""
        self._promised += pages

    def take_spare(self) -> int | None:
        """A page beyond all promises with one reference; None where there is none."""
        return self.take() if self.fits(1) else None

    def take(self) -> int:
        """A free page with one reference; only ``Promise.take`` and ``take_spare`` call this."""
        page = heapq.heappop(self._free)
        self._references[page] = 1
        return page

    def references(self, page: int) -> int:
        """Who holds a page, as a count."""
        return self._references[page]

    def retain(self, page: int) -> None:
        """One more holder of a page that is held already."""
        if self._references[page] == 0:
            raise InvariantBroken(f"Page {page} was shared although nobody holds it.")
        self._references[page] += 1

    def release(self, page: int) -> None:
        """One holder less; the last one frees the page."""
        if self._references[page] == 0:
            raise InvariantBroken(f"Page {page} was released although nobody holds it.")
        self._references[page] -= 1
        if self._references[page] == 0:
            heapq.heappush(self._free, page)

    def retain_run(self, run: PageRun) -> None:
        """Retain every page of a run."""
        for page in run.ids:
            self.retain(page)

    def release_run(self, run: PageRun) -> None:
        """Release every page of a run."""
        for page in run.ids:
            self.release(page)

    def census(self) -> PageCensus:
        """The pool as it stands; raises InvariantBroken where the accounts do not meet."""
        held = sum(1 for count in self._references if count > 0)
        consistent = (
            held + len(self._free) == self.page_count
            and all(self._references[page] == 0 for page in self._free)
            and len(set(self._free)) == len(self._free)
            and 0 <= self._promised <= len(self._free)
        )
        if not consistent:
            raise InvariantBroken(
                f"The pages do not add up: {held} held, {len(self._free)} unheld, "
                f"{self._promised} promised, {self.page_count} in all."
            )
        return PageCensus(self.page_count, self.available_pages, held, self._promised)
