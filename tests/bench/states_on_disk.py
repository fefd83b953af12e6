"""Kept states on disk: their speed, a folder of 2,000 of them, 100 chats under a quota.

    python -m tests.bench states_on_disk [--folder FOLDER] [--mb 90] [--quick]

A state of SmolLM2's pages (5.9 MB each) is written, then read back in a new library: from the disk
(the system is told to forget the files) and from the system's cache, beside a plain read of the
same files in one thread. Reading a state may cost 60 ms more than that. Ends with 1 where it does.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.states.border import ModelIdentity, StateArchive
from engine.states.disk.library import DiskLibrary
from engine.states.disk.stored.formats import HEADER_BYTES
from engine.states.records import Role, StateRecord, extent_names, prefix_digest, prefix_digests
from tests.bench._facts import Spread, machine, print_json

PAGE = 256 * 23_040
SMALL = 4096
ALLOWED_MS = 60.0
RUNS = 7
CHATS = 100
TURNS = 2000


def main(arguments: Sequence[str]) -> int:
    """Measure; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench states_on_disk")
    parser.add_argument("--folder", type=Path, help="on the disk to measure")
    parser.add_argument("--mb", type=int, default=90)
    parser.add_argument("--quick", action="store_true", help="fewer runs, chats and states")
    wish = parser.parse_args(arguments)
    runs, turns, many = (3, 300, 200) if wish.quick else (RUNS, TURNS, 2000)
    with tempfile.TemporaryDirectory(dir=wish.folder) as folder:
        speed = read_and_write(Path(folder), max(1, round(wish.mb * 1e6 / PAGE)), runs)
    with tempfile.TemporaryDirectory(dir=wish.folder) as folder:
        opening = open_many(Path(folder), many, runs)
    hits = [under_quota(share, turns) for share in (0.1, 0.25, 0.5, 1.0)]
    print_json({**machine(2, None), "speed": speed, "open": opening, "quota": hits})
    return int(speed["over_ms"] > ALLOWED_MS)


def read_and_write(folder: Path, pages: int, runs: int) -> dict[str, float]:
    """Times of one state of so many pages; the medians."""
    state = state_of(0, pages)
    content = os.urandom(PAGE)
    began = time.perf_counter()
    with DiskLibrary(folder) as library:
        put(library.open(identity(PAGE), b"bench", 8 * PAGE), state, content)
    wrote_ms = (time.perf_counter() - began) * 1e3
    files = sorted((folder / "states").rglob("*.0"))
    times = {
        "disk": [timed(lambda: resume(folder, state), forget=files) for _ in range(runs)],
        "plain_disk": [timed(lambda: plain(files), forget=files) for _ in range(runs)],
        "cache": [timed(lambda: resume(folder, state)) for _ in range(runs)],
        "plain_cache": [timed(lambda: plain(files)) for _ in range(runs)],
        "sum": [timed(lambda: [zlib.crc32(content) for _ in files]) for _ in range(runs)],
    }
    medians = {name: Spread.of(found) for name, found in times.items()}
    size = pages * PAGE / 1e6
    print(f"{'':14}{'ms':>24}{'GB/s':>8}   a state of {size:.0f} MB")
    print(f"{'write':14}{wrote_ms:24.0f}{size / wrote_ms:8.2f}")
    for name, spread in medians.items():
        print(f"{name:14}{spread!s:>24}{size / spread.median:8.2f}")
    over = {
        name: medians[name].median - medians[f"plain_{name}"].median for name in ("disk", "cache")
    }
    print(
        f"over a plain read: {over['disk']:.0f} ms from disk, {over['cache']:.0f} ms from the cache"
    )
    return {
        **{name: round(spread.median, 1) for name, spread in medians.items()},
        "write": round(wrote_ms, 1),
        "bytes": pages * PAGE,
        "over_ms": round(max(over.values()), 1),
    }


def open_many(folder: Path, count: int, runs: int) -> dict[str, float]:
    """How long a folder of many states takes to be opened, and until one is found."""
    content = bytes(SMALL)
    with DiskLibrary(folder) as library:
        archive = library.open(identity(SMALL), b"bench", 64 * SMALL)
        for seed in range(count):
            put(archive, last_pages(state_of(seed, 16)), content)
    opened, found = [], []
    for run in range(runs):
        with DiskLibrary(folder) as library:
            began = time.perf_counter()
            archive = library.open(identity(SMALL), b"bench", 64 * SMALL)
            opened.append((time.perf_counter() - began) * 1e3)
            assert find(archive, state_of(run, 16)) == 16 * 256
            found.append((time.perf_counter() - began) * 1e3)
    print(f"{count} states: opened in {Spread.of(opened)} ms, one found in {Spread.of(found)}")
    return {
        "states": count,
        "open_ms": Spread.of(opened).median,
        "find_ms": Spread.of(found).median,
    }


