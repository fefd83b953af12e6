"""What can be asked of the engine besides loading and generating: counts, memory, kept states.

``EngineRequests`` knows how a request gets its id and its frame; ``EngineClient`` builds on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from app.errors import AppError, EngineUnavailable, RequestTooLarge
from app.link.deaths.crash_guard import LoadTrack
from app.link.dispatch import PendingRequests
from app.link.events import OnMessage
from engine.protocol import (
    MAX_FRAME_BYTES,
    AppMessage,
    AskMemory,
    AskStates,
    ClearStates,
    CountTokens,
    Inspect,
    KnownChats,
    OpenChats,
    PinStates,
    Settle,
)

FRAME_OVERHEAD_BYTES: Final = 16


class EngineRequests:
    """Requests that any thread may make; none waits.

    Those with ``on_message`` get an answer or a Failure; they raise EngineUnavailable when no
    engine is connected and RequestTooLarge above a frame.
    """

    def __init__(
        self, pending: PendingRequests, loads: LoadTrack, send: Callable[[AppMessage], None]
    ) -> None:
        self._pending = pending
        self._loads = loads
        self._send_frame = send

    def inspect(self, paths: tuple[str, ...], *, on_message: OnMessage) -> int:
        """Ask what checkpoint files are: Inspected or Failure."""
        request = self._pending.add(on_message)
        return self._send(request, Inspect(request=request, paths=paths))

    def count_tokens(self, text: str, *, on_message: OnMessage) -> int:
        """Ask how many tokens a text takes: Counted or Failure."""
        request = self._pending.add(on_message)
        return self._send(request, CountTokens(request=request, text=text))

    def memory(self, *, on_message: OnMessage) -> int:
        """Ask for the pools as they stand: MemoryFacts."""
        request = self._pending.add(on_message)
        return self._send(request, AskMemory(request=request))

    # Kept states --------------------------------------------------------------------------------

    def open_chats(self, conversations: Iterable[str]) -> None:
        """Say which conversations are open; nothing happens while no engine is connected."""
        with contextlib.suppress(EngineUnavailable):
            self._send_frame(OpenChats(conversations=tuple(conversations)))

    def known_chats(self, conversations: Iterable[str]) -> None:
        """Say which conversations exist; nothing happens while no engine is connected."""
        with contextlib.suppress(EngineUnavailable):
            self._send_frame(KnownChats(conversations=tuple(conversations)))

    def states(self, *, on_message: OnMessage) -> int:
        """Ask what is kept of every conversation: StatesKept."""
        request = self._pending.add(on_message)
        return self._send(request, AskStates(request=request))

    def pin_states(self, conversation: str, pinned: bool, *, on_message: OnMessage) -> int:
        """Hold a conversation's states back from eviction, or no more: StatesKept."""
        request = self._pending.add(on_message)
        message = PinStates(request=request, conversation=conversation, pinned=pinned)
        return self._send(request, message)

    def clear_states(self, conversations: Iterable[str] | None, *, on_message: OnMessage) -> int:
        """Delete the states of conversations, None of all: StatesKept."""
        request = self._pending.add(on_message)
        chats = None if conversations is None else tuple(conversations)
        return self._send(request, ClearStates(request=request, conversations=chats))

    def settle(self, most_ms: float, *, on_message: OnMessage) -> int:
        """Ask to be told when background work has ended, at most so long: Settled."""
        request = self._pending.add(on_message)
        return self._send(request, Settle(request=request, most_ms=most_ms))

    def _send(self, request: int, message: AppMessage) -> int:
        size = len(msgspec.msgpack.encode(message))
        try:
            if size > MAX_FRAME_BYTES - FRAME_OVERHEAD_BYTES:
                raise RequestTooLarge(
                    f"The conversation is {size:,} bytes long; {MAX_FRAME_BYTES:,} can be sent."
                )
            self._send_frame(message)
        except AppError:
            self._pending.take(request)
            self._loads.withdrawn(request)
            raise
        return request
