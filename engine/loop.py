"""The loop: one thread that answers messages and runs rounds.

Owns the loaded model and its serving. Waits for messages only while nothing runs; otherwise takes
what has arrived before every round, so a cancel is seen before the next piece of work. What fails
becomes a Failure frame.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from engine.errors import RequestInvalid
from engine.failure import attempt, failure_of
from engine.loading.loaded import LoadedModel
from engine.memory.ledger import Ledger
from engine.pipes import Arrived, Gone, Inbox
from engine.protocol import (
    AppMessage,
    AskMemory,
    AskStates,
    Cancel,
    CheckpointFacts,
    ClearStates,
    Counted,
    CountTokens,
    EngineMessage,
    Failure,
    Generate,
    Hello,
    Inspect,
    Inspected,
    KnownChats,
    Load,
    Loaded,
    MemoryFacts,
    OpenChats,
    Phase,
    PinStates,
    Plan,
    Planned,
    PoolFacts,
    Progress,
    Settle,
    Settled,
    Shutdown,
    StatesKept,
    Unload,
    Unloaded,
)
from engine.serving.reply import Clock, Send
from engine.serving.rounds import Serving

_LOG = logging.getLogger(__name__)

EXIT_CLEAN = 0
EXIT_PROTOCOL = 3

Report = Callable[[Phase, int, int], None]


class Loader(Protocol):
    """Makes loaded models; ``engine.loading.loader`` is the real one."""

    def load(self, wish: Load, report: Report) -> LoadedModel:
        """Load a checkpoint; raises EngineError, having freed what it took."""

    def plan(self, wish: Plan) -> Planned:
        """What loading would take; raises EngineError."""

    def inspect(self, path: str) -> CheckpointFacts:
        """What a file is, without loading it."""


class Loop:
    """Answers the app until it leaves."""

    def __init__(
        self,
        inbox: Inbox,
        send: Send,
        loader: Loader,
        ledger: Ledger,
        clock: Clock = time.monotonic_ns,
    ) -> None:
        self._inbox = inbox
        self._send = send
        self._loader = loader
        self._ledger = ledger
        self._clock = clock
        self._model: LoadedModel | None = None
        self._serving: Serving | None = None
        self._exit_code: int | None = None

    def run(self) -> int:
        """Run until Shutdown or the app's end; everything is free when it returns the exit code."""
        while self._exit_code is None:
            self._take_messages()
            if self._serving is not None and self._exit_code is None:
                self._serving.round()
        self._unload()
        return self._exit_code

    def _take_messages(self) -> None:
        """Answer all that has arrived; wait for one where nothing runs."""
        if self._serving is None or not self._serving.has_work:
            self._take(self._inbox.get())
        while self._exit_code is None:
            try:
                self._take(self._inbox.get_nowait())
            except queue.Empty:
                return

    def _take(self, found: Arrived | Gone) -> None:
        if isinstance(found, Gone):
            self._exit_code = EXIT_CLEAN if found.error is None else EXIT_PROTOCOL
            if found.error is not None:
                self._send(failure_of(found.error, None))
            return
        message = found.message
        number = getattr(message, "request", None)
        attempt(
            partial(self._answer, message, found.at_ns),
            lambda error: self._send(failure_of(error, number)),
            f"request failed kind={type(message).__name__} request={number}",
        )

    def _answer(self, message: AppMessage, at_ns: int) -> None:
        match message:
            case Load():
                self._load(message)
            case Unload(request=request):
                self._unload()
                self._send(Unloaded(request=request))
            case Generate():
                self._generate(message, at_ns)
            case Cancel(request=request):
                if self._serving is not None:
                    self._serving.cancel(request)
            case OpenChats() | KnownChats() | AskStates() | PinStates() | ClearStates() | Settle():
                self._about_states(message)
            case Shutdown():
                self._exit_code = EXIT_CLEAN
            case Hello():
                self._send(Failure(code="protocol", sentence="Hello was said before."))
                self._exit_code = EXIT_PROTOCOL
            case _:
                self._send(self._facts(message))

    def _facts(self, question: Plan | Inspect | CountTokens | AskMemory) -> EngineMessage:
        match question:
            case Plan():
                return self._loader.plan(question)
            case Inspect(request=request, paths=paths):
                files = tuple(self._loader.inspect(path) for path in paths)
                return Inspected(request=request, files=files)
            case CountTokens(request=request, text=text):
                return Counted(request=request, tokens=self._loaded().prompts.count(text))
            case AskMemory(request=request):
                return MemoryFacts(request=request, pools=_pool_facts(self._ledger))

    def _about_states(
        self, message: OpenChats | KnownChats | AskStates | PinStates | ClearStates | Settle
    ) -> None:
        """Nothing is kept beyond the process yet, and nothing runs in the background."""
        match message:
            case OpenChats() | KnownChats():
                return
            case Settle(request=request):
                self._send(Settled(request=request, waiting_bytes=0))
            case AskStates(request=request) | PinStates(request=request):
                self._send(_nothing_kept(request))
            case ClearStates(request=request):
                self._send(_nothing_kept(request))

    def _load(self, wish: Load) -> None:
        self._unload()
        began_ns = self._clock()

        def report(phase: Phase, done: int, total: int) -> None:
            self._send(Progress(request=wish.request, phase=phase, done=done, total=total))

        model = self._loader.load(wish, report)
        self._model = model
        self._serving = Serving(model.served, self._send, self._clock)
        load_ms = (self._clock() - began_ns) / 1e6
        _LOG.info("model loaded architecture=%s ms=%.0f", model.facts.architecture, load_ms)
        self._send(
            Loaded(request=wish.request, model=model.facts, load_ms=load_ms, plan=model.plan)
        )

    def _unload(self) -> None:
        """End what runs and free the model, in that order."""
        serving, model = self._serving, self._model
        self._serving = self._model = None
        if serving is not None:
            serving.close()
        if model is not None:
            model.close()
            _LOG.info("model unloaded architecture=%s", model.facts.architecture)

    def _generate(self, wish: Generate, at_ns: int) -> None:
        model = self._loaded()
        request, text = model.prompts.prepare(wish, at_ns)
        assert self._serving is not None
        self._serving.accept(request, text)

    def _loaded(self) -> LoadedModel:
        if self._model is None:
            raise RequestInvalid("No model is loaded; load one first.")
        return self._model


def _nothing_kept(request: int) -> StatesKept:
    return StatesKept(request=request, states=(), disk_bytes=0, quota_bytes=0, disk_free_bytes=0)


def _pool_facts(ledger: Ledger) -> tuple[PoolFacts, ...]:
    return tuple(
        PoolFacts(
            name=pool.name,
            capacity_bytes=pool.capacity_bytes,
            free_bytes=pool.free_bytes,
            holders=pool.holders,
        )
        for pool in ledger.census()
    )
