"""Who goes first where the device is short: superseded states, then the least recently used."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cache.lane import LaneState, PagesRefused
from engine.states.device.held import HeldState
from engine.states.device.victims import Standing, superseded, victims
from engine.states.records import Role, StateRecord, prefix_digest
from tests.helpers.state_world import World, tokens

IDS = tokens(2000)
CHATS = ("one", "two", "three")


def state(
    at: int,
    *chats: str,
    born: int = 0,
    used: int | None = None,
    role: Role = Role.END,
    branch: int = 0,
) -> HeldState:
    """The state after the first ``at`` tokens; those of another branch differ at once."""
    ids = IDS[:at] + branch
    record = StateRecord(ids, prefix_digest(ids), (), role)
    last = born if used is None else used
    return HeldState(record, LaneState(at, ()), set(chats), born=born, used=last)


def order(
    states: Iterable[HeldState],
    standing: Standing | None = None,
    coming: StateRecord | None = None,
    *,
    for_request: bool = True,
) -> list[int]:
    """The ages of the victims, the first one first."""
    found = victims(tuple(states), standing or Standing(), coming, for_request=for_request)
    return [one.born for one in found]


def test_superseded_states_go_first_and_the_oldest_of_them_before_others() -> None:
    first, second, third = (state(at, "one", born=at) for at in (256, 512, 768))
    old = state(640, "two", born=1)
    assert order([third, old, second, first]) == [256, 512, 1, 768]


def test_use_decides_among_those_that_nothing_supersedes_and_birth_among_the_others() -> None:
    states = [
        state(256, "one", born=1, used=90),
        state(512, "one", born=2, used=3),
        state(768, "one", born=4),
        state(640, "two", born=5, used=80),
    ]
    assert order(states) == [1, 2, 4, 5]


@pytest.mark.parametrize(
    ("chats", "branch", "role", "expected"),
    [
        (("one",), 0, Role.END, True),
        (("one", "two"), 0, Role.REWIND, True),
        (("two",), 0, Role.END, False),
        ((), 0, Role.END, False),
        (("one",), 1, Role.END, False),
        (("one",), 0, Role.SHARED, False),
    ],
)
def test_only_a_longer_state_of_the_same_conversation_supersedes(
    chats: tuple[str, ...], branch: int, role: Role, expected: bool
) -> None:
    short = state(256, *chats, branch=branch, role=role)
    assert superseded(short, [short, state(512, "one")]) is expected
    coming = StateRecord(IDS[:512], b"", (), Role.END, "one")
    assert superseded(short, [short], coming) is expected
    assert not superseded(state(512, "one"), [], coming)


def test_open_and_running_conversations_go_only_where_no_other_can() -> None:
    states = [
        state(256, "one", born=1),
        state(512, "one", born=2),
        state(512, "two", born=3, branch=1),
        state(512, "three", born=4, branch=2),
        state(512, born=5, branch=3, role=Role.SHARED),
    ]
    standing = Standing(open=frozenset({"one"}), running=frozenset({"two"}))
    assert order(states, standing) == [4, 5, 1, 2, 3]


def test_shared_beginnings_go_like_any_other_and_never_as_superseded() -> None:
    shared = state(256, born=1, used=50, role=Role.SHARED)
    other = state(512, "one", born=2)
    longer = state(768, "one", born=3)
    assert order([shared, other, longer]) == [2, 3, 1]


def test_what_a_person_pinned_goes_last_and_only_for_a_request() -> None:
    states = [state(512, "one", born=1), state(512, "two", born=2, branch=1)]
    standing = Standing(open=frozenset({"two"}), pinned=frozenset({"one"}))
    assert order(states, standing) == [2, 1]
    assert order(states, standing, for_request=False) == [2]


def test_what_is_being_resumed_and_the_rewind_of_a_running_request_stay() -> None:
    states = [
        state(256, "one", born=1, role=Role.REWIND),
        state(512, "one", born=2, role=Role.REWIND),
        state(768, "one", born=3),
        state(512, "two", born=4, branch=1, role=Role.REWIND),
    ]
    assert order(states, Standing(running=frozenset({"one"}))) == [4, 1, 3]
    assert order(states[::-1], Standing(running=frozenset({"one"}))) == [4, 1, 3]
    states[0].pins = 1
    assert order(states, Standing(running=frozenset({"one"}))) == [4, 3]


@settings(deadline=None, max_examples=60)
@given(
    shapes=st.lists(
        st.tuples(
            st.sampled_from((64, 128, 256)),
            st.sampled_from((*CHATS, None)),
            st.integers(0, 2),
            st.sampled_from(Role),
            st.booleans(),
        ),
        max_size=8,
    ),
    open_chats=st.sets(st.sampled_from(CHATS)),
    running=st.sets(st.sampled_from(CHATS)),
    pinned=st.sets(st.sampled_from(CHATS)),
)
def test_nobody_of_less_worth_stays_behind_one_who_goes(
    shapes: list[tuple[int, str | None, int, Role, bool]],
    open_chats: set[str],
    running: set[str],
    pinned: set[str],
) -> None:
    states = [
        state(at, *([] if chat is None else [chat]), born=born, branch=branch, role=role)
        for born, (at, chat, branch, role, _) in enumerate(shapes)
    ]
    for one, (*_, in_use) in zip(states, shapes, strict=True):
        one.pins = int(in_use)
    standing = Standing(frozenset(open_chats), frozenset(running), frozenset(pinned))
    found = victims(states, standing, for_request=True)
    assert not any(one.pins for one in found)
    assert len(set(map(id, found))) == len(found)
    worth = [
        2 if one.conversations & pinned else 1 if one.conversations & (open_chats | running) else 0
        for one in found
    ]
    assert worth == sorted(worth)
    kept = victims(states, standing, for_request=False)
    assert kept == [one for one, rank in zip(found, worth, strict=True) if rank < 2]


def test_an_open_conversation_outlives_the_others() -> None:
    """The store's own eviction: a newer, closed chat goes before an older, open one."""
    world = World([(30, None)], slots=5)
    first, second = tokens(300, 1), tokens(300, 2)
    world.turn(first, (256,), "open")
    world.turn(second, (256,), "closed")
    world.store.set_open({"open"})
    for seed in range(3, 7):
        world.turn(tokens(300, seed), (256,), f"other {seed}")
    assert world.find(second).reason == "evicted"
    assert world.find(first).at == 256
    world.close()


def test_a_pinned_conversation_yields_to_a_request_and_to_no_state() -> None:
    world = World([(30, None)], slots=2)
    first = tokens(300, 1)
    world.turn(first, (256,), "mine")
    world.store.pin("mine", pinned=True)
    assert world.turn(tokens(300, 2), (256,), "other")[1] == {256: False}
    assert world.find(first).at == 256
    world.store.pin("mine", pinned=False)
    assert world.turn(tokens(300, 2), (256,), "other")[1] == {256: True}
    world.store.pin("other", pinned=True)
    assert world.store.reclaim(PagesRefused(0, 30, 29))
    assert world.store.census().states == 0
    world.close()


def test_the_last_end_of_a_chat_makes_room_for_its_next_one() -> None:
    """With one slot to spare a longer end takes the place of the end that it continues."""
    world = World([(30, None)], slots=3)
    ids = tokens(1000)
    other = tokens(300, 1)
    world.turn(other, (256,), "other")
    world.turn(ids[:400], (384,), "chat")
    world.turn(ids, (960,), "chat")
    assert world.find(other).at == 256
    assert world.find(np.append(ids, np.int32(1))).at == 960
    assert world.find(ids[:401]).reason == "evicted"
    world.close()
