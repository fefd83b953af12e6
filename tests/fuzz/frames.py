"""Mutated frames against the codec and against a live engine: no hang, no crash, a clean close.

By hand: ``python -m tests.fuzz.frames --count 100000 --processes 300``. Each mutant is one
conversation with one fault: a bit, a cut, a length, a frame twice, two frames swapped, foreign
bytes, a deep or huge value. The codec must give messages or a ProtocolError; the engine must answer
with frames that decode, free everything and return 0 or 3.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from engine.composition import run_engine
from engine.config import EngineConfig
from engine.errors import ProtocolError
from engine.protocol import (
    LENGTH_BYTES,
    MAX_FRAME_BYTES,
    PROTOCOL_VERSION,
    AskMemory,
    Cancel,
    ChatMessage,
    CountTokens,
    FrameWriter,
    Generate,
    Hello,
    Inspect,
    Load,
    Message,
    Plan,
    Sampling,
    Unload,
    app_message_reader,
    engine_message_reader,
)

LIMIT_S = 5.0
CONVERSATION: tuple[Message, ...] = (
    Hello(version=PROTOCOL_VERSION, app="fuzz"),
    AskMemory(request=1),
    Load(request=2, path="no-such-model.gguf", context_tokens=64, streams=2),
    Plan(request=3, path="no-such-model.gguf"),
    Inspect(request=4, paths=("no-such-model.gguf", "")),
    Generate(
        request=5,
        messages=(ChatMessage(role="user", text="hi", ids=(1, 2), template_hash="x"),),
        sampling=Sampling(temperature=0.5, top_k=3, stop=("a", "b"), seed=7),
        date="2026-01-01",
    ),
    Cancel(request=5),
    CountTokens(request=6, text="four words are here"),
    Unload(request=7),
)


def frames() -> list[bytes]:
    """The conversation, one entry a frame with its length."""
    sink = io.BytesIO()
    writer = FrameWriter(sink)
    found = []
    for message in CONVERSATION:
        writer.write(message)
        found.append(sink.getvalue())
        sink.seek(0)
        sink.truncate()
    return found


VALID = frames()


def mutant(rng: random.Random) -> tuple[str, bytes]:
    """One conversation with one fault in it, and the fault's name."""
    parts = list(VALID)
    place = rng.randrange(len(parts))
    name = rng.choice(sorted(MUTATIONS))
    MUTATIONS[name](rng, parts, place)
    return name, b"".join(parts)


def _flip(rng: random.Random, parts: list[bytes], place: int) -> None:
    frame = bytearray(parts[place])
    for _ in range(rng.choice((1, 1, 2, 8))):
        frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
    parts[place] = bytes(frame)


def _flip_body(rng: random.Random, parts: list[bytes], place: int) -> None:
    frame = bytearray(parts[place])
    frame[rng.randrange(LENGTH_BYTES, len(frame))] = rng.randrange(256)
    parts[place] = bytes(frame)


def _cut(rng: random.Random, parts: list[bytes], place: int) -> None:
    parts[place] = parts[place][: rng.randrange(len(parts[place]))]
    if rng.random() < 0.5:
        del parts[place + 1 :]


def _length(rng: random.Random, parts: list[bytes], place: int) -> None:
    size = rng.choice(
        (0, 1, MAX_FRAME_BYTES, MAX_FRAME_BYTES + 1, 2**31, 2**32 - 1, len(parts[place]))
    )
    parts[place] = size.to_bytes(LENGTH_BYTES, "little") + parts[place][LENGTH_BYTES:]


def _twice(_rng: random.Random, parts: list[bytes], place: int) -> None:
    parts.insert(place, parts[place])


def _swap(rng: random.Random, parts: list[bytes], place: int) -> None:
    other = rng.randrange(len(parts))
    parts[place], parts[other] = parts[other], parts[place]


def _drop(_rng: random.Random, parts: list[bytes], place: int) -> None:
    del parts[place]


def _foreign(rng: random.Random, parts: list[bytes], place: int) -> None:
    parts.insert(place, rng.randbytes(rng.choice((1, 4, 40))))


def _framed_noise(rng: random.Random, parts: list[bytes], place: int) -> None:
    parts.insert(place, framed(rng.randbytes(rng.choice((0, 1, 30, 3000)))))


def _value(rng: random.Random, parts: list[bytes], place: int) -> None:
    """A well-formed frame whose message has one field of another type or an odd value."""
    sequence, message = msgspec.msgpack.decode(parts[place][LENGTH_BYTES:])
    field_name = rng.choice(sorted(message))
    message[field_name] = rng.choice(ODD)
    if rng.random() < 0.2:
        message["unknown"] = 1
    parts[place] = framed(msgspec.msgpack.encode((sequence, message)))


def _deep(rng: random.Random, parts: list[bytes], place: int) -> None:
    parts[place] = framed(
        b"\x92\x00" + rng.choice((b"\x91", b"\x81\xa1a")) * rng.choice((10, 5000, 100_000))
    )


