"""The fake engine's kept states: a list that is told, pinned and cleared, and nothing behind it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from engine.protocol import (
    AppMessage,
    AskStates,
    ChatTier,
    ChatTiers,
    ClearStates,
    EngineMessage,
    Failure,
    KnownChats,
    OpenChats,
    PinStates,
    Settle,
    Settled,
    StatesKept,
)
from tests.helpers.fake_script import Script


class FakeStates:
    """Answers what concerns kept states, from the script."""

    def __init__(self, script: Script, write: Callable[[EngineMessage], None]) -> None:
        self._script = script
        self._write = write
        self._tiers = {chat.conversation: chat for chat in script.tiers}
        self._states = list(script.states)

    def answer(self, message: AppMessage) -> bool:
        """Answer the message where it is about kept states; whether it was."""
        match message:
            case OpenChats() | KnownChats():
                self.hear(message)
            case AskStates(request=request):
                self._tell_states(request)
            case PinStates(request=request) | ClearStates(request=request) if (
                self._script.states_failure is not None
            ):
                code = self._script.states_failure
                self._write(Failure(request=request, code=code, sentence="It is not allowed."))
            case PinStates(request=request, conversation=chat, pinned=pinned):
                self._pin(chat, pinned)
                self._tell_states(request)
            case ClearStates(request=request, conversations=chats):
                self.hear(message)
                self._clear(chats)
                self._tell_states(request)
            case Settle(request=request, most_ms=most_ms):
                self._settle(request, most_ms)
            case _:
                return False
        return True

    def hear(self, message: AppMessage) -> None:
        """Note a message for the test to read."""
        if self._script.heard is not None:
            with Path(self._script.heard).open("ab") as file:
                file.write(msgspec.json.encode(message) + b"\n")

    def keep(self, conversation: str, tokens: int) -> None:
        """A chat has a state on the device now."""
        self._tiers[conversation] = ChatTier(
            conversation=conversation, tier="device", tokens=tokens
        )
        self.tell_tiers()

    def tell_tiers(self) -> None:
        """Say from where chats can be resumed, if any can."""
        if self._tiers:
            self._write(ChatTiers(chats=tuple(self._tiers.values())))

    def _pin(self, conversation: str, pinned: bool) -> None:
        self._states = [
            msgspec.structs.replace(state, pinned=pinned)
            if state.conversation == conversation
            else state
            for state in self._states
        ]

    def _clear(self, conversations: tuple[str, ...] | None) -> None:
        self._states = [
            state
            for state in self._states
            if conversations is not None and state.conversation not in conversations
        ]

    def _tell_states(self, request: int) -> None:
        kept = self._script.disk_bytes
        if kept is None:
            kept = sum(state.bytes for state in self._states)
        self._write(
            StatesKept(
                request=request,
                states=tuple(self._states),
                disk_bytes=kept,
                quota_bytes=self._script.quota_bytes,
                disk_free_bytes=214_000_000_000,
                shared_bytes=self._script.shared_bytes,
            )
        )

    def _settle(self, request: int, most_ms: float) -> None:
        """Busy for as long as the script says, as after a reply."""
        wished_s, most_s = self._script.settle_s, most_ms / 1000
        time.sleep(min(wished_s, most_s))
        self._write(Settled(request=request, waiting_bytes=1 if wished_s > most_s else 0))
