"""What the card above the composer says: no model, one that did not load, a failed store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.chat.blocks.inline_error import Choice, ErrorFacts
from app.errors import MemoryRefusal
from app.library.loaded import ModelPhase, ModelState


class Reloads(Protocol):
    """What the buttons ask of ``LoadedModel``."""

    def try_again(self) -> None:
        """Load it as before."""

    def shorten(self, context_tokens: int) -> None:
        """Load it with a context that fits."""

    def load_anyway(self) -> None:
        """Load it into what is left free for other programs."""


def model_notice(state: ModelState, choose: Callable[[], None], model: Reloads) -> ErrorFacts:
    """Why there is no model, and what can be done; ``choose`` lets a person choose another."""
    name = state.name or "The model"
    if state.phase is ModelPhase.ABSENT:
        return ErrorFacts(
            "There is no model yet",
            "Hearth answers with a model on this computer. Choose a GGUF file, "
            "or run the set-up again to fetch the small starter model.",
            choices=(Choice("Choose a model file", choose),),
            icon="cube",
        )
    if state.phase is ModelPhase.UNLOADED:
        return ErrorFacts(
            f"{name} is not loaded",
            "Its memory was given back. It is loaded again with your next message.",
            choices=(Choice("Load it now", model.try_again),),
            icon="eject",
        )
    if state.refusal is not None:
        return ErrorFacts(
            f"{name} does not fit {_place(state.refusal)}",
            state.sentence,
            state.detail,
            _ways_out(state.refusal, choose, model),
        )
    return ErrorFacts(
        f"{name} is not loaded",
        state.sentence,
        state.detail,
        (Choice("Try again", model.try_again), Choice("Choose another file", choose)),
    )


def store_notice(sentence: str, detail: str = "") -> ErrorFacts:
    """Something about the conversations or settings that a person should know."""
    return ErrorFacts("Please note", sentence, detail)


def context_words(tokens: int) -> str:
    """A context on a button, never more than it is: ``16k``, ``1,536 tokens``."""
    return f"{tokens // 1024}k" if tokens >= 1024 and tokens % 1024 == 0 else f"{tokens:,} tokens"


def _ways_out(
    refusal: MemoryRefusal, choose: Callable[[], None], model: Reloads
) -> tuple[Choice, ...]:
    ways = [Choice("Choose a smaller file", choose)]
    fitting = refusal.fitting_context_tokens
    if fitting:
        words = f"Use {context_words(fitting)} context".replace(" tokens context", "-token context")
        ways.insert(0, Choice(words, lambda: model.shorten(fitting)))
    ways.append(Choice("Load anyway", model.load_anyway, quiet=True))
    return tuple(ways)


def _place(refusal: MemoryRefusal) -> str:
    if refusal.pool.startswith("gpu"):
        return f"on GPU {refusal.pool.removeprefix('gpu')}".rstrip()
    return "on the disk" if refusal.pool == "disk" else "into memory"
