"""The loop answers every message, frees the former model first, and ends with nothing held."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from engine.errors import DeviceLost, ProtocolError
from engine.loop import EXIT_CLEAN, EXIT_DEVICE, EXIT_PROTOCOL, Loop, Surroundings
from engine.memory.ledger import Ledger
from engine.memory.measured import ProcessMemory
from engine.pipes import Arrived, Gone, Inbox
from engine.protocol import (
    AppMessage,
    AskMemory,
    AskStates,
    Cancel,
    ChatMessage,
    ClearStates,
    Counted,
    CountTokens,
    EngineMessage,
    Failure,
    Finished,
    Generate,
    Hello,
    Inspect,
    Inspected,
    KnownChats,
    Load,
    Loaded,
    MeasuredMemory,
    MemoryFacts,
    OpenChats,
    PinStates,
    Plan,
    Planned,
    Progress,
    Queued,
    Sampling,
    Settle,
    Settled,
    Shutdown,
    StatesKept,
    Tokens,
    Unload,
    Unloaded,
)
from tests.helpers.fake_loader import FakeLoader, FakePrompts


@dataclass
class Talk:
    """A loop that is fed from a list; ``on_frame`` sees each frame and may add messages."""

    ledger: Ledger = field(default_factory=lambda: Ledger({"ram": 1000}))
    inbox: Inbox = field(default_factory=Inbox)
    sent: list[EngineMessage] = field(default_factory=list)
    surroundings: Surroundings = field(default_factory=Surroundings)
    on_frame: Callable[[EngineMessage], None] = lambda _frame: None

    def __post_init__(self) -> None:
        self.loader = FakeLoader(self.ledger)
        self.loop = Loop(self.inbox, self.send, self.loader, self.ledger, self.surroundings)

    def send(self, frame: EngineMessage) -> None:
        self.sent.append(frame)
        self.on_frame(frame)

    def tell(self, *messages: AppMessage | Gone) -> None:
        for message in messages:
            found = message if isinstance(message, Gone) else Arrived(message, time.monotonic_ns())
            self.inbox.put(found)

    def run(self, *messages: AppMessage | Gone) -> int:
        self.tell(*messages)
        return self.loop.run()


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk()
    yield made
    made.ledger.close()
    for model in made.loader.models:
        for pool in model.served.pools:
            assert pool.census().free_pages == pool.page_count
    assert all(runner.closed == 1 for runner in made.loader.runners)


def load(number: int = 1, path: str = "model.gguf") -> Load:
    return Load(request=number, path=path)


def stop_when(talk: Talk, *kinds: type[EngineMessage]) -> None:
    """Send Shutdown once the last of some kinds of frames has been sent."""

    def seen(frame: EngineMessage) -> None:
        if isinstance(frame, kinds):
            talk.tell(Shutdown())

    talk.on_frame = seen


def test_a_reply_is_loaded_streamed_and_finished_in_that_order(talk: Talk) -> None:
    stop_when(talk, Finished)
    code = talk.run(load(), Generate(request=2, messages=(ChatMessage(role="user", text="hi"),)))
    assert code == EXIT_CLEAN
    kinds = [type(frame) for frame in talk.sent]
    assert kinds[:5] == [Progress, Queued, Loaded, Progress, Tokens]
    assert kinds[-1] is Finished
    assert talk.sent[1] == Queued(request=2, position=1, reason="loading")
    loaded = talk.sent[2]
    assert isinstance(loaded, Loaded)
    assert (loaded.model.name, loaded.load_ms >= 0) == ("fake", True)


def test_every_question_is_answered_without_a_model(talk: Talk) -> None:
    code = talk.run(
        Plan(request=1, path="x"),
        Inspect(request=2, paths=("a", "b")),
        AskMemory(request=3),
        Unload(request=4),
        Cancel(request=5),
        Shutdown(),
    )
    planned, inspected, memory, unloaded = talk.sent
    assert code == EXIT_CLEAN
    assert isinstance(planned, Planned)
    assert isinstance(inspected, Inspected)
    assert [found.path for found in inspected.files] == ["a", "b"]
    assert isinstance(memory, MemoryFacts)
    assert (memory.pools[0].capacity_bytes, memory.pools[0].free_bytes) == (1000, 1000)
    assert unloaded == Unloaded(request=4)


def test_what_needs_a_model_is_refused_without_one(talk: Talk) -> None:
    talk.run(Generate(request=1, raw="x"), CountTokens(request=2, text="x"), Shutdown())
    for number, frame in enumerate(talk.sent, 1):
        assert isinstance(frame, Failure)
        assert (frame.request, frame.code) == (number, "request-invalid")
        assert "No model is loaded" in frame.sentence


def test_memory_and_tokens_are_told_of_a_loaded_model(talk: Talk) -> None:
    talk.run(load(), AskMemory(request=2), CountTokens(request=3, text="four"), Shutdown())
    memory, counted = talk.sent[-2:]
    assert isinstance(memory, MemoryFacts)
    assert memory.pools[0].holders == (("fake", 100),)
    assert counted == Counted(request=3, tokens=4)


def test_a_load_frees_the_former_model_first_and_stops_its_replies(talk: Talk) -> None:
    """The ledger has room for one model only if the former is gone."""
    talk.ledger.set_capacity("ram", 150)

    def replace(frame: EngineMessage) -> None:
        if isinstance(frame, Tokens):
            talk.on_frame = lambda _frame: None
            talk.tell(load(3, "second.gguf"), Shutdown())

    talk.on_frame = replace
    endless = Sampling(max_tokens=1000)
    talk.run(load(), Generate(request=2, raw="hello", sampling=endless))
    finished = next(frame for frame in talk.sent if isinstance(frame, Finished))
    assert (finished.request, finished.stop_reason) == (2, "stopped")
    assert [f.model.path for f in talk.sent if isinstance(f, Loaded)] == [
        "model.gguf",
        "second.gguf",
    ]
    assert talk.sent.index(finished) < len(talk.sent) - 1


@pytest.mark.parametrize(
    ("path", "code"), [("bad.gguf", "checkpoint-unreadable"), ("bug.gguf", "internal")]
)
@pytest.mark.usefixtures("caplog")
def test_a_load_that_fails_is_told_and_the_next_one_works(talk: Talk, path: str, code: str) -> None:
    talk.run(load(1, path), load(2), Shutdown())
    failure = talk.sent[0]
    assert isinstance(failure, Failure)
    assert (failure.request, failure.code) == (1, code)
    assert any(isinstance(frame, Loaded) for frame in talk.sent)


def test_a_cancel_is_seen_before_the_next_piece_of_work(talk: Talk) -> None:
    def cancel(frame: EngineMessage) -> None:
        if isinstance(frame, Progress) and frame.phase == "prefill":
            talk.tell(Cancel(request=2))
        if isinstance(frame, Finished):
            talk.tell(Shutdown())

    talk.on_frame = cancel
    talk.run(load(), Generate(request=2, raw="x" * 1500))
    finished = talk.sent[-1]
    assert isinstance(finished, Finished)
    assert (finished.stop_reason, finished.ids) == ("stopped", ())
    assert talk.loader.runners[0].calls == [("prompt", 0)]


def test_the_app_s_end_stops_replies_and_frees_everything(talk: Talk) -> None:
    talk.on_frame = lambda frame: talk.tell(Gone()) if isinstance(frame, Tokens) else None
    assert talk.run(load(), Generate(request=2, raw="x", sampling=Sampling(max_tokens=900))) == 0
    assert talk.ledger.pool("ram").held_bytes == 0


def test_a_broken_protocol_is_told_and_ends_the_engine(talk: Talk) -> None:
    code = talk.run(load(), Gone(ProtocolError("A frame was cut.", missing_bytes=3)))
    assert code == EXIT_PROTOCOL
    last = talk.sent[-1]
    assert isinstance(last, Failure)
    assert (last.request, last.code, last.numbers) == (None, "protocol", {"missing_bytes": 3})


@pytest.mark.usefixtures("caplog")
def test_a_lost_device_ends_the_engine_once_it_was_told(talk: Talk) -> None:
    """Nothing can be freed on it, so the process's end does that; the app starts another."""

    def lose(_kind: str) -> None:
        raise DeviceLost("The GPU failed (CUDA error: an illegal memory access).")

    def on_frame(frame: EngineMessage) -> None:
        if isinstance(frame, Loaded):
            talk.loader.runners[0].before = lose

    talk.on_frame = on_frame
    assert talk.run(load(), chat(2, "hello"), AskMemory(request=3)) == EXIT_DEVICE
    failure = talk.sent[-1]
    assert isinstance(failure, Failure) and (failure.code, failure.request) == ("device-lost", 2)
    assert talk.loader.runners[0].closed == 0
    talk.loader.models[0].close()


