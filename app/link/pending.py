"""The requests that wait for their last message: ids and callbacks, from any thread."""

from __future__ import annotations

import threading

from app.link.events import OnMessage


class PendingRequests:
    """Request ids, counted up from 1, and the callback of each that has not ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 1
        self._callbacks: dict[int, OnMessage] = {}

    def add(self, on_message: OnMessage) -> int:
        """A new request id with its callback."""
        with self._lock:
            request = self._next
            self._next += 1
            self._callbacks[request] = on_message
            return request

    def has(self, request: int) -> bool:
        """Whether the request has not ended."""
        with self._lock:
            return request in self._callbacks

    def get(self, request: int) -> OnMessage | None:
        """The callback of a request that goes on."""
        with self._lock:
            return self._callbacks.get(request)

    def take(self, request: int) -> OnMessage | None:
        """The callback of a request that ends now; None when it has ended."""
        with self._lock:
            return self._callbacks.pop(request, None)

    def take_all(self) -> tuple[tuple[int, OnMessage], ...]:
        """Every request that has not ended, in order; none is left."""
        with self._lock:
            taken = tuple(sorted(self._callbacks.items()))
            self._callbacks.clear()
            return taken
