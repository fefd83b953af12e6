"""Runs: streams with their replies, in the queue and beyond it.

Owns the order. Chats stand before work beside them; within each, who came first stands first. Used
from the engine thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.errors import RequestInvalid
from engine.protocol import Finished, Queued
from engine.serving.reply import Reply
from engine.serving.request import Phase, Request, Stream
from engine.serving.scheduler import StreamFacts, queue_is_full

FollowUp = Callable[[Finished], Request | None]
"""The prompt that the next turn after a reply begins with, None where that cannot be told."""


@dataclass(slots=True, eq=False)
class Run:
    """A stream with its reply.

    Attributes:
        follow_up: None where nothing is to be prepared after the reply.
        told: the last frame that said where it waits.
    """

    stream: Stream
    reply: Reply
    follow_up: FollowUp | None = None
    told: Queued | None = None

    @property
    def number(self) -> int:
        """The request's number on the wire."""
        return self.stream.request.number

    @property
    def is_side(self) -> bool:
        """Whether it is work beside a chat."""
        return self.stream.request.is_side


@dataclass(slots=True, eq=False)
class Runs:
    """Who waits and who runs.

    Attributes:
        waiting: in the order in which they came, chats and side work apart in ``queue``.
        running: by number, in the order of their admission.
    """

    waiting: list[Run] = field(default_factory=list)
    running: dict[int, Run] = field(default_factory=dict)

    def all(self) -> tuple[Run, ...]:
        """Everybody who has not ended."""
        return (*self.waiting, *self.running.values())

    def queue(self) -> list[Run]:
        """Who waits, the next one first."""
        return sorted(self.waiting, key=lambda run: run.is_side)

    def sides(self) -> list[Run]:
        """Running work beside chats."""
        return [run for run in self.running.values() if run.is_side]

    def check_place(self, number: int) -> None:
        """Raise RequestInvalid where a number is in use or the queue is full."""
        if any(run.number == number for run in self.all()):
            raise RequestInvalid(f"Request {number} is running already.")
        waiting = len(self.waiting)
        if queue_is_full(waiting):
            raise RequestInvalid(
                f"{waiting} requests wait already; this one is refused.", waiting=waiting
            )

    def admit(self, run: Run) -> None:
        """Move a run from the queue to those that have a lane."""
        self.waiting.remove(run)
        run.told = None
        self.running[run.number] = run

    def send_back(self, run: Run) -> None:
        """Put a run that has no lane any more at the head of the queue."""
        del self.running[run.number]
        run.stream.phase = Phase.WAITING
        self.waiting.insert(0, run)

    def remove(self, run: Run) -> None:
        """Forget a run that has ended."""
        if run in self.waiting:
            self.waiting.remove(run)
        self.running.pop(run.number, None)

    def any_in(self, phase: Phase) -> bool:
        """Whether any running stream stands there."""
        return any(run.stream.phase is phase for run in self.running.values())

    def conversations(self) -> frozenset[str]:
        """The chats of which a request waits or runs."""
        found = (run.stream.request.conversation for run in self.all() if not run.is_side)
        return frozenset(chat for chat in found if chat is not None)

    def facts(self) -> list[StreamFacts]:
        """What the scheduler wants to know of those that run."""
        return [
            StreamFacts(
                run.number,
                run.stream.phase,
                run.stream.request.prompt_tokens - run.stream.position,
                run.stream.overtaken,
                run.is_side,
            )
            for run in self.running.values()
        ]

    def overtake(self, number: int) -> None:
        """Take note that a prompt chunk was computed: its stream's turn came, the others' not."""
        for run in self.running.values():
            if run.stream.phase is Phase.FILLING:
                run.stream.overtaken += 1
        self.running[number].stream.overtaken = 0
