"""A loaded model: everything that one checkpoint holds in memory, and its end.

Owns the resources through one exit stack, closed in the reverse order of their making. Used from
the engine thread only.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from engine.protocol import Finished, Generate, ModelFacts, PlanLine
from engine.serving.admission import Served
from engine.serving.request import ReplyText, Request


class Prompts(Protocol):
    """Turns what the app asks for into tokens; ``engine.loading.prompts`` is the real one."""

    def prepare(
        self, wish: Generate, arrived_ns: int, context_tokens: int | None = None
    ) -> tuple[Request, ReplyText]:
        """A request that is ready to run; raises RequestInvalid or TemplateFailed."""

    def follow_up(self, wish: Generate, finished: Finished) -> Request | None:
        """The prompt with which the turn after a reply begins, None where that cannot be told."""

    def count(self, text: str) -> int:
        """Tokens of a text that a person typed."""

    def close(self) -> None:
        """End what renders templates."""


@dataclass(slots=True, eq=False)
class LoadedModel:
    """One checkpoint in memory."""

    facts: ModelFacts
    plan: tuple[PlanLine, ...]
    served: Served
    prompts: Prompts
    resources: ExitStack

    def close(self) -> None:
        """Release the kept states, then everything else; may be repeated."""
        self.served.states.close()
        self.resources.close()
