"""Background: after a reply an idle engine reads it as the next turn will show it.

Owns what is still to be read, one entry a conversation, and the lane of the one that is being
read. A reply's own rows come from other kernels than a prompt's, so they are no prompt state; read
once more, the next turn begins at its end. Any request goes first: what was read up to the grid is
then kept, and the rest is read later. Used from the engine thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from engine.failure import attempt
from engine.serving.admission import Served, close_lane, open_stream, take_resumed
from engine.serving.prefill import compute_chunk, keep_state
from engine.serving.reply import Clock
from engine.serving.request import Phase, Request, Stream, penalties_of
from engine.states.records import Role
from engine.states.resume import ResumeStatus

_LOG = logging.getLogger(__name__)

Job = Callable[[], Request | None]
"""Renders what is to be read, None where nothing is."""


@dataclass(frozen=True, slots=True, eq=False)
class _Pass:
    """One conversation that is being read, up to ``end``."""

    conversation: str
    job: Job
    stream: Stream
    end: int


class Background:
    """Reads replies while nothing else runs; closed before the model is."""

    def __init__(self, served: Served, clock: Clock, on_battery: Callable[[], bool]) -> None:
        self._served = served
        self._clock = clock
        self._on_battery = on_battery
        self._jobs: dict[str, Job] = {}
        self._pass: _Pass | None = None

    @property
    def conversation(self) -> str | None:
        """The chat that is being read."""
        return None if self._pass is None else self._pass.conversation

    @property
    def has_work(self) -> bool:
        """Whether ``step`` would do anything now."""
        return self._pass is not None or (bool(self._jobs) and not self._on_battery())

    def add(self, conversation: str, job: Job) -> None:
        """Read a conversation's latest reply when there is time."""
        self.drop(conversation)
        self._jobs[conversation] = job

    def drop(self, conversation: str) -> None:
        """A new turn of a conversation has come; what was read of it so far is kept."""
        if self._pass is not None and self._pass.conversation == conversation:
            self.give_way()
        self._jobs.pop(conversation, None)

    def forget(self, conversations: Iterable[str] | None) -> None:
        """Nothing of these is to be read any more, None of all; what was read is not kept."""
        names = {*self._jobs, self.conversation} if conversations is None else {*conversations}
        run = self._pass
        if run is not None and run.conversation in names:
            self._drop(run)
        self._jobs = {name: job for name, job in self._jobs.items() if name not in names}

    def give_way(self) -> None:
        """Make room for a request; the pass goes on later from what it has."""
        run, self._pass = self._pass, None
        if run is None:
            return
        stream = run.stream
        if stream.lane is not None and stream.position > stream.course.resumed_tokens:
            keep = partial(keep_state, stream, self._served, Role.END)
            attempt(keep, _ignored, "background state lost")
        _end(stream)
        self._jobs[run.conversation] = run.job
        _LOG.info("background pass gave way at=%d of=%d", stream.position, run.end)

    def step(self) -> bool:
        """Begin a pass, or go on with it by one chunk; the latest reply first.

        Returns:
            Whether anything was done; False where a state is still being read from below.
        """
        if self._on_battery():
            self.give_way()
            return True
        if self._pass is None:
            conversation, job = self._jobs.popitem()
            self._pass = attempt(
                partial(self._begin, conversation, job), _ignored, "background pass failed"
            )
            return True
        run = self._pass
        failed = partial(self._failed, run)
        return attempt(partial(self._go_on, run), failed, "background pass failed") is not False

    def close(self) -> None:
        """Forget everything; may be repeated."""
        run, self._pass = self._pass, None
        self._jobs.clear()
        if run is not None:
            _end(run.stream)

    def _begin(self, conversation: str, job: Job) -> _Pass | None:
        request = job()
        if request is None:
            return None
        grid_rows = self._served.runner.grid_rows
        end = request.prompt_tokens // grid_rows * grid_rows
        stream = Stream(replace(request, wanted_marks=()), 1, penalties_of(request))
        try:
            refused = open_stream(stream, self._served, self._clock, alone=False)
        except Exception:
            _end(stream)
            raise
        if refused is not None or stream.position >= end:
            _end(stream)
            _LOG.info("background pass not needed or no room tokens=%d", end)
            return None
        return _Pass(conversation, job, stream, end)

    def _go_on(self, run: _Pass) -> bool:
        stream, resume = run.stream, run.stream.resume
        if stream.phase is Phase.RESUMING and resume is not None:
            moved = resume.step()
            if resume.status is ResumeStatus.DONE:
                take_resumed(stream, self._served)
            elif resume.status is not ResumeStatus.READING:
                self._drop(run)
            return moved
        if stream.position < run.end:
            stream.marks = {run.end: Role.END}
            compute_chunk(stream, self._served, run.end)
        if stream.position >= run.end:
            read = run.end - stream.course.resumed_tokens
            _LOG.info("background pass ended at=%d read_tokens=%d", run.end, read)
            self._drop(run)
        return True

    def _drop(self, run: _Pass) -> None:
        self._pass = None
        _end(run.stream)

    def _failed(self, run: _Pass, error: Exception) -> None:
        del error
        self._drop(run)


def _end(stream: Stream) -> None:
    stream.phase = Phase.ENDED
    close_lane(stream)


def _ignored(error: Exception) -> None:
    """A failed pass costs a later turn some reading, nothing else."""
    del error
