"""A conversation as a tree of turns: edits and regenerations are siblings. Pure.

Every turn but the first has a parent; the turns of one parent are siblings in the order they were
made. The shown path runs from a first turn to the leaf. A ``Conversation`` is never changed: each
operation returns a new one that shares the turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from app.settings.sampling import SamplingSettings
from app.text import whole_characters
from engine.protocol import ChatMessage, Role, Sampling, Timings


class TurnState(Enum):
    """How far a turn is.

    ``WHOLE``: all of it is there. ``STREAMING``: a reply that is being written. ``STOPPED``: the
    person stopped it. ``CUT``: the app ended while it was written. ``FAILED``: the engine failed.
    """

    WHOLE = "whole"
    STREAMING = "streaming"
    STOPPED = "stopped"
    CUT = "cut"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ReplyContent:
    """What has come of a reply: text, thinking and the exact ids behind both."""

    text: str = ""
    thinking_text: str = ""
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyFacts:
    """How a reply came to be; None where that is not known (yet).

    Attributes:
        model_name: the checkpoint's name; ``model_digest`` tells files of one name apart.
        sampling: as it was asked for, not as the checkpoint completed it.
        seed: the seed that was drawn with, whoever chose it.
        stop_reason: a StopReason of the protocol.
        resumed_tokens: of the prompt that came from a kept state; ``resumed_from`` is its Tier,
            ``resumed_bytes`` were read in ``resumed_ms``; ``on_gpu`` says what the device was.
        reason: the engine's word for why so little was resumed; None where it was not little.
        dropped_messages: the oldest ones of the path to this reply, without the system message,
            that the model did not see.
        problem: the sentence of a failure.
        thinking_ms: from the first thought to the last; ``thinking_tokens`` were thought.
    """

    model_name: str = ""
    model_digest: str | None = None
    template_hash: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    seed: int | None = None
    stop_reason: str | None = None
    prompt_tokens: int | None = None
    resumed_tokens: int | None = None
    resumed_from: str | None = None
    resumed_bytes: int | None = None
    resumed_ms: float | None = None
    on_gpu: bool | None = None
    reason: str | None = None
    dropped_messages: int | None = None
    completion_tokens: int | None = None
    timings: Timings | None = None
    problem: str | None = None
    thinking_ms: float | None = None
    thinking_tokens: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation.

    Attributes:
        id: the store's number, unique over all conversations.
        parent: the turn before it, None for a first one.
        sibling: its place among the turns of the same parent, from 0.
        text: never None; a reply that was stopped before its first word has "".
        ids: the exact ids of a reply as they were generated.
        created_ms: milliseconds since 1970, UTC.
        reply: facts of an assistant's turn, None for others.
    """

    id: int
    parent: int | None
    sibling: int
    role: Role
    text: str
    created_ms: int
    state: TurnState = TurnState.WHOLE
    thinking_text: str = ""
    ids: tuple[int, ...] = ()
    reply: ReplyFacts | None = None


