"""The lives of the engine, one after another: one thread starts, reads, and starts again.

``EngineLives`` owns the thread "engine-link" and, while one is connected, the ``Connection``. What
it finds it tells through ``LifeCallbacks``, on that thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.errors import EngineUnavailable
from app.link.connection import Connection
from app.link.deaths.restart import RestartPolicy
from app.link.engine_log import EngineLog
from app.link.outcome import ProcessOutcome
from app.link.process import EngineCommand, EngineProcess
from engine.protocol import AppMessage, EngineMessage, Finished, Welcome

WAIT_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class LifeCallbacks:
    """Whom to tell, on the link's thread; none of them may raise.

    Attributes:
        ready: an engine is connected; with the number of restarts before it.
        message: it said something; returns what is wrong with that in one sentence, or None.
        ended: it ended; nothing more comes from it.
        died: as ``ended``, after it, with the seconds until the next start or None.
    """

    ready: Callable[[Welcome, int], None]
    message: Callable[[EngineMessage], str | None]
    ended: Callable[[ProcessOutcome], None]
    died: Callable[[ProcessOutcome, float | None], None]


class EngineLives:
    """Starts an engine and, where a policy says so, the next one after its death."""

    def __init__(
        self,
        command: EngineCommand,
        *,
        app_name: str,
        engine_log: EngineLog,
        callbacks: LifeCallbacks,
        restart: RestartPolicy | None,
        handshake_limit_s: float,
    ) -> None:
        self._command = command
        self._app_name = app_name
        self._engine_log = engine_log
        self._callbacks = callbacks
        self._restart = restart
        self._handshake_limit_s = handshake_limit_s
        self._state = threading.Condition()
        self._connection: Connection | None = None
        self._welcome: Welcome | None = None
        self._given_up: ProcessOutcome | None = None
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def pid(self) -> int:
        """The running engine's pid, 0 while there is none."""
        with self._state:
            return 0 if self._connection is None else self._connection.pid

    @property
    def ready(self) -> bool:
        """Whether an engine is connected."""
        with self._state:
            return self._welcome is not None

    def start(self) -> None:
        """Start, or start again after giving up; does nothing while it runs or is closed."""
        with self._state:
            if self._closing.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            self._given_up = None
            self._thread = threading.Thread(target=self._run, name="engine-link", daemon=True)
            self._thread.start()

    def wait_ready(self, limit_s: float) -> Welcome:
        """Wait until an engine is connected; raises EngineUnavailable when none comes."""
        deadline = time.monotonic() + limit_s
        with self._state:
            while self._welcome is None and self._given_up is None:
                if (left_s := deadline - time.monotonic()) <= 0:
                    raise EngineUnavailable(f"The engine did not start within {limit_s:.0f} s.")
                # Short waits keep Ctrl+C working on Windows.
                self._state.wait(min(WAIT_S, left_s))
            if self._welcome is None:
                assert self._given_up is not None
                raise EngineUnavailable(self._given_up.sentence)
            return self._welcome

    def send(self, message: AppMessage) -> None:
        """Queue a message for the connected engine; raises EngineUnavailable when none is."""
        with self._state:
            if self._connection is None or self._welcome is None:
                raise EngineUnavailable("The engine is not ready yet; try again in a moment.")
            self._connection.send(message)

    def kill(self, fault: str | None = None) -> None:
        """End the running engine at once; ``fault`` says why in one sentence."""
        with self._state:
            connection = self._connection
        if connection is not None:
            connection.kill(fault)

    def close(self) -> None:
        """Stop the engine and the thread, which is waited for."""
        self._closing.set()
        with self._state:
            connection, thread = self._connection, self._thread
        if connection is not None:
            connection.ask_to_end()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        restarts = 0
        while not self._closing.is_set():
            outcome, useful = self._live(restarts)
            restarts += 1
            delay_s = self._delay_s(outcome, useful)
            with self._state:
                self._given_up = outcome if delay_s is None else None
                self._state.notify_all()
            self._callbacks.died(outcome, delay_s)
            if delay_s is None or self._closing.wait(delay_s):
                return

    def _live(self, restarts: int) -> tuple[ProcessOutcome, bool]:
        connection = Connection(EngineProcess(self._command, self._engine_log), self._app_name)
        with self._state:
            self._connection = connection
        if self._closing.is_set():
            connection.ask_to_end()
        useful = False
        welcome = connection.open(self._handshake_limit_s)
        if welcome is not None:
            with self._state:
                self._welcome = welcome
                self._state.notify_all()
            self._callbacks.ready(welcome, restarts)
            useful = self._read(connection)
        with self._state:
            self._welcome = None
        outcome = connection.outcome()
        with self._state:
            self._connection = None
        self._callbacks.ended(outcome)
        return outcome, useful

    def _read(self, connection: Connection) -> bool:
        useful = False
        while (message := connection.read()) is not None:
            useful = useful or isinstance(message, Finished)
            fault = self._callbacks.message(message)
            if fault is not None:
                connection.kill(fault)
        return useful

    def _delay_s(self, outcome: ProcessOutcome, useful: bool) -> float | None:
        if outcome.asked or self._closing.is_set() or self._restart is None:
            return None
        return self._restart.delay_s(ready=outcome.ready, useful=useful, lived_s=outcome.lived_s)
