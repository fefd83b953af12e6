"""One life of the engine as a stream of messages: handshake, a reader, a writer.

Owns one ``EngineProcess`` and the thread that writes to it. Reading happens in the thread that
calls ``open`` and ``read``; ``send`` may be called from any thread and never waits: a queue of
bounded length stands before the pipe.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import Final

from app.errors import EngineUnavailable
from app.link.outcome import ProcessOutcome
from app.link.process import EngineProcess
from engine.protocol import (
    PROTOCOL_VERSION,
    AppMessage,
    EngineMessage,
    FrameReader,
    FrameWriter,
    Hello,
    ProtocolError,
    Shutdown,
    Welcome,
    engine_message_reader,
)

OUTBOX_MESSAGES: Final = 256
EXIT_GRACE_S: Final = 5.0
CRASH_GRACE_S: Final = 2.0


class Connection:
    """Messages to and from one engine process."""

    def __init__(self, process: EngineProcess, app_name: str) -> None:
        self._process = process
        self._app_name = app_name
        self._reader: FrameReader[EngineMessage] | None = None
        self._outbox: queue.Queue[AppMessage | None] = queue.Queue(OUTBOX_MESSAGES)
        self._writer = threading.Thread(target=self._write, name="engine-writer", daemon=True)
        self._ready = False
        self._asked = threading.Event()
        self._alarms: list[threading.Timer] = []
        self._alarm_lock = threading.Lock()
        self._over = False

    @property
    def pid(self) -> int:
        """The engine's pid, 0 when it could not be started."""
        return self._process.pid

    def open(self, limit_s: float) -> Welcome | None:
        """Start the engine and shake hands within ``limit_s``; None when that failed.

        Why it failed is in ``outcome``.
        """
        try:
            self._process.start()
        except OSError as error:
            self._process.kill(f"{error.strerror or error}.")
            return None
        self._reader = engine_message_reader(self._process.replies)
        self._writer.start()
        self._outbox.put(Hello(version=PROTOCOL_VERSION, app=self._app_name))
        alarm = self._alarm(limit_s, f"it did not answer within {limit_s:.0f} seconds.")
        try:
            first = self.read()
        finally:
            alarm.cancel()
        return self._welcome(first)

    def read(self) -> EngineMessage | None:
        """The next message, None at the end of this life; blocks."""
        assert self._reader is not None
        try:
            return self._reader.read()
        except ProtocolError as error:
            # A kill in the middle of a frame is an end, not a fault of what was sent.
            if "stream ended" not in error.sentence:
                self._process.kill(error.sentence)
            return None
        except (OSError, ValueError):
            return None

    def send(self, message: AppMessage) -> None:
        """Queue one message; raises EngineUnavailable when the engine takes none any more."""
        try:
            self._outbox.put_nowait(message)
        except queue.Full:
            raise EngineUnavailable(
                "The engine does not take requests at the moment; stop it or wait."
            ) from None

    def ask_to_end(self) -> None:
        """Tell the engine to free everything and exit; its reader sees the end of the stream."""
        self._asked.set()
        self._alarm(EXIT_GRACE_S, "it did not exit when it was asked to.")
        with contextlib.suppress(queue.Full):
            self._outbox.put_nowait(Shutdown())
        with contextlib.suppress(queue.Full):
            self._outbox.put_nowait(None)

    def kill(self, fault: str | None = None) -> None:
        """End the engine at once."""
        self._process.kill(fault)

    def outcome(self) -> ProcessOutcome:
        """Close everything and say how this life ended."""
        asked = self._asked.is_set()
        with contextlib.suppress(queue.Full):
            self._outbox.put_nowait(None)
        grace_s = EXIT_GRACE_S if asked else CRASH_GRACE_S
        outcome = self._process.outcome(ready=self._ready, asked=asked, grace_s=grace_s)
        with self._alarm_lock:
            self._over = True
            for alarm in self._alarms:
                alarm.cancel()
        if self._writer.ident is not None:
            self._discard_outbox()
            self._writer.join()
        return outcome

    def _alarm(self, limit_s: float, fault: str) -> threading.Timer:
        alarm = threading.Timer(limit_s, self._process.kill, (fault,))
        alarm.daemon = True
        with self._alarm_lock:
            if not self._over:
                self._alarms.append(alarm)
                alarm.start()
        return alarm

    def _welcome(self, first: EngineMessage | None) -> Welcome | None:
        if first is None:
            return None
        if not isinstance(first, Welcome):
            self._process.kill(f"it began with {type(first).__name__} instead of Welcome.")
            return None
        if first.version != PROTOCOL_VERSION:
            self._process.kill(
                f"it speaks version {first.version} of the protocol, this app {PROTOCOL_VERSION}."
            )
            return None
        self._ready = True
        return first

    def _discard_outbox(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._outbox.get_nowait()
        self._outbox.put_nowait(None)

    def _write(self) -> None:
        writer = FrameWriter(self._process.requests)
        try:
            while (message := self._outbox.get()) is not None:
                writer.write(message)
        except (OSError, ValueError):
            return
        finally:
            self._process.end_requests()
