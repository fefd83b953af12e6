"""Everything the memory page shows, made of what the engine and the chats told last. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.memory.cards import Card, Part, bar_parts, cards, has_gpu
from app.memory.rows import RANKS, KeptRow, KnownChat, Moment, kept_rows
from engine.protocol import ChatTier, MemoryFacts, StatesKept


@dataclass(frozen=True, slots=True)
class Told:
    """What was told last; None where nothing was, or where it no longer holds.

    Attributes:
        there: whether an engine is connected.
        chats: what the app has, kept or not.
        answering: chats with a running reply.
        names: what the window calls models, by the names that they have at the engine.
    """

    there: bool = False
    memory: MemoryFacts | None = None
    states: StatesKept | None = None
    chats: tuple[KnownChat, ...] = ()
    answering: frozenset[int] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The page: its cards, its rows in no order, and the sidebar's small bar.

    Attributes:
        there: whether an engine is connected; without one there are no figures.
        known: whether it has told what is kept; while it loads a model it answers nothing.
        gpu: whether the quickest tier is on a GPU.
        bar: parts of the first card.
        bar_words: the same in words.
    """

    there: bool = False
    known: bool = False
    gpu: bool = False
    cards: tuple[Card, ...] = ()
    rows: tuple[KeptRow, ...] = ()
    bar: tuple[Part, ...] = ()
    bar_words: str = ""


def memory_view(told: Told, now_s: float) -> MemoryView:
    """The page at the moment ``now_s``, seconds since 1970."""
    if not told.there:
        return MemoryView()
    gpu = has_gpu(told.memory)
    made = cards(told.memory, told.states)
    moment = Moment(now_s, gpu, told.answering, told.names)
    rows = kept_rows(told.states.states, told.chats, moment) if told.states is not None else ()
    bar = bar_parts(told.memory)
    words = f"{made[0].title}: {made[0].used} {made[0].whole} in use" if bar else ""
    known = told.states is not None
    return MemoryView(True, known, gpu, made, rows, bar, words)


def tiers_of(rows: tuple[KeptRow, ...]) -> dict[int, ChatTier]:
    """From where each chat goes on by what is kept of it, whichever model it is for."""
    found: dict[int, ChatTier] = {}
    for row in sorted(rows, key=lambda row: RANKS[row.tier], reverse=True):
        if row.kept and row.chat is not None and row.conversation is not None:
            found[row.chat] = ChatTier(
                conversation=row.conversation, tier=row.tier, tokens=row.amounts[0]
            )
    return found
