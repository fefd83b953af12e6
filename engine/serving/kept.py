"""Kept states as the app sees them: which chats are open, what is kept of each, pins, deletions.

What lies on disk is the library's, there with or without a loaded model; what a loaded model holds
in its own memory is its store's. Used from the engine thread only.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.protocol import (
    AskStates,
    ClearStates,
    KnownChats,
    OpenChats,
    PinStates,
    StateFacts,
    StatesKept,
)
from engine.serving.rounds import Serving
from engine.states.border import StateLibrary

AboutStates = OpenChats | KnownChats | AskStates | PinStates | ClearStates


class KeptStates:
    """Answers for the library and the loaded model together; owns neither.

    Args:
        library: None where nothing is kept beyond the process.
    """

    def __init__(self, library: StateLibrary | None) -> None:
        self._library = library
        self._serving: Serving | None = None
        self._open: tuple[str, ...] = ()

    def attach(self, serving: Serving | None) -> None:
        """Another model is loaded, or none."""
        self._serving = serving
        if serving is not None:
            serving.states.set_open(self._open)

    def answer(self, message: AboutStates) -> StatesKept | None:
        """Do what a message asks for; None where it is not answered."""
        match message:
            case OpenChats(conversations=conversations):
                self._set_open(conversations)
                return None
            case KnownChats(conversations=conversations):
                self._sweep(conversations)
                return None
            case PinStates(conversation=conversation, pinned=pinned):
                self._pin(conversation, pinned)
            case ClearStates(conversations=chosen):
                self._clear(chosen)
            case AskStates():
                pass
        return self._kept(message.request)

    def _set_open(self, conversations: tuple[str, ...]) -> None:
        self._open = conversations
        if self._library is not None:
            self._library.set_open(conversations)
        if self._serving is not None:
            self._serving.states.set_open(conversations)

    def _sweep(self, known: Iterable[str]) -> None:
        names = frozenset(known)
        if self._library is not None:
            self._library.sweep(names)
        if self._serving is not None:
            held = {facts.conversation for facts in self._serving.states.facts()}
            gone = tuple(name for name in held - names if name is not None)
            if gone:
                self._serving.forget(gone)

    def _pin(self, conversation: str, pinned: bool) -> None:
        if self._library is not None:
            self._library.pin(conversation, pinned=pinned)
        if self._serving is not None:
            self._serving.states.pin(conversation, pinned=pinned)

    def _clear(self, conversations: tuple[str, ...] | None) -> None:
        if self._serving is not None:
            self._serving.forget(conversations)
        if self._library is not None:
            self._library.clear(conversations)

    def _facts(self) -> tuple[StateFacts, ...]:
        below = () if self._library is None else self._library.facts()
        return below if self._serving is None else self._serving.states.facts(below)

    def _kept(self, request: int) -> StatesKept:
        if self._library is None:
            return StatesKept(
                request=request,
                states=self._facts(),
                disk_bytes=0,
                quota_bytes=0,
                disk_free_bytes=0,
            )
        states, usage = self._facts(), self._library.usage()
        return StatesKept(
            request=request,
            states=states,
            disk_bytes=usage.disk_bytes,
            quota_bytes=usage.quota_bytes,
            disk_free_bytes=usage.free_bytes,
            shared_bytes=usage.shared_bytes,
        )
