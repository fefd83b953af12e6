"""The app's end of the protocol: requests out, one callback for each answer, restarts.

``EngineClient`` owns one thread, "engine-link" (``lives.py``), which starts the engine, reads its
messages and calls the callbacks; after a death it waits and starts the next engine. **Every
callback is called on that thread**: it should hand its record on and return. A callback that blocks
stops the reading, the pipe fills and the engine's output waits: that is the back-pressure. Methods
may be called from any thread and never wait for the engine, save ``wait_ready`` and ``close``.

Each request has its own ``on_message``; it gets Progress and Tokens, then exactly one last message:
its answer or a Failure. When the engine dies, that Failure has the code "engine-died".
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, TypeVar

import msgspec

from app.errors import (
    ENGINE_DIED,
    AppError,
    EngineUnavailable,
    ModelHeldBack,
    RequestTooLarge,
)
from app.link.crash_guard import CrashGuard, LoadTrack
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
from app.link.lives import EngineLives, LifeCallbacks
from app.link.outcome import ProcessOutcome
from app.link.process import EngineCommand
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

FRAME_OVERHEAD_BYTES: Final = 16
APP_NAME: Final = "hearth"
Told = TypeVar("Told")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """How long an engine may take, in seconds, before it is ended.

    Attributes:
        handshake_s: from its start to its Welcome.
        stop_s: from the wish to stop a reply to its last message.
    """

    handshake_s: float = 60.0
    stop_s: float = 30.0


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
        limits: LinkLimits | None = None,
    ) -> None:
        """Describe the link; ``start`` begins it.

        Args:
            command: what to start, ``process.engine_command`` for our own engine.
            engine_log: takes the engine's standard error.
            guard: remembers the checkpoints that stopped the engine.
            on_event: told of ready, death and faults of the engine itself.
            restart: when to start again after a death; None never does.
            limits: how long an engine may take; None takes the usual.
        """
        self._limits = limits if limits is not None else LinkLimits()
        self._on_event = on_event
        self._pending = _PendingRequests()
        self._loads = LoadTrack(guard)
        self._lives = EngineLives(
            command,
            app_name=APP_NAME,
            engine_log=engine_log,
            callbacks=LifeCallbacks(self._ready, self._message, self._ended, self._died),
            restart=restart,
            handshake_limit_s=self._limits.handshake_s,
        )

    # Life ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the link, or start it again after it gave up; does nothing while it runs."""
        self._lives.start()

    def wait_ready(self, limit_s: float) -> Welcome:
        """Wait until an engine is connected; raises EngineUnavailable when none comes."""
        return self._lives.wait_ready(limit_s)

    def kill(self, fault: str | None = None) -> None:
        """End the running engine at once, as if it had died; ``fault`` says why in one sentence."""
        self._lives.kill(fault)

    def close(self) -> None:
        """Stop the engine and the thread; running requests get their Failure first."""
        self._lives.close()

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
        return self._lives.ready

    @property
    def pid(self) -> int:
        """The running engine's pid, 0 while there is none."""
        return self._lives.pid

    @property
    def loaded_path(self) -> str | None:
        """The path of the checkpoint that is loaded, None when none is."""
        return self._loads.loaded_path

    # Requests -----------------------------------------------------------------------------------
    # Each raises EngineUnavailable when no engine is connected, RequestTooLarge above a frame.

    def load(
        self,
        path: str | os.PathLike[str],
        *,
        on_message: OnMessage,
        context_tokens: int | None = None,
        streams: int = 4,
        by_itself: bool = False,
    ) -> int:
        """Load a checkpoint in place of the loaded one: Progress, then Loaded or Failure.

        Args:
            path: of its file.
            on_message: takes the messages.
            context_tokens: None leaves it to the planner.
            streams: chats at once.
            by_itself: nobody asked for it just now; then one that stopped the engine twice is
                refused with ModelHeldBack.
        """
        absolute = os.path.abspath(path)  # noqa: PTH100 - a link's own name is kept
        if by_itself and not self._loads.allows(absolute):
            raise ModelHeldBack
        request = self._pending.add(on_message)
        self._loads.asked(request, LoadChoice(absolute, context_tokens, streams))
        return self._send(
            request,
            Load(request=request, path=absolute, context_tokens=context_tokens, streams=streams),
        )

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
            ),
        )

    def cancel(self, request: int) -> None:
        """Stop a generation; its last message still comes. Nothing happens for an ended one.

        An engine that has not ended the request after ``LinkLimits.stop_s`` hangs, and is ended.
        """
        alarm = threading.Timer(self._limits.stop_s, self._on_not_stopped, (request,))
        alarm.daemon = True
        if self._pending.set_alarm(request, alarm):
            with contextlib.suppress(EngineUnavailable):
                self._lives.send(Cancel(request=request))

    def count_tokens(self, text: str, *, on_message: OnMessage) -> int:
        """Ask how many tokens a text takes: Counted or Failure."""
        request = self._pending.add(on_message)
        return self._send(request, CountTokens(request=request, text=text))

    def memory(self, *, on_message: OnMessage) -> int:
        """Ask for the pools as they stand: MemoryFacts."""
        request = self._pending.add(on_message)
        return self._send(request, AskMemory(request=request))

    def _on_not_stopped(self, request: int) -> None:
        if self._pending.has(request):
            self.kill(f"it did not stop a reply within {self._limits.stop_s:.0f} seconds.")

    def _send(self, request: int, message: AppMessage) -> int:
        size = len(msgspec.msgpack.encode(message))
        try:
            if size > MAX_FRAME_BYTES - FRAME_OVERHEAD_BYTES:
                raise RequestTooLarge(
                    f"The conversation is {size:,} bytes long; {MAX_FRAME_BYTES:,} can be sent."
                )
            self._lives.send(message)
        except AppError:
            self._pending.take(request)
            self._loads.refused(request)
            raise
        return request

    # On the link's thread -----------------------------------------------------------------------

    def _ready(self, welcome: Welcome, restarts: int) -> None:
        log.info("engine ready pid=%d device=%s restarts=%d", welcome.pid, welcome.device, restarts)
        reload, held_back = self._loads.take_back()
        self._emit(EngineReady(welcome, restarts, reload, held_back))

    def _message(self, message: EngineMessage) -> str | None:
        if isinstance(message, Welcome):
            return "it said Welcome twice."
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


@dataclass(slots=True)
class _Waiting:
    """Who waits for a request's messages; ``alarm`` runs once it was asked to stop."""

    on_message: OnMessage
    alarm: threading.Timer | None = None


class _PendingRequests:
    """Request ids, counted up from 1, and who waits for each that has not ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 1
        self._waiting: dict[int, _Waiting] = {}

    def add(self, on_message: OnMessage) -> int:
        """A new request id with its callback."""
        with self._lock:
            request = self._next
            self._next += 1
            self._waiting[request] = _Waiting(on_message)
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
