"""Kills a process that keeps states: ``python -m tests.fuzz.state_kills [N] [SEED]``.

After each kill the next start finds states that read back equal; the longest one of each chat that
was told to be on disk is there; and after a sweep no file is left that no state needs.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from engine.states.disk.library import DiskLibrary
from engine.states.records import StateRecord
from tests.helpers.disk_states import GRID, HYBRID, PROBE, expected, read
from tests.helpers.state_writer import CHATS, HOST, MOST_ROWS, state_of

QUOTA = 400_000
LIVES = 20
"""Kills in one folder, before the next one is begun."""


def run(count: int, seed: int) -> Counter[str]:
    """Kill ``count`` writers; raises AssertionError on a wrong byte, a loss or a stray."""
    choose = random.Random(seed)
    found: Counter[str] = Counter()
    for first in range(0, count, LIVES):
        quota = QUOTA * (first // LIVES % 2)
        told: dict[int, int] = {}
        with tempfile.TemporaryDirectory(prefix="state-kills-") as folder:
            for number in range(first, min(first + LIVES, count)):
                kill_one(Path(folder), number, quota, choose.uniform(0.0, 0.25), told)
                found += check(Path(folder), quota, told)
    return found


def kill_one(folder: Path, seed: int, quota: int, after_s: float, told: dict[int, int]) -> None:
    """Let one writer live for a while, kill it and note what it had told."""
    arguments = ["-m", "tests.helpers.state_writer", str(folder), str(seed), str(quota)]
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(after_s)
        writer.kill()
        for line in writer.stdout.read().decode().splitlines(keepends=True):
            if line.endswith("\n"):
                _, chat, rows = line.split()
                told[int(chat)] = max(told.get(int(chat), 0), int(rows))


def check(folder: Path, quota: int, told: dict[int, int]) -> Counter[str]:
    """Read everything back, sweep, and compare the files with the states."""
    survived: list[StateRecord] = []
    with DiskLibrary(folder, quota or None) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        for chat in range(CHATS):
            for rows in range(GRID, MOST_ROWS + 1, GRID):
                state = state_of(chat, rows)
                if archive.tier(state) != "none":
                    assert read(archive, state) == expected(state, HYBRID), (chat, rows)
                    survived.append(state)
            assert told.get(chat, 0) <= max((s.at for s in survived if owner(s) == chat), default=0)
        census = archive.census()
        assert (census.states, census.damaged) == (len(survived), 0)
        library.sweep([f"chat {chat}" for chat in range(CHATS)])
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    wanted = {"identity.state"} | {f"{state.key.hex()}.state" for state in survived}
    wanted |= {f"{name.digest.hex()}.{name.part}" for s in survived for name in s.extents}
    assert names == wanted, names ^ wanted
    return Counter(kills=1, states=len(survived), files=len(names))


def owner(state: StateRecord) -> int:
    """The number of a state's chat."""
    assert state.conversation is not None
    return int(state.conversation.split()[1])


def main() -> None:
    """Run by hand."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
    print(f"seed {seed}", flush=True)
    found = run(count, seed)
    print(
        f"{found['kills']} kills: {found['states']} states read back equal, {found['files']} files"
    )


if __name__ == "__main__":
    main()
