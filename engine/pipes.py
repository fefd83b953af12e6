"""The engine's two pipe ends: a reader thread that feeds a queue, a writer thread behind another.

Neither end ever blocks the loop for long: what arrives waits in ``Inbox``, what leaves in a bounded
queue; an app that takes nothing for ``STALL_S`` counts as gone. From the moment the app is gone
the engine has ``EXIT_S`` to free everything; then the process ends whatever it does.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.errors import ProtocolError
from engine.protocol import (
    PROTOCOL_VERSION,
    AppMessage,
    EngineMessage,
    FrameReader,
    FrameWriter,
    Hello,
    Welcome,
)

OUTBOX_FRAMES: Final = 4096
STALL_S: Final = 10.0
EXIT_S: Final = 4.0
EXIT_OVERDUE: Final = 4

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message and when its frame was read, on the monotonic clock."""

    message: AppMessage
    at_ns: int


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing more will arrive; ``error`` where the peer broke the protocol."""

    error: ProtocolError | None = None


Inbox = queue.SimpleQueue[Arrived | Gone]


def shake_hands(reader: FrameReader[AppMessage], writer: FrameWriter, welcome: Welcome) -> bool:
    """Read Hello, answer Welcome; False where the app left before it said anything.

    Raises:
        ProtocolError: the first frame is no Hello, or of another version; then Welcome is sent
            all the same, so that the app can say which version it met.
    """
    first = reader.read()
    if first is None:
        return False
    if not isinstance(first, Hello):
        raise ProtocolError(f"The app began with {type(first).__name__} instead of Hello.")
    writer.write(welcome)
    if first.version != PROTOCOL_VERSION:
        raise ProtocolError(
            f"The app speaks version {first.version} of the protocol, "
            f"this engine {PROTOCOL_VERSION}.",
            found=first.version,
            wanted=PROTOCOL_VERSION,
        )
    return True


class Reader:
    """Owns the reader thread, a daemon: a read from a pipe cannot be interrupted."""

    def __init__(
        self, frames: FrameReader[AppMessage], inbox: Inbox, ended: Callable[[], None]
    ) -> None:
        self._frames = frames
        self._inbox = inbox
        self._ended = ended
        self._thread = threading.Thread(target=self._run, name="app-reader", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        error: ProtocolError | None = None
        try:
            while (message := self._frames.read()) is not None:
                self._inbox.put(Arrived(message, time.monotonic_ns()))
        except ProtocolError as found:
            error = found
        except (OSError, ValueError):
            _LOG.info("pipe broken direction=in")
        self._ended()
        self._inbox.put(Gone(error))


class Outbox:
    """Owns the writer thread and the frames that wait for it."""

    def __init__(
        self,
        frames: FrameWriter,
        inbox: Inbox,
        frame_limit: int = OUTBOX_FRAMES,
        stall_s: float = STALL_S,
    ) -> None:
        self._frames = frames
        self._inbox = inbox
        self._queue: queue.Queue[EngineMessage | None] = queue.Queue(frame_limit)
        self._stall_s = stall_s
        self._broken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="app-writer", daemon=True)
        self._thread.start()

    def send(self, message: EngineMessage) -> None:
        """Queue a frame; where the app is gone it is dropped and the loop hears Gone."""
        if self._broken.is_set():
            return
        try:
            self._queue.put(message, timeout=self._stall_s)
        except queue.Full:
            _LOG.info("app stalled waited_s=%.1f", self._stall_s)
            self._break()

    def close(self, limit_s: float = 1.0) -> None:
        """Write what waits, for at most about ``limit_s``, and end the thread."""
        try:
            self._queue.put(None, timeout=limit_s)
        except queue.Full:
            return
        self._thread.join(limit_s)

    def _run(self) -> None:
        while (message := self._queue.get()) is not None:
            if self._broken.is_set():
                continue
            try:
                self._frames.write(message)
            except ProtocolError as error:
                _LOG.error("frame not sent reason=%s", error.sentence)
            except (OSError, ValueError):
                _LOG.info("pipe broken direction=out")
                self._break()

    def _break(self) -> None:
        self._broken.set()
        self._inbox.put(Gone())


class ExitAlarm:
    """Ends the process when freeing everything takes longer than it may.

    Owns a daemon timer from ``start`` to ``cancel``; both may be repeated, from any thread.
    """

    def __init__(self, limit_s: float = EXIT_S) -> None:
        self._timer = threading.Timer(limit_s, self._overdue)
        self._timer.daemon = True
        self._limit_s = limit_s
        self._once = threading.Lock()

    def start(self) -> None:
        """The app is gone: from now on the clock runs."""
        if self._once.acquire(blocking=False):
            self._timer.start()

    def cancel(self) -> None:
        """Everything is free."""
        self._once.acquire(blocking=False)
        self._timer.cancel()

    def _overdue(self) -> None:
        _LOG.error("exit overdue limit_s=%.1f", self._limit_s)
        os._exit(EXIT_OVERDUE)
