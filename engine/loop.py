"""The loop: one thread that answers messages and runs rounds.

Owns the loaded model and its serving. Waits for messages only while nothing runs, and no longer
than background work allows; otherwise takes what has arrived before every round, so a cancel is
seen before the next piece of work. What fails becomes a Failure frame. What arrives while a model
is being loaded is answered after that, in order; requests are told that they wait.
"""

from __future__ import annotations

import logging
import queue
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from engine.errors import DeviceLost, RequestInvalid
from engine.failure import attempt, failure_of
from engine.loading.loaded import LoadedModel
from engine.memory.ledger import Ledger
from engine.memory.machine import MachineReading, pool_facts
from engine.memory.measured import ProcessMemory
from engine.memory.pools import RAM
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
    Finished,
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
    Progress,
    Queued,
    Settle,
    Settled,
    Shutdown,
    Unload,
    Unloaded,
)
from engine.serving.kept import AboutStates, KeptStates
from engine.serving.reply import Clock, Send
from engine.serving.rounds import Serving, on_mains
from engine.states.border import StateLibrary

_LOG = logging.getLogger(__name__)

EXIT_CLEAN = 0
EXIT_PROTOCOL = 3
EXIT_DEVICE = 5
"""The device failed: whoever started the engine starts it again."""

Report = Callable[[Phase, int, int], None]


class Loader(Protocol):
    """Makes loaded models; ``engine.loading.loader`` is the real one."""

    def load(self, wish: Load, report: Report) -> LoadedModel:
        """Load a checkpoint; raises EngineError, having freed what it took."""

    def plan(self, wish: Plan) -> Planned:
        """What loading would take; raises EngineError."""

    def inspect(self, path: str) -> CheckpointFacts:
        """What a file is, without loading it."""


def _unmeasured() -> MachineReading:
    return MachineReading(())


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the loop is told of beside messages.

    Attributes:
        clock: monotonic, ns.
        on_battery: whether the machine runs on battery, where nothing is done unasked.
        library: all kept states; None where nothing is kept beyond the process.
        machine: measures every pool.
        memory: what this process really holds.
    """

    clock: Clock = time.monotonic_ns
    on_battery: Callable[[], bool] = on_mains
    library: StateLibrary | None = None
    machine: Callable[[], MachineReading] = _unmeasured
    memory: ProcessMemory = field(default_factory=ProcessMemory)


class Loop:
    """Answers the app until it leaves."""

    def __init__(
        self,
        inbox: Inbox,
        send: Send,
        loader: Loader,
        ledger: Ledger,
        surroundings: Surroundings = Surroundings(),
    ) -> None:
        self._inbox = inbox
        self._send = send
        self._loader = loader
        self._ledger = ledger
        self._surroundings = surroundings
        self._kept = KeptStates(surroundings.library)
        self._held: deque[Arrived | Gone] = deque()
        self._model: LoadedModel | None = None
        self._serving: Serving | None = None
        self._exit_code: int | None = None

    def run(self) -> int:
        """Run until Shutdown, the app's end or the device's; returns the exit code.

        Everything is free by then, but after ``EXIT_DEVICE``: nothing can be freed on a device that
        failed, so the process's end does that.
        """
        while self._exit_code is None:
            self._take_messages()
            if self._serving is not None and self._exit_code is None:
                self._serving.round()
        if self._exit_code != EXIT_DEVICE:
            self._unload()
        return self._exit_code

    def _take_messages(self) -> None:
        """Answer all that has arrived; wait for one as long as nothing is to be done."""
        pause_s = None if self._serving is None else self._serving.pause_s
        found = self._next(pause_s)
        while found is not None:
            self._take(found)
            found = self._next(0.0) if self._exit_code is None else None

    def _next(self, pause_s: float | None) -> Arrived | Gone | None:
        """The next message; None where none came within a time."""
        if self._held:
            return self._held.popleft()
        try:
            if pause_s == 0.0:
                return self._inbox.get_nowait()
            return self._inbox.get(timeout=pause_s)
        except queue.Empty:
            return None

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
            lambda error: self._tell(failure_of(error, number)),
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
                return self._memory_facts(request)

    def _memory_facts(self, request: int) -> MemoryFacts:
        plan = () if self._model is None else self._model.plan
        planned_bytes = sum(line.bytes for line in plan if line.pool == RAM)
        return MemoryFacts(
            request=request,
            pools=pool_facts(self._ledger, self._surroundings.machine()),
            plan=plan,
            measured=self._surroundings.memory.measured(planned_bytes),
        )

    def _about_states(self, message: AboutStates | Settle) -> None:
        match message:
            case Settle(request=request, most_ms=most_ms):
                if self._serving is None:
                    self._send(Settled(request=request, waiting_bytes=0))
                else:
                    self._serving.settle(request, most_ms)
            case _:
                kept = self._kept.answer(message)
                if kept is not None:
                    self._send(kept)

    def _load(self, wish: Load) -> None:
        self._unload()
        clock = self._surroundings.clock
        began_ns = clock()

        def report(phase: Phase, done: int, total: int) -> None:
            if (phase, done) == ("open", total):
                memory.mark()  # what loading imports is no model's
            self._send(Progress(request=wish.request, phase=phase, done=done, total=total))
            self._hold_messages()

        memory = self._surroundings.memory
        memory.mark()
        model = self._loader.load(wish, report)
        self._model = model
        self._serving = Serving(model.served, self._tell, clock, self._surroundings.on_battery)
        self._kept.attach(self._serving)
        load_ms = (clock() - began_ns) / 1e6
        _LOG.info("model loaded architecture=%s ms=%.0f", model.facts.architecture, load_ms)
        self._send(
            Loaded(request=wish.request, model=model.facts, load_ms=load_ms, plan=model.plan)
        )

    def _hold_messages(self) -> None:
        """Take what arrives while a model is loaded; requests hear that they wait for it."""
        while True:
            try:
                found = self._inbox.get_nowait()
            except queue.Empty:
                return
            self._held.append(found)
            if isinstance(found, Arrived) and isinstance(found.message, Generate):
                wishes = [one for one in self._held if isinstance(one, Arrived)]
                position = sum(isinstance(one.message, Generate) for one in wishes)
                request = found.message.request
                self._send(Queued(request=request, position=position, reason="loading"))

    def _unload(self) -> None:
        """End what runs and free the model, in that order."""
        serving, model = self._serving, self._model
        self._serving = self._model = None
        self._kept.attach(None)
        if serving is not None:
            serving.close()
        if model is not None:
            model.close()
            _LOG.info("model unloaded architecture=%s", model.facts.architecture)
        self._ledger.retry_quarantined()

    def _generate(self, wish: Generate, at_ns: int) -> None:
        model = self._loaded()
        prompts = model.prompts
        request, text = prompts.prepare(wish, at_ns, model.served.context_tokens)
        assert self._serving is not None
        self._serving.accept(request, text, partial(prompts.follow_up, wish))

    def _tell(self, frame: EngineMessage) -> None:
        """Send; after each reply the memory's peak is looked at, and a lost device is the end."""
        self._send(frame)
        if isinstance(frame, Finished):
            self._surroundings.memory.look()
        elif isinstance(frame, Failure) and frame.code == DeviceLost.code:
            _LOG.error("device lost reason=%s", frame.sentence)
            self._exit_code = EXIT_DEVICE

    def _loaded(self) -> LoadedModel:
        if self._model is None:
            raise RequestInvalid("No model is loaded; load one first.")
        return self._model
