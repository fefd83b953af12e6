"""Decode: one step of streams that share it, and what each of them says next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.errors import InvariantBroken
from engine.protocol import StopReason
from engine.sampling.keyed import draw
from engine.serving.admission import Served, open_lane
from engine.serving.runs import Run


def compute_step(runs: Sequence[Run], served: Served) -> NDArray[np.float32]:
    """Compute the row of each stream's last token.

    Returns:
        [stream, vocabulary], valid until the runner's next call.
    """
    lanes = [open_lane(run.stream) for run in runs]
    for lane in lanes:
        lane.extend(1)
    ids = [run.reply.ids[run.stream.drawn - 1] for run in runs]
    rows: NDArray[np.float32] = served.runner.step(
        lanes, ids, [lane.length - 1 for lane in lanes]
    ).numpy()
    return rows


def say_next(run: Run, logits: NDArray[np.float32], now_ns: int) -> StopReason | None:
    """Draw a token and say it; why the stream ends with it, None where it goes on.

    A stream that began afresh draws again what it has said; that is compared, and not sent twice.

    Raises:
        DeviceLost: the logits are no numbers.
        InvariantBroken: it would say something else the second time.
    """
    stream, request, reply = run.stream, run.stream.request, run.reply
    stream.penalties.apply(logits)
    token = draw(logits, request.rule, request.prompt_tokens + stream.drawn)
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