@dataclass
class Account:
    """Tokens of all prompts but the newest message, those resumed, and bytes on the way."""

    old: int = 0
    resumed: int = 0
    hits: int = 0
    returns: int = 0
    new_bytes: int = 0
    written_bytes: int = 0


def under_quota(share: float, turns: int) -> dict[str, float]:
    """Chats that grow turn by turn, some visited much more often than others."""
    choose = random.Random(1)
    lengths = dict.fromkeys(range(CHATS), 0)
    visits = choose.choices(range(CHATS), [1 / (rank + 1) for rank in range(CHATS)], k=turns)
    grown = [choose.randint(1, 3) for _ in visits]
    whole = sum(
        min(24, sum(more for chat, more in zip(visits, grown, strict=True) if chat == each))
        for each in range(CHATS)
    )
    account = Account()
    with tempfile.TemporaryDirectory() as folder:
        quota = round(share * whole * (SMALL + HEADER_BYTES + 1100))
        with DiskLibrary(Path(folder), quota) as library:
            archive = library.open(identity(SMALL), b"bench", 64 * SMALL)
            for chat, more in zip(visits, grown, strict=True):
                library.set_open([f"chat {chat}"])
                lengths[chat] = turn(archive, chat, lengths[chat], more, account)
            most = library.usage().disk_bytes
    assert most <= quota
    print(
        f"{CHATS} chats, {turns} turns, quota {share:4.0%} of all: {account.hits} of"
        f" {account.returns} returns resumed, {account.resumed / account.old:6.1%} of old tokens;"
        f" bytes written / new {account.written_bytes / account.new_bytes:.2f}"
    )
    return {
        "share": share,
        "hit_rate": round(account.hits / account.returns, 3),
        "token_rate": round(account.resumed / account.old, 3),
        "written_per_new": round(account.written_bytes / account.new_bytes, 2),
    }


def turn(archive: StateArchive, chat: int, pages: int, more: int, account: Account) -> int:
    """Resume what there is, then keep the longer state; at 24 pages a chat begins anew."""
    if pages:
        at = find(archive, state_of(chat, pages))
        account.old += 256 * pages
        account.resumed += at
        account.returns += 1
        account.hits += at > 0
    length = pages + more if pages + more <= 24 else more
    account.new_bytes += (length - pages if length > pages else length) * SMALL
    state = state_of(chat, length)
    account.written_bytes += sum(not archive.has(name) for name in state.extents) * SMALL
    put(archive, state, bytes(SMALL))
    while archive.census().waiting_bytes:
        time.sleep(0.0002)
    return length


def resume(folder: Path, state: StateRecord) -> None:
    """What a restart does: open, find, read and copy a state."""
    into = np.empty(PAGE, np.uint8)
    with DiskLibrary(folder) as library:
        archive = library.open(identity(PAGE), b"bench", 8 * PAGE)
        assert find(archive, state) == state.at
        with closing(archive.fetch(state, state.extents)) as fetch:
            while fetch.status == "reading":
                for piece in fetch.ready():
                    into[:] = np.frombuffer(piece.content, np.uint8)
                    fetch.done(piece.name)
                time.sleep(0.0005)
            assert fetch.status == "read"


def plain(files: Sequence[Path]) -> None:
    """Read the same files by one thread into one buffer."""
    buffer = bytearray(PAGE + HEADER_BYTES)
    for path in files:
        with path.open("rb", buffering=0) as file:
            assert file.readinto(buffer) == len(buffer)


def timed(work: Callable[[], object], forget: Sequence[Path] = ()) -> float:
    """Milliseconds; the system is told to forget files first."""
    for path in forget:
        number = os.open(path, os.O_RDONLY)
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(number)
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def identity(page_bytes: int) -> ModelIdentity:
    """Of a model all of whose layers reach all rows."""
    return ModelIdentity("bench", (("kv", "fp16"),), {0: page_bytes}, can_cut=True)


def state_of(chat: int, pages: int) -> StateRecord:
    """The state of a chat after so many pages."""
    ids = np.random.default_rng([chat]).integers(0, 49_152, 24 * 256, np.int32)[: 256 * pages]
    names = extent_names(ids, [None], recurrent=False)
    return StateRecord(ids, prefix_digest(ids), names, Role.END, f"chat {chat}")


def last_pages(state: StateRecord) -> StateRecord:
    """The same with two extents, as a model of sliding windows has."""
    return StateRecord(state.ids, state.key, state.extents[-2:], state.role, state.conversation)


def find(archive: StateArchive, state: StateRecord) -> int:
    """Rows that a prompt of these ids resumes."""
    hit = archive.find(list(prefix_digests(state.ids, 256)), state.ids)
    return 0 if hit is None else hit.at


def put(archive: StateArchive, state: StateRecord, content: bytes) -> None:
    """Keep a state all of whose extents are equal."""
    for name in state.extents:
        if not archive.has(name):
            while (buffer := archive.buffer(len(content))) is None:
                time.sleep(0.0002)
            buffer[:] = content
            archive.put(name, buffer)
    archive.commit(state)
