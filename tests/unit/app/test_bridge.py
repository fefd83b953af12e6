"""What other threads tell arrives on the UI thread, in order, and not after the end."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from app.desktop.answers import Answer, Answers, Background
from app.errors import StoreFull
from app.link.bridge import EngineBridge
from app.link.events import EngineDied, EngineFault, EngineReady
from app.link.outcome import ProcessOutcome
from engine.protocol import EngineMessage, Failure, Tokens, Welcome
from tests.helpers.qt import application, settle, wait_until

READY = EngineReady(Welcome(version=1, engine="x", pid=1, device="cpu"), 0)
DIED = EngineDied(ProcessOutcome(1, 0, None, 1.0, ready=True, asked=False), 0.2)
FAULT = EngineFault(Failure(code="protocol", sentence="Cut."))


def piece(number: int) -> Tokens:
    return Tokens(request=1, region="answer", text=str(number), ids=(number,))


def test_messages_of_a_thread_arrive_here_in_their_order() -> None:
    application()
    bridge = EngineBridge()
    got: list[EngineMessage] = []
    threads: set[int] = set()

    def listen(message: EngineMessage) -> None:
        got.append(message)
        threads.add(threading.get_ident())

    forward = bridge.on_ui(listen)
    sender = threading.Thread(target=lambda: [forward(piece(n)) for n in range(500)])
    sender.start()
    sender.join()
    assert got == []
    wait_until(lambda: len(got) == 500)
    assert got == [piece(n) for n in range(500)]
    assert threads == {threading.get_ident()}


def test_each_event_is_a_signal_of_its_own_with_its_record() -> None:
    application()
    bridge = EngineBridge()
    got: list[tuple[str, object]] = []
    bridge.ready.connect(lambda record: got.append(("ready", record)))
    bridge.died.connect(lambda record: got.append(("died", record)))
    bridge.fault.connect(lambda record: got.append(("fault", record)))
    for event in (READY, DIED, FAULT):
        bridge.on_event(event)
    wait_until(lambda: len(got) == 3)
    assert got == [("ready", READY), ("died", DIED), ("fault", FAULT)]


def test_after_close_nothing_arrives() -> None:
    application()
    bridge = EngineBridge()
    got: list[EngineMessage] = []
    forward = bridge.on_ui(got.append)
    forward(piece(1))
    bridge.close()
    forward(piece(2))
    settle()
    assert got == []


def test_a_result_goes_to_its_taker_and_an_error_to_its_own() -> None:
    application()
    background = Background()
    got: list[object] = []
    background.failed.connect(lambda error: got.append(("failed", error.code)))

    def full() -> int:
        raise StoreFull("Full.")

    background.ask(lambda: 7, got.append)
    background.ask(full, got.append, lambda error: got.append(("otherwise", error.code)))
    background.ask(full, got.append)
    wait_until(lambda: len(got) == 3)
    assert got == [7, ("otherwise", "store-full"), ("failed", "store-full")]
    background.close()


def test_an_error_that_is_not_the_apps_own_is_not_swallowed() -> None:
    application()
    answers = Answers()
    future: Future[int] = Future()
    future.set_exception(ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError):
        answers._on_answered(Answer(print, print, future))
