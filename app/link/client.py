"""The app's end of the protocol: requests out, one callback for each answer, restarts.

``EngineClient`` owns one thread, "engine-link", which starts the engine, reads its messages and
calls the callbacks; after a death it waits and starts the next engine. **Every callback is called
on that thread**: it should hand its record on and return. A callback that blocks stops the reading,
the pipe fills and the engine's output waits: that is the back-pressure. Methods may be called from
any thread and never wait for the engine, save ``wait_ready`` and ``close``.

Each request has its own ``on_message``; it gets Progress and Tokens, then exactly one last message:
its answer or a Failure. When the engine dies, that Failure has the code "engine-died".
"""

from __future__ import annotations

import logging
import os
import threading
from types import TracebackType
from typing import Final

import msgspec

from app.errors import ENGINE_DIED, EngineUnavailable, RequestTooLarge
from app.link.connection import Connection
from app.link.crash_guard import CrashGuard
from app.link.engine_log import EngineLog
from app.link.events import (
    LAST_MESSAGES,
    EngineDied,
    EngineEvent,
    EngineFault,
    EngineReady,
    LoadChoice,
    OnEvent,
    OnMessage,
)
from app.link.outcome import ProcessOutcome
from app.link.pending import PendingRequests
from app.link.process import EngineCommand, EngineProcess
from app.link.restart import RestartPolicy
from engine.protocol import (
    MAX_FRAME_BYTES,
    AppMessage,
    AskMemory,
    Cancel,
    ChatMessage,
    CountTokens,
    EngineMessage,
    Failure,
    Finished,
    Generate,
    Inspect,
    Load,
    Loaded,
    Plan,
    Sampling,
    Unload,
    Unloaded,
    Welcome,
)

HANDSHAKE_LIMIT_S: Final = 60.0
APP_NAME: Final = "hearth"
log = logging.getLogger(__name__)


