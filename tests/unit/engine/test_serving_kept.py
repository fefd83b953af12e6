"""What the app says and asks of kept states reaches the library and the loaded model's store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from engine.protocol import (
    AskStates,
    ClearStates,
    EngineMessage,
    Finished,
    KnownChats,
    OpenChats,
    PinStates,
    Settled,
    StateFacts,
    StatesKept,
)
from engine.sampling.keyed import DrawRule
from engine.serving.kept import AboutStates, KeptStates
from engine.serving.rounds import Serving
from engine.states.border import ModelIdentity, StateArchive, Usage
from tests.helpers.fake_runner import Bench, FakeText, bench, prompt_ids, request

WARM = DrawRule(temperature=1.0, top_k=40, top_p=0.95, min_p=0.05, seed=5)
USAGE = Usage(disk_bytes=70, quota_bytes=1000, free_bytes=5000, shared_bytes=7)
BELOW = StateFacts(
    conversation="an old chat",
    model="another model",
    tokens=512,
    bytes=9,
    own_bytes=8,
    tier="disk",
    used_s=5.0,
)


@dataclass
class Library:
    """Implements ``engine.states.border.StateLibrary``; it only notes what it is told."""

    told: list[tuple[str, object]] = field(default_factory=list)

    def open(self, identity: ModelIdentity, probe: bytes, host_bytes: int) -> StateArchive:
        raise AssertionError(identity, probe, host_bytes)

    def set_open(self, conversations: Iterable[str]) -> None:
        self.told.append(("open", tuple(conversations)))

    def sweep(self, known: Iterable[str]) -> None:
        self.told.append(("sweep", frozenset(known)))

    def pin(self, conversation: str, *, pinned: bool) -> None:
        self.told.append(("pin", (conversation, pinned)))

    def clear(self, conversations: Iterable[str] | None) -> None:
        self.told.append(("clear", None if conversations is None else tuple(conversations)))

    def facts(self) -> tuple[StateFacts, ...]:
        return (BELOW,)

    def usage(self) -> Usage:
        return USAGE


def reply(made: Bench, number: int, chat: str) -> None:
    """A turn of a chat that leaves a state of 512 tokens, and nothing to be read."""
    wish = replace(request(number, prompt_ids(600, number), rule=WARM), conversation=chat)
    made.ask(wish)
    made.run()


def states(kept: KeptStates, message: AboutStates) -> StatesKept:
    found = kept.answer(message)
    assert found is not None
    return found


def test_without_a_model_the_library_alone_answers() -> None:
    library = Library()
    kept = KeptStates(library)
    assert kept.answer(OpenChats(conversations=("a",))) is None
    assert kept.answer(KnownChats(conversations=("a", "b"))) is None
    pinned = states(kept, PinStates(request=1, conversation="a", pinned=True))
    cleared = states(kept, ClearStates(request=2, conversations=("b",)))
    assert library.told == [
        ("open", ("a",)),
        ("sweep", frozenset({"a", "b"})),
        ("pin", ("a", True)),
        ("clear", ("b",)),
    ]
    assert pinned == StatesKept(
        request=1,
        states=(BELOW,),
        disk_bytes=70,
        quota_bytes=1000,
        disk_free_bytes=5000,
        shared_bytes=7,
    )
    assert cleared.request == 2


def test_a_loaded_model_s_states_stand_among_the_library_s() -> None:
    kept = KeptStates(Library())
    with bench() as made:
        kept.attach(made.serving)
        reply(made, 1, "a new chat")
        found = states(kept, AskStates(request=1)).states
        assert [one.conversation for one in found] == ["a new chat", "an old chat"]
        assert (found[0].tokens, found[0].tier) == (512, "device")
        kept.attach(None)
        assert states(kept, AskStates(request=2)).states == (BELOW,)


def test_chats_that_are_open_stay_so_for_the_next_model() -> None:
    """A state of an open chat goes after one of a closed chat, though it is older."""
    kept = KeptStates(None)
    kept.answer(OpenChats(conversations=("open",)))
    for opened in (True, False):
        with bench(pages=(6, 16)) as made:
            if opened:
                kept.attach(made.serving)
            reply(made, 1, "open")
            reply(made, 2, "closed")
            reply(made, 3, "third")
            left = {one.conversation for one in made.states.facts()}
            assert ("open" in left) is opened
            assert "third" in left
            kept.attach(None)


@pytest.mark.parametrize("way", ["clear one", "clear all", "sweep"])
def test_what_is_deleted_is_gone_from_the_device_and_is_not_read_again(way: str) -> None:
    message: dict[str, AboutStates] = {
        "clear one": ClearStates(request=1, conversations=("gone",)),
        "clear all": ClearStates(request=1, conversations=None),
        "sweep": KnownChats(conversations=("stays",)),
    }
    kept = KeptStates(None)
    with bench() as made:
        kept.attach(made.serving)
        reply(made, 1, "stays")
        wish = replace(request(2, prompt_ids(600, 2), rule=WARM), conversation="gone")
        longer = replace(request(2, [*prompt_ids(600, 2), *prompt_ids(900, 3)]))
        made.serving.accept(wish, FakeText(), lambda _frame: replace(longer, conversation="gone"))
        while not any(isinstance(m, Finished) and m.request == 2 for m in made.sent):
            made.serving.round()
        made.serving.round()
        kept.answer(message[way])
        calls = list(made.runner.calls)
        made.run()
        assert made.runner.calls == calls
        left = {one.conversation for one in made.states.facts()}
        assert left == (set() if way == "clear all" else {"stays"})


def test_a_pinned_chat_is_told_as_pinned() -> None:
    kept = KeptStates(None)
    with bench() as made:
        kept.attach(made.serving)
        reply(made, 1, "a chat")
        for pinned in (True, False):
            found = states(kept, PinStates(request=1, conversation="a chat", pinned=pinned))
            assert [one.pinned for one in found.states] == [pinned]


def test_a_reply_is_told_once_its_memory_is_free_its_state_kept_and_its_pass_noted() -> None:
    """All is in place when the frame leaves: who asks at once to be told of the pass is not."""
    seen: list[tuple[int, int, bool]] = []
    with bench() as made:

        def look(frame: EngineMessage) -> None:
            made.sent.append(frame)
            if isinstance(frame, Finished):
                promised = sum(pool.census().promised_pages for pool in made.pools)
                serving.settle(9, 1e9)
                settled = any(isinstance(m, Settled) for m in made.sent)
                seen.append((promised, made.states.census().states, settled))

        serving = Serving(made.serving._served, look, lambda: 0)
        wish = replace(request(1, prompt_ids(600, 1), rule=WARM), conversation="a chat")
        longer = replace(wish, ids=request(1, prompt_ids(1500, 1)).ids)
        serving.accept(wish, FakeText(), lambda _frame: longer)
        while serving.has_work:
            serving.round()
        assert seen == [(0, 1, False)]
        assert made.sent[-1] == Settled(request=9, waiting_bytes=0)
        serving.close()
