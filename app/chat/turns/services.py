"""What every open chat works with, and what it makes of it for one reply."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.chat.conversation import Conversation
from app.chat.options.record import sampling_of
from app.chat.store_bridge import StoreBridge
from app.chat.turns.asking import Asking, Wanted, begun_facts, question_of
from app.library.loaded import LoadedModel
from app.link.bridge import EngineBridge
from app.link.client import EngineClient
from engine.protocol import ModelFacts, Sampling


@dataclass(frozen=True, slots=True)
class ChatServices:
    """What every session works with; ``sampling`` is what the person set for all chats."""

    store: StoreBridge
    client: EngineClient
    bridge: EngineBridge
    model: LoadedModel
    sampling: Sampling


def asking_of(
    conversation: Conversation, wanted: Wanted, model: ModelFacts, services: ChatServices
) -> Asking:
    """What is asked for a reply to a user message, or for more of one."""
    user = conversation.turns[wanted.asked]
    sampling = sampling_of(conversation.sampling, services.sampling)
    thinking = conversation.thinking if model.can_think else None
    left_out = conversation.left_out(user.id)
    return Asking(
        conversation=conversation.id,
        parent=user.id,
        question=replace(question_of(conversation, user, wanted.goes_on), thinking=thinking),
        sampling=sampling,
        facts=begun_facts(model, services.model.state.plan, sampling, left_out),
        goes_on=wanted.goes_on,
    )
