"""Chats on the GPU through the whole engine: first tokens, next turns, streams, exactness.

    python -m tests.bench gpu_chat (--model FILE | --geometry 9b [--quant q4_k_m] --vocab FILE)
        [--tokens 9000] [--prompts 64,1024,8192] [--streams 8] [--device cpu] [--out FILE]
        [--parts loads,first_tokens,next_turns,streams] [--server llama-server]

Workloads G4, G5, G7, G8, G11, G12 and G15. Everything is the engine's own: loader, plan, states,
scheduler, draws; only the pipes are left out. Loading is timed twice, the second time with all
compiled. A chat of so many tokens goes on in the same engine (device), after other chats took its
pages (host), and in a new engine (disk); each resumed turn must say what a fresh one says. Streams
run together and alone, and must say the same; meanwhile the longest gap between tokens is measured
while another's prompt is read. llama.cpp's server, where it is given, reads the same long chat and
goes on from its own slot's file. Ends with 1 where any reply differs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from engine.protocol import ChatMessage, EngineMessage, Finished, Loaded, Sampling, Tokens
from tests.bench._server import LlamaServer
from tests.bench.resume import FOLLOW_UP, next_turn, question
from tests.helpers.live_engine import Asked, LiveEngine
from tests.helpers.random_checkpoint import BASES, GEOMETRIES, write_random

REPEATS = 5
REPLY_TOKENS = 64
MIXED = (512, 1024, 2048, 4096, 8192)
GAP_PROMPT = 8192
GAP_REPLY = 512
LONGEST_GAP_MS = 60.0
ALL_LAYERS = ("-ngl", "99")


@dataclass
class Bench:
    """What is asked for, and what was found; ``wrong`` are replies that should not differ."""

    model: Path
    options: argparse.Namespace
    found: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def engine(self, keeps_in: Path | None = None) -> LiveEngine:
        """One on the device that was asked for."""
        return LiveEngine(keeps_in=keeps_in, on_gpu=self.options.device == "cuda")

    def load(self, live: LiveEngine, tokens: int, streams: int) -> Loaded:
        """Load the model for so many chats of so many tokens."""
        return live.load(self.model, context=tokens, streams=streams)

    def tell(self, name: str, value: Any) -> None:
        """Keep and print a result."""
        self.found[name] = value
        print(f"{name}: {value}", flush=True)

    def must_equal(self, what: str, one: Finished, other: Finished) -> None:
        """Note where two replies differ."""
        if one.ids != other.ids:
            self.wrong.append(what)
            print(f"DIFFERS: {what}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Measure; see the module."""
    options = _options(arguments)
    model = options.model or _made(options)
    bench = Bench(model, options)
    for part in options.parts.split(","):
        PARTS[part](bench)
    record = {"bench": "gpu_chat", "model": model.name, "wrong": bench.wrong, **bench.found}
    text = json.dumps(record, default=asdict)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", "utf-8")
    return int(bool(bench.wrong))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench gpu_chat")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--geometry", choices=GEOMETRIES, default="9b")
    parser.add_argument("--quant", choices=BASES, default="q4_k_m")
    parser.add_argument("--vocab", type=Path, help="a GGUF file whose tokenizer is taken")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--tokens", type=int, default=9000, help="of the long chat")
    parser.add_argument("--prompts", default="64,1024,8192")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--server", type=Path, help="llama.cpp's, to stand beside next turns")
    return parser.parse_args(arguments)


def _made(options: argparse.Namespace) -> Path:
    path: Path = options.folder / f"chat-{options.geometry}-{options.quant}.gguf"
    if not path.exists():
        write_random(path, options.geometry, options.quant, vocabulary=options.vocab)
    return path


def loads(bench: Bench) -> None:
    """G8: from the wish to ready, twice."""
    size = bench.model.stat().st_size
    for name in ("load", "load again"):
        with bench.engine() as live:
            loaded = bench.load(live, 4096, 1)
        seconds = loaded.load_ms / 1e3
        bench.tell(name, {"s": round(seconds, 2), "gb_s": round(size / 1e9 / seconds, 2)})
    bench.tell("notes", loaded.model.notes)


def first_tokens(bench: Bench) -> None:
    """G4 and G15: cold prompts of several lengths, and the time of a token after them."""
    counts = [int(part) for part in bench.options.prompts.split(",")]
    with bench.engine() as live:
        bench.load(live, 2 * max(counts) + 512, 1)
        _spoken(live, "Good morning.", REPLY_TOKENS)
        for count in counts:
            replies = [
                _spoken(live, f"{number} {question(count)}", REPLY_TOKENS)
                for number in range(REPEATS)
            ]
            first = [reply.timings.first_token_ms or 0.0 for reply in replies]
            each = [_token_ms(reply) for reply in replies]
            bench.tell(
                f"first token of {statistics.median(r.prompt_tokens for r in replies):.0f}",
                {
                    "p50_ms": round(statistics.median(first), 2),
                    "p95_ms": round(max(first), 2),
                    "token_ms": round(statistics.median(each), 3),
                },
            )


