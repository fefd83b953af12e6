"""Random histories of lanes and kept states never break a pool, starve a lane or mix up contents.

A row's token follows from the rows before it, so that lanes of one branch compute identical pages,
as a model does, and a row that is lost, stale or another branch's is another number. Every page
that nobody holds is poisoned, so that what is read too late shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import Lane, LaneState
from engine.cache.pages import PagePool, PageRun, pages_for
from tests.helpers.fake_device import FakeDevice, left_behind
from tests.helpers.fake_slots import FakeSlots, chains_of

CHUNK = 256
WINDOW = 512
GRID = 64
BRANCHES = 2
LONGEST = 2600


def branch(number: int) -> list[int]:
    """Tokens that every lane of a branch computes."""
    drawn = np.random.default_rng(number).integers(0, 1 << 31, LONGEST + CHUNK)
    return [int(token) for token in drawn]


TOKENS = [branch(number) for number in range(BRANCHES)]
CHAINS = [chains_of(tokens) for tokens in TOKENS]


class Machine(RuleBasedStateMachine):
    """Opens, extends, shares, adopts, swaps, resumes and closes in any order."""

    slot_count = 0
    windows: Sequence[int | None] = (None, WINDOW)
    counts: Sequence[int] = (14, 11)

    def __init__(self) -> None:
        super().__init__()
        self.pools = [PagePool(*each) for each in zip(self.counts, self.windows, strict=True)]
        self.device = FakeDevice(self.pools, self.slot_count)
        self.memory = self.device.memory
        self.lanes: list[tuple[Lane, int]] = []
        self.states: list[tuple[LaneState, int]] = []

    @rule(need=st.integers(1, LONGEST), number=st.integers(0, BRANCHES - 1))
    def open(self, need: int, number: int) -> None:
        lane = Lane.open(self.memory, need, CHUNK)
        if isinstance(lane, Lane):
            self.lanes.append((lane, number))

    @precondition(lambda self: self.lanes)
    @rule(
        which=st.integers(0, 9),
        rows=st.sampled_from((1, 64, 100, 192, CHUNK, CHUNK)),
        times=st.integers(1, 6),
    )
    def extend(self, which: int, rows: int, times: int) -> None:
        lane, number = self.lanes[which % len(self.lanes)]
        for _ in range(times):
            if lane.length + rows <= lane.need_rows:
                lane.extend(rows)
                self.compute(lane, number, rows)

    @precondition(lambda self: self.lanes)
    @rule(which=st.integers(0, 9), back=st.integers(0, 6), exact=st.booleans())
    def share(self, which: int, back: int, exact: bool) -> None:
        lane, number = self.lanes[which % len(self.lanes)]
        at = lane.length if exact or self.slot_count else lane.length // GRID * GRID - GRID * back
        held = lane.share(at) if at > 0 else None
        if held is not None:
            self.states.append((held, number))

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 9), more=st.integers(1, 2000))
    def resume(self, which: int, more: int) -> None:
        held, number = self.states[which % len(self.states)]
        lane = Lane.open(self.memory, min(held.rows + more, LONGEST), CHUNK, held)
        if isinstance(lane, Lane):
            self.lanes.append((lane, number))

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 9), pages=st.integers(1, 8), more=st.integers(1, 500))
    def resume_a_part(self, which: int, pages: int, more: int) -> None:
        held, number = self.states[which % len(self.states)]
        rows = min(pages, held.rows // PAGE_ROWS) * PAGE_ROWS
        if rows and held.slot is None and not any(run.first for run in held.runs):
            lane = Lane.open(self.memory, rows + more, CHUNK, held.cut(rows))
            if isinstance(lane, Lane):
                self.lanes.append((lane, number))

    @precondition(lambda self: self.lanes)
    @rule(which=st.integers(0, 9), more=st.integers(1, 1500))
    def adopt(self, which: int, more: int) -> None:
        lane, number = self.lanes[which % len(self.lanes)]
        rows = min(lane.length + more, lane.need_rows)
        if rows > lane.length:
            for group, run in enumerate(lane.adopt(rows)):
                self.write(group, run, number, rows)
            if self.device.slots is not None and lane.recurrent_slot is not None:
                self.device.write_slot(lane.recurrent_slot, memoryview(CHAINS[number][rows]))

    @precondition(lambda self: self.lanes and self.states)
    @rule(which=st.integers(0, 9), other=st.integers(0, 9))
    def swap(self, which: int, other: int) -> None:
        held, of = self.states[other % len(self.states)]
        lane, number = self.lanes[which % len(self.lanes)]
        if of == number:
            lane.swap(held)
            for group, run in enumerate(held.runs):
                whole = min(held.rows, lane.length) // PAGE_ROWS
                for index, page in enumerate(run.ids[: max(0, whole - run.first)], run.first):
                    assert lane.table(group)[index] in (page, -1)

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 9))
    def evict(self, which: int) -> None:
        held, _ = self.states.pop(which % len(self.states))
        held.release(self.pools, self.memory.slots)

    @precondition(lambda self: self.lanes)
    @rule(which=st.integers(0, 9))
    def close(self, which: int) -> None:
        self.lanes.pop(which % len(self.lanes))[0].close()

    def compute(self, lane: Lane, number: int, rows: int) -> None:
        positions = np.arange(lane.length - rows, lane.length)
        for group, pool in enumerate(self.pools):
            pages = self.device.seen(lane.table(group))[positions // PAGE_ROWS]
            assert all(pool.references(int(page)) == 1 for page in pages), "a held page is written"
            tokens = TOKENS[number][positions[0] : positions[-1] + 1]
            self.device.rows[group][pages, positions % PAGE_ROWS] = tokens
        if self.device.slots is not None and lane.recurrent_slot is not None:
            first = lane.length - rows
            self.device.slots.extend(lane.recurrent_slot, TOKENS[number][first : lane.length])

    def write(self, group: int, run: PageRun, number: int, rows: int) -> None:
        for index, page in enumerate(run.ids, run.first):
            assert self.pools[group].references(page) == 1, "a held page is written"
            content = np.full(PAGE_ROWS, -7, np.int64)
            known = TOKENS[number][index * PAGE_ROWS : min((index + 1) * PAGE_ROWS, rows)]
            content[: len(known)] = known
            self.device.write_page(group, page, memoryview(content.tobytes()))

    @invariant()
    def unheld_pages_are_forgotten(self) -> None:
        for group, pool in enumerate(self.pools):
            for page in range(pool.page_count):
                if not pool.references(page):
                    self.device.poison(group, page)

    @invariant()
    def every_row_in_reach_is_the_branch_s(self) -> None:
        for lane, number in self.lanes:
            for group in range(len(self.pools)):
                table = self.device.seen(lane.table(group))
                self.check(group, lane.length, number, dict(enumerate(table.tolist())))
        for held, number in self.states:
            for group, run in enumerate(held.runs):
                self.check(group, held.rows, number, dict(enumerate(run.ids, run.first)))

    def check(self, group: int, rows: int, number: int, pages: dict[int, int]) -> None:
        window = self.pools[group].window
        first = 0 if window is None else max(0, rows - window + 1)
        positions = np.arange(first, rows)
        ids = np.array([pages[int(index)] for index in positions // PAGE_ROWS], np.int64)
        assert (ids >= 0).all()
        found = self.device.rows[group][ids, positions % PAGE_ROWS]
        assert found.tolist() == TOKENS[number][first:rows]

    @invariant()
    def each_slot_holds_its_owner_s_tokens(self) -> None:
        slots, pool = self.device.slots, self.memory.slots
        if not isinstance(slots, FakeSlots) or pool is None:
            return
        owners = [(lane.recurrent_slot, lane.length, number) for lane, number in self.lanes]
        owners += [(held.slot, held.rows, number) for held, number in self.states]
        for slot, rows, number in owners:
            assert slot is not None
            assert slots.chains[slot] == CHAINS[number][rows]
        assert pool.census().free_slots == slots.slot_count - len(owners)

    @invariant()
    def each_reference_has_an_owner(self) -> None:
        for group, pool in enumerate(self.pools):
            pool.census()
            holders = np.zeros(pool.page_count, np.int64)
            for lane, _ in self.lanes:
                live = lane.table(group)
                np.add.at(holders, live[live >= 0], 1)
            for held, _ in self.states:
                np.add.at(holders, np.array(held.runs[group].ids, np.int64), 1)
            assert [pool.references(page) for page in range(pool.page_count)] == holders.tolist()

    @invariant()
    def every_lane_can_be_finished(self) -> None:
        """What a full group's lanes have yet to take is promised."""
        for pool in self.pools:
            if pool.window is None:
                to_come = sum(
                    pages_for(lane.need_rows) - pages_for(lane.length) for lane, _ in self.lanes
                )
                assert pool.census().promised_pages == to_come

    def teardown(self) -> None:
        for lane, number in self.lanes:
            while lane.length < lane.need_rows:
                rows = min(CHUNK, lane.need_rows - lane.length)
                lane.extend(rows)
                self.compute(lane, number, rows)
        for lane, _ in self.lanes:
            lane.close()
        for held, _ in self.states:
            held.release(self.pools, self.memory.slots)
        assert left_behind(self.memory) == []


class RecurrentMachine(Machine):
    """The same with recurrent slots, whose states are cut where the lane stands."""

    slot_count = 7


class FullMachine(Machine):
    """The same with groups that reach every row, whose states can be cut."""

    windows = (None, None)
    counts = (16, 14)


FEW = settings(max_examples=25, stateful_step_count=25, deadline=None)
Machine.TestCase.settings = FEW
RecurrentMachine.TestCase.settings = FEW
FullMachine.TestCase.settings = FEW
TestSliding = Machine.TestCase
TestRecurrent = RecurrentMachine.TestCase
TestFull = FullMachine.TestCase
