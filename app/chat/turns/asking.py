"""What is asked of the engine for one reply, and what is kept of it at its end. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.chat.conversation import Conversation, ReplyContent, ReplyFacts, Turn, TurnState, chat_name
from app.link.client import Question
from engine.protocol import ChatMessage, Finished, ModelFacts, PlanLine, Sampling, Timings

UNFINISHED = frozenset({"max-tokens", "context-full"})
"""Stop reasons after which there is more to say."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reply that is waited for: to which user turn, or which reply shall go on."""

    asked: int
    goes_on: Turn | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """One reply as it is asked for.

    Attributes:
        parent: the user turn that is answered.
        facts: what is known of the reply before it begins.
        goes_on: the reply that grows; None for a new one.
    """

    conversation: int
    parent: int
    question: Question
    sampling: Sampling
    facts: ReplyFacts
    goes_on: Turn | None = None

    @property
    def begun(self) -> ReplyContent:
        """What is there of the reply before it is asked for."""
        turn = self.goes_on
        return ReplyContent() if turn is None else content_of(turn)


@dataclass(frozen=True, slots=True)
class SoFar:
    """What has come of a reply that grows, or shall go on."""

    text: str
    thinking_text: str
    facts: ReplyFacts


def content_of(turn: Turn) -> ReplyContent:
    """What a stored reply holds."""
    return ReplyContent(turn.text, turn.thinking_text, turn.ids)


def so_far_of(turn: Turn) -> SoFar:
    """What a stored reply holds, for going on."""
    return SoFar(turn.text, turn.thinking_text, turn.reply or ReplyFacts())


def may_go_on(turn: Turn) -> bool:
    """Whether a reply has begun, and ended before its model had ended it."""
    if turn.role != "assistant" or turn.reply is None or not (turn.text or turn.thinking_text):
        return False
    if turn.state is TurnState.WHOLE:
        return turn.reply.stop_reason in UNFINISHED
    return turn.state is not TurnState.STREAMING


def question_of(conversation: Conversation, user: Turn, goes_on: Turn | None = None) -> Question:
    """What the engine is asked where a message of a chat shall be answered."""
    sibling = conversation.next_sibling(user.id) if goes_on is None else goes_on.sibling
    return Question(
        conversation.messages_to(user.id),
        date=conversation.date,
        sibling=sibling,
        conversation=chat_name(conversation.id),
        may_drop=True,
        begun=None if goes_on is None else _begun(goes_on),
    )


def _begun(turn: Turn) -> ChatMessage:
    name = turn.reply.template_hash if turn.reply is not None else None
    return ChatMessage(
        role="assistant",
        text=turn.text,
        thinking_text=turn.thinking_text,
        ids=turn.ids if name is not None else (),
        template_hash=name,
    )


def begun_facts(
    model: ModelFacts, plan: Iterable[PlanLine], sampling: Sampling, left_out: int
) -> ReplyFacts:
    """What is known of a reply when it is asked for; ``left_out`` messages are not sent."""
    return ReplyFacts(
        model_name=model.name,
        template_hash=model.template_hash,
        sampling=sampling,
        on_gpu=any(line.pool.startswith("gpu") for line in plan),
        dropped_messages=left_out,
        notes=model.notes,
    )


def end_state(finished: Finished) -> TurnState:
    """How whole a reply is that ended like this."""
    states = {"stopped": TurnState.STOPPED, "failed": TurnState.FAILED}
    return states.get(finished.stop_reason, TurnState.WHOLE)


def finished_facts(
    facts: ReplyFacts, finished: Finished, before: ReplyFacts | None = None
) -> ReplyFacts:
    """What is kept of a reply that ended: ``facts`` with what the engine measured.

    ``facts.dropped_messages`` were not even sent; what the engine left out comes to them.

    Args:
        before: of a reply that went on, what was kept when it had stopped: its own times come to
            the new ones, and its beginning counts as reply, not as prompt.
    """
    prompt_tokens, resumed = finished.prompt_tokens, finished.resumed_tokens
    timings = finished.timings
    if before is not None and finished.begun_tokens:
        timings = _together(before.timings, timings)
        prompt_tokens = max(0, prompt_tokens - finished.begun_tokens)
        resumed = min(resumed, prompt_tokens)
    return replace(
        facts,
        template_hash=finished.template_hash,
        seed=finished.seed,
        stop_reason=finished.stop_reason,
        prompt_tokens=prompt_tokens,
        resumed_tokens=resumed,
        resumed_from=finished.resumed_from,
        resumed_bytes=finished.resumed_bytes,
        resumed_ms=finished.resumed_ms,
        reason=finished.reason,
        dropped_messages=(facts.dropped_messages or 0) + finished.dropped_messages,
        completion_tokens=len(finished.ids),
        timings=timings,
        notes=tuple(dict.fromkeys((*facts.notes, *finished.notes))),
    )


def _together(before: Timings | None, after: Timings) -> Timings:
    """The times of a reply in two parts; None where either was not measured."""
    if before is None:
        return Timings(queue_ms=after.queue_ms, prefill_ms=after.prefill_ms)
    both = (before.decode_ms or 0.0) + (after.decode_ms or 0.0)
    return Timings(
        queue_ms=before.queue_ms,
        prefill_ms=before.prefill_ms,
        first_token_ms=before.first_token_ms,
        decode_ms=both or None,
    )
