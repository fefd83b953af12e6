"""The engine as a process: handshake first, whole frames whatever is printed, no orphan."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.protocol import (
    PROTOCOL_VERSION,
    AskMemory,
    EngineMessage,
    Finished,
    FrameReader,
    FrameWriter,
    Generate,
    Hello,
    Inspect,
    Inspected,
    Load,
    Loaded,
    MemoryFacts,
    Sampling,
    Shutdown,
    Tokens,
    Welcome,
    engine_message_reader,
)
from tests.helpers.tiny_gguf import write_script

LIMIT_S = 5.0


class Child:
    """One engine process and its pipes."""

    def __init__(self, folder: Path, prelude: str = "") -> None:
        start = (
            f"import runpy, sys; {prelude}"
            f"sys.argv = ['engine', '--data-directory', {str(folder)!r}];"
            "runpy.run_module('engine', run_name='__main__')"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.writer = FrameWriter(self.process.stdin)
        self.reader: FrameReader[EngineMessage] = engine_message_reader(self.process.stdout)

    def greet(self) -> Welcome:
        self.writer.write(Hello(version=PROTOCOL_VERSION, app="test"))
        found = self.reader.read()
        assert isinstance(found, Welcome)
        return found

    def until(self, kind: type[EngineMessage]) -> EngineMessage:
        while not isinstance(found := self.reader.read(), kind):
            assert found is not None
        return found

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    made = Child(tmp_path)
    yield made
    made.close()


def test_welcome_names_the_engine_before_torch_is_imported(child: Child) -> None:
    welcome = child.greet()
    assert (welcome.version, welcome.pid) == (PROTOCOL_VERSION, child.process.pid)
    assert welcome.device
    assert welcome.threads >= 1
    maps = Path(f"/proc/{child.process.pid}/maps")
    assert not maps.exists() or "libtorch" not in maps.read_text()
    child.writer.write(Shutdown())
    assert child.process.wait(LIMIT_S) == 0


def test_a_model_is_loaded_answers_and_the_process_ends_with_its_pipe(
    child: Child, tmp_path: Path
) -> None:
    write_script(tmp_path / "tiny.gguf", [" one", " two"], loop=True)
    path = str(tmp_path / "tiny.gguf")
    child.greet()
    child.writer.write(Inspect(request=1, paths=(path,)))
    assert isinstance(child.until(Inspected), Inspected)
    child.writer.write(Load(request=2, path=path))
    assert isinstance(child.until(Loaded), Loaded)
    child.writer.write(Generate(request=3, raw="x", sampling=Sampling(max_tokens=3)))
    finished = child.until(Finished)
    assert isinstance(finished, Finished)
    assert len(finished.ids) == 3
    child.writer.write(Generate(request=4, raw="x"))
    child.until(Tokens)
    assert child.process.stdin is not None
    child.process.stdin.close()
    child.process.stdin = None
    began = time.monotonic()
    while child.reader.read() is not None:
        pass
    assert child.process.wait(LIMIT_S) == 0
    assert time.monotonic() - began < LIMIT_S


def test_a_stray_print_lands_in_the_log_and_cuts_no_frame(tmp_path: Path) -> None:
    prelude = (
        "import os, threading;"
        "stray = lambda: (print('stray', flush=True), os.write(1, b'raw'));"
        "threading.Timer(0.5, stray).start();"
    )
    child = Child(tmp_path, prelude)
    child.greet()
    time.sleep(1.0)
    child.writer.write(AskMemory(request=1))
    assert isinstance(child.until(MemoryFacts), MemoryFacts)
    child.writer.write(Shutdown())
    _, log = child.process.communicate(timeout=LIMIT_S)
    assert b"stray" in log
    assert b"raw" in log


def test_another_version_is_one_sentence_and_an_exit_code(child: Child) -> None:
    child.writer.write(Hello(version=99, app="test"))
    assert isinstance(child.reader.read(), Welcome)
    assert child.reader.read() is None
    assert child.process.wait(LIMIT_S) == 3
    _, log = child.process.communicate()
    assert b"speaks version 99" in log


def test_an_engine_dies_with_its_parent_even_if_the_pipe_stays_open(tmp_path: Path) -> None:
    """A grandchild keeps the pipe's end, so only the signal is left."""
    code = (
        "import os, subprocess, sys, time;"
        "child = subprocess.Popen("
        f"[sys.executable, '-m', 'engine', '--data-directory', {str(tmp_path)!r}],"
        "stdin=0, stdout=1, stderr=subprocess.DEVNULL);"
        "os.write(2, str(child.pid).encode() + b'\\n');"
        "time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert parent.stdin is not None and parent.stdout is not None and parent.stderr is not None
    pid = int(parent.stderr.readline())
    FrameWriter(parent.stdin).write(Hello(version=PROTOCOL_VERSION, app="test"))
    assert isinstance(engine_message_reader(parent.stdout).read(), Welcome)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until = time.monotonic() + LIMIT_S
    while _lives(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _lives(pid)
    parent.communicate()


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    os.kill(pid, 0)
    return state != "Z"
