"""What the app tells the engine. ``Hello`` comes first."""

from __future__ import annotations

from typing import Annotated

import msgspec

from engine.protocol.parts import (
    ChatMessage,
    Count,
    GpuFacts,
    KvWish,
    Message,
    Milliseconds,
    Purpose,
    Sampling,
    Tool,
)


class Hello(Message, frozen=True, kw_only=True):
    """The app's first message."""

    version: int
    app: str


class Load(Message, frozen=True, kw_only=True):
    """Load a checkpoint, replacing the one that is loaded. Answered by Loaded or Failure.

    Attributes:
        context_tokens: None lets the planner choose.
        streams: chats at once.
        kv: whether K and V may, or shall, be kept in 8 bits.
        spends_headroom: load although it takes what is left free for other programs.
    """

    request: Count
    path: str
    context_tokens: int | None = None
    streams: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    kv: KvWish = "full"
    spends_headroom: bool = False


class Unload(Message, frozen=True, kw_only=True):
    """Give the loaded checkpoint's memory back. Answered by Unloaded."""

    request: Count


class Plan(Message, frozen=True, kw_only=True):
    """Ask what loading would take. Answered by Planned or Failure.

    Attributes:
        path: of a file or folder, or the name of a repository on the hub.
        gpu: plan for this one instead of the machine's.
    """

    request: Count
    path: str
    context_tokens: int | None = None
    streams: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    kv: KvWish = "full"
    gpu: GpuFacts | None = None


class Generate(Message, frozen=True, kw_only=True):
    """Generate a reply to ``messages``, or a continuation of ``raw`` without any template.

    ``date`` (ISO, of the conversation's first message) is what a template sees as today;
    ``sibling`` numbers the replies to one message, so that a regenerated one differs.

    Attributes:
        conversation: the chat it belongs to, under whose name states are kept; None keeps none.
        purpose: "side" is work beside a chat, such as its title: it waits for every chat, and
            neither keeps a state nor displaces one.
        may_drop: whether the oldest turns may be left out where the context is full.
        begun: the beginning of the reply, which goes on after it as if it had never ended.
    """

    request: Count
    messages: tuple[ChatMessage, ...] = ()
    raw: str | None = None
    sampling: Sampling = Sampling()
    date: str | None = None
    sibling: Count = 0
    thinking: bool | None = None
    tools: tuple[Tool, ...] = ()
    conversation: str | None = None
    purpose: Purpose = "chat"
    may_drop: bool = False
    begun: ChatMessage | None = None


class Cancel(Message, frozen=True, kw_only=True):
    """Stop a generation; its Finished says "stopped". Unknown requests are ignored."""

    request: Count


class Inspect(Message, frozen=True, kw_only=True):
    """Ask what checkpoint files are, loading none. Answered by Inspected, one entry a path."""

    request: Count
    paths: tuple[str, ...]


class CountTokens(Message, frozen=True, kw_only=True):
    """Ask how many tokens a text takes with the loaded checkpoint. Answered by Counted."""

    request: Count
    text: str


class AskMemory(Message, frozen=True, kw_only=True):
    """Ask for MemoryFacts."""

    request: Count


class OpenChats(Message, frozen=True, kw_only=True):
    """Which conversations are open in a window: their states go last. Not answered."""

    conversations: tuple[str, ...]


class KnownChats(Message, frozen=True, kw_only=True):
    """Every conversation that exists; states of all others are swept. Not answered."""

    conversations: tuple[str, ...]


class AskStates(Message, frozen=True, kw_only=True):
    """Ask for StatesKept."""

    request: Count


class PinStates(Message, frozen=True, kw_only=True):
    """Hold a conversation's states back from eviction, or no more. Answered by StatesKept."""

    request: Count
    conversation: str
    pinned: bool


class ClearStates(Message, frozen=True, kw_only=True):
    """Delete the states of conversations, None of all. Answered by StatesKept."""

    request: Count
    conversations: tuple[str, ...] | None


class Settle(Message, frozen=True, kw_only=True):
    """Ask to be told when background work has ended, at most so long. Answered by Settled."""

    request: Count
    most_ms: Milliseconds


class Shutdown(Message, frozen=True, kw_only=True):
    """Stop what runs, free everything and exit with code 0."""


AppMessage = (
    Hello
    | Load
    | Unload
    | Plan
    | Inspect
    | Generate
    | Cancel
    | CountTokens
    | AskMemory
    | OpenChats
    | KnownChats
    | AskStates
    | PinStates
    | ClearStates
    | Settle
    | Shutdown
)
