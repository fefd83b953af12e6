"""Random histories of lanes and kept states never break a pool, starve a lane or leak a page.

Each lane's tokens are its own, so a recurrent slot that is shared, stale or a copy of the wrong one
holds another chain than the lane's tokens make.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.cache.lane import Lane, LaneState
from engine.cache.pages import PagePool
from engine.cache.slots import SlotPool
from tests.helpers.fake_slots import FakeSlots, chain_of

CHUNK = 256
WINDOW = 512


class Pages(RuleBasedStateMachine):
    """Opens, extends, shares, resumes and closes in any order over a full and a sliding group."""

    def __init__(self) -> None:
        super().__init__()
        self.pools = [PagePool(14), PagePool(9, WINDOW)]
        self.content = FakeSlots(7)
        self.slots = SlotPool(self.content)
        self.lanes: list[tuple[Lane, list[int]]] = []
        self.states: list[tuple[LaneState, list[int]]] = []
        self.token = 0

    @rule(need=st.integers(1, 2600))
    def open(self, need: int) -> None:
        lane = Lane.open(self.pools, need, CHUNK, slots=self.slots)
        if isinstance(lane, Lane):
            self.lanes.append((lane, []))

    @precondition(lambda self: self.lanes)
    @rule(
        which=st.integers(0, 9),
        rows=st.sampled_from((1, 100, CHUNK, CHUNK)),
        times=st.integers(1, 6),
    )
    def extend(self, which: int, rows: int, times: int) -> None:
        lane, tokens = self.lanes[which % len(self.lanes)]
        for _ in range(times):
            if lane.length + rows <= lane.need_rows:
                lane.extend(rows)
                self.token += 1
                tokens.append(self.token)
                assert lane.recurrent_slot is not None
                self.content.extend(lane.recurrent_slot, [self.token])

    @precondition(lambda self: self.lanes)
    @rule(which=st.integers(0, 9))
    def share(self, which: int) -> None:
        lane, tokens = self.lanes[which % len(self.lanes)]
        if lane.length and lane.length % CHUNK == 0:
            held = lane.share(lane.length)
            if held is not None:
                self.states.append((held, list(tokens)))

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 9), more=st.integers(1, 2000))
    def resume(self, which: int, more: int) -> None:
        held, tokens = self.states[which % len(self.states)]
        lane = Lane.open(self.pools, held.rows + more, CHUNK, held, self.slots)
        if isinstance(lane, Lane):
            self.lanes.append((lane, list(tokens)))

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 9))
    def evict(self, which: int) -> None:
        self.states.pop(which % len(self.states))[0].release(self.pools, self.slots)

    @precondition(lambda self: self.lanes)
    @rule(which=st.integers(0, 9))
    def close(self, which: int) -> None:
        self.lanes.pop(which % len(self.lanes))[0].close()

    @invariant()
    def each_slot_holds_its_owner_s_tokens(self) -> None:
        owners = [(lane.recurrent_slot, tokens) for lane, tokens in self.lanes]
        owners += [(held.slot, tokens) for held, tokens in self.states]
        for slot, tokens in owners:
            assert slot is not None
            assert self.content.chains[slot] == chain_of(tokens)
        assert self.slots.census().free_slots == self.content.slot_count - len(owners)

    @invariant()
    def accounts_meet(self) -> None:
        for pool in self.pools:
            census = pool.census()
            total = census.free_pages + census.held_pages + census.promised_pages
            assert total == pool.page_count

    @invariant()
    def rows_in_reach_have_pages(self) -> None:
        for lane, _ in self.lanes:
            for group, pool in enumerate(self.pools):
                reach = lane.length if pool.window is None else pool.window
                first = max(0, lane.length - reach) // CHUNK
                end = -(-lane.length // CHUNK)
                assert (lane.table(group)[first:end] >= 0).all()

    def teardown(self) -> None:
        for lane, _ in self.lanes:
            lane.close()
        for held, _ in self.states:
            held.release(self.pools, self.slots)
        assert [pool.census().free_pages for pool in self.pools] == [14, 9]
        assert self.slots.census().free_slots == self.content.slot_count


Pages.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestPages = Pages.TestCase
