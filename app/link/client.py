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
import os
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from app.errors import EngineUnavailable, ModelHeldBack
from app.link.deaths.crash_guard import CrashGuard, LoadTrack
from app.link.deaths.restart import RestartPolicy
from app.link.dispatch import Dispatch, PendingRequests
from app.link.engine_log import EngineLog
from app.link.events import LoadChoice, LoadWish, OnEvent, OnMessage
from app.link.lives import EngineLives
from app.link.process import EngineCommand
from app.link.requests import EngineRequests
from engine.protocol import (
    Cancel,
    ChatMessage,
    Generate,
    GpuFacts,
    Load,
    Plan,
    Purpose,
    Sampling,
    Unload,
    Welcome,
)

APP_NAME: Final = "hearth"


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """How long an engine may take, in seconds, before it is ended.

    Attributes:
        handshake_s: from its start to its Welcome.
        stop_s: from the wish to stop a reply to its last message.
    """

    handshake_s: float = 60.0
    stop_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Question:
    """Messages under the model's template, or ``raw`` without one.

    Attributes:
        date: ISO, what the template sees as today: that of the conversation's first message.
        sibling: number among the replies to one message.
        thinking: on or off where the template has a switch; None as it comes.
        conversation: the chat under whose name states are kept; None keeps none.
        purpose: "side" is work beside a chat, such as its title.
        may_drop: whether the oldest turns may be left out where the context is full.
        begun: the beginning of a reply that shall go on; None asks for a new one.
    """

    messages: tuple[ChatMessage, ...] = ()
    raw: str | None = None
    date: str | None = None
    sibling: int = 0
    thinking: bool | None = None
    conversation: str | None = None
    purpose: Purpose = "chat"
    may_drop: bool = False
    begun: ChatMessage | None = None


class EngineClient(EngineRequests):
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
        pending, loads = PendingRequests(), LoadTrack(guard)
        self._lives = EngineLives(
            command,
            app_name=APP_NAME,
            engine_log=engine_log,
            callbacks=Dispatch(pending, loads, on_event).callbacks(),
            restart=restart,
            handshake_limit_s=self._limits.handshake_s,
        )
        super().__init__(pending, loads, self._lives.send)

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
        wish: LoadWish | None = None,
        by_itself: bool = False,
    ) -> int:
        """Load a checkpoint in place of the loaded one: Progress, then Loaded or Failure.

        Args:
            path: of its file.
            on_message: takes the messages.
            wish: how; None takes the usual.
            by_itself: nobody asked for it just now; then one that stopped the engine twice is
                refused with ModelHeldBack.
        """
        absolute = os.path.abspath(path)  # noqa: PTH100 - a link's own name is kept
        if by_itself and not self._loads.allows(absolute):
            raise ModelHeldBack
        request = self._pending.add(on_message)
        wish = wish if wish is not None else LoadWish()
        self._loads.asked(request, LoadChoice(absolute, wish))
        return self._send(
            request,
            Load(
                request=request,
                path=absolute,
                context_tokens=wish.context_tokens,
                streams=wish.streams,
                kv=wish.kv,
                spends_headroom=wish.spends_headroom,
            ),
        )

    def unload(self, *, on_message: OnMessage) -> int:
        """Give the loaded checkpoint's memory back: Unloaded."""
        request = self._pending.add(on_message)
        return self._send(request, Unload(request=request))

    def plan(
        self,
        path: str,
        *,
        on_message: OnMessage,
        wish: LoadWish | None = None,
        gpu: GpuFacts | None = None,
    ) -> int:
        """Ask what loading would take: Planned or Failure.

        Args:
            path: of a file or folder, or the name of a repository on the hub; sent as it is.
            on_message: takes the answer.
            wish: how; None takes the usual.
            gpu: plan for this one instead of the machine's.
        """
        wish = wish if wish is not None else LoadWish()
        request = self._pending.add(on_message)
        return self._send(
            request,
            Plan(
                request=request,
                path=path,
                context_tokens=wish.context_tokens,
                streams=wish.streams,
                kv=wish.kv,
                gpu=gpu,
            ),
        )

    def generate(
        self, question: Question, *, on_message: OnMessage, sampling: Sampling | None = None
    ) -> int:
        """Generate a reply: Progress and Tokens, then Finished or Failure."""
        request = self._pending.add(on_message)
        return self._send(
            request,
            Generate(
                request=request,
                messages=question.messages,
                raw=question.raw,
                sampling=sampling if sampling is not None else Sampling(),
                date=question.date,
                sibling=question.sibling,
                thinking=question.thinking,
                conversation=question.conversation,
                purpose=question.purpose,
                may_drop=question.may_drop,
                begun=question.begun,
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

    def _on_not_stopped(self, request: int) -> None:
        if self._pending.has(request):
            self.kill(f"it did not stop a reply within {self._limits.stop_s:.0f} seconds.")
