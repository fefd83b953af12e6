"""The records that a chat session tells, and what it makes of the engine's last words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto

from app.chat.conversation import Conversation, ReplyFacts, Turn, TurnState, chat_name
from app.errors import ENGINE_DIED, failure_sentence
from app.link.client import Question
from engine.protocol import Failure, Finished, ModelFacts, PlanLine, Region, Sampling


class ChatState(Enum):
    """What a chat is doing."""

    IDLE = auto()
    SAVING = auto()
    WAITING = auto()
    READING = auto()
    ANSWERING = auto()
    STOPPING = auto()

    @property
    def busy(self) -> bool:
        """Whether a message is on its way or a reply is being written."""
        return self is not ChatState.IDLE


@dataclass(frozen=True, slots=True)
class Growth:
    """Newly generated text of the running reply."""

    region: Region
    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a message was not answered.

    Attributes:
        code: a wire code, or an AppError's.
        detail: for a report.
        recovered: the app has already put it right; the person may just go on.
        unsent: the text of a message that could not be kept.
    """

    code: str
    sentence: str
    detail: str = ""
    recovered: bool = False
    unsent: str | None = None


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


def question_of(conversation: Conversation, user: Turn) -> Question:
    """What the engine is asked where a message of a chat shall be answered."""
    return Question(
        conversation.messages_to(user.id),
        date=conversation.date,
        sibling=conversation.next_sibling(user.id),
        conversation=chat_name(conversation.id),
        may_drop=True,
    )


def end_state(finished: Finished) -> TurnState:
    """How whole a reply is that ended like this."""
    states = {"stopped": TurnState.STOPPED, "failed": TurnState.FAILED}
    return states.get(finished.stop_reason, TurnState.WHOLE)


def finished_facts(facts: ReplyFacts, finished: Finished) -> ReplyFacts:
    """What is kept of a reply that ended: ``facts`` with what the engine measured.

    ``facts.dropped_messages`` were not even sent; what the engine left out comes to them.
    """
    return replace(
        facts,
        template_hash=finished.template_hash,
        seed=finished.seed,
        stop_reason=finished.stop_reason,
        prompt_tokens=finished.prompt_tokens,
        resumed_tokens=finished.resumed_tokens,
        resumed_from=finished.resumed_from,
        resumed_bytes=finished.resumed_bytes,
        resumed_ms=finished.resumed_ms,
        reason=finished.reason,
        dropped_messages=(facts.dropped_messages or 0) + finished.dropped_messages,
        completion_tokens=len(finished.ids),
        timings=finished.timings,
        notes=tuple(dict.fromkeys((*facts.notes, *finished.notes))),
    )


def problem_of(failure: Failure) -> Problem:
    """A failure as a person is told of it."""
    numbers = " ".join(f"{name}={value}" for name, value in failure.numbers.items())
    return Problem(
        failure.code,
        failure_sentence(failure),
        detail=f"{failure.code}: {failure.sentence} {numbers}".strip(),
        recovered=failure.code == ENGINE_DIED,
    )
