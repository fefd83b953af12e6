"""What the engine says, handed to who waits for it.

``Dispatch`` is told by the link's thread of everything that comes and calls the callbacks there;
``PendingRequests`` knows who waits, from any thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from app.errors import ENGINE_DIED
from app.link.deaths.crash_guard import LoadTrack
from app.link.events import (
    LAST_MESSAGES,
    EngineDied,
    EngineEvent,
    EngineFault,
    EngineReady,
    OnEvent,
    OnMessage,
    TiersChanged,
)
from app.link.lives import LifeCallbacks
from app.link.outcome import ProcessOutcome
from engine.protocol import ChatTiers, EngineMessage, Failure, Finished, Loaded, Unloaded, Welcome

Told = TypeVar("Told")
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Waiting:
    """Who waits for a request's messages; ``alarm`` runs once it was asked to stop."""

    on_message: OnMessage
    alarm: threading.Timer | None = None


class PendingRequests:
    """Request ids, counted up from 1, and who waits for each that has not ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 1
        self._waiting: dict[int, Waiting] = {}

    def add(self, on_message: OnMessage) -> int:
        """A new request id with its callback."""
        with self._lock:
            request = self._next
            self._next += 1
            self._waiting[request] = Waiting(on_message)
            return request

    def has(self, request: int) -> bool:
        """Whether the request has not ended."""
        with self._lock:
            return request in self._waiting

    def get(self, request: int) -> OnMessage | None:
        """The callback of a request that goes on."""
        with self._lock:
            there = self._waiting.get(request)
            return None if there is None else there.on_message

    def set_alarm(self, request: int, alarm: threading.Timer) -> bool:
        """Start ``alarm`` for a running request; False when it has one already or has ended."""
        with self._lock:
            there = self._waiting.get(request)
            if there is None or there.alarm is not None:
                return False
            there.alarm = alarm
            alarm.start()
            return True

    def take(self, request: int) -> OnMessage | None:
        """The callback of a request that ends now; None when it has ended."""
        with self._lock:
            there = self._waiting.pop(request, None)
        if there is None:
            return None
        if there.alarm is not None:
            there.alarm.cancel()
        return there.on_message

    def take_all(self) -> tuple[tuple[int, OnMessage], ...]:
        """Every request that has not ended, in order; none is left."""
        with self._lock:
            requests = sorted(self._waiting)
        taken = ((request, self.take(request)) for request in requests)
        return tuple((request, found) for request, found in taken if found is not None)


class Dispatch:
    """Calls the callback that a message or event belongs to. One that raises stops nothing."""

    def __init__(self, pending: PendingRequests, loads: LoadTrack, on_event: OnEvent) -> None:
        self._pending = pending
        self._loads = loads
        self._on_event = on_event

    def callbacks(self) -> LifeCallbacks:
        """What the lives of the engine call."""
        return LifeCallbacks(self._ready, self._message, self._ended, self._died)

    def _ready(self, welcome: Welcome, restarts: int) -> None:
        log.info("engine ready pid=%d device=%s restarts=%d", welcome.pid, welcome.device, restarts)
        reload, held_back = self._loads.take_back()
        self._emit(EngineReady(welcome, restarts, reload, held_back))

    def _message(self, message: EngineMessage) -> str | None:
        if isinstance(message, Welcome):
            return "it said Welcome twice."
        if isinstance(message, ChatTiers):
            self._emit(TiersChanged(message))
            return None
        if message.request is None:
            self._emit(EngineFault(message))
            return None
        self._note(message, message.request)
        last = isinstance(message, LAST_MESSAGES)
        find = self._pending.take if last else self._pending.get
        on_message = find(message.request)
        if on_message is not None:
            self._call(on_message, message)
        return None

    def _ended(self, outcome: ProcessOutcome) -> None:
        log.info("engine ended %s", outcome.detail.partition("\n")[0])
        self._loads.ended(outcome)
        for request, on_message in self._pending.take_all():
            failure = Failure(request=request, code=ENGINE_DIED, sentence=outcome.sentence)
            self._call(on_message, failure)

    def _died(self, outcome: ProcessOutcome, restart_in_s: float | None) -> None:
        self._emit(EngineDied(outcome, restart_in_s))

    def _note(self, message: EngineMessage, request: int) -> None:
        match message:
            case Loaded():
                self._loads.arrived(request)
            case Unloaded():
                self._loads.unloaded()
            case Finished():
                self._loads.finished()
            case Failure():
                self._loads.refused(request)
            case _:
                pass

    def _emit(self, event: EngineEvent) -> None:
        self._call(self._on_event, event)

    def _call(self, callback: Callable[[Told], None], told: Told) -> None:
        try:
            callback(told)
        except Exception:
            # The reader must outlive a faulty callback.
            log.exception("callback failed record=%s", type(told).__name__)
