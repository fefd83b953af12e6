"""A client on the fake engine, with what it tells collected in the order it came."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from app.link.client import EngineClient, LinkLimits, Question
from app.link.deaths.crash_guard import CrashGuard
from app.link.deaths.restart import RestartPolicy
from app.link.engine_log import EngineLog
from app.link.events import EngineDied, EngineEvent, EngineReady
from app.link.mailbox import Mailbox
from app.link.process import EngineCommand
from engine.protocol import ChatMessage, EngineMessage, Loaded, Sampling
from tests.helpers.fake_engine import Script, fake_command

LIMIT_S = 15.0
QUICK = (0.01, 0.02)
Event = TypeVar("Event", bound=EngineEvent)


class Told:
    """The client's events, to be waited for."""

    def __init__(self) -> None:
        self.events: queue.Queue[EngineEvent] = queue.Queue()

    def next(self, kind: type[Event]) -> Event:
        """The next event, which must be of this kind."""
        event = self.events.get(timeout=LIMIT_S)
        assert isinstance(event, kind), event
        return event

    def died(self) -> EngineDied:
        return self.next(EngineDied)

    def ready(self) -> EngineReady:
        return self.next(EngineReady)


@contextmanager
def client_on(
    folder: Path,
    script: Script | None = None,
    *,
    restart: RestartPolicy | None = None,
    command: EngineCommand | None = None,
    limits: LinkLimits | None = None,
) -> Iterator[tuple[EngineClient, Told]]:
    """A started client; closed at the end."""
    told = Told()
    client = EngineClient(
        command if command is not None else fake_command(script),
        engine_log=EngineLog(folder / "logs" / "engine.log"),
        guard=CrashGuard(folder / "crashes.json"),
        on_event=told.events.put,
        restart=restart,
        limits=limits,
    )
    client.start()
    try:
        yield client, told
    finally:
        client.close()


def load(client: EngineClient, path: str = "/models/any.gguf") -> Loaded:
    """Load and wait."""
    box = Mailbox()
    client.load(path, on_message=box.put)
    return box.answer(Loaded, LIMIT_S)


def ask(
    client: EngineClient, text: str = "hi", sampling: Sampling | None = None
) -> tuple[int, Mailbox]:
    """Begin a reply."""
    box = Mailbox()
    message = ChatMessage(role="user", text=text)
    return client.generate(Question((message,)), on_message=box.put, sampling=sampling), box


def all_of(box: Mailbox) -> list[EngineMessage]:
    """Every message up to the last one."""
    return list(box.messages(LIMIT_S))