def test_a_second_hello_breaks_the_protocol(talk: Talk) -> None:
    assert talk.run(Hello(version=1, app="x")) == EXIT_PROTOCOL
    assert isinstance(talk.sent[-1], Failure)


def test_replies_run_beside_each_other_through_one_loop(talk: Talk) -> None:
    done: list[int] = []

    def count(frame: EngineMessage) -> None:
        if isinstance(frame, Finished):
            done.append(frame.request)
            if len(done) == 3:
                talk.tell(Shutdown())

    talk.on_frame = count
    talk.run(load(), *(Generate(request=n, raw=f"prompt {n}") for n in (2, 3, 4)))
    assert sorted(done) == [2, 3, 4]
    assert ("step", 3) in talk.loader.runners[0].calls


# Background work, kept states, memory ------------------------------------------------------------


def chat(number: int, text: str, **facts: object) -> Generate:
    return Generate(request=number, raw=text, conversation="a chat", **facts)  # type: ignore[arg-type]


def test_what_arrives_while_a_model_is_loaded_is_answered_after_it_in_order(talk: Talk) -> None:
    """Requests hear that they wait, each behind the ones before; a cancelled one never begins."""
    stop_when(talk, Finished)
    talk.run(
        load(),
        Generate(request=2, raw="one"),
        CountTokens(request=3, text="four"),
        Generate(request=4, raw="two"),
        Cancel(request=2),
    )
    assert [m for m in talk.sent if isinstance(m, Queued)] == [
        Queued(request=2, position=1, reason="loading"),
        Queued(request=4, position=2, reason="loading"),
    ]
    kinds = [type(frame) for frame in talk.sent]
    assert kinds.index(Loaded) < kinds.index(Counted)
    finished = [m for m in talk.sent if isinstance(m, Finished)]
    assert (finished[0].request, finished[0].stop_reason) == (2, "stopped")


