"""Kept states as the app sees them: which chats are open, what is kept of each, pins, deletions.

Owns nothing: what lies on disk is the library's. Used from the engine thread only.
"""

from __future__ import annotations

from engine.protocol import (
    AskStates,
    ClearStates,
    KnownChats,
    OpenChats,
    PinStates,
    StatesKept,
)
from engine.states.border import StateLibrary

AboutStates = OpenChats | KnownChats | AskStates | PinStates | ClearStates


class KeptStates:
    """Answers for the library.

    Args:
        library: None where nothing is kept beyond the process.
    """

    def __init__(self, library: StateLibrary | None) -> None:
        self._library = library

    def answer(self, message: AboutStates) -> StatesKept | None:
        """Do what a message asks for; None where it is not answered."""
        library = self._library
        if library is not None:
            match message:
                case OpenChats(conversations=conversations):
                    library.set_open(conversations)
                case KnownChats(conversations=conversations):
                    library.sweep(conversations)
                case PinStates(conversation=conversation, pinned=pinned):
                    library.pin(conversation, pinned=pinned)
                case ClearStates(conversations=chosen):
                    library.clear(chosen)
                case AskStates():
                    pass
        if isinstance(message, OpenChats | KnownChats):
            return None
        return self._facts(message.request)

    def _facts(self, request: int) -> StatesKept:
        if self._library is None:
            return StatesKept(
                request=request, states=(), disk_bytes=0, quota_bytes=0, disk_free_bytes=0
            )
        usage = self._library.usage()
        return StatesKept(
            request=request,
            states=self._library.facts(),
            disk_bytes=usage.disk_bytes,
            quota_bytes=usage.quota_bytes,
            disk_free_bytes=usage.free_bytes,
            shared_bytes=usage.shared_bytes,
        )
