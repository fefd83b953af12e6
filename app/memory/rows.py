"""The kept chats as rows of a table: from where each goes on, its length and its size. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from app.memory.words import counted, disk_size, last_used, memory_size, seconds
from engine.protocol import StateFacts, Tier

SHARED: Final = "Common beginnings"
DELETED: Final = "A deleted chat"
RANKS: Final[Mapping[Tier, int]] = MappingProxyType({"device": 0, "host": 1, "disk": 2, "none": 3})


class Column(Enum):
    """By what the table can be sorted."""

    WHERE = auto()
    CHAT = auto()
    TOKENS = auto()
    SIZE = auto()
    MODEL = auto()
    USED = auto()


@dataclass(frozen=True, slots=True)
class KnownChat:
    """One conversation as the app knows it.

    Attributes:
        chat: its id in the app; ``conversation`` is its name at the engine.
        used_s: when it was last used, seconds since 1970.
        tokens: how long it is; 0 where that is not known.
        read_s: how long reading it again would take; None where that is not known.
    """

    chat: int
    conversation: str
    title: str
    used_s: float
    tokens: int = 0
    read_s: float | None = None


@dataclass(frozen=True, slots=True)
class KeptRow:
    """One row: texts as they are shown, and the amounts behind them.

    Attributes:
        chat: None for what belongs to no conversation that the app knows.
        conversation: the name at the engine; None for common beginnings.
        kept: whether there is something that can be pinned or deleted.
        note: said instead of figures, for a chat that is only text.
        amounts: tokens, bytes and seconds since 1970, to sort by.
    """

    chat: int | None
    conversation: str | None
    tier: Tier
    where: str
    title: str
    tokens: str
    size: str
    model: str
    used: str
    kept: bool
    pinned: bool = False
    answering: bool = False
    note: str = ""
    amounts: tuple[int, int, float] = (0, 0, 0.0)

    @property
    def key(self) -> tuple[str | None, str]:
        """What stays the same while the row changes: the conversation and its model."""
        return self.conversation, self.model if self.kept else ""


@dataclass(frozen=True, slots=True)
class Moment:
    """What the rows depend on besides the states.

    Attributes:
        now_s: seconds since 1970.
        gpu: whether the quickest tier is on a GPU; else it is RAM.
        answering: chats with a running reply.
        names: what the window calls models, by the names that they have at the engine.
    """

    now_s: float
    gpu: bool = False
    answering: frozenset[int] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)


def where_words(tier: Tier, *, gpu: bool) -> str:
    """Where a state lies: "On the GPU", "In RAM", "On disk"; RAM is "In memory" without a GPU."""
    match tier:
        case "device":
            return "On the GPU" if gpu else "In memory"
        case "host":
            return "In RAM" if gpu else "In memory"
        case "disk":
            return "On disk"
        case "none":
            return "Text only"


def resume_words(tier: Tier, *, gpu: bool) -> str:
    """What a person gains from it, as the tooltip of a dot says."""
    match tier:
        case "device":
            return f"Resumes at once from {'the GPU' if gpu else 'memory'}"
        case "host":
            return "Resumes from RAM in a moment"
        case "disk":
            return "Resumes from disk after a short read"
        case "none":
            return "Text only: read again once"


def kept_rows(
    states: Iterable[StateFacts], chats: Iterable[KnownChat], moment: Moment
) -> tuple[KeptRow, ...]:
    """A row for each kept conversation and model, and one for each chat that is only text."""
    known = {chat.conversation: chat for chat in chats}
    rows = [_kept_row(state, known, moment) for state in states]
    there = {row.conversation for row in rows}
    rows.extend(_text_row(c, moment) for c in known.values() if c.conversation not in there)
    return tuple(rows)


def sorted_rows(
    rows: Iterable[KeptRow], column: Column = Column.WHERE, *, falling: bool = False
) -> tuple[KeptRow, ...]:
    """The rows by one column; what is equal there stands with the last used first."""
    recent = sorted(rows, key=lambda row: -row.amounts[2])
    return tuple(sorted(recent, key=_SORT_KEYS[column], reverse=falling))


def filtered_rows(rows: Iterable[KeptRow], wanted: str) -> tuple[KeptRow, ...]:
    """The rows that have every word of ``wanted`` in title, model or place."""
    words = wanted.casefold().split()
    return tuple(
        row
        for row in rows
        if all(word in f"{row.title} {row.model} {row.where}".casefold() for word in words)
    )


def count_words(rows: Iterable[KeptRow]) -> str:
    """How much is kept: "9 chats, read once and kept"."""
    kept = {row.conversation for row in rows if row.kept and row.conversation is not None}
    return f"{counted(len(kept), 'chat')}, read once and kept" if kept else ""


def delete_question(row: KeptRow) -> str:
    """What deleting costs, said before it is done."""
    tokens = row.amounts[0]
    return (
        "The text of the chat stays. The next reply reads "
        f"{counted(tokens, 'token') if tokens else 'the whole chat'} again, once."
    )


def _kept_row(state: StateFacts, known: Mapping[str, KnownChat], moment: Moment) -> KeptRow:
    chat = known.get(state.conversation) if state.conversation is not None else None
    answering = chat is not None and chat.chat in moment.answering
    lowest = disk_size if state.tier == "disk" else memory_size
    return KeptRow(
        chat=chat.chat if chat is not None else None,
        conversation=state.conversation,
        tier=state.tier,
        where=where_words(state.tier, gpu=moment.gpu),
        title=chat.title if chat is not None else SHARED if state.conversation is None else DELETED,
        tokens=f"{state.tokens:,}",
        size=lowest(state.bytes),
        model=moment.names.get(state.model, state.model),
        used="answering" if answering else last_used(state.used_s, moment.now_s),
        kept=True,
        pinned=state.pinned,
        answering=answering,
        amounts=(state.tokens, state.bytes, moment.now_s if answering else state.used_s),
    )


def _text_row(chat: KnownChat, moment: Moment) -> KeptRow:
    answering = chat.chat in moment.answering
    note = f"{chat.tokens:,} tokens" if chat.tokens else ""
    if note and chat.read_s is not None:
        note += f", read again once in about {seconds(chat.read_s)}"
    return KeptRow(
        chat=chat.chat,
        conversation=chat.conversation,
        tier="none",
        where=where_words("none", gpu=moment.gpu),
        title=chat.title,
        tokens="",
        size="",
        model="",
        used="answering" if answering else last_used(chat.used_s, moment.now_s),
        kept=False,
        answering=answering,
        note=note,
        amounts=(chat.tokens, 0, moment.now_s if answering else chat.used_s),
    )


_SORT_KEYS: Final[Mapping[Column, Callable[[KeptRow], tuple[int | float | str, ...]]]] = (
    MappingProxyType(
        {
            Column.WHERE: lambda row: (RANKS[row.tier],),
            Column.CHAT: lambda row: (row.title.casefold(),),
            Column.TOKENS: lambda row: (-row.amounts[0],),
            Column.SIZE: lambda row: (-row.amounts[1],),
            Column.MODEL: lambda row: (row.model == "", row.model.casefold()),
            Column.USED: lambda row: (-row.amounts[2],),
        }
    )
)
