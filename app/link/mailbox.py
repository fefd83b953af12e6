"""Waiting for answers: a queue between the link's thread and one that may wait.

For the command line, whose main thread has nothing else to do; the window never waits.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TypeVar

from app.errors import ENGINE_DIED, EngineRefused, EngineUnavailable
from app.link.events import LAST_MESSAGES
from engine.protocol import EngineMessage, Failure

POLL_S = 0.2
Answer = TypeVar("Answer")


class Mailbox:
    """The messages of one request, in order. ``put`` is the request's callback.

    Holds at most ``size`` messages; then ``put`` blocks, which is the link's back-pressure. Close
    it when nobody takes any more, or the link's thread would wait for ever.
    """

    def __init__(self, size: int = 1024) -> None:
        self._queue: queue.Queue[EngineMessage] = queue.Queue(size)
        self._closed = threading.Event()

    def put(self, message: EngineMessage) -> None:
        """Take a message, or drop it once closed; called on the link's thread."""
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(message, timeout=POLL_S)
                return

    def close(self) -> None:
        """Take no more messages; what has come can still be read."""
        self._closed.set()

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def messages(self, limit_s: float | None = None) -> Iterator[EngineMessage]:
        """Every message up to and with the last one, as they come.

        Raises:
            EngineUnavailable: nothing came for ``limit_s``.
        """
        while True:
            message = self._next(limit_s)
            yield message
            if isinstance(message, LAST_MESSAGES):
                return

    def answer(self, kind: type[Answer], limit_s: float | None = None) -> Answer:
        """The last message, of the ``kind`` that answers the request.

        Raises:
            EngineRefused: it is a Failure.
            EngineUnavailable: the engine died, nothing came for ``limit_s``, or an answer of
                another kind.
        """
        for message in self.messages(limit_s):
            if isinstance(message, kind):
                return message
            if isinstance(message, Failure):
                raise refusal(message)
        raise EngineUnavailable("The engine answered with something else than was asked for.")

    def _next(self, limit_s: float | None) -> EngineMessage:
        deadline = math.inf if limit_s is None else time.monotonic() + limit_s
        while True:
            left_s = deadline - time.monotonic()
            try:
                # Short waits keep Ctrl+C working on Windows.
                return self._queue.get(timeout=max(0.0, min(POLL_S, left_s)))
            except queue.Empty:
                if left_s <= 0:
                    raise EngineUnavailable(
                        f"The engine did not answer within {limit_s:.0f} seconds."
                    ) from None


def refusal(failure: Failure) -> EngineRefused | EngineUnavailable:
    """A failure as an exception for who waits.

    A death keeps its own sentence: the table's speaks of a restart, and who waits makes none.
    """
    if failure.code == ENGINE_DIED:
        return EngineUnavailable(failure.sentence)
    return EngineRefused(failure)