class EngineClient:
    """The engine as seen by the app, over all its lives."""

    def __init__(
        self,
        command: EngineCommand,
        *,
        engine_log: EngineLog,
        guard: CrashGuard,
        on_event: OnEvent,
        restart: RestartPolicy | None = None,
        handshake_limit_s: float = HANDSHAKE_LIMIT_S,
    ) -> None:
        """Describe the link; ``start`` begins it.

        Args:
            command: what to start, ``process.engine_command`` for our own engine.
            engine_log: takes the engine's standard error.
            guard: remembers the checkpoints that stopped the engine.
            on_event: told of ready, death and faults of the engine itself.
            restart: when to start again after a death; None never does.
            handshake_limit_s: how long an engine may take to say Welcome.
        """
        self._command = command
        self._engine_log = engine_log
        self._guard = guard
        self._on_event = on_event
        self._restart = restart
        self._handshake_limit_s = handshake_limit_s
        self._pending = PendingRequests()
        self._state = threading.Condition()
        self._connection: Connection | None = None
        self._welcome: Welcome | None = None
        self._last_outcome: ProcessOutcome | None = None
        self._loading: LoadChoice | None = None
        self._loaded: LoadChoice | None = None
        self._useful = False
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    # Life ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the link, or start it again after it gave up; does nothing while it runs."""
        with self._state:
            if self._closing.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            self._last_outcome = None
            self._thread = threading.Thread(target=self._live, name="engine-link", daemon=True)
            self._thread.start()

    def wait_ready(self, limit_s: float) -> Welcome:
        """Wait until an engine is connected; raises EngineUnavailable when none comes."""
        with self._state:
            self._state.wait_for(
                lambda: self._welcome is not None or self._last_outcome is not None, limit_s
            )
            if self._welcome is not None:
                return self._welcome
            if self._last_outcome is not None:
                raise EngineUnavailable(self._last_outcome.sentence)
        raise EngineUnavailable(f"The engine did not start within {limit_s:.0f} seconds.")

    def kill(self, fault: str | None = None) -> None:
        """End the running engine at once, as if it had died; ``fault`` says why in one sentence."""
        with self._state:
            connection = self._connection
        if connection is not None:
            connection.kill(fault)

    def close(self) -> None:
        """Stop the engine and the thread; running requests get their Failure first."""
        self._closing.set()
        with self._state:
            connection, thread = self._connection, self._thread
        if connection is not None:
            connection.ask_to_end()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def __enter__(self) -> EngineClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def ready(self) -> bool:
        """Whether an engine is connected."""
        with self._state:
            return self._welcome is not None

    @property
    def pid(self) -> int:
        """The running engine's pid, 0 while there is none."""
        with self._state:
            return 0 if self._connection is None else self._connection.pid

    @property
    def loaded_path(self) -> str | None:
        """The path of the checkpoint that is loaded, None when none is."""
        with self._state:
            return None if self._loaded is None else self._loaded.path

    # Requests -----------------------------------------------------------------------------------
    # Each raises EngineUnavailable when no engine is connected, RequestTooLarge above a frame.

    def load(
        self,
        path: str | os.PathLike[str],
        *,
        on_message: OnMessage,
        context_tokens: int | None = None,
        streams: int = 4,
    ) -> int:
        """Load a checkpoint in place of the loaded one: Progress, then Loaded or Failure."""
        absolute = os.path.abspath(path)  # noqa: PTH100 - a link's own name is kept
        request = self._pending.add(on_message)
        message = Load(
            request=request, path=absolute, context_tokens=context_tokens, streams=streams
        )
        with self._state:
            before = self._loading
            self._loading = LoadChoice(absolute, context_tokens, streams)
        try:
            return self._send(request, message)
        except EngineUnavailable:
            with self._state:
                self._loading = before
            raise

    def unload(self, *, on_message: OnMessage) -> int:
        """Give the loaded checkpoint's memory back: Unloaded."""
        request = self._pending.add(on_message)
        return self._send(request, Unload(request=request))

    def plan(
        self,
        path: str | os.PathLike[str],
        *,
        on_message: OnMessage,
        context_tokens: int | None = None,
        streams: int = 4,
    ) -> int:
        """Ask what loading would take: Planned or Failure."""
        absolute = os.path.abspath(path)  # noqa: PTH100 - a link's own name is kept
        request = self._pending.add(on_message)
        return self._send(
            request,
            Plan(request=request, path=absolute, context_tokens=context_tokens, streams=streams),
        )

    def inspect(self, paths: tuple[str, ...], *, on_message: OnMessage) -> int:
        """Ask what checkpoint files are: Inspected or Failure."""
        request = self._pending.add(on_message)
        return self._send(request, Inspect(request=request, paths=paths))

    def generate(
        self,
        messages: tuple[ChatMessage, ...] = (),
        *,
        on_message: OnMessage,
        raw: str | None = None,
        sampling: Sampling | None = None,
        date: str | None = None,
        sibling: int = 0,
        thinking: bool | None = None,
    ) -> int:
        """Generate a reply: Progress and Tokens, then Finished or Failure."""
        request = self._pending.add(on_message)
        return self._send(
            request,
            Generate(
                request=request,
                messages=messages,
                raw=raw,
                sampling=sampling if sampling is not None else Sampling(),
                date=date,
                sibling=sibling,
                thinking=thinking,
            ),
        )

    def cancel(self, request: int) -> None:
        """Stop a generation; its last message still comes. Nothing happens for an ended one."""
        with self._state:
            connection = self._connection if self._welcome is not None else None
        if connection is not None and self._pending.has(request):
            try:
                connection.send(Cancel(request=request))
            except EngineUnavailable as error:
                log.warning("cancel not sent request=%d reason=%s", request, error.sentence)

    def count_tokens(self, text: str, *, on_message: OnMessage) -> int:
        """Ask how many tokens a text takes: Counted or Failure."""
        request = self._pending.add(on_message)
        return self._send(request, CountTokens(request=request, text=text))

    def memory(self, *, on_message: OnMessage) -> int:
        """Ask for the pools as they stand: MemoryFacts."""
        request = self._pending.add(on_message)
        return self._send(request, AskMemory(request=request))

    def _send(self, request: int, message: AppMessage) -> int:
        size = len(msgspec.msgpack.encode(message))
        try:
            if size > MAX_FRAME_BYTES - 16:
                raise RequestTooLarge(
                    f"The conversation is {size:,} bytes long; {MAX_FRAME_BYTES:,} can be sent."
                )
            with self._state:
                if self._connection is None or self._welcome is None:
                    raise EngineUnavailable("The engine is not ready yet; try again in a moment.")
                self._connection.send(message)
        except (EngineUnavailable, RequestTooLarge):
            self._pending.take(request)
            raise
        return request

    # The link's thread --------------------------------------------------------------------------

    def _live(self) -> None:
        restarts = 0
        while not self._closing.is_set():
            outcome = self._live_once(restarts)
            restarts += 1
            delay_s = self._delay_s(outcome)
            with self._state:
                if delay_s is None:
                    self._last_outcome = outcome
                self._state.notify_all()
            self._emit(EngineDied(outcome, delay_s))
            if delay_s is None or self._closing.wait(delay_s):
                return

    def _live_once(self, restarts: int) -> ProcessOutcome:
        connection = Connection(EngineProcess(self._command, self._engine_log), APP_NAME)
        with self._state:
            self._connection = connection
            reload = self._loading or self._loaded
            self._loading = self._loaded = None
            self._useful = False
        if self._closing.is_set():
            connection.ask_to_end()
        welcome = connection.open(self._handshake_limit_s)
        if welcome is not None:
            self._begin(welcome, restarts, reload)
            while (message := connection.read()) is not None:
                self._dispatch(connection, message)
        outcome = connection.outcome()
        self._end(outcome, reload)
        return outcome

    def _begin(self, welcome: Welcome, restarts: int, reload: LoadChoice | None) -> None:
        with self._state:
            self._welcome = welcome
            self._state.notify_all()
        log.info("engine ready pid=%d device=%s restarts=%d", welcome.pid, welcome.device, restarts)
        if reload is not None and not self._guard.allows(reload.path):
            self._emit(EngineReady(welcome, restarts, held_back=reload))
        else:
            self._emit(EngineReady(welcome, restarts, reload=reload))

    def _end(self, outcome: ProcessOutcome, reload: LoadChoice | None) -> None:
        with self._state:
            self._connection = self._welcome = None
            there = self._loading or self._loaded
            if there is None and not outcome.ready:
                self._loaded = reload
        log.info("engine ended %s", outcome.detail.partition("\n")[0])
        if there is not None and not outcome.asked:
            self._guard.count(there.path)
        for request, on_message in self._pending.take_all():
            failure = Failure(request=request, code=ENGINE_DIED, sentence=outcome.sentence)
            self._deliver(on_message, failure)

    def _delay_s(self, outcome: ProcessOutcome) -> float | None:
        if outcome.asked or self._closing.is_set() or self._restart is None:
            return None
        return self._restart.delay_s(
            ready=outcome.ready, useful=self._useful, lived_s=outcome.lived_s
        )

    def _dispatch(self, connection: Connection, message: EngineMessage) -> None:
        if isinstance(message, Welcome):
            connection.kill("it said Welcome twice.")
            return
        if isinstance(message, Failure) and message.request is None:
            self._emit(EngineFault(message))
            return
        assert message.request is not None
        self._note(message)
        last = isinstance(message, LAST_MESSAGES)
        on_message = (
            self._pending.take(message.request) if last else self._pending.get(message.request)
        )
        if on_message is None:
            log.debug("answer without request kind=%s", type(message).__name__)
            return
        self._deliver(on_message, message)

    def _note(self, message: EngineMessage) -> None:
        with self._state:
            match message:
                case Loaded():
                    self._loaded, self._loading = self._loading, None
                case Unloaded():
                    self._loaded = None
                case Finished():
                    self._useful = True
                case _:
                    pass
            finished_path = self._loaded.path if self._loaded is not None else None
        if isinstance(message, Finished) and finished_path is not None:
            self._guard.clear(finished_path)

    def _emit(self, event: EngineEvent) -> None:
        try:
            self._on_event(event)
        except Exception:
            log.exception("listener failed event=%s", type(event).__name__)

    def _deliver(self, on_message: OnMessage, message: EngineMessage) -> None:
        try:
            on_message(message)
        except Exception:
            log.exception("callback failed message=%s", type(message).__name__)
