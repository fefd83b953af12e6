"""What the link tells about the engine itself, apart from the answers to requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.link.outcome import ProcessOutcome
from engine.protocol import (
    ChatTiers,
    Counted,
    EngineMessage,
    Failure,
    Finished,
    Inspected,
    KvWish,
    Loaded,
    MemoryFacts,
    Planned,
    Settled,
    StatesKept,
    Unloaded,
    Welcome,
)


@dataclass(frozen=True, slots=True)
class LoadWish:
    """How a checkpoint shall be loaded, or planned for.

    Attributes:
        context_tokens: None leaves it to the planner.
        streams: chats at once.
        kv: whether K and V may, or shall, be kept in 8 bits.
        spends_headroom: load although it takes what is left free for other programs.
    """

    context_tokens: int | None = None
    streams: int = 4
    kv: KvWish = "full"
    spends_headroom: bool = False


@dataclass(frozen=True, slots=True)
class LoadChoice:
    """A checkpoint as it was loaded last."""

    path: str
    wish: LoadWish = LoadWish()


@dataclass(frozen=True, slots=True)
class EngineReady:
    """An engine is connected and takes requests; nothing is loaded in it.

    Attributes:
        restarts: 0 for the first engine of this client.
        reload: what was loaded when the engine before died and should be loaded again.
        held_back: what was loaded then but stopped the engine twice; only a person loads it again.
    """

    welcome: Welcome
    restarts: int
    reload: LoadChoice | None = None
    held_back: LoadChoice | None = None


@dataclass(frozen=True, slots=True)
class EngineDied:
    """The engine ended; every running request has had its Failure.

    Attributes:
        restart_in_s: when the next start comes; None when none comes by itself.
    """

    outcome: ProcessOutcome
    restart_in_s: float | None


@dataclass(frozen=True, slots=True)
class EngineFault:
    """The engine reports a failure that belongs to no request."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class TiersChanged:
    """From where the loaded model can resume conversations has changed."""

    tiers: ChatTiers


EngineEvent = EngineReady | EngineDied | EngineFault | TiersChanged
OnEvent = Callable[[EngineEvent], None]
OnMessage = Callable[[EngineMessage], None]

LAST_MESSAGES = (
    Loaded,
    Unloaded,
    Planned,
    Finished,
    Counted,
    MemoryFacts,
    StatesKept,
    Settled,
    Inspected,
    Failure,
)
"""The kinds of message after which a request has ended."""
