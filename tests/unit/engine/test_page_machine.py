"""Random histories of lanes and kept states never break a pool, starve a lane or leak a page."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.cache.lane import Lane
from engine.cache.pages import PagePool, PageRun

CHUNK = 256
WINDOW = 512


class Pages(RuleBasedStateMachine):
    """Opens, extends, shares, resumes and closes in any order over a full and a sliding group."""

    def __init__(self) -> None:
        super().__init__()
        self.pools = [PagePool(14), PagePool(9, WINDOW)]
        self.lanes: list[Lane] = []
        self.states: list[tuple[int, tuple[PageRun, ...]]] = []

    @rule(need=st.integers(1, 2600))
    def open(self, need: int) -> None:
        lane = Lane.open(self.pools, need, CHUNK)
        if isinstance(lane, Lane):
            self.lanes.append(lane)

    @precondition(lambda self: self.lanes)
    @rule(which=st.integers(0, 9), rows=st.integers(1, CHUNK), times=st.integers(1, 6))
    def extend(self, which: int, rows: int, times: int) -> None:
        lane = self.lanes[which % len(self.lanes)]
        for _ in range(times):
            if lane.length + rows <= lane.need_rows:
                lane.extend(rows)

    @precondition(lambda self: self.lanes)
    @rule(which=st.integers(0, 9), back=st.integers(0, 3))
    def share(self, which: int, back: int) -> None:
        lane = self.lanes[which % len(self.lanes)]
        at = (lane.length // CHUNK - back) * CHUNK
        if at > 0:
            runs = lane.share(at)
            if runs is not None:
                self.states.append((at, runs))

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 9), more=st.integers(1, 2000))
    def resume(self, which: int, more: int) -> None:
        at, runs = self.states[which % len(self.states)]
        lane = Lane.open(self.pools, at + more, CHUNK, runs, at)
        if isinstance(lane, Lane):
            self.lanes.append(lane)

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 9))
    def evict(self, which: int) -> None:
        _, runs = self.states.pop(which % len(self.states))
        for pool, run in zip(self.pools, runs, strict=True):
            pool.release_run(run)

    @precondition(lambda self: self.lanes)
    @rule(which=st.integers(0, 9))
    def close(self, which: int) -> None:
        self.lanes.pop(which % len(self.lanes)).close()

    @invariant()
    def accounts_meet(self) -> None:
        for pool in self.pools:
            census = pool.census()
            total = census.free_pages + census.held_pages + census.promised_pages
            assert total == pool.page_count

    @invariant()
    def rows_in_reach_have_pages(self) -> None:
        for lane in self.lanes:
            for group, pool in enumerate(self.pools):
                reach = lane.length if pool.window is None else pool.window
                first = max(0, lane.length - reach) // CHUNK
                end = -(-lane.length // CHUNK)
                assert (lane.table(group)[first:end] >= 0).all()

    def teardown(self) -> None:
        for lane in self.lanes:
            lane.close()
        for _, runs in self.states:
            for pool, run in zip(self.pools, runs, strict=True):
                pool.release_run(run)
        assert [pool.census().free_pages for pool in self.pools] == [14, 9]


Pages.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestPages = Pages.TestCase