def next_turns(bench: Bench) -> None:
    """G5 and G7: a long chat's next turn from each tier, each beside a fresh engine's."""
    tokens = bench.options.tokens
    asked = ChatMessage(role="user", text=question(tokens))
    with tempfile.TemporaryDirectory() as folder:
        with bench.engine(Path(folder)) as live:
            bench.load(live, 2 * tokens, 1)
            first = live.generate((asked,), "a chat", _greedy(24)).finished()
            bench.tell("cold turn", _turn(first))
            live.settle()
            wanted = next_turn(live, asked, first)
            bench.tell("next turn, at once", _turn(wanted))
            live.settle()
            for number in range(2):
                other = ChatMessage(role="user", text=f"Other {number}. {question(tokens)}")
                live.generate((other,), f"other {number}", _greedy(4)).finished()
            found = next_turn(live, asked, first)
            bench.tell("next turn, after others", _turn(found))
            bench.must_equal("resumed after others", wanted, found)
            live.settle()
        with bench.engine(Path(folder)) as live:
            bench.load(live, 2 * tokens, 1)
            found = next_turn(live, asked, first)
            bench.tell("next turn, new engine", _turn(found))
            bench.must_equal("resumed from the disk", wanted, found)
    with bench.engine() as live:
        bench.load(live, 2 * tokens, 1)
        fresh = next_turn(live, asked, first)
        bench.tell("next turn, all read anew", _turn(fresh))
        bench.must_equal("resumed at once, and read anew", wanted, fresh)
    if bench.options.server is not None:
        peer = LlamaServer(bench.options.server, bench.model, 2 * tokens, ALL_LAYERS)
        turns = peer.turns(question(tokens), FOLLOW_UP)
        bench.tell("llama.cpp's turns", {way: round(ms, 1) for way, ms in turns.items()})


def streams(bench: Bench) -> None:
    """G11 and G12: chats together and alone, and the gaps that a foreign prompt tears.

    Tokens a second are those written, over the whole time, the reading of prompts included.
    """
    most = bench.options.streams
    texts = [
        f"{n} {question(min(MIXED[n % len(MIXED)], bench.options.tokens))}" for n in range(most)
    ]
    room = 2 * max(MIXED) + GAP_REPLY
    with bench.engine() as live:
        bench.load(live, room, most)
        alone = [_spoken(live, text, REPLY_TOKENS) for text in texts]
        for count in [each for each in (1, 2, 4, 8) if each <= most]:
            began = time.perf_counter()
            asked = [_ask(live, text, REPLY_TOKENS) for text in texts[:count]]
            replies = [each.finished() for each in asked]
            seconds = time.perf_counter() - began
            made = sum(len(reply.ids) for reply in replies)
            bench.tell(f"{count} streams", {"tok_s": round(made / seconds, 1)})
            for number, (one, other) in enumerate(zip(alone, replies, strict=False)):
                bench.must_equal(f"stream {number} of {count}", one, other)
        bench.tell("gaps beside a foreign prompt", _gaps(live, bench))


PARTS: Final[dict[str, Callable[[Bench], None]]] = {
    "loads": loads,
    "first_tokens": first_tokens,
    "next_turns": next_turns,
    "streams": streams,
}
"""What is measured, in this order."""


def _gaps(live: LiveEngine, bench: Bench) -> dict[str, float]:
    """Milliseconds between a stream's token frames while another's prompt is read."""
    arrived: list[float] = []

    def note(frame: EngineMessage) -> None:
        if isinstance(frame, Tokens):
            arrived.append(time.perf_counter())

    running = _ask(live, "Count for as long as you can.", GAP_REPLY, note)
    while len(arrived) < 3 and not running.done.done():
        time.sleep(0.001)
    foreign = _ask(live, f"Foreign. {question(min(GAP_PROMPT, bench.options.tokens))}", 2)
    foreign.finished()
    running.finished()
    gaps = sorted(1e3 * (b - a) for a, b in pairwise(arrived))
    if not gaps:
        return {}
    return {"p50_ms": statistics.median(gaps), "p95_ms": gaps[int(0.95 * len(gaps))],
            "longest_ms": gaps[-1], "wanted_ms": LONGEST_GAP_MS}  # fmt: skip


def _greedy(tokens: int) -> Sampling:
    return Sampling(temperature=0.0, max_tokens=tokens)


def _ask(live: LiveEngine, text: str, tokens: int, on_frame: Any = None) -> Asked:
    listen = on_frame or (lambda _frame: None)
    return live.ask(text, _greedy(tokens), conversation=None, on_frame=listen)


def _spoken(live: LiveEngine, text: str, tokens: int) -> Finished:
    return _ask(live, text, tokens).finished()


def _token_ms(reply: Finished) -> float:
    return (reply.timings.decode_ms or 0.0) / max(1, len(reply.ids) - 1)


def _turn(reply: Finished) -> dict[str, Any]:
    return {
        "first_ms": round(reply.timings.first_token_ms or 0.0, 1),
        "prompt": reply.prompt_tokens,
        "resumed": reply.resumed_tokens,
        "from": reply.resumed_from,
        "moved_mb": round(reply.resumed_bytes / 1e6, 1),
        "resume_ms": round(reply.resumed_ms, 1),
        "reason": reply.reason,
    }
