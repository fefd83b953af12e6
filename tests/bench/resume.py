"""Time to first token of a long chat's next turn: read anew, and resumed from each tier.

    python -m tests.bench resume [--model FILE] [--tokens 4000] [--server llama-server]

A turn of so many tokens is answered, the engine comes to rest, and the chat goes on: in the same
engine (device), after another chat took its pages (host), in a new engine from files that the
system was told to forget (disk) and from its cache. Each stands beside what it may take: rows to
read / measured speed of reading a prompt + bytes / measured speed of reading files + 60 ms. Then
what a turn writes beside what it adds, and what the writing takes from a reply that runs meanwhile.
Ends with 1 where a resume from the disk takes longer than it may.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.protocol import ChatMessage, Finished, Sampling
from tests.bench._facts import ROOT, machine, print_json
from tests.bench._server import LlamaServer
from tests.helpers.live_engine import LiveEngine
from tests.helpers.models import smol_path

ALLOWED_MS = 60.0
DISK = "disk"
CONTEXT = 4864
"""Room for one chat of 4,000 tokens and what is kept of it: another one takes its pages."""
FOLLOW_UP = "And which of them was the largest?"
REPLIES = (24, 31, 40)
"""Lengths of the first reply, so that other numbers of old rows are read again."""
PAIRS = 9
REPLY_TOKENS = 768


@dataclass(frozen=True, slots=True)
class Turn:
    """One way to begin a second turn; times in ms."""

    tier: str
    resumed: int
    read_rows: int
    old_rows: int
    moved_bytes: int
    first_token_ms: float
    allowed_ms: float | None = None

    def __str__(self) -> str:
        allowed = "" if self.allowed_ms is None else f"{self.allowed_ms:10.0f}"
        return (
            f"{self.tier:16}{self.resumed:9,}{self.read_rows:7}{self.old_rows:7}"
            f"{self.moved_bytes / 1e6:9.1f}{self.first_token_ms:12.0f}{allowed}"
        )


@dataclass(frozen=True, slots=True)
class Speeds:
    """Of this machine: prompt rows and file bytes a second."""

    rows: float
    file_bytes: float


def main(arguments: Sequence[str]) -> int:
    """Measure; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench resume")
    parser.add_argument("--model", type=Path, default=smol_path())
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--server", type=Path, help="llama.cpp's, to stand beside ours")
    wish = parser.parse_args(arguments)
    print(f"{'':16}{'resumed':>9}{'rows':>7}{'old':>7}{'MB':>9}{'first ms':>12}{'allowed':>10}")
    turns = [turn for reply in REPLIES for turn in measured(wish.model, wish.tokens, reply)]
    written = bytes_of_turns(wish.model, wish.tokens)
    cost = cost_of_writing(wish.model, wish.tokens)
    peer = {}
    if wish.server is not None:
        peer = LlamaServer(wish.server, wish.model, CONTEXT).turns(question(wish.tokens), FOLLOW_UP)
        for name, milliseconds in peer.items():
            print(f"llama-server, {name}: {milliseconds:.0f} ms to the first token")
    late = [t for t in turns if t.tier == DISK and t.first_token_ms > (t.allowed_ms or 0.0)]
    record = {"bench": "resume", "turns": turns, "written": written, "cost": cost, "peer": peer}
    print_json({**machine(2, None), **record})
    return int(bool(late))