@dataclass(frozen=True, slots=True)
class Scroll:
    """Where a chat was read: ``share`` of ``turn``'s height above the window."""

    turn: int
    share: float


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns of one conversation and which path of them is shown.

    Attributes:
        system: the system prompt; None leaves it to the template, "" is an empty one.
        date: ISO date of the first message, what templates see as today; None before it.
        leaf: the last turn of the shown path, None while there is none.
        preset: the name of the preset it began with or was given.
        sampling: how replies are drawn here, where that is not as everywhere.
        thinking: whether the model thinks before a reply, None as it likes.
    """

    id: int
    title: str
    created_ms: int
    updated_ms: int
    system: str | None = None
    date: str | None = None
    model: str | None = None
    leaf: int | None = None
    preset: str | None = None
    sampling: SamplingSettings | None = None
    thinking: bool | None = None
    turns: Mapping[int, Turn] = field(default_factory=lambda: MappingProxyType({}))

    def path(self) -> tuple[Turn, ...]:
        """The shown turns, first one first."""
        return self.path_to(self.leaf)

    def path_to(self, turn: int | None) -> tuple[Turn, ...]:
        """The turns from a first one to ``turn``."""
        found: list[Turn] = []
        while turn is not None:
            found.append(self.turns[turn])
            turn = found[-1].parent
        return tuple(reversed(found))

    def children(self, parent: int | None) -> tuple[Turn, ...]:
        """The turns that follow ``parent``, oldest first."""
        found = (turn for turn in self.turns.values() if turn.parent == parent)
        return tuple(sorted(found, key=lambda turn: turn.sibling))

    def siblings(self, turn: int) -> tuple[Turn, ...]:
        """The versions of ``turn``, itself included, oldest first."""
        return self.children(self.turns[turn].parent)

    def next_sibling(self, parent: int | None) -> int:
        """The number that the next turn after ``parent`` will have."""
        return max((turn.sibling for turn in self.children(parent)), default=-1) + 1

    def newest_leaf(self, turn: int) -> int:
        """The end of the path that goes on from ``turn`` by the newest version each time."""
        newest: dict[int | None, Turn] = {}
        for found in self.turns.values():
            if found.parent not in newest or newest[found.parent].sibling < found.sibling:
                newest[found.parent] = found
        while turn in newest:
            turn = newest[turn].id
        return turn

    def showing(self, turn: int) -> Conversation:
        """The same conversation with the path that goes through ``turn``."""
        return replace(self, leaf=self.newest_leaf(turn))

    def with_turn(self, turn: Turn) -> Conversation:
        """The conversation with ``turn`` added or replaced; a new one becomes the leaf."""
        leaf = self.leaf if turn.id in self.turns else turn.id
        return replace(self, leaf=leaf, turns=MappingProxyType({**self.turns, turn.id: turn}))

    def begins_with(self, reply: Turn) -> bool:
        """Whether ``reply`` answers a first message."""
        return reply.parent is not None and self.turns[reply.parent].parent is None

    def left_out(self, turn: int | None) -> int:
        """How many messages of the path to ``turn``, the oldest ones, no model sees any more."""
        replies = (found.reply for found in self.path_to(turn))
        return max((r.dropped_messages or 0 for r in replies if r is not None), default=0)

    def first_seen(self, turn: int | None) -> int | None:
        """The turn of the path to ``turn`` before which messages are left out; None for none."""
        kept = self._kept(turn)
        return kept[0][0].id if kept and kept[0][0].parent is not None else None

    def messages_to(self, turn: int | None) -> tuple[ChatMessage, ...]:
        """What is sent to the engine for a reply that follows ``turn``.

        The roles alternate, as templates demand: a reply without text is sent as an empty one,
        and messages that were never replied to are sent as one, a blank line between them. What
        no longer fitted once is not sent again.
        """
        kept = self._kept(turn)
        system = () if self.system is None else (ChatMessage(role="system", text=self.system),)
        return (*system, *map(_message, kept))

    def _kept(self, turn: int | None) -> list[tuple[Turn, ...]]:
        """The turns of each message that is sent; the last one always is."""
        messages = _messages(self.path_to(turn))
        return messages[min(self.left_out(turn), len(messages) - 1) :] if messages else []


def chat_name(conversation: int) -> str:
    """The name under which the engine knows a conversation, and keeps its states."""
    return str(conversation)


def chat_of(name: str) -> int | None:
    """The conversation that the engine calls ``name``; None where it is no name of ours."""
    return int(name) if name.isascii() and name.isdigit() else None


def last_reply(conversation: Conversation) -> Turn | None:
    """The last reply of the shown path."""
    replies = (turn for turn in reversed(conversation.path()) if turn.role == "assistant")
    return next(replies, None)


def with_turns(conversation: Conversation, turns: Iterable[Turn]) -> Conversation:
    """The conversation with exactly these turns."""
    return replace(conversation, turns=MappingProxyType({turn.id: turn for turn in turns}))


def _messages(path: Iterable[Turn]) -> list[tuple[Turn, ...]]:
    """The turns of a path by the message that they are sent as."""
    found: list[tuple[Turn, ...]] = []
    for turn in path:
        if turn.role == "user" and found and found[-1][-1].role == "user":
            found[-1] = (*found[-1], turn)
        else:
            found.append((turn,))
    return found


def _message(turns: tuple[Turn, ...]) -> ChatMessage:
    first = turns[0]
    template_hash = first.reply.template_hash if first.reply is not None else None
    return ChatMessage(
        role=first.role,
        text=whole_characters("\n\n".join(turn.text for turn in turns)),
        ids=first.ids if template_hash is not None else (),
        template_hash=template_hash,
    )
