"""What the store tells of itself: tiers of chats, facts for a person, counts."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from engine.protocol import ChatTier, StateFacts
from engine.states.records import Role
from tests.helpers.fake_archive import FakeArchive
from tests.helpers.fake_device import ROW_BYTES
from tests.helpers.state_world import MODEL, World, tokens

PAGE = 256 * ROW_BYTES


@pytest.fixture
def world() -> Iterator[World]:
    world = World([(60, None)], archive=FakeArchive(can_cut=True))
    yield world
    world.close()


def chat(name: str, tier: str, count: int) -> ChatTier:
    return msgspec.convert(
        {"conversation": name, "tier": tier, "tokens": count}, ChatTier, strict=False
    )


def test_tiers_are_told_once_and_again_when_they_change(world: World) -> None:
    assert world.store.tiers() is None
    ids = tokens(700)
    world.turn(ids, {256: Role.SHARED, 640: Role.END}, "b")
    world.turn(tokens(400, 1), (384,), "a")
    assert world.store.tiers() == (chat("a", "device", 384), chat("b", "device", 640))
    assert world.store.tiers() is None
    world.write_all()
    assert world.store.tiers() is None
    world.store.clear(["b"])
    assert world.store.tiers() == (chat("a", "device", 384), chat("b", "host", 640))
    assert world.archive is not None
    world.archive.to_disk()
    assert world.store.tiers() == (chat("a", "device", 384), chat("b", "disk", 640))
    world.forget_device()
    assert world.store.tiers() == (chat("a", "disk", 384), chat("b", "disk", 640))


def test_the_longest_state_of_a_chat_counts_wherever_it_lies(world: World) -> None:
    ids = tokens(700)
    world.turn(ids, (640,), "chat")
    world.write_all()
    world.forget_device()
    world.turn(ids[:300], (256,), "chat")
    assert world.store.tiers() == (chat("chat", "host", 640),)


def test_a_state_of_two_chats_counts_for_the_one_that_has_no_longer_one() -> None:
    world = World(archive=FakeArchive())
    ids = tokens(700)
    world.turn(ids, (640,), "long")
    world.write_all()
    world.forget_device()
    for name in ("long", "short"):
        world.turn(ids[:300], (256,), name)
    assert world.store.tiers() == (chat("long", "host", 640), chat("short", "device", 256))
    world.close()


def test_a_store_without_lower_tiers_tells_of_the_device() -> None:
    world = World()
    world.turn(tokens(400, 1), (384,), "a")
    assert world.store.tiers() == (chat("a", "device", 384),)
    assert [facts.model for facts in world.store.facts()] == [""]
    world.close()


def test_clearing_a_chat_leaves_what_others_begin_with(world: World) -> None:
    ids = tokens(700)
    world.turn(ids, {256: Role.SHARED, 640: Role.END}, "one")
    world.turn(ids, (640,), "two")
    world.turn(tokens(300, 1), (256,), None)
    lane_states = world.store.census().states
    world.store.clear(["one", "nobody"])
    assert world.store.census().states == lane_states
    world.store.clear(["two"])
    assert world.store.census().states == lane_states - 1
    assert world.find(ids[:300]).at == 256
    world.store.clear(None)
    assert world.store.census().states == 0


def test_a_shared_beginning_outlives_the_chat_that_joined_it(world: World) -> None:
    ids = tokens(700)
    world.turn(ids, {256: Role.SHARED})
    world.turn(ids[:300], {256: Role.END}, "one")
    world.store.clear(["one"])
    assert world.find(ids).at == 256


def test_facts_have_the_device_among_the_rest(world: World) -> None:
    below = (
        StateFacts(conversation="chat", model=MODEL, tokens=640, bytes=7, own_bytes=5, tier="disk"),
        StateFacts(
            conversation="chat",
            model="another",
            tokens=9,
            bytes=3,
            own_bytes=2,
            tier="disk",
            used_s=9e9,
        ),
    )
    world.turn(tokens(700), {256: Role.SHARED, 640: Role.END}, "chat")
    world.turn(tokens(300, 1), (256,), "fresh")
    world.store.pin("fresh", pinned=True)
    found = {(one.conversation, one.model): one for one in world.store.facts(below)}
    assert next(iter(found)) == ("chat", "another")
    mine = found["chat", MODEL]
    assert (mine.tokens, mine.tier, mine.bytes, mine.own_bytes) == (640, "device", 3 * PAGE, 5)
    fresh = found["fresh", MODEL]
    assert (fresh.tokens, fresh.bytes, fresh.own_bytes, fresh.pinned) == (256, PAGE, 0, True)
    assert found[None, MODEL].tokens == 256
    longer = msgspec.structs.replace(below[0], tokens=1280)
    (merged,) = [one for one in world.store.facts((longer,)) if one.conversation == "chat"]
    assert (merged.tokens, merged.tier) == (1280, "disk")


def test_pins_of_the_library_are_known_from_the_start() -> None:
    facts = tuple(
        StateFacts(
            conversation=name,
            model=MODEL,
            tokens=1,
            bytes=1,
            own_bytes=1,
            tier="disk",
            pinned=name == "pinned" or name is None,
        )
        for name in ("pinned", "loose", None)
    )
    world = World(archive=FakeArchive(), facts=facts)
    for seed, name in enumerate(("pinned", "loose")):
        world.turn(tokens(300, seed), (256,), name)
    found = {one.conversation: one.pinned for one in world.store.facts()}
    assert found == {"pinned": True, "loose": False}
    world.close()


def test_counts_add_up_and_make_one_line(world: World) -> None:
    ids = tokens(700)
    world.turn(ids, (640,), "chat")
    world.turn(ids, (640,), "chat")
    world.write_all()
    world.forget_device()
    world.turn(ids, (640,), "chat")
    census = world.store.census()
    assert census.hits == (("device", 1), ("host", 1))
    assert census.misses == (("nothing-kept", 1),)
    assert (census.device_bytes, census.host_bytes) == (3 * PAGE, 3 * PAGE)
    assert (census.disk_bytes, census.waiting_bytes) == (0, 0)
    line = census.line()
    assert "states=1 state_pages=3 state_slots=0" in line
    assert line.endswith("hits_device=1 hits_host=1 missed_nothing-kept=1")
