"""Prefill: one prompt chunk of a stream, and the states that are kept on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.serving.admission import Served, open_lane
from engine.serving.request import Stream
from engine.serving.scheduler import chunk_end
from engine.states.records import Role

# Torch takes a second to import and must not delay the handshake.
if TYPE_CHECKING:
    import torch


def compute_chunk(stream: Stream, served: Served, end_of_prompt: int) -> torch.Tensor | None:
    """Compute the next rows of a stream's prompt, up to ``end_of_prompt`` at most.

    Returns:
        [vocabulary] float32, the logits of the prompt's last row; None before that.
    """
    request, begin = stream.request, stream.position
    end = chunk_end(begin, served.runner.chunk_rows, tuple(stream.marks), end_of_prompt)
    lane, chunk = open_lane(stream), request.ids[begin:end].tolist()
    lane.extend(len(chunk))
    is_last = end == request.prompt_tokens
    logits = served.runner.prompt_chunk(lane, chunk, begin, wants_logits=is_last)
    stream.position = end
    role = stream.marks.get(end)
    if role is not None:
        keep_state(stream, served, role)
    return logits if is_last else None


def keep_state(stream: Stream, served: Served, role: Role) -> None:
    """Keep the state of what a stream has computed of its prompt, where there is room."""
    request = stream.request
    ids = request.ids[: stream.position]
    served.states.keep(open_lane(stream), ids, role, request.conversation)
