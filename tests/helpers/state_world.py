"""A store of states over a fake device and archive, and turns as serving would run them.

Every row is its token and every recurrent state a chain over all tokens, so that what a resume
brought is compared with what the prompt says. Pages are poisoned when they are given out anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from engine.cache.lane import Lane, LaneRefused
from engine.cache.pages import PagePool, first_reached_page, pages_for
from engine.protocol import StateFacts
from engine.states.device.keeping import Clocks
from engine.states.lookup import Found, LowerTiers
from engine.states.records import Role
from engine.states.resume import Resume, ResumeStatus
from engine.states.store import StateStore
from tests.helpers.fake_archive import FakeArchive
from tests.helpers.fake_device import FakeDevice, left_behind
from tests.helpers.fake_slots import chain_of

CHUNK = 256
MODEL = "tiny"
Ids = NDArray[np.int32]


def tokens(count: int, seed: int = 0) -> Ids:
    """Random ids."""
    return np.random.default_rng(seed).integers(0, 50_000, count, dtype=np.int32)


class World:
    """One loaded model without a model.

    Attributes:
        store: over ``device`` and ``archive``; None below the device where ``archive`` is.
        now_ns: the clock, moved by one with every look at it.
    """

    def __init__(
        self,
        pools: Sequence[tuple[int, int | None]] = ((60, None),),
        *,
        slots: int = 0,
        grid: int = 64,
        archive: FakeArchive | None = None,
        facts: tuple[StateFacts, ...] = (),
    ) -> None:
        self.device = FakeDevice([PagePool(*pool) for pool in pools], slots)
        self.memory = self.device.memory
        self.archive = archive
        self.grid = grid
        self.now_ns = 0
        lower = None if archive is None else LowerTiers(archive, MODEL, facts)
        clocks = Clocks(self._tick, lambda: self.now_ns / 1000)
        self.store = StateStore(self.memory, grid, lower, clocks)

    def open(self, found: Found, need_rows: int) -> Lane | LaneRefused:
        """A lane for what was found, other states evicted for it."""
        with self.store.pinned(found):
            while True:
                lane = Lane.open(self.memory, need_rows, CHUNK, found.held)
                if isinstance(lane, Lane) or not self.store.reclaim(lane):
                    return lane

    def find(self, ids: Ids, conversation: str | None = None, history: int = 0) -> Found:
        """What the store finds."""
        return self.store.find(ids, conversation, history)

    @contextmanager
    def resumed(
        self, ids: Ids, conversation: str | None = None, history: int = 0
    ) -> Iterator[tuple[Lane, Resume, Found]]:
        """A lane with what was found of a prompt in it, checked row for row."""
        found = self.store.find(ids, conversation, history)
        lane = self.open(found, len(ids) + 8)
        assert isinstance(lane, Lane), lane
        with lane, self.store.begin_resume(found, lane) as resume:
            while resume.status is ResumeStatus.READING:
                assert resume.step(1), "the resume stands still"
            assert resume.status is ResumeStatus.DONE
            self.check(lane, ids[: found.at])
            yield lane, resume, found

    def turn(
        self,
        ids: Ids,
        marks: Mapping[int, Role] | Sequence[int] = (),
        conversation: str | None = None,
        history: int = 0,
    ) -> tuple[Found, dict[int, bool]]:
        """Run a prompt to its end and keep states on the way: what was found, what was kept."""
        roles = marks if isinstance(marks, Mapping) else dict.fromkeys(marks, Role.END)
        with self.resumed(ids, conversation, history) as (lane, _, found):
            kept = {}
            ends = sorted({len(ids), *(at for at in roles if at > found.at)})
            for end in ends:
                self.compute(lane, ids[:end])
                if end in roles:
                    kept[end] = self.store.keep(lane, ids[:end], roles[end], conversation)
            return found, kept

    def compute(self, lane: Lane, ids: Ids) -> None:
        """Compute the prompt's rows from where the lane stands."""
        while lane.length < len(ids):
            start = lane.length
            lane.extend(min(CHUNK - start % CHUNK, len(ids) - start))
            at = np.arange(start, lane.length)
            for group, rows in enumerate(self.device.rows):
                pages = self.device.seen(lane.table(group))[at // 256]
                pool = self.memory.pools[group]
                assert all(pool.references(int(page)) == 1 for page in pages), "a kept page written"
                rows[pages, at % 256] = ids[at]
            if self.device.slots is not None:
                assert lane.recurrent_slot is not None
                self.device.slots.extend(lane.recurrent_slot, ids[at].tolist())

    def check(self, lane: Lane, ids: Ids) -> None:
        """The lane holds exactly what these tokens make of it."""
        assert lane.length == len(ids)
        for group, pool in enumerate(self.memory.pools):
            first = 0 if pool.window is None else max(0, len(ids) - pool.window + 1)
            at = np.arange(first, len(ids))
            pages = self.device.seen(lane.table(group))[at // 256]
            assert (pages >= 0).all(), f"group {group} lost a page"
            assert np.array_equal(self.device.rows[group][pages, at % 256], ids[at])
        if self.device.slots is not None:
            assert lane.recurrent_slot is not None
            assert self.device.slots.chains[lane.recurrent_slot] == chain_of(ids.tolist())

    def poison_free_pages(self) -> None:
        """Nobody's pages hold nothing that anybody may read."""
        for group, pool in enumerate(self.memory.pools):
            for page in range(pool.page_count):
                if not pool.references(page):
                    self.device.poison(group, page)

    def write_all(self) -> None:
        """Write back until nothing is left to do."""
        while self.store.write_step():
            pass

    def forget_device(self) -> None:
        """Nothing is kept on the device any more, as after a restart; the archive stays."""
        self.store.clear(None)
        self.poison_free_pages()

    def close(self) -> None:
        """Close the store; nothing may be left."""
        self.store.close()
        self.store.close()
        assert left_behind(self.memory) == []
        if self.archive is not None:
            self.archive.close()
        census = self.store.census()
        assert (census.states, census.pages, census.slots, census.pinned) == (0, 0, 0, 0)

    def _tick(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns


def extents_of(at: int, window: int | None) -> int:
    """Pages of one group in a state of ``at`` rows."""
    return pages_for(at) - first_reached_page(window, at)
