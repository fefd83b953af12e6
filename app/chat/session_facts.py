"""The records that a chat session tells, and what it makes of the engine's last words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from app.errors import ENGINE_DIED, failure_sentence
from engine.protocol import Failure, Region


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


def problem_of(failure: Failure) -> Problem:
    """A failure as a person is told of it."""
    numbers = " ".join(f"{name}={value}" for name, value in failure.numbers.items())
    return Problem(
        failure.code,
        failure_sentence(failure),
        detail=f"{failure.code}: {failure.sentence} {numbers}".strip(),
        recovered=failure.code == ENGINE_DIED,
    )
