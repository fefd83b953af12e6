"""Serving: the streams of one loaded model, round by round.

Owns the queue, the running streams and through them their lanes; every lane is released exactly
once, before the app hears that its stream has ended. A failed piece of work ends the streams it
held, no others. Used from the engine thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

from engine.failure import attempt, failure_of
from engine.protocol import Finished, Progress, StopReason
from engine.sampling.rows import LogitRows, WholeRows
from engine.serving.admission import Served, close_lane, reply_limit
from engine.serving.decode import compute_step, say_next
from engine.serving.entrance import Entrance
from engine.serving.idle.upkeep import Upkeep
from engine.serving.places import Places
from engine.serving.prefill import compute_chunk
from engine.serving.reply import Clock, Reply, Send, finished, log_reply
from engine.serving.request import Phase, ReplyText, Request, Stream, penalties_of
from engine.serving.runs import FollowUp, Run, Runs
from engine.serving.scheduler import Round, next_round, owed_after
from engine.states.store import StateStore

_LOG = logging.getLogger(__name__)
Result = TypeVar("Result")

READING_PAUSE_S: Final = 0.002
"""How long messages are waited for where all that runs waits for the disk."""


def on_mains() -> bool:
    """Not on battery: what is taken where nobody asks the machine."""
    return False


class Serving:
    """Runs requests over one loaded model; closed before the model is."""

    def __init__(
        self,
        served: Served,
        send: Send,
        clock: Clock,
        on_battery: Callable[[], bool] = on_mains,
    ) -> None:
        self._served = served
        self._send = send
        self._clock = clock
        self._runs = Runs()
        self._entrance = Entrance(served, self._runs, send, clock, self._fail)
        self._places = Places(send)
        self._upkeep = Upkeep(served, send, clock, on_battery)
        self._owed_ns = 0
        self._only_reads = False

    @property
    def states(self) -> StateStore:
        """The loaded model's store of kept states."""
        return self._served.states

    @property
    def has_work(self) -> bool:
        """Whether a round would do anything."""
        return bool(self._runs.all()) or self._upkeep.has_work

    @property
    def pause_s(self) -> float:
        """How long the loop may wait for messages before the next round."""
        if self._runs.all():
            return READING_PAUSE_S if self._only_reads else 0.0
        return self._upkeep.pause_s

    def accept(self, request: Request, text: ReplyText, follow_up: FollowUp | None = None) -> None:
        """Queue a request.

        Args:
            follow_up: renders what is read in the background after the reply.

        Raises:
            RequestInvalid: the prompt does not fit, the number is in use or the queue is full.
        """
        limit = reply_limit(request, self._served.context_tokens)
        self._runs.check_place(request.number)
        stream = Stream(request, limit, penalties_of(request))
        reply = Reply(request.number, text, self._send, self._clock)
        reply.hear(request.begun_ids)
        run = Run(stream, reply, follow_up)
        if request.conversation is not None and not request.is_side:
            self._upkeep.background.drop(request.conversation)
        if limit == 0:
            self._end(run, "max-tokens")
            return
        self._runs.waiting.append(run)

    def cancel(self, number: int) -> None:
        """Stop a request before its next piece of work; unknown numbers are ignored."""
        for run in self._runs.all():
            if run.number == number:
                run.stream.cancelled = True

    def settle(self, request: int, most_ms: float) -> None:
        """Answer with Settled once background work has ended, at most so long."""
        self._upkeep.settle(request, most_ms)

    def forget(self, conversations: Iterable[str] | None) -> None:
        """Forget what is kept of conversations, None of all, and what was still to be read."""
        chosen = None if conversations is None else tuple(conversations)
        self._upkeep.background.forget(chosen)
        self.states.clear(chosen)

    def round(self) -> None:
        """Cancels, admission, one prompt chunk, one decode step of each decoding stream.

        Where no request waits or runs: a piece of background work instead.
        """
        for run in self._runs.all():
            if run.stream.cancelled:
                self._attempt([run], partial(self._end, run, "stopped"))
        if not self._runs.all():
            self._upkeep.idle()
            return
        began_ns = self._clock()
        self._upkeep.background.give_way()
        shortage = self._entrance.admit()
        work = next_round(
            self._runs.facts(),
            shares_steps=self._served.runner.shares_steps,
            owed_ns=self._owed_ns,
        )
        self._places.tell(self._runs, shortage, work.prompt)
        self._work(work)
        self._upkeep.busy(self._runs.conversations(), self._clock() - began_ns)

    def close(self) -> None:
        """Stop everything that waits or runs; may be repeated."""
        for run in self._runs.all():
            self._attempt([run], partial(self._end, run, "stopped"))
        self._upkeep.close()

    def _work(self, work: Round) -> None:
        moved = [self._resume(number) for number in work.resumes]
        began_ns = self._clock()
        if work.prompt is not None:
            run = self._runs.running[work.prompt]
            self._runs.overtake(work.prompt)
            self._attempt([run], partial(self._fill, run))
        filled_ns = self._clock()
        for numbers in work.steps:
            self._decode([self._runs.running[number] for number in numbers])
        self._owed_ns = owed_after(
            self._owed_ns,
            filled_ns - began_ns,
            self._clock() - filled_ns,
            decodes=self._runs.any_in(Phase.DECODING),
        )
        self._only_reads = bool(moved) and not any(moved) and not work.steps and not work.prompt

    def _resume(self, number: int) -> bool:
        run = self._runs.running[number]
        return bool(self._attempt([run], partial(self._entrance.resume, run)))

    def _fill(self, run: Run) -> None:
        """Compute one prompt chunk; after the last one, draw the first token."""
        stream, total = run.stream, run.stream.request.prompt_tokens
        logits = compute_chunk(stream, self._served, total)
        self._send(Progress(request=run.number, phase="prefill", done=stream.position, total=total))
        if logits is not None:
            stream.phase = Phase.DECODING
            stream.course.filled_ns = self._clock()
            self._say(run, WholeRows(logits.unsqueeze(0).numpy()), 0)

    def _decode(self, runs: Sequence[Run]) -> None:
        """One shared step, then one draw each."""
        rows = self._attempt(runs, partial(compute_step, runs, self._served))
        if rows is not None:
            for row, run in enumerate(runs):
                self._attempt([run], partial(self._say, run, rows, row))

    def _say(self, run: Run, rows: LogitRows, row: int) -> None:
        why = say_next(run, rows, row, self._clock())
        if why is not None:
            self._end(run, why)

    def _attempt(self, runs: Sequence[Run], work: Callable[[], Result]) -> Result | None:
        """Do a piece of work; where it raises, the streams it held fail and None comes back."""
        numbers = ",".join(str(run.number) for run in runs)
        return attempt(work, partial(self._fail, runs), f"round failed requests={numbers}")

    def _fail(self, runs: Sequence[Run], error: Exception) -> None:
        for run in runs:
            if self._release(run):
                self._send(failure_of(error, run.number))

    def _end(self, run: Run, why: StopReason) -> None:
        """End a stream: its memory and its state are where they belong before the app hears."""
        run.reply.finish()
        frame = finished(run.stream, run.reply, why, self._clock())
        if self._release(run):
            self._read_later(run, frame)
            log_reply(frame, self._served.states.census())
            self._send(frame)

    def _read_later(self, run: Run, frame: Finished) -> None:
        request = run.stream.request
        answered = bool(frame.text.strip()) and not frame.tool_calls
        if run.follow_up is not None and request.keeps_states and answered:
            assert request.conversation is not None
            self._upkeep.background.add(request.conversation, partial(run.follow_up, frame))

    def _release(self, run: Run) -> bool:
        """Take a stream out and free its lane; False where that was done before."""
        stream = run.stream
        if stream.phase is Phase.ENDED:
            return False
        self._runs.remove(run)
        stream.phase = Phase.ENDED
        close_lane(stream)
        return True
