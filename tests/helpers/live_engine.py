"""A whole engine in this process, without pipes: a loop in a thread, answers as futures.

Everything is real (loader, runner, template child); only frames are handed over as objects.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from engine.config import Compute, EngineConfig
from engine.loading.loader import CheckpointLoader, Measures
from engine.loop import Loop, Surroundings
from engine.memory.gpus import read_cards
from engine.memory.ledger import Ledger
from engine.memory.machine import read_machine
from engine.memory.pools import RAM, capacity_bytes, read_ram
from engine.pipes import Arrived, Inbox
from engine.protocol import (
    AppMessage,
    Cancel,
    ChatMessage,
    ChatTiers,
    EngineMessage,
    Failure,
    Finished,
    Generate,
    Load,
    Loaded,
    Progress,
    Queued,
    Sampling,
    Settle,
    Settled,
    Shutdown,
    Tokens,
)
from engine.states.disk.library import DiskLibrary

LIMIT_S = 300.0
GREEDY = Sampling(temperature=0.0)


@dataclass
class Asked:
    """One request on its way; ``tokens`` are the frames so far."""

    number: int
    done: Future[EngineMessage]
    on_frame: Callable[[EngineMessage], None]
    tokens: list[Tokens] = field(default_factory=list)

    def finished(self) -> Finished:
        """Wait for the reply."""
        found = self.done.result(LIMIT_S)
        assert isinstance(found, Finished), found
        return found

    def failure(self) -> Failure:
        """Wait for the failure."""
        found = self.done.result(LIMIT_S)
        assert isinstance(found, Failure), found
        return found


class LiveEngine:
    """A context manager; at its end the ledger must be empty.

    Args:
        keeps_in: the folder under which states are kept on disk; None keeps none there.
        on_gpu: whether it sees the machine's GPUs and may compute there.
    """

    def __init__(
        self,
        compute: Compute = Compute.AUTO,
        keeps_in: Path | None = None,
        *,
        on_gpu: bool = False,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._library = None if keeps_in is None else DiskLibrary(keeps_in)
        config = EngineConfig(data_directory=Path(self._folder.name), compute=compute)
        machine = read_machine(Path(self._folder.name)) if on_gpu else None
        self.ledger = (
            Ledger({RAM: capacity_bytes(read_ram())})
            if machine is None
            else Ledger(machine.capacities(), behind=machine.behind)
        )
        measures = Measures(cards=read_cards) if on_gpu else Measures()
        self._inbox: Inbox = Inbox()
        self._numbers = itertools.count(1)
        self._asked: dict[int, Asked] = {}
        loader = CheckpointLoader(config, self.ledger, measures=measures, library=self._library)
        surroundings = Surroundings(library=self._library)
        self._loop = Loop(self._inbox, self._on_frame, loader, self.ledger, surroundings)
        self._thread = threading.Thread(target=self._loop.run, name="live-engine", daemon=True)
        self._thread.start()

    def load(self, path: Path, *, context: int | None = None, streams: int = 4) -> Loaded:
        """Load a checkpoint and wait for it."""
        number = next(self._numbers)
        wish = Load(request=number, path=str(path), context_tokens=context, streams=streams)
        found = self._ask(wish, number).done.result(LIMIT_S)
        assert isinstance(found, Loaded), found
        return found

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        conversation: str | None,
        sampling: Sampling = GREEDY,
        **facts: Any,
    ) -> Asked:
        """Ask for the reply to a conversation; ``facts`` are other fields of the wish."""
        number = next(self._numbers)
        wish = Generate(
            request=number,
            messages=messages,
            conversation=conversation,
            sampling=sampling,
            date="2026-01-01",
            **facts,
        )
        return self._ask(wish, number)

    def ask(
        self,
        text: str,
        sampling: Sampling = GREEDY,
        *,
        raw: bool = False,
        before: tuple[ChatMessage, ...] = (),
        on_frame: Callable[[EngineMessage], None] = lambda _frame: None,
        conversation: str | None = "a chat",
    ) -> Asked:
        """Send one request.

        Args:
            text: the user's message or, with ``raw``, the prompt itself.
            before: the conversation so far.
            conversation: under whose name states are kept; None keeps none.
        """
        number = next(self._numbers)
        messages = () if raw else (*before, ChatMessage(role="user", text=text))
        wish = Generate(
            request=number,
            messages=messages,
            raw=text if raw else None,
            sampling=sampling,
            date="2026-01-01",
            conversation=conversation,
        )
        return self._ask(wish, number, on_frame)

    def settle(self, most_s: float = LIMIT_S) -> Settled:
        """Wait until background work has ended."""
        number = next(self._numbers)
        wish = Settle(request=number, most_ms=most_s * 1e3)
        found = self._ask(wish, number).done.result(LIMIT_S + most_s)
        assert isinstance(found, Settled), found
        return found

    def cancel(self, asked: Asked) -> None:
        """Stop a request."""
        self._tell(Cancel(request=asked.number))

    def close(self) -> None:
        """End the loop; nothing may be held afterwards."""
        self._tell(Shutdown())
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()
        if self._library is not None:
            self._library.close()
        self.ledger.close()
        self._folder.cleanup()

    def _ask(
        self,
        message: AppMessage,
        number: int,
        on_frame: Callable[[EngineMessage], None] = lambda _frame: None,
    ) -> Asked:
        asked = Asked(number, Future(), on_frame)
        self._asked[number] = asked
        self._tell(message)
        return asked

    def _tell(self, message: AppMessage) -> None:
        self._inbox.put(Arrived(message, time.monotonic_ns()))

    def _on_frame(self, frame: EngineMessage) -> None:
        if isinstance(frame, ChatTiers):
            return
        asked = self._asked[getattr(frame, "request", 0)]
        asked.on_frame(frame)
        if isinstance(frame, Tokens):
            asked.tokens.append(frame)
        elif not isinstance(frame, Progress | Queued):
            asked.done.set_result(frame)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
