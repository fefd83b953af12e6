"""Serving: the streams of one loaded model, round by round.

Owns the queue, the running streams and through them their lanes; every lane is released exactly
once, before the app hears that its stream has ended. A failed piece of work ends the streams it
held, no others. Used from the engine thread only.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.cache.lane import Lane, LaneRefused
from engine.errors import InvariantBroken, RequestInvalid
from engine.failure import attempt, failure_of
from engine.protocol import Finished, Progress, StopReason
from engine.sampling.keyed import draw
from engine.sampling.penalties import Penalties
from engine.serving.admission import Served, never_fits, open_stream, reply_limit
from engine.serving.reply import Clock, Reply, Send, finished
from engine.serving.request import Phase, ReplyText, Request, Stream
from engine.serving.scheduler import StreamFacts, may_admit, next_round, queue_is_full

_LOG = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class _Run:
    """A stream with its reply."""

    stream: Stream
    reply: Reply


@dataclass(slots=True, eq=False)
class _Queues:
    waiting: deque[_Run] = field(default_factory=deque)
    running: dict[int, _Run] = field(default_factory=dict)


class Serving:
    """Runs requests over one loaded model; closed before the model is."""

    def __init__(self, served: Served, send: Send, clock: Clock) -> None:
        self._served = served
        self._send = send
        self._clock = clock
        self._queues = _Queues()

    @property
    def has_work(self) -> bool:
        """Whether a round would do anything."""
        return bool(self._queues.waiting or self._queues.running)

    def accept(self, request: Request, text: ReplyText) -> None:
        """Queue a request.

        Raises:
            RequestInvalid: the prompt does not fit, the number is in use or the queue is full.
        """
        limit = reply_limit(request, self._served.context_tokens)
        self._check_place(request.number)
        penalties = Penalties(request.penalties, request.ids.tolist(), request.suppressed_ids)
        run = _Run(
            Stream(request, limit, penalties), Reply(request.number, text, self._send, self._clock)
        )
        if limit == 0:
            self._end(run, "max-tokens")
            return
        self._queues.waiting.append(run)

    def cancel(self, number: int) -> None:
        """Stop a request before its next piece of work; unknown numbers are ignored."""
        for run in self._runs():
            if run.stream.request.number == number:
                run.stream.cancelled = True

    def round(self) -> None:
        """Cancels, admission, one prompt chunk, one decode step of each decoding stream."""
        for run in self._runs():
            if run.stream.cancelled:
                self._attempt([run], partial(self._end, run, "stopped"))
        self._admit()
        running = self._queues.running
        facts = [StreamFacts(number, run.stream.phase) for number, run in running.items()]
        work = next_round(facts, shares_steps=self._served.runner.shares_steps)
        if work.prompt is not None:
            run = running[work.prompt]
            self._attempt([run], partial(self._fill, run))
        for numbers in work.steps:
            self._decode([running[number] for number in numbers])

    def close(self) -> None:
        """Stop everything that waits or runs; may be repeated."""
        for run in self._runs():
            self._attempt([run], partial(self._end, run, "stopped"))

    def _runs(self) -> tuple[_Run, ...]:
        return (*self._queues.waiting, *self._queues.running.values())

    def _check_place(self, number: int) -> None:
        if any(run.stream.request.number == number for run in self._runs()):
            raise RequestInvalid(f"Request {number} is running already.")
        waiting = len(self._queues.waiting)
        if queue_is_full(waiting):
            raise RequestInvalid(
                f"{waiting} requests wait already; this one is refused.", waiting=waiting
            )

    def _admit(self) -> None:
        """Give lanes to the requests that waited longest, as far as memory goes."""
        waiting, running = self._queues.waiting, self._queues.running
        while may_admit(len(waiting), len(running), self._served.stream_limit):
            run = waiting[0]
            refused = self._attempt([run], partial(self._open, run.stream))
            if refused is not None:
                if running:
                    return
                self._fail([run], never_fits(refused))
            elif run.stream.phase is Phase.WAITING:
                waiting.popleft()
                run.stream.phase = Phase.FILLING
                running[run.stream.request.number] = run

    def _open(self, stream: Stream) -> LaneRefused | None:
        alone = not self._queues.running
        refused = open_stream(stream, self._served, self._clock, alone=alone)
        if refused is None:
            request = stream.request
            _LOG.info(
                "stream opened request=%d prompt_tokens=%d resumed_tokens=%d",
                request.number,
                request.prompt_tokens,
                stream.position,
            )
        return refused

    def _fill(self, run: _Run) -> None:
        """Compute one prompt chunk; after the last one, draw the first token."""
        stream, request = run.stream, run.stream.request
        lane = _open_lane(stream)
        total = request.prompt_tokens
        end = min(stream.position + self._served.runner.chunk_rows, total)
        chunk = request.ids[stream.position : end].tolist()
        lane.extend(len(chunk))
        logits = self._served.runner.prompt_chunk(
            lane, chunk, stream.position, wants_logits=end == total
        )
        stream.position = end
        if end in stream.marks:
            self._served.states.keep(lane, request.ids[:end])
        self._send(Progress(request=request.number, phase="prefill", done=end, total=total))
        if end == total:
            stream.phase = Phase.DECODING
            stream.course.filled_ns = self._clock()
            self._say(run, logits.numpy())

    def _decode(self, runs: Sequence[_Run]) -> None:
        """One shared step, then one draw each."""
        rows = self._attempt(runs, partial(self._step, runs))
        if rows is not None:
            for run, row in zip(runs, rows, strict=True):
                self._attempt([run], partial(self._say, run, row))

    def _step(self, runs: Sequence[_Run]) -> NDArray[np.float32]:
        lanes = [_open_lane(run.stream) for run in runs]
        for lane in lanes:
            lane.extend(1)
        logits = self._served.runner.step(
            lanes, [run.reply.ids[-1] for run in runs], [lane.length - 1 for lane in lanes]
        )
        rows: NDArray[np.float32] = logits.numpy()
        return rows

    def _say(self, run: _Run, logits: NDArray[np.float32]) -> None:
        """Draw a token, say it, and end the stream where it ends."""
        stream, request = run.stream, run.stream.request
        stream.penalties.apply(logits)
        token = draw(logits, request.rule, request.prompt_tokens + len(run.reply.ids))
        stream.course.last_token_ns = self._clock()
        if token in request.end_ids:
            run.reply.push_end(token)
            self._end(run, "end-of-turn")
            return
        stream.penalties.count(token)
        run.reply.push(token)
        if run.reply.stopped:
            self._end(run, "stop-string")
        elif len(run.reply.ids) == stream.limit:
            self._end(run, "max-tokens" if stream.limit == request.max_tokens else "context-full")

    def _attempt(self, runs: Sequence[_Run], work: Callable[[], Result]) -> Result | None:
        """Do a piece of work; where it raises, the streams it held fail and None comes back."""
        numbers = ",".join(str(run.stream.request.number) for run in runs)
        return attempt(work, partial(self._fail, runs), f"round failed requests={numbers}")

    def _fail(self, runs: Sequence[_Run], error: Exception) -> None:
        for run in runs:
            if self._release(run):
                self._send(failure_of(error, run.stream.request.number))

    def _end(self, run: _Run, why: StopReason) -> None:
        run.reply.finish()
        frame = finished(run.stream, run.reply, why, self._clock())
        if self._release(run):
            self._log(frame)
            self._send(frame)

    def _log(self, frame: Finished) -> None:
        """One line a reply: how it went, and what the kept states did."""
        states = self._served.states.census()
        _LOG.info(
            "reply ended request=%d why=%s prompt_tokens=%d resumed_tokens=%d reply_tokens=%d "
            "prefill_ms=%s decode_ms=%s states=%d state_pages=%d state_slots=%d evicted=%d",
            frame.request,
            frame.stop_reason,
            frame.prompt_tokens,
            frame.resumed_tokens,
            len(frame.ids),
            _shown(frame.timings.prefill_ms),
            _shown(frame.timings.decode_ms),
            states.states,
            states.pages,
            states.slots,
            states.evicted,
        )

    def _release(self, run: _Run) -> bool:
        """Take a stream out and free its lane; False where that was done before."""
        stream = run.stream
        if stream.phase is Phase.ENDED:
            return False
        if stream.phase is Phase.WAITING and run in self._queues.waiting:
            self._queues.waiting.remove(run)
        self._queues.running.pop(stream.request.number, None)
        stream.phase = Phase.ENDED
        if stream.lane is not None:
            stream.lane.close()
            stream.lane = None
        return True


def _shown(milliseconds: float | None) -> str:
    return "none" if milliseconds is None else f"{milliseconds:.0f}"


def _open_lane(stream: Stream) -> Lane:
    if stream.lane is None:
        raise InvariantBroken(f"Request {stream.request.number} runs without a lane.")
    return stream.lane
