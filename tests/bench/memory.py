"""Anonymous memory of the real engine process beside its plan.

    python -m tests.bench memory [--model FILE]... [--context N]... [--threads N]

Starts the engine, has it import everything, loads the model with room for four chats, fills each
chat to the context's end, all four at once, and then has as many short ones, four at once, as it
takes until the states kept on the device and those in memory have their share too. A thread here
reads the child's ``smaps_rollup`` every 20 ms; from its largest value the one after the imports is
taken away. Measured may be 5 % and 64 MiB away from planned, either way. Linux only.
"""

from __future__ import annotations

import argparse
import itertools
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from engine.cache.formats import PAGE_ROWS
from engine.memory.measured import anonymous_bytes
from engine.memory.pools import MEBIBYTE, RAM
from engine.protocol import (
    PROTOCOL_VERSION,
    AppMessage,
    AskMemory,
    ChatMessage,
    Counted,
    CountTokens,
    EngineMessage,
    Failure,
    Finished,
    FrameReader,
    FrameWriter,
    Generate,
    Hello,
    Load,
    Loaded,
    MemoryFacts,
    PlanLine,
    Sampling,
    Settle,
    Settled,
    Shutdown,
    Welcome,
    engine_message_reader,
)
from tests.bench._facts import machine, print_json
from tests.helpers.models import gemma_path, smol_path

CHATS = 4
Kind = TypeVar("Kind", bound=EngineMessage)
CONTEXTS = (1024, 4096, 8192)
PERIOD_S = 0.02
REPLY_TOKENS = 24
SHORT = 450
"""Tokens of a context that a short chat fills: one whole page, and the margin."""
KEPT_STATES = 16
MOST_CHATS = 80
MARGIN_TOKENS = 160
"""Between a prompt and the context's end: the reply, and what a template adds."""
LARGEST_SHARE = 0.05
LARGEST_BYTES = 64 * MEBIBYTE
SETTLE_MS = 20_000.0
START = """
import runpy, sys
import engine.backend, engine.composition, engine.loading.assembly
sys.argv = ["engine", "--data-directory", sys.argv[1], *sys.argv[2:]]
runpy.run_module("engine", run_name="__main__")
"""
TEXT = Path(__file__).resolve().parents[1] / "data" / "english.txt"


@dataclass(frozen=True, slots=True)
class Measured:
    """One model at one context: what was planned and what the child really held."""

    model: str
    context: int
    lines: tuple[PlanLine, ...]
    charged: dict[str, int]
    planned_bytes: int
    peak_bytes: int
    loaded_bytes: int
    told_peak_bytes: int | None

    @property
    def ratio(self) -> float:
        """Measured over planned."""
        return self.peak_bytes / self.planned_bytes

    @property
    def holds(self) -> bool:
        """Whether both are as close as they have to be."""
        apart = abs(self.peak_bytes - self.planned_bytes)
        return apart <= LARGEST_SHARE * self.planned_bytes + LARGEST_BYTES


def main(arguments: Sequence[str]) -> int:
    """Measure, print; 1 where a measurement is too far from its plan."""
    options = _options(arguments)
    found = []
    for path in options.model or [smol_path(), gemma_path()]:
        for context in options.context or CONTEXTS:
            found.append(_measured(path, context, options.threads))
            _print(found[-1])
    record = {"bench": "memory"} | machine(options.threads, None)
    print_json(record | {"cells": [_record(each) for each in found]})
    return 0 if all(each.holds for each in found) else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench memory")
    parser.add_argument("--model", type=Path, action="append", help="may be repeated")
    parser.add_argument("--context", type=int, action="append", help="may be repeated")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args(arguments)


@dataclass
class Sampler:
    """Reads one process's anonymous bytes again and again."""

    pid: int
    peak: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def now(self) -> int:
        """Bytes at this moment; 0 once the process has ended."""
        return anonymous_bytes(Path(f"/proc/{self.pid}/smaps_rollup")) or 0

    def run(self) -> None:
        """Until ``stop``."""
        while not self.stop.wait(PERIOD_S):
            self.peak = max(self.peak, self.now())


