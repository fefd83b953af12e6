"""Serving: the streams of one loaded model, round by round.

Owns the queue, the running streams and through them their lanes; every lane is released exactly
once, before the app hears that its stream has ended. A failed piece of work ends the streams it
held, no others. Used from the engine thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.cache.lane import LaneRefused
from engine.errors import InvariantBroken
from engine.failure import attempt, failure_of
from engine.protocol import Finished, Progress, StopReason
from engine.sampling.keyed import draw
from engine.sampling.penalties import Penalties
from engine.serving.admission import (
    Served,
    Shortage,
    can_never_fit,
    never_fits,
    open_lane,
    open_stream,
    reply_limit,
    shortage_of,
)
from engine.serving.places import Places
from engine.serving.prefill import compute_chunk
from engine.serving.reply import Clock, Reply, Send, finished
from engine.serving.request import Phase, ReplyText, Request, Stream
from engine.serving.runs import FollowUp, Run, Runs
from engine.serving.scheduler import Round, may_admit, next_round, owed_after
from engine.serving.upkeep import Upkeep

_LOG = logging.getLogger(__name__)
Result = TypeVar("Result")


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
        self._places = Places(send)
        self._upkeep = Upkeep(served, send, clock, on_battery)
        self._owed_ns = 0

    @property
    def has_work(self) -> bool:
        """Whether a round would do anything."""
        return bool(self._runs.all()) or self._upkeep.has_work

    @property
    def pause_s(self) -> float | None:
        """How long the loop may wait for messages before the next round; None for ever."""
        return 0.0 if self._runs.all() else self._upkeep.pause_s

    def accept(self, request: Request, text: ReplyText, follow_up: FollowUp | None = None) -> None:
        """Queue a request.

        Args:
            follow_up: renders what is read in the background after the reply.

        Raises:
            RequestInvalid: the prompt does not fit, the number is in use or the queue is full.
        """
        limit = reply_limit(request, self._served.context_tokens)
        self._runs.check_place(request.number)
        stream = Stream(request, limit, _penalties(request))
        reply = Reply(request.number, text, self._send, self._clock)
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
        self._upkeep.background.give_way()
        shortage = self._admit()
        work = next_round(
            self._runs.facts(),
            shares_steps=self._served.runner.shares_steps,
            owed_ns=self._owed_ns,
        )
        self._places.tell(self._runs, shortage, work.prompt)
        self._work(work)
        self._upkeep.busy()

    def close(self) -> None:
        """Stop everything that waits or runs; may be repeated."""
        for run in self._runs.all():
            self._attempt([run], partial(self._end, run, "stopped"))
        self._upkeep.close()

    def _work(self, work: Round) -> None:
        began_ns = self._clock()
        if work.prompt is not None:
            run = self._runs.running[work.prompt]
            self._runs.overtake(work.prompt)
            self._attempt([run], partial(self._fill, run))
        filled_ns = self._clock()
        for numbers in work.steps:
            self._decode([self._runs.running[number] for number in numbers])
        decodes = any(run.stream.phase is Phase.DECODING for run in self._runs.running.values())
        self._owed_ns = owed_after(
            self._owed_ns, filled_ns - began_ns, self._clock() - filled_ns, decodes=decodes
        )

    def _admit(self) -> Shortage | None:
        """Give lanes to the requests that waited longest, as far as memory goes.

        Returns:
            What the head of the queue is short of; None where it waits for nothing but its turn.
        """
        runs = self._runs
        while queue := runs.queue():
            run = queue[0]
            if run.is_side and runs.running:
                return None
            if not may_admit(len(queue), len(runs.running), self._served.stream_limit):
                if not self._set_side_work_aside():
                    return None
                continue
            refused = self._attempt([run], partial(self._open, run.stream))
            if refused is None:
                if run.stream.phase is Phase.WAITING:
                    runs.admit(run)
                    run.stream.phase = Phase.FILLING
            elif not runs.running or can_never_fit(refused, self._served):
                self._fail([run], never_fits(refused, self._served))
            elif not self._set_side_work_aside():
                return shortage_of(refused, self._served)
        return None

    def _set_side_work_aside(self) -> bool:
        """Take the lane from one running side job, for a chat; it begins afresh later."""
        sides = self._runs.sides()
        if not sides:
            return False
        run = sides[-1]
        stream = run.stream
        _close_lane(stream)
        stream.position = stream.drawn = stream.overtaken = 0
        stream.penalties = _penalties(stream.request)
        self._runs.send_back(run)
        return True

    def _open(self, stream: Stream) -> LaneRefused | None:
        alone = not self._runs.running
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

    def _fill(self, run: Run) -> None:
        """Compute one prompt chunk; after the last one, draw the first token."""
        stream, total = run.stream, run.stream.request.prompt_tokens
        logits = compute_chunk(stream, self._served, total)
        self._send(Progress(request=run.number, phase="prefill", done=stream.position, total=total))
        if logits is not None:
            stream.phase = Phase.DECODING
            stream.course.filled_ns = self._clock()
            self._say(run, logits.numpy())

    def _decode(self, runs: Sequence[Run]) -> None:
        """One shared step, then one draw each."""
        rows = self._attempt(runs, partial(self._step, runs))
        if rows is not None:
            for run, row in zip(runs, rows, strict=True):
                self._attempt([run], partial(self._say, run, row))

    def _step(self, runs: Sequence[Run]) -> NDArray[np.float32]:
        lanes = [open_lane(run.stream) for run in runs]
        for lane in lanes:
            lane.extend(1)
        logits = self._served.runner.step(
            lanes,
            [run.reply.ids[run.stream.drawn - 1] for run in runs],
            [lane.length - 1 for lane in lanes],
        )
        rows: NDArray[np.float32] = logits.numpy()
        return rows

    def _say(self, run: Run, logits: NDArray[np.float32]) -> None:
        """Draw a token, say it, and end the stream where it ends."""
        stream, request = run.stream, run.stream.request
        stream.penalties.apply(logits)
        token = draw(logits, request.rule, request.prompt_tokens + stream.drawn)
        stream.drawn += 1
        stream.course.last_token_ns = self._clock()
        if stream.drawn <= len(run.reply.ids):
            _check_repeated(run, token)
            return
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
            _log(frame, self._served)
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
        _close_lane(stream)
        return True


def _penalties(request: Request) -> Penalties:
    return Penalties(request.penalties, request.ids.tolist(), request.suppressed_ids)


def _close_lane(stream: Stream) -> None:
    lane, stream.lane = stream.lane, None
    if lane is not None:
        lane.close()


def _check_repeated(run: Run, token: int) -> None:
    """A stream that began afresh says again what it said; nothing of it is sent twice."""
    said = run.reply.ids[run.stream.drawn - 1]
    if token != said:
        raise InvariantBroken(f"Request {run.number} said {token} where it had said {said}.")
    run.stream.penalties.count(token)


def _log(frame: Finished, served: Served) -> None:
    """One line a reply: how it went, and what the kept states did."""
    states = served.states.census()
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


def _shown(milliseconds: float | None) -> str:
    return "none" if milliseconds is None else f"{milliseconds:.0f}"