def framed(body: bytes) -> bytes:
    """A body behind its true length."""
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


ODD: tuple[object, ...] = (
    *(None, True, -1, 0, 2**63, 2**64 - 1, -(2**63), 1e308, float("nan"), float("inf"), ""),
    *("\x00", "x" * 10_000, b"bytes", (), (1,), {}, {"a": 1}, [[]], "../../etc/passwd", "Load"),
)
MUTATIONS: dict[str, Callable[[random.Random, list[bytes], int], None]] = {
    "flip": _flip,
    "flip-body": _flip_body,
    "cut": _cut,
    "length": _length,
    "twice": _twice,
    "swap": _swap,
    "drop": _drop,
    "foreign": _foreign,
    "framed-noise": _framed_noise,
    "value": _value,
    "deep": _deep,
}


@dataclass
class Outcome:
    """What happened to a run of mutants; a fault raises instead."""

    seen: Counter[str] = field(default_factory=Counter)
    worst_s: float = 0.0

    def note(self, what: str, seconds: float) -> None:
        self.seen[what] += 1
        self.worst_s = max(self.worst_s, seconds)


def against_codec(count: int, seed: int) -> Outcome:
    """Read each mutant with the engine's reader; only ProtocolError may come out of it."""
    rng, outcome = random.Random(seed), Outcome()
    for _ in range(count):
        name, stream = mutant(rng)
        began, source = time.perf_counter(), io.BytesIO(stream)
        reader = app_message_reader(source)
        try:
            while reader.read() is not None:
                pass
            result = "read"
        except ProtocolError as error:
            assert error.sentence, name
            result = "refused"
        outcome.note(f"{name} {result}", time.perf_counter() - began)
    return outcome


def against_engine(count: int, seed: int, folder: Path) -> Outcome:
    """Feed each mutant to an engine of this process through a pipe, then close it."""
    rng, outcome = random.Random(seed), Outcome()
    for _ in range(count):
        name, stream = mutant(rng)
        began = time.perf_counter()
        code, answers = _one_engine(stream, folder)
        seconds = time.perf_counter() - began
        assert code in (0, 3), f"{name}: the engine returned {code}"
        assert seconds < LIMIT_S, f"{name}: the engine took {seconds:.1f} s"
        outcome.note(f"{name} code {code}", seconds)
        reader = engine_message_reader(io.BytesIO(answers))
        while reader.read() is not None:
            pass
    return outcome


def against_processes(count: int, seed: int, folder: Path) -> Outcome:
    """The same with real child processes: exit code 0 or 3, in time, frames that decode."""
    rng, outcome = random.Random(seed), Outcome()
    command = [sys.executable, "-m", "engine", "--data-directory", str(folder)]
    for _ in range(count):
        name, stream = mutant(rng)
        began = time.perf_counter()
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        answers, log = child.communicate(stream, timeout=60.0)
        seconds = time.perf_counter() - began
        assert child.returncode in (0, 3), f"{name}: code {child.returncode}, log {log[-2000:]!r}"
        assert b"Traceback" not in log, log[-2000:]
        outcome.note(f"{name} code {child.returncode}", seconds)
        reader = engine_message_reader(io.BytesIO(answers))
        while reader.read() is not None:
            pass
    return outcome


def _one_engine(stream: bytes, folder: Path) -> tuple[int, bytes]:
    read, write = os.pipe()
    sink = io.BytesIO()
    with os.fdopen(read, "rb", buffering=0) as requests:
        feeder = threading.Thread(target=_feed, args=(write, stream), daemon=True)
        feeder.start()
        code = run_engine(EngineConfig(data_directory=folder), requests, sink)
    feeder.join(LIMIT_S)
    return code, sink.getvalue()


def _feed(write: int, stream: bytes) -> None:
    """Write everything, whether or not the engine still reads, and close."""
    with os.fdopen(write, "wb", buffering=0) as pipe:
        rest = memoryview(stream)
        try:
            while rest:
                rest = rest[pipe.write(rest) or 0 :]
        except OSError:
            return


def main(arguments: Sequence[str]) -> int:
    """Run all three and print what was seen, the last line as JSON."""
    parser = argparse.ArgumentParser(prog="tests.fuzz.frames")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20_261)
    wish = parser.parse_args(arguments)
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        runs: dict[str, Callable[[], Outcome]] = {
            "codec": partial(against_codec, wish.count, wish.seed),
            "engine": partial(against_engine, wish.count, wish.seed + 1, folder),
            "process": partial(against_processes, wish.processes, wish.seed + 2, folder),
        }
        for title, run in runs.items():
            began = time.perf_counter()
            outcome = run()
            seconds = time.perf_counter() - began
            for what, times in sorted(outcome.seen.items()):
                print(f"{title:8} {what:24} {times:8}")
            results[title] = {
                "mutants": outcome.seen.total(),
                "seconds": round(seconds, 1),
                "worst_ms": round(1000 * outcome.worst_s, 1),
            }
    print(json.dumps({"seed": wish.seed, **results}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
