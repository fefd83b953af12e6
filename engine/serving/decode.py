"""Decode: one step of streams that share it, and what each of them says next."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import InvariantBroken
from engine.protocol import StopReason
from engine.sampling.keyed import draw, draw_among
from engine.sampling.rows import LogitRows
from engine.serving.admission import Served, open_lane
from engine.serving.request import Stream
from engine.serving.runs import Run


def compute_step(runs: Sequence[Run], served: Served) -> LogitRows:
    """Compute the row of each stream's last token; valid until the runner's next call."""
    lanes = [open_lane(run.stream) for run in runs]
    for lane in lanes:
        lane.extend(1)
    ids = [run.reply.ids[run.stream.drawn - 1] for run in runs]
    return served.runner.step_rows(lanes, ids, [lane.length - 1 for lane in lanes])


def next_token(stream: Stream, rows: LogitRows, row: int) -> int:
    """Draw a stream's next token from a row: from its candidates where they decide it.

    Raises:
        DeviceLost: the logits are no numbers.
    """
    rule, penalties = stream.request.rule, stream.penalties
    position = stream.request.prompt_tokens + stream.drawn
    candidates = rows.candidates(row) if penalties.only_lower else None
    if candidates is not None:
        penalties.apply(candidates.values, candidates.ids)
        token = draw_among(candidates, rule, position)
        if token is not None:
            return token
    logits = rows.whole(row)
    penalties.apply(logits)
    return draw(logits, rule, position)


def say_next(run: Run, rows: LogitRows, row: int, now_ns: int) -> StopReason | None:
    """Draw a token of a row and say it; why the stream ends with it, None where it goes on.

    A stream that began afresh draws again what it has said; that is compared, and not sent twice.

    Raises:
        DeviceLost: the logits are no numbers.
        InvariantBroken: it would say something else the second time.
    """
    stream, request, reply = run.stream, run.stream.request, run.reply
    token = next_token(stream, rows, row)
    stream.drawn += 1
    stream.course.last_token_ns = now_ns
    if stream.drawn <= len(reply.ids):
        said = reply.ids[stream.drawn - 1]
        if token != said:
            raise InvariantBroken(f"Request {run.number} said {token} where it had said {said}.")
        stream.penalties.count(token)
        return None
    if token in request.end_ids:
        reply.push_end(token)
        return "end-of-turn"
    stream.penalties.count(token)
    reply.push(token)
    if reply.stopped:
        return "stop-string"
    if len(reply.ids) < stream.limit:
        return None
    return "max-tokens" if stream.limit == request.max_tokens else "context-full"