def test_the_loop_reads_a_reply_while_it_waits_for_messages(talk: Talk) -> None:
    """Settled comes after the pass; the control asks after a reply of no chat."""
    talk.on_frame = lambda frame: (
        talk.tell(Settle(request=9, most_ms=1e6))
        if isinstance(frame, Finished)
        else talk.tell(Shutdown())
        if isinstance(frame, Settled)
        else None
    )
    talk.run(load(), chat(2, "x" * 500, sampling=Sampling(max_tokens=200)))
    prompts = talk.loader.models[0].prompts
    assert isinstance(prompts, FakePrompts)
    assert prompts.followed == [2]
    calls = talk.loader.runners[0].calls
    assert [at for kind, at in calls if kind == "prompt"] == [0, 256, 256, 512, 768]
    assert talk.sent[-1] == Settled(request=9, waiting_bytes=0)


def test_settling_is_answered_at_once_where_nothing_is_to_be_done(talk: Talk) -> None:
    talk.run(Settle(request=1, most_ms=1e9), load(), Settle(request=2, most_ms=1e9), Shutdown())
    settled = [m for m in talk.sent if isinstance(m, Settled)]
    assert [m.request for m in settled] == [1, 2]


def test_an_unload_ends_a_pass_and_tells_who_waits_for_it(talk: Talk) -> None:
    def unload(frame: EngineMessage) -> None:
        if isinstance(frame, Finished):
            talk.tell(Settle(request=9, most_ms=1e9), Unload(request=3), Shutdown())

    talk.on_frame = unload
    talk.run(load(), chat(2, "x" * 1500))
    assert Settled(request=9, waiting_bytes=0) in talk.sent
    assert [kind for kind, _ in talk.loader.runners[0].calls].count("prompt") == 6


def test_kept_states_are_asked_of_nobody_without_a_library(talk: Talk) -> None:
    talk.run(
        OpenChats(conversations=("a",)),
        KnownChats(conversations=("a", "b")),
        AskStates(request=1),
        PinStates(request=2, conversation="a", pinned=True),
        ClearStates(request=3, conversations=None),
        Shutdown(),
    )
    assert [m.request for m in talk.sent if isinstance(m, StatesKept)] == [1, 2, 3]
    assert len(talk.sent) == 3


def test_memory_is_told_with_the_plan_and_what_was_measured() -> None:
    """A process that held 50 bytes before the load, 180 at a reply and 150 now."""
    readings = iter((20, 50, 180, 150))
    talk = Talk(surroundings=Surroundings(memory=ProcessMemory(lambda: next(readings))))
    talk.on_frame = lambda frame: (
        talk.tell(AskMemory(request=5), Shutdown()) if isinstance(frame, Finished) else None
    )
    talk.run(load(), Generate(request=2, raw="hi"))
    memory = talk.sent[-1]
    assert isinstance(memory, MemoryFacts)
    assert [line.bytes for line in memory.plan] == [100]
    assert memory.measured == MeasuredMemory(anonymous_bytes=100, peak_bytes=130, planned_bytes=100)
    assert (memory.pools[0].name, memory.pools[0].holders) == ("ram", (("fake", 100),))