class Engine:
    """The child and what is said to it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._numbers = itertools.count(1)
        self._writer = FrameWriter(process.stdin)
        self._reader: FrameReader[EngineMessage] = engine_message_reader(process.stdout)
        self.tell(Hello(version=PROTOCOL_VERSION, app="bench"))
        self.wait(Welcome)

    def number(self) -> int:
        """A number for the next request."""
        return next(self._numbers)

    def tell(self, message: AppMessage) -> None:
        """Send one message."""
        self._writer.write(message)

    def wait(self, kind: type[Kind]) -> Kind:
        """The next message of a kind."""
        while not isinstance(found := self._reader.read(), kind):
            if found is None or isinstance(found, Failure):
                raise SystemExit(f"the engine answered {found}")
        return found


@contextmanager
def _engine(threads: int) -> Iterator[tuple[Engine, Sampler]]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", START, folder, "--threads", str(threads)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        sampler = Sampler(process.pid)
        thread = threading.Thread(target=sampler.run, name="sampler")
        try:
            engine = Engine(process)
            thread.start()
            yield engine, sampler
            engine.tell(Shutdown())
            process.wait()
        finally:
            sampler.stop.set()
            process.kill()
            process.communicate()
            thread.join()


def _measured(path: Path, context: int, threads: int) -> Measured:
    with _engine(threads) as (engine, sampler):
        time.sleep(3 * PERIOD_S)
        before = sampler.now()
        sampler.peak = 0
        engine.tell(
            Load(request=engine.number(), path=str(path), context_tokens=context, streams=CHATS)
        )
        loaded = engine.wait(Loaded)
        after_load = sampler.now() - before
        _chat(engine, [_text(engine, context, chat) for chat in range(CHATS)], first=0)
        for first in range(CHATS, CHATS + _short_chats(loaded.plan, context), CHATS):
            short = [_text(engine, SHORT, first + chat) for chat in range(CHATS)]
            _chat(engine, short, first)
        engine.tell(AskMemory(request=engine.number()))
        told = engine.wait(MemoryFacts)
    charged = {
        owner: size for pool in told.pools if pool.name == RAM for owner, size in pool.holders
    }
    lines = tuple(line for line in loaded.plan if line.pool == RAM)
    return Measured(
        model=path.name,
        context=context,
        lines=lines,
        charged=charged,
        planned_bytes=sum(line.bytes for line in lines),
        peak_bytes=sampler.peak - before,
        loaded_bytes=after_load,
        told_peak_bytes=told.measured.peak_bytes,
    )


def _short_chats(plan: Sequence[PlanLine], context: int) -> int:
    """How many chats of one whole page fill what the long ones leave of the kept states' memory."""
    sizes = {line.owner: line.bytes for line in plan}
    page_bytes = sizes["KV pages"] * PAGE_ROWS // (CHATS * context)
    long_ones = CHATS * (context - MARGIN_TOKENS) // PAGE_ROWS
    pages = math.ceil(sizes.get("kept states in memory", 0) / page_bytes)
    return max(KEPT_STATES, pages - long_ones)


def _text(engine: Engine, context: int, chat: int) -> str:
    """English that nearly fills the context, another for each chat."""
    words = TEXT.read_text("utf-8").split()
    shift = chat * len(words) // MOST_CHATS % len(words)
    endless = itertools.cycle([*words[shift:], *words[:shift]])
    chosen = list(itertools.islice(endless, context))
    engine.tell(CountTokens(request=engine.number(), text=" ".join(chosen)))
    tokens = engine.wait(Counted).tokens
    return " ".join(chosen[: max(1, len(chosen) * (context - MARGIN_TOKENS) // tokens)])


def _chat(engine: Engine, texts: Sequence[str], first: int) -> None:
    """One turn of several chats at once, and what is done after them."""
    for number, text in enumerate(texts, first):
        engine.tell(
            Generate(
                request=engine.number(),
                messages=(ChatMessage(role="user", text=text),),
                sampling=Sampling(temperature=0.0, max_tokens=REPLY_TOKENS),
                date="2026-01-01",
                conversation=f"chat {number}",
            )
        )
    for _ in texts:
        engine.wait(Finished)
    engine.tell(Settle(request=engine.number(), most_ms=SETTLE_MS))
    engine.wait(Settled)


def _print(found: Measured) -> None:
    print(f"{found.model}, context {found.context:,}, {CHATS} chats (MiB: planned, charged)")
    for line in found.lines:
        charged = found.charged.get(line.owner, 0) / MEBIBYTE
        print(f"  {line.owner:<24}{line.bytes / MEBIBYTE:>10.1f}{charged:>10.1f}  {line.reason}")
    figures = {
        "planned": found.planned_bytes,
        "held after loading": found.loaded_bytes,
        "measured peak": found.peak_bytes,
        "peak as the engine tells": found.told_peak_bytes or 0,
    }
    for name, size in figures.items():
        print(f"  {name:<24}{size / MEBIBYTE:>10.1f}")
    print(f"  ratio {found.ratio:.3f}, {'holds' if found.holds else 'TOO FAR APART'}", flush=True)


def _record(found: Measured) -> dict[str, Any]:
    """For the JSON line."""
    lines = {line.owner: line.bytes for line in found.lines}
    return asdict(replace(found, lines=())) | {
        "lines": lines,
        "ratio": round(found.ratio, 4),
        "holds": found.holds,
    }
