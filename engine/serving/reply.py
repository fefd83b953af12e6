"""One reply on its way out: ids, text by region, and the frames that carry them.

Owns what was said and not yet sent. The first token is sent at once; later ones are gathered so
that a frame leaves about every 16 ms, and at once where the next token would come later than that.
Used from the engine thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from engine.protocol import EngineMessage, Finished, Region, StopReason, Timings, Tokens, ToolCall
from engine.serving.request import Piece, ReplyText, Stream
from engine.states.overview import StoreCensus

_LOG = logging.getLogger(__name__)

FRAME_NS: Final = 16_000_000

Send = Callable[[EngineMessage], None]
Clock = Callable[[], int]


class Reply:
    """What one stream says.

    Attributes:
        ids: every token generated here, the end token included.
        first_sent_ns: when the first frame left, None before.
    """

    def __init__(self, number: int, text: ReplyText, send: Send, clock: Clock) -> None:
        self._number = number
        self._text = text
        self._send = send
        self._clock = clock
        self.ids: list[int] = []
        self.first_sent_ns: int | None = None
        self._said: dict[Region, list[str]] = {"answer": [], "thinking": [], "tool": []}
        self._region: Region = "answer"
        self._waiting_text: list[str] = []
        self._waiting_ids: list[int] = []
        self._sent_ns = 0
        self._pushed_ns = 0

    @property
    def stopped(self) -> bool:
        """Whether a stop string was met."""
        return self._text.stopped

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls that were read."""
        return tuple(self._text.tool_calls)

    def text(self, region: Region) -> str:
        """What was said in one region."""
        return "".join(self._said[region])

    def hear(self, begun: Sequence[int]) -> None:
        """Take the beginning of a reply that goes on: its text counts, and is not sent again."""
        for token in begun:
            for region, text in self._text.push(token):
                self._region = region
                self._said[region].append(text)

    def push(self, token: int) -> None:
        """Say one token that is not the turn's end."""
        self.ids.append(token)
        for piece in self._text.push(token):
            self._gather(piece)
        self._waiting_ids.append(token)
        now = self._clock()
        interval, self._pushed_ns = now - self._pushed_ns, now
        due = now + interval - self._sent_ns > FRAME_NS and bool(self._waiting_text)
        if due or self.first_sent_ns is None:
            self._flush()

    def push_end(self, token: int) -> None:
        """Take note of the token that ended the turn; it has no text."""
        self.ids.append(token)

    def finish(self) -> None:
        """Send what was held back."""
        for piece in self._text.finish():
            self._gather(piece)
        if self._waiting_ids or self._waiting_text:
            self._flush()

    def _gather(self, piece: Piece) -> None:
        region, text = piece
        if region != self._region and self._waiting_text:
            self._flush()
        self._region = region
        self._waiting_text.append(text)
        self._said[region].append(text)

    def _flush(self) -> None:
        self._send(
            Tokens(
                request=self._number,
                region=self._region,
                text="".join(self._waiting_text),
                ids=tuple(self._waiting_ids),
            )
        )
        self._waiting_text.clear()
        self._waiting_ids.clear()
        self._sent_ns = self._clock()
        if self.first_sent_ns is None:
            self.first_sent_ns = self._sent_ns


def finished(stream: Stream, reply: Reply, why: StopReason, now_ns: int) -> Finished:
    """The frame that ends a stream, with None where nothing was measured."""
    request, course = stream.request, stream.course
    since = request.arrived_ns
    return Finished(
        request=request.number,
        text=reply.text("answer"),
        thinking_text=reply.text("thinking"),
        tool_calls=reply.tool_calls,
        ids=(*request.begun_ids, *reply.ids),
        prompt_tokens=request.prompt_tokens,
        resumed_tokens=course.resumed_tokens,
        resumed_from=course.resumed_from,
        resumed_bytes=course.resumed_bytes,
        resumed_ms=course.resumed_ms,
        dropped_messages=request.dropped_messages,
        begun_tokens=request.begun_tokens,
        timings=Timings(
            queue_ms=_ms(since, now_ns if course.admitted_ns is None else course.admitted_ns)
            or 0.0,
            prefill_ms=_ms(course.admitted_ns, course.filled_ns),
            first_token_ms=_ms(since, reply.first_sent_ns),
            decode_ms=_ms(course.filled_ns, course.last_token_ns) if len(reply.ids) > 1 else None,
        ),
        stop_reason=why,
        seed=request.rule.seed,
        template_hash=request.template_hash,
        reason=course.reason,
        rewritten_from=request.rewritten_from,
        notes=request.notes,
    )


def log_reply(frame: Finished, states: StoreCensus) -> None:
    """One line a reply: how it went, and what the kept states did."""
    _LOG.info(
        "reply ended request=%d why=%s prompt_tokens=%d resumed_tokens=%d resumed_from=%s "
        "resumed_bytes=%d resumed_ms=%.0f reason=%s reply_tokens=%d prefill_ms=%s decode_ms=%s %s",
        frame.request,
        frame.stop_reason,
        frame.prompt_tokens,
        frame.resumed_tokens,
        frame.resumed_from,
        frame.resumed_bytes,
        frame.resumed_ms,
        frame.reason,
        len(frame.ids) - frame.begun_tokens,
        _shown(frame.timings.prefill_ms),
        _shown(frame.timings.decode_ms),
        states.line(),
    )


def _shown(milliseconds: float | None) -> str:
    return "none" if milliseconds is None else f"{milliseconds:.0f}"


def _ms(begin_ns: int | None, end_ns: int | None) -> float | None:
    if begin_ns is None or end_ns is None:
        return None
    return max(0, end_ns - begin_ns) / 1e6
