"""What the memory page asks for, noted and answered when a test says so. No engine behind it."""

from __future__ import annotations

from collections.abc import Iterable

from app.errors import EngineUnavailable
from app.link.events import OnMessage
from engine.protocol import EngineMessage, Failure, MemoryFacts, PoolFacts, StateFacts, StatesKept

GIB = 2**30


def memory_facts() -> MemoryFacts:
    """A small machine without a GPU."""
    ram = PoolFacts(
        name="ram",
        capacity_bytes=7 * GIB,
        free_bytes=5 * GIB,
        holders=(("weights", 2 * GIB),),
        total_bytes=8 * GIB,
    )
    return MemoryFacts(request=1, pools=(ram,))


def states_kept(*states: StateFacts) -> StatesKept:
    """A list with room for more."""
    return StatesKept(
        request=1, states=states, disk_bytes=0, quota_bytes=20 * 10**9, disk_free_bytes=10**11
    )


class FakeAsks:
    """The client's questions about memory.

    Attributes:
        ready: whether an engine is there; without one every question is refused.
        asked: the names of all questions, in their order.
    """

    def __init__(self, *, ready: bool = True) -> None:
        self.ready = ready
        self.asked: list[str] = []
        self._open: list[tuple[str, OnMessage]] = []

    def memory(self, *, on_message: OnMessage) -> int:
        """Note the question."""
        return self._note("memory", on_message)

    def states(self, *, on_message: OnMessage) -> int:
        """Note the question."""
        return self._note("states", on_message)

    def pin_states(self, conversation: str, pinned: bool, *, on_message: OnMessage) -> int:
        """Note the wish."""
        return self._note(f"pin {conversation} {pinned}", on_message)

    def clear_states(self, conversations: Iterable[str] | None, *, on_message: OnMessage) -> int:
        """Note the wish."""
        told = "all" if conversations is None else ",".join(conversations)
        return self._note(f"clear {told}", on_message)

    def answer(self, states: StatesKept | None = None) -> None:
        """Answer everything that waits."""
        waiting, self._open = self._open, []
        for name, on_message in waiting:
            reply: EngineMessage = memory_facts() if name == "memory" else states or states_kept()
            on_message(reply)

    def fail(self, code: str) -> None:
        """Answer everything that waits with a failure."""
        waiting, self._open = self._open, []
        for _name, on_message in waiting:
            on_message(Failure(code=code, sentence="It is not allowed."))

    def _note(self, name: str, on_message: OnMessage) -> int:
        if not self.ready:
            raise EngineUnavailable("The engine is not there.")
        self.asked.append(name)
        self._open.append((name, on_message))
        return len(self.asked)
