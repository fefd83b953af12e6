"""A process that keeps states on disk until it is killed.

``python -m tests.helpers.state_writer FOLDER SEED QUOTA`` says "ready", then "kept CHAT ROWS" for
each state once its file is there. A quota of 0 is none; with one, states also go, and now and then
a conversation is cleared or pinned.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from engine.states.border import StateArchive
from engine.states.disk.library import DiskLibrary
from engine.states.records import StateRecord
from tests.helpers.disk_states import GRID, HYBRID, PROBE, find, keep, read, record, tokens

CHATS = 12
MOST_ROWS = 20 * GRID
HOST = 60_000


def state_of(chat: int, rows: int) -> StateRecord:
    """The state of a chat after so many rows."""
    return record(tokens(rows, chat), f"chat {chat}", identity=HYBRID)


def main() -> None:
    """Write until killed."""
    folder, seed, quota = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    choose = random.Random(seed)
    with DiskLibrary(folder, quota or None) as library:
        archive = library.open(HYBRID, PROBE, HOST)
        find(archive, tokens(GRID))
        print("ready", flush=True)
        while True:
            step(library, archive, choose, evicts=quota > 0)


def step(
    library: DiskLibrary, archive: StateArchive, choose: random.Random, *, evicts: bool
) -> None:
    """Keep one more state, sometimes read one, and where ``evicts`` clear or pin a chat."""
    chat, rows = choose.randrange(CHATS), GRID * choose.randint(1, MOST_ROWS // GRID)
    state = state_of(chat, rows)
    if keep(archive, state, HYBRID) and not evicts and choose.random() < 0.3:
        # An extent that it shares may have gone with another state before it was whole.
        is_kept = archive.tier(state) != "none"
        while archive.census().waiting_bytes:
            time.sleep(0.001)
        if is_kept:
            print(f"kept {chat} {rows}", flush=True)
    if choose.random() < 0.2:
        read(archive, state)
    if evicts and choose.random() < 0.1:
        library.clear([f"chat {choose.randrange(CHATS)}"])
    if evicts and choose.random() < 0.1:
        library.pin(f"chat {choose.randrange(CHATS)}", pinned=choose.random() < 0.3)


if __name__ == "__main__":
    main()
