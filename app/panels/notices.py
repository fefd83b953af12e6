"""What the card above the composer says: no model, a model that failed, a store that failed."""

from __future__ import annotations

from collections.abc import Callable

from app.chat.blocks.inline_error import Choice, ErrorFacts
from app.library.loaded import ModelPhase, ModelState


def model_notice(
    state: ModelState, choose: Callable[[], None], try_again: Callable[[], None]
) -> ErrorFacts:
    """No model, or one that could not be loaded, and what can be done."""
    if state.phase is ModelPhase.ABSENT:
        return ErrorFacts(
            "There is no model yet",
            "Hearth answers with a model on this computer. Choose a GGUF file, "
            "or run the set-up again to fetch the small starter model.",
            choices=(Choice("Choose a model file", choose),),
            icon="cube",
        )
    name = state.name or "The model"
    return ErrorFacts(
        f"{name} is not loaded",
        state.sentence,
        state.detail,
        (Choice("Try again", try_again), Choice("Choose another file", choose)),
    )


def store_notice(sentence: str, detail: str = "") -> ErrorFacts:
    """Something about the conversations or settings that a person should know."""
    return ErrorFacts("Please note", sentence, detail)
