"""The window as a process: how it ends, what it leaves, and what a second one does."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.helpers.fake_engine import Script
from tests.helpers.window_child import QUESTION, started_window

COUNTING = " ".join(str(number) for number in range(2000))
SLOW = Script(reply=COUNTING, words_per_s=100)
LIMIT_S = 30.0


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A data directory; the processes that a failed test left on it are ended."""
    data = tmp_path / "data"
    yield data
    for process in psutil.Process().children(recursive=True):
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def rows(folder: Path) -> list[tuple[str, str, str]]:
    """(role, state, text) of every turn on disk; none while the store is being made."""
    file = folder / "chats.sqlite3"
    if not file.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute("SELECT role, state, text FROM turn ORDER BY id").fetchall()
        except sqlite3.OperationalError:
            return []


def reply(folder: Path) -> tuple[str, str]:
    """(state, text) of the first reply on disk; empty where there is none yet."""
    found = [(state, text) for role, state, text in rows(folder) if role == "assistant"]
    return found[0] if found else ("", "")


def engines(window: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(window.pid).children(recursive=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_the_window_cleanly_while_a_reply_comes(
    folder: Path, number: signal.Signals
) -> None:
    window = started_window(folder, SLOW)
    wait_for(lambda: len(reply(folder)[1]) > 20)
    children = engines(window)
    assert children
    window.send_signal(number)
    out, err = window.communicate(timeout=LIMIT_S)
    assert (window.returncode, out, err) == (0, "", "")
    assert not any(child.is_running() for child in children)
    state, text = reply(folder)
    assert state == "cut" and COUNTING.startswith(text)


def test_after_kill_nine_the_engine_goes_and_at_most_half_a_second_is_lost(folder: Path) -> None:
    window = started_window(folder, SLOW)
    wait_for(lambda: len(reply(folder)[1]) > 100)
    children = engines(window)
    window.kill()
    window.communicate(timeout=LIMIT_S)
    kept = reply(folder)[1]
    assert COUNTING.startswith(kept) and len(kept) > 100
    wait_for(lambda: not any(child.is_running() for child in children), 5)
    again = started_window(folder, Script())
    wait_for(lambda: reply(folder)[0] == "cut")
    assert reply(folder)[1] == kept
    again.send_signal(signal.SIGTERM)
    assert again.communicate(timeout=LIMIT_S) == ("", "")


def test_a_second_window_on_the_same_folder_asks_the_first_to_come_forward(folder: Path) -> None:
    first = started_window(folder, Script())
    wait_for(lambda: reply(folder)[0] == "whole")
    second = started_window(folder, Script())
    out, err = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 0 and out == ""
    assert err == "Hearth is already open; its window was asked to come forward.\n"
    wait_for(lambda: not (folder / "run" / "come-forward").exists())
    assert first.poll() is None
    first.send_signal(signal.SIGTERM)
    out, err = first.communicate(timeout=LIMIT_S)
    # The offscreen platform has no windows to bring forward, and says so.
    assert (first.returncode, err.removeprefix("This plugin does not support raise()\n")) == (0, "")


def test_the_question_is_on_disk_before_the_engine_has_it(folder: Path) -> None:
    window = started_window(folder, Script(load_s=30, load_steps=3))
    wait_for(lambda: rows(folder) == [("user", "whole", QUESTION)])
    window.send_signal(signal.SIGTERM)
    assert window.communicate(timeout=LIMIT_S) == ("", "")
    assert window.returncode == 0
