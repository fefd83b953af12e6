"""The entrance: lanes for those who wait, and their kept states into the lanes.

Takes requests off the head of the queue as far as memory goes; a chat may take the lane of work
beside chats, which begins afresh later. A state that lies below the device comes in pieces between
rounds; one that turns out damaged sends its request back to the head of the queue, without it. Used
from the engine thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from engine.cache.lane import LaneRefused
from engine.failure import attempt
from engine.protocol import Progress
from engine.serving.admission import (
    Served,
    Shortage,
    can_never_fit,
    close_lane,
    never_fits,
    open_stream,
    shortage_of,
    take_resumed,
)
from engine.serving.reply import Clock, Send
from engine.serving.request import Phase, Stream, penalties_of
from engine.serving.runs import Run, Runs
from engine.serving.scheduler import may_admit
from engine.states.resume import ResumeStatus

_LOG = logging.getLogger(__name__)

Fail = Callable[[Sequence[Run], Exception], None]
"""Ends runs with a failure; may be repeated."""

FAILED: Final = "admission failed"
LOOK_AGAIN_ROUNDS: Final = 32


class Entrance:
    """Moves runs from the queue to those that have a lane."""

    def __init__(self, served: Served, runs: Runs, send: Send, clock: Clock, fail: Fail) -> None:
        self._served = served
        self._runs = runs
        self._send = send
        self._clock = clock
        self._fail = fail
        self._short: Shortage | None = None
        self._seen: tuple[int, ...] = ()
        self._passed = 0

    def admit(self) -> Shortage | None:
        """Give lanes to those who waited longest, as far as memory goes.

        Returns:
            What the head of the queue is short of; None where it waits for nothing but its turn.
        """
        if self._is_as_before():
            return self._short
        self._short = self._open_all()
        self._seen = self._sight()
        return self._short

    def _open_all(self) -> Shortage | None:
        runs = self._runs
        while queue := runs.queue():
            run = queue[0]
            if run.is_side and runs.running:
                return None
            if not may_admit(len(queue), len(runs.running), self._served.stream_limit):
                if not self._set_side_work_aside():
                    return None
                continue
            refused = attempt(partial(self._open, run), partial(self._fail, [run]), FAILED)
            if refused is None:
                continue
            if not runs.running or can_never_fit(refused, self._served):
                self._fail([run], never_fits(refused, self._served))
            elif not self._set_side_work_aside():
                return shortage_of(refused, self._served)
        return None

    def resume(self, run: Run) -> bool:
        """Copy a piece of a kept state; whether there was any."""
        resume = run.stream.resume
        if resume is None:
            return False
        moved = resume.step()
        if moved:
            self._send(
                Progress(
                    request=run.number,
                    phase="resume",
                    done=resume.done_bytes,
                    total=resume.total_bytes,
                )
            )
        if resume.status is ResumeStatus.DONE:
            take_resumed(run.stream, self._served)
        elif resume.status is ResumeStatus.DAMAGED:
            _LOG.info("state damaged request=%d", run.number)
            run.stream.course.damaged = True
            self._send_back(run)
        return moved

    def _is_as_before(self) -> bool:
        """Whether the head of the queue was refused before, and nothing was freed since.

        To look for a state of a long prompt takes too long to be done at each round.
        """
        self._passed = (self._passed + 1) % LOOK_AGAIN_ROUNDS
        return self._short is not None and self._passed != 0 and self._seen == self._sight()

    def _sight(self) -> tuple[int, ...]:
        """What changes where memory comes free: who is first, who runs, what is free."""
        memory, runs = self._served.memory, self._runs
        head = [run.number for run in runs.queue()[:1]]
        free = [pool.available_pages for pool in memory.pools]
        slots = [] if memory.slots is None else [memory.slots.free_slots]
        resuming = sum(run.stream.phase is Phase.RESUMING for run in runs.running.values())
        return (*head, *runs.running, resuming, *free, *slots)

    def _open(self, run: Run) -> LaneRefused | None:
        stream, runs = run.stream, self._runs
        refused = open_stream(stream, self._served, self._clock, alone=not runs.running)
        if refused is None:
            runs.admit(run)
            _LOG.info(
                "stream opened request=%d prompt_tokens=%d resumes=%s",
                run.number,
                stream.request.prompt_tokens,
                "now" if stream.phase is Phase.FILLING else "below",
            )
        return refused

    def _set_side_work_aside(self) -> bool:
        """Take the lane from one running side job, for a chat; it begins afresh later."""
        sides = self._runs.sides()
        if sides:
            self._send_back(sides[-1])
        return bool(sides)

    def _send_back(self, run: Run) -> None:
        begin_afresh(run.stream)
        self._runs.send_back(run)


def begin_afresh(stream: Stream) -> None:
    """Give a stream's memory back; what it has said so far is said again in silence."""
    close_lane(stream)
    stream.position = stream.drawn = stream.overtaken = 0
    stream.marks = {}
    stream.penalties = penalties_of(stream.request)
