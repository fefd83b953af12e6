"""Builds every owner of the engine process once, in order, and ends them in reverse."""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import Final

from engine.config import Device, EngineConfig
from engine.device import device_facts, products_path
from engine.errors import ProtocolError
from engine.loading.loader import CheckpointLoader, Measures
from engine.loop import EXIT_CLEAN, EXIT_DEVICE, EXIT_PROTOCOL, Loop, Surroundings
from engine.memory.gpus import read_cards
from engine.memory.ledger import Ledger
from engine.memory.machine import read_machine
from engine.pipes import ExitAlarm, Inbox, Outbox, Reader, shake_hands
from engine.protocol import (
    PROTOCOL_VERSION,
    AppMessage,
    FrameReader,
    FrameWriter,
    Welcome,
    app_message_reader,
)
from engine.protocol.frames import ByteSink, ByteSource
from engine.serving.idle.power import on_battery
from engine.serving.reply import Send
from engine.states.disk.library import DiskLibrary

VERSION: Final = "hearth-engine 0.1.0"

_LOG = logging.getLogger(__name__)


def run_engine(config: EngineConfig, requests: ByteSource, replies: ByteSink) -> int:
    """Serve one app over two pipes until it leaves; returns the process's exit code."""
    reader, writer = app_message_reader(requests), FrameWriter(replies)
    refused = _refused(config, reader, writer)
    if refused is not None:
        return refused
    inbox: Inbox = Inbox()
    alarm = ExitAlarm()
    library = DiskLibrary(config.data_directory, config.state_quota_bytes)

    def left_alone() -> None:
        alarm.start()
        library.hurry()

    Reader(reader, inbox, left_alone)
    outbox = Outbox(writer, inbox)
    code = _serve(config, inbox, outbox.send, library)
    library.close()
    outbox.close()
    alarm.cancel()
    _LOG.info("engine ended code=%d", code)
    return code


def _serve(config: EngineConfig, inbox: Inbox, send: Send, library: DiskLibrary) -> int:
    """Answer messages until the app leaves; nothing of a model is held afterwards."""
    read = partial(read_machine, config.data_directory)
    machine = read()
    ledger = Ledger(machine.capacities(), behind=machine.behind)
    loader = CheckpointLoader(config, ledger, measures=Measures(cards=read_cards), library=library)
    surroundings = Surroundings(on_battery=on_battery, library=library, machine=read)
    code = Loop(inbox, send, loader, ledger, surroundings).run()
    if code != EXIT_DEVICE:
        ledger.close()
    return code


def _refused(
    config: EngineConfig, reader: FrameReader[AppMessage], writer: FrameWriter
) -> int | None:
    """Say who we are; the exit code where app and engine do not come together."""
    device = device_facts(config.threads)
    cards = () if config.device is Device.CPU else read_cards()
    card_words = [word for card in cards[:1] for word in card.words]
    welcome = Welcome(
        version=PROTOCOL_VERSION,
        engine=VERSION,
        pid=os.getpid(),
        device=" and ".join([*(card.pool.label for card in cards[:1]), device.name]),
        capabilities=(*card_words, *device.capabilities, products_path(config.compute)),
        threads=device.threads,
    )
    try:
        if not shake_hands(reader, writer, welcome):
            return EXIT_CLEAN
    except ProtocolError as error:
        _LOG.error("handshake failed reason=%s", error.sentence)
        return EXIT_PROTOCOL
    except OSError:
        return EXIT_CLEAN
    _LOG.info("engine started pid=%d threads=%d", welcome.pid, device.threads)
    return None
