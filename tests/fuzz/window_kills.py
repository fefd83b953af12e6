"""Kills the engine under an open window: ``python -m tests.fuzz.window_kills [COUNT] [SEED]``.

After each kill the window lives, what had come of the reply is in the transcript and on disk, and
the next question is answered in full.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from app.library.loaded import ModelPhase
from tests.helpers.fake_engine import Script
from tests.helpers.qt import run_for, wait_until
from tests.helpers.window import TestWindow

REPLY = " ".join(str(number) for number in range(60))
SCRIPT = Script(reply=REPLY, words_per_s=300, load_s=0.05, prompt_s=0.05)
LIMIT_S = 60.0


def kill_many(folder: Path, count: int, seed: int) -> Counter[str]:
    """Kill ``count`` times; return in which state of the chat each kill came."""
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    window = TestWindow(folder, SCRIPT).started()
    for number in range(count):
        window.chats().new()
        window.write(f"Question {number}")
        run_for(chance.uniform(0, 0.5))
        session = window.page.session
        assert session is not None
        seen[session.state.name] += 1
        window.whole.workshop.client.kill()
        wait_until(lambda: window.model().phase is not ModelPhase.READY or window.idle(), LIMIT_S)
        recover(window)
        wait_until(window.idle, LIMIT_S)
        window.ask(f"Once more {number}")
        assert f"reply: {REPLY}" in window.shown(), window.shown()
    window.close()
    check(folder, count)
    return seen


def recover(window: TestWindow) -> None:
    """Wait for the model; one that was killed twice while it loaded is loaded by the person."""
    wait_until(lambda: window.model().phase in (ModelPhase.READY, ModelPhase.FAILED), LIMIT_S)
    if window.model().phase is ModelPhase.FAILED:
        window.whole.workshop.model.try_again()
        wait_until(lambda: window.model().phase is ModelPhase.READY, LIMIT_S)


def check(folder: Path, count: int) -> None:
    """Every question is on disk, and every reply is a beginning of the script's."""
    with sqlite3.connect(f"file:{folder / 'chats.sqlite3'}?mode=ro", uri=True) as store:
        turns = store.execute("SELECT role, text FROM turn ORDER BY id").fetchall()
    asked = [text for role, text in turns if role == "user"]
    wanted = [f"{words} {n}" for n in range(count) for words in ("Question", "Once more")]
    assert asked == wanted
    assert all(REPLY.startswith(text) for role, text in turns if role == "assistant")


def main() -> int:
    """Run as a program."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    words = sys.argv[1:]
    count = int(words[0]) if words else 200
    seed = int(words[1]) if len(words) > 1 else 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        seen = kill_many(Path(folder), count, seed)
    states = ", ".join(f"{name.lower()} {times}" for name, times in sorted(seen.items()))
    print(f"{count} kills in {time.monotonic() - began:.0f} s, the chat was: {states}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
