"""A limited child for tests: it limits itself and then tries what it must not be able to do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from engine.helpers.limits import Limits, limit_request, limit_self
from engine.helpers.pipe import read_frame, write_frame


def _environment() -> bytes:
    return " ".join(sorted(os.environ)).encode()


def _descriptors() -> bytes:
    kept = []
    for number in range(64):
        try:
            os.fstat(number)
        except OSError:
            continue
        kept.append(str(number))
    return " ".join(kept).encode()


def _modules() -> bytes:
    return " ".join(sys.modules).encode()


def _spin() -> bytes:
    while True:
        pass


def _sleep() -> bytes:
    time.sleep(60)
    return b""


def _grow() -> bytes:
    return bytes(1 << 30)


def _start() -> bytes:
    done = subprocess.run([sys.executable, "-c", ""], stdin=0, stdout=1, check=True)
    return str(done.returncode).encode()


def _fork() -> bytes:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return b"forked"


def _write() -> bytes:
    Path("/tmp/hearth-canary").write_bytes(b"x")
    return b"written"


def _read() -> bytes:
    return Path(__file__).read_bytes()


def _socket() -> bytes:
    with socket.socket() as opened:
        return str(opened.fileno()).encode()


def _die() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def _cut() -> bytes:
    sys.stdout.buffer.write(b"\xff\x00")
    sys.stdout.buffer.flush()
    raise SystemExit(0)


def _echo() -> bytes:
    return b"echo"


_TRICKS: dict[bytes, Callable[[], bytes]] = {
    name.removeprefix("_").encode(): trick
    for name, trick in list(globals().items())
    if name.startswith("_") and callable(trick) and not name.startswith("__")
}


def main(parent: int) -> None:
    limits = Limits()
    kept = limit_self(limits, parent)
    write_frame(sys.stdout.buffer, b"")
    while (name := read_frame(sys.stdin.buffer)) is not None:
        limit_request(limits)
        try:
            answer = b"did " + _TRICKS[name]()
        except (OSError, MemoryError, ValueError) as error:
            answer = b"refused " + type(error).__name__.encode()
        write_frame(sys.stdout.buffer, answer)
    del kept
