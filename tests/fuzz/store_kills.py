"""Kills a writer of the store at random points: ``python -m tests.fuzz.store_kills [N] [SEED]``.

After each kill every write that was acknowledged is there, the database is sound, and the next
process goes on in the same file.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from app.chat.conversation import TurnState
from app.chat.store import open_store


@dataclass
class Told:
    """What the writers were told is stored."""

    questions: dict[int, str]
    reply_tokens: dict[int, int]


def run(count: int, seed: int) -> Told:
    """Kill ``count`` writers, one after the other, on one file; raises AssertionError on a loss."""
    choose = random.Random(seed)
    told = Told({}, {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chats.sqlite3"
        for number in range(count):
            kill_one(path, number, choose.uniform(0.0, 0.3), told)
            check(path, told)
    return told


def kill_one(path: Path, seed: int, after_s: float, told: Told) -> None:
    """Let one writer write for a while, kill it and note what it had told."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.store_writer", str(path), str(seed)],
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(after_s)
        writer.kill()
        for line in writer.stdout.read().decode().splitlines(keepends=True):
            if not line.endswith("\n"):
                continue
            kind, number, rest = line.rstrip("\n").split(" ", 2)
            if kind == "user":
                told.questions[int(number)] = rest
            else:
                told.reply_tokens[int(number)] = int(rest)


def check(path: Path, told: Told) -> None:
    """Everything that was told is there."""
    opened = open_store(path)
    assert opened.notices == (), opened.notices
    with opened.store as store:
        for turn, text in told.questions.items():
            assert store.turns.read(turn).text == text
        for turn, tokens in told.reply_tokens.items():
            reply = store.turns.read(turn)
            assert reply.ids == tuple(range(len(reply.ids)))
            assert len(reply.text) == len(reply.ids) >= tokens
            assert reply.state in (TurnState.WHOLE, TurnState.CUT)
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    raw.close()


def main() -> None:
    """Run and print what was seen."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    begun = time.monotonic()
    told = run(count, seed)
    print(
        f"{count} kills in {time.monotonic() - begun:.1f} s: {len(told.questions)} questions and "
        f"{len(told.reply_tokens)} replies were acknowledged, 0 lost, database sound"
    )


if __name__ == "__main__":
    main()
