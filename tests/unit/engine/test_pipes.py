"""The pipes: a handshake first, a queue behind each end, and an end that is always noticed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO

import pytest

from engine.errors import ProtocolError
from engine.pipes import Arrived, ExitAlarm, Gone, Inbox, Outbox, Reader, shake_hands
from engine.protocol import (
    MAX_FRAME_BYTES,
    PROTOCOL_VERSION,
    AppMessage,
    AskMemory,
    FrameWriter,
    Hello,
    Message,
    Shutdown,
    Tokens,
    Unloaded,
    Welcome,
    app_message_reader,
    engine_message_reader,
)

WELCOME = Welcome(version=PROTOCOL_VERSION, engine="e", pid=1, device="d")


class Pipe:
    """One pipe with a binary file at each end."""

    def __init__(self) -> None:
        read, write = os.pipe()
        self.out: IO[bytes] = os.fdopen(read, "rb", buffering=0)
        self.into: IO[bytes] = os.fdopen(write, "wb", buffering=0)

    def close(self) -> None:
        for end in (self.out, self.into):
            if not end.closed:
                end.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def frames(*messages: Message) -> io.BytesIO:
    target = io.BytesIO()
    writer = FrameWriter(target)
    for message in messages:
        writer.write(message)
    target.seek(0)
    return target


def arrived(inbox: Inbox) -> AppMessage:
    found = inbox.get(timeout=5)
    assert isinstance(found, Arrived)
    return found.message


def test_hello_is_answered_with_welcome() -> None:
    out = io.BytesIO()
    hello = frames(Hello(version=PROTOCOL_VERSION, app="a"))
    assert shake_hands(app_message_reader(hello), FrameWriter(out), WELCOME)
    out.seek(0)
    assert engine_message_reader(out).read() == WELCOME


def test_an_app_that_leaves_before_a_word_is_no_error() -> None:
    out = io.BytesIO()
    assert not shake_hands(app_message_reader(io.BytesIO()), FrameWriter(out), WELCOME)
    assert out.getvalue() == b""


def test_another_version_is_told_ours_and_refused() -> None:
    out = io.BytesIO()
    hello = frames(Hello(version=99, app="a"))
    with pytest.raises(ProtocolError, match="speaks version 99"):
        shake_hands(app_message_reader(hello), FrameWriter(out), WELCOME)
    out.seek(0)
    assert engine_message_reader(out).read() == WELCOME


def test_anything_before_hello_is_refused() -> None:
    out = io.BytesIO()
    with pytest.raises(ProtocolError, match="began with Shutdown"):
        shake_hands(app_message_reader(frames(Shutdown())), FrameWriter(out), WELCOME)
    assert out.getvalue() == b""


def test_messages_arrive_in_order_with_their_time_and_then_the_end(pipe: Pipe) -> None:
    inbox, ended = Inbox(), threading.Event()
    before = time.monotonic_ns()
    Reader(app_message_reader(pipe.out), inbox, ended.set)
    writer = FrameWriter(pipe.into)
    for number in range(3):
        writer.write(AskMemory(request=number))
    assert [arrived(inbox) for _ in range(2)] == [AskMemory(request=0), AskMemory(request=1)]
    third = inbox.get(timeout=5)
    assert isinstance(third, Arrived)
    assert before <= third.at_ns <= time.monotonic_ns()
    pipe.into.close()
    assert inbox.get(timeout=5) == Gone(None)
    assert ended.is_set()


def test_a_cut_frame_ends_with_its_error(pipe: Pipe) -> None:
    inbox, ended = Inbox(), threading.Event()
    Reader(app_message_reader(pipe.out), inbox, ended.set)
    pipe.into.write(b"\x10\x00\x00\x00abc")
    pipe.into.close()
    found = inbox.get(timeout=5)
    assert isinstance(found, Gone)
    assert found.error is not None
    assert "13 bytes before" in found.error.sentence


def test_a_pipe_that_cannot_be_read_is_an_end(pipe: Pipe) -> None:
    inbox, ended = Inbox(), threading.Event()
    Reader(app_message_reader(pipe.into), inbox, ended.set)
    assert inbox.get(timeout=5) == Gone(None)


def test_frames_leave_in_order_and_closing_waits_for_them(pipe: Pipe) -> None:
    inbox = Inbox()
    outbox = Outbox(FrameWriter(pipe.into), inbox)
    for number in range(20):
        outbox.send(Unloaded(request=number))
    outbox.close()
    reader = engine_message_reader(pipe.out)
    assert [reader.read() for _ in range(20)] == [Unloaded(request=n) for n in range(20)]
    assert inbox.empty()


def test_an_app_that_is_gone_is_noticed_while_sending(pipe: Pipe) -> None:
    inbox = Inbox()
    outbox = Outbox(FrameWriter(pipe.into), inbox)
    pipe.out.close()
    outbox.send(Unloaded(request=1))
    assert inbox.get(timeout=5) == Gone(None)
    outbox.send(Unloaded(request=2))
    outbox.close()


def test_an_app_that_takes_nothing_counts_as_gone(
    pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    """The sender is held up for the stall's length once and never again."""
    inbox = Inbox()
    outbox = Outbox(FrameWriter(pipe.into), inbox, frame_limit=4, stall_s=0.05)
    big = Tokens(request=1, region="answer", text="x" * 100_000, ids=())
    began = time.monotonic()
    for _ in range(20):
        outbox.send(big)
    assert time.monotonic() - began < 2.0
    assert inbox.get(timeout=5) == Gone(None)
    outbox.close(0.01)
    pipe.out.close()
    outbox.close(2.0)
    assert not caplog.records or caplog.records[0].levelname == "INFO"


@pytest.mark.usefixtures("caplog")
def test_a_message_too_large_for_a_frame_is_dropped_and_the_next_one_leaves(pipe: Pipe) -> None:
    outbox = Outbox(FrameWriter(pipe.into), Inbox())
    outbox.send(Tokens(request=1, region="answer", text="x" * MAX_FRAME_BYTES, ids=()))
    outbox.send(Unloaded(request=2))
    outbox.close()
    assert engine_message_reader(pipe.out).read() == Unloaded(request=2)


def test_an_exit_that_takes_too_long_is_forced() -> None:
    code = (
        "import time; from engine.pipes import ExitAlarm; alarm = ExitAlarm(0.05);"
        "alarm.start(); alarm.start(); time.sleep(20)"
    )
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", code], check=False, stderr=subprocess.DEVNULL)
    assert ended.returncode == 4
    assert time.monotonic() - began < 10


def test_a_cancelled_alarm_never_rings() -> None:
    alarm = ExitAlarm(0.01)
    alarm.start()
    alarm.cancel()
    unused = ExitAlarm(0.01)
    unused.cancel()
    unused.start()
    time.sleep(0.05)
    alarms = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    assert alarms == [], "a timer still runs"