def question(tokens: int) -> str:
    """A message of about so many tokens, in which nothing repeats."""
    text = (ROOT / "tests/data/english.txt").read_text(encoding="utf-8")
    words = text.split()
    wanted = round(tokens / 1.6)
    return " ".join(words[i % len(words)] + str(i // len(words) or "") for i in range(wanted))


def measured(model: Path, tokens: int, reply_tokens: int) -> Iterator[Turn]:
    """The first turn of a chat, and its second from each tier."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with engine(model, place) as live:
            asked, first = first_turn(live, tokens, reply_tokens)
            speeds = Speeds(1e3 * first.prompt_tokens / (first.timings.prefill_ms or 1), 0)
            yield shown(turn("cold", first, 0, None))
            old = first.prompt_tokens + len(first.ids)
            live.settle()
            yield shown(turn("device", next_turn(live, asked, first), old, None))
        for name in (DISK, "system's cache"):
            files = sorted(place.rglob("states/*/extents/*/*"))
            forget(files, wanted=name == DISK)
            speed = read_speed(files)
            forget(files, wanted=name == DISK)
            with engine(model, place) as live:
                found = next_turn(live, asked, first)
                yield shown(turn(name, found, old, Speeds(speeds.rows, speed)))
                if name == DISK:
                    live.settle()
                    first_turn(live, tokens, 8, chat="another", prefix="Another. ")
                    again = next_turn(live, asked, first)
                    yield shown(turn("after another", again, old, Speeds(speeds.rows, 5e9)))


def turn(tier: str, reply: Finished, old_tokens: int, speeds: Speeds | None) -> Turn:
    """The figures of one reply; ``old_tokens`` of its prompt are those of the turn before."""
    rows = reply.prompt_tokens - reply.resumed_tokens
    allowed = None
    if speeds is not None:
        moved_s = reply.resumed_bytes / speeds.file_bytes
        allowed = 1e3 * (rows / speeds.rows + moved_s) + ALLOWED_MS
    return Turn(
        tier=f"{tier} ({reply.resumed_from})" if tier != reply.resumed_from else tier,
        resumed=reply.resumed_tokens,
        read_rows=rows,
        old_rows=max(0, old_tokens - reply.resumed_tokens),
        moved_bytes=reply.resumed_bytes,
        first_token_ms=reply.timings.first_token_ms or 0.0,
        allowed_ms=allowed,
    )


def shown(found: Turn) -> Turn:
    """Print a line at once: the whole takes minutes."""
    print(found, flush=True)
    return found


@contextlib.contextmanager
def engine(model: Path, keeps_in: Path | None) -> Iterator[LiveEngine]:
    """One that has loaded the model, for one chat at a time."""
    with LiveEngine(keeps_in=keeps_in) as live:
        live.load(model, context=CONTEXT, streams=1)
        yield live


def first_turn(
    live: LiveEngine, tokens: int, reply_tokens: int, chat: str = "a chat", prefix: str = ""
) -> tuple[ChatMessage, Finished]:
    """The long question and its reply."""
    asked = ChatMessage(role="user", text=prefix + question(tokens))
    sampling = Sampling(temperature=0.0, max_tokens=reply_tokens)
    return asked, live.generate((asked,), chat, sampling).finished()


def next_turn(live: LiveEngine, asked: ChatMessage, first: Finished) -> Finished:
    """The second turn, answered in a few tokens."""
    said = ChatMessage(
        role="assistant", text=first.text, ids=first.ids, template_hash=first.template_hash
    )
    messages = (asked, said, ChatMessage(role="user", text=FOLLOW_UP))
    return live.generate(messages, "a chat", Sampling(temperature=0.0, max_tokens=4)).finished()


def forget(files: Sequence[Path], *, wanted: bool = True) -> None:
    """Have the system drop what it holds of the files."""
    for path in files if wanted else ():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_speed(files: Sequence[Path]) -> float:
    """Bytes a second of a plain read of all files in one thread."""
    began, size = time.perf_counter(), 0
    for path in files:
        size += len(path.read_bytes())
    return size / (time.perf_counter() - began)


def bytes_of_turns(model: Path, tokens: int) -> list[dict[str, int]]:
    """Bytes on disk that three short turns add to a long one, beside those of their new rows."""
    found = []
    with tempfile.TemporaryDirectory() as folder, engine(model, Path(folder)) as live:
        asked, reply = first_turn(live, tokens, 24)
        messages: tuple[ChatMessage, ...] = (asked,)
        seen: set[str] = set()
        before = 0
        for number in range(4):
            live.settle()
            files = {str(p): p.stat().st_size for p in Path(folder).rglob("states/*/*/*/*")}
            written = sum(size for name, size in files.items() if name not in seen)
            seen |= set(files)
            rows = reply.prompt_tokens + len(reply.ids) - before
            before += rows
            found.append({"turn": number + 1, "new_rows": rows, "written_bytes": written})
            print(f"turn {number + 1}: {rows} new rows, {written / 1e6:.1f} MB written")
            said = ChatMessage(
                role="assistant", text=reply.text, ids=reply.ids, template_hash=reply.template_hash
            )
            messages = (*messages, said, ChatMessage(role="user", text=f"And number {number}?"))
            short = Sampling(temperature=0.0, max_tokens=24)
            reply = live.generate(messages, "a chat", short).finished()
    return found


def cost_of_writing(model: Path, tokens: int) -> dict[str, float]:
    """Tokens a second of a reply while a long chat's state is written, and of the same one after.

    Each pair is of one engine; the second reply is given once nothing waits to be written.
    """
    pairs = []
    asked = (ChatMessage(role="user", text="Tell me about the sea."),)
    sampling = Sampling(temperature=0.0, max_tokens=REPLY_TOKENS)
    for _ in range(PAIRS):
        with tempfile.TemporaryDirectory() as folder, engine(model, Path(folder)) as live:
            first_turn(live, tokens, 4)
            beside = live.generate(asked, "beside writing", sampling).finished()
            live.settle()
            after = live.generate(asked, "after it", sampling).finished()
        assert beside.ids == after.ids
        pairs.append((rate(beside), rate(after)))
    shares = [1 - written / plain for written, plain in pairs]
    print(
        f"a reply beside writing {statistics.median(w for w, _ in pairs):.1f} tok/s, after it "
        f"{statistics.median(p for _, p in pairs):.1f}: {statistics.median(shares):.1%} less "
        f"({min(shares):.1%} to {max(shares):.1%})"
    )
    return {"share": statistics.median(shares), "least": min(shares), "most": max(shares)}


def rate(reply: Finished) -> float:
    """Tokens a second of a reply after its first one."""
    return 1e3 * (len(reply.ids) - 1) / (reply.timings.decode_ms or 1)
