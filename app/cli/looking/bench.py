"""``hearth bench``: how fast a model reads and writes here, with llama.cpp beside it.

A run reads a prompt of about 512 tokens and generates 128 after it. Each run's prompt begins
differently, so that no kept state helps. The peer gets the same file, as many threads, and the GPU
where Hearth computes on one; runs alternate, so that both see the same machine. Medians are
printed.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator
from typing import Final

import msgspec

from app.cli.ask import per_second, read_settings
from app.cli.engine import (
    ANSWER_LIMIT_S,
    MakeCommand,
    StartedEngine,
    chosen_model,
    installed,
    own_command,
    started_engine,
)
from app.cli.looking.peer import Peer, PeerTask, find_peer
from app.cli.options import BenchOptions
from app.cli.output import Output
from app.directories import Directories, make_private
from app.library.catalogue import ENDING
from app.link.client import EngineClient, Question
from app.link.mailbox import Mailbox
from app.lock import DirectoryLock
from engine.protocol import Counted, Finished, Loaded, Sampling

PROMPT_TOKENS: Final = 512
REPLY_TOKENS: Final = 128
SENTENCE: Final = (
    "The river ran slowly past the old mill, and the people of the town walked along its banks "
    "in the evening to talk about the weather, the harvest and the long road to the sea. "
)


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """Figures over all runs; null where nothing was measured."""

    median: float | None
    lowest: float | None
    highest: float | None


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints; the peer's parts are null without one.

    ``prefill`` and ``decode`` are tokens a second, ``first_token_ms`` counts from the request's
    arrival in the engine; ``on_gpu`` says whether the model computes on a GPU.
    """

    model: str
    device: str
    on_gpu: bool
    threads: int
    runs: int
    prompt_tokens: int
    reply_tokens: int
    prefill: Speed
    decode: Speed
    first_token_ms: Speed
    peer: str | None
    peer_prefill: Speed | None
    peer_decode: Speed | None


class Figures:
    """The figures of one side, run by run."""

    def __init__(self) -> None:
        self.prefill: list[float] = []
        self.decode: list[float] = []
        self.first_token_ms: list[float] = []

    def add(
        self, prefill: float | None, decode: float | None, first_token_ms: float | None = None
    ) -> None:
        """Take one run; what was not measured is left out."""
        self.prefill.extend(() if prefill is None else (prefill,))
        self.decode.extend(() if decode is None else (decode,))
        self.first_token_ms.extend(() if first_token_ms is None else (first_token_ms,))


def bench(
    options: BenchOptions, places: Directories, make_command: MakeCommand, output: Output
) -> int:
    """Run the command and return the exit code; raises AppError."""
    peer = find_peer(options.peer)
    settings = read_settings(places, output)
    make_private(places.data)
    with contextlib.ExitStack() as stack:
        stack.enter_context(DirectoryLock(places.lock_file, "hearth bench"))
        catalogue = installed(places, settings).catalogue
        path = chosen_model(options.model, None, settings, catalogue)
        command = own_command(places, settings, make_command)
        engine = stack.enter_context(started_engine(places, command))
        loaded = engine.load(path, settings.to_wish())
        task = PeerTask(path, max(1, engine.welcome.threads), computes_on_gpu(loaded))
        report = measure(options, engine, task, peer)
    if options.json:
        output.json(report)
    else:
        for line in lines(report):
            output.line(line)
    return 0


def measure(
    options: BenchOptions, engine: StartedEngine, task: PeerTask, peer: Peer | None
) -> BenchReport:
    """Run both sides in turn; ``task`` is what the peer measures, and Hearth has loaded."""
    ours, theirs = Figures(), Figures()
    finished = run_once(engine.client, 0)  # The first run warms up and is not counted.
    for run in range(1, options.runs + 1):
        finished = run_once(engine.client, run)
        timings = finished.timings
        read_tokens = finished.prompt_tokens - finished.resumed_tokens
        ours.add(
            per_second(read_tokens, timings.prefill_ms),
            per_second(len(finished.ids) - 1, timings.decode_ms),
            timings.first_token_ms,
        )
        if peer is not None:
            theirs.add(
                peer.prefill_tok_s(task, PROMPT_TOKENS),
                peer.decode_tok_s(task, REPLY_TOKENS, PROMPT_TOKENS),
            )
    return BenchReport(
        model=task.model.name.removesuffix(ENDING),
        device=engine.welcome.device,
        on_gpu=task.on_gpu,
        threads=task.threads,
        runs=options.runs,
        prompt_tokens=finished.prompt_tokens,
        reply_tokens=len(finished.ids),
        prefill=speed(ours.prefill),
        decode=speed(ours.decode),
        first_token_ms=speed(ours.first_token_ms),
        peer=None if peer is None else str(peer.program),
        peer_prefill=None if peer is None else speed(theirs.prefill),
        peer_decode=None if peer is None else speed(theirs.decode),
    )


def computes_on_gpu(loaded: Loaded) -> bool:
    """Whether a GPU's memory holds the model's pages or weights."""
    return any(line.pool.startswith("gpu") and line.bytes for line in loaded.plan)


def run_once(client: EngineClient, run: int) -> Finished:
    """Read one prompt, generate greedily; raises EngineRefused or EngineUnavailable."""
    prompt = prompt_of(client, run)
    sampling = Sampling(temperature=0.0, max_tokens=REPLY_TOKENS)
    with Mailbox() as box:
        client.generate(Question(raw=prompt), sampling=sampling, on_message=box.put)
        return box.answer(Finished)


def prompt_of(client: EngineClient, run: int) -> str:
    """A text of at most ``PROMPT_TOKENS`` tokens, as near as whole words come."""
    words = f"Chapter {run}. {SENTENCE * 40}".split(" ")
    low, high = 1, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if count(client, " ".join(words[:middle])) <= PROMPT_TOKENS:
            low = middle
        else:
            high = middle - 1
    return " ".join(words[:low])


def count(client: EngineClient, text: str) -> int:
    """How many tokens a text has with the loaded model."""
    with Mailbox() as box:
        client.count_tokens(text, on_message=box.put)
        return box.answer(Counted, ANSWER_LIMIT_S).tokens


def speed(figures: list[float]) -> Speed:
    """Median and range."""
    if not figures:
        return Speed(median=None, lowest=None, highest=None)
    middle = statistics.median(figures)
    return Speed(median=middle, lowest=min(figures), highest=max(figures))


def lines(report: BenchReport) -> Iterator[str]:
    """The report for people."""
    where = "on the GPU" if report.on_gpu else f"{report.threads} threads"
    yield f"{report.model} on {report.device}, {where}, {report.runs} runs"
    yield f"{'tokens a second':<24}{'prefill ' + str(report.prompt_tokens):>18}" + (
        f"{'decode ' + str(report.reply_tokens):>18}"
    )
    yield f"{'hearth':<24}{_figure(report.prefill):>18}{_figure(report.decode):>18}"
    if report.peer_prefill is not None and report.peer_decode is not None:
        prefill, decode = report.peer_prefill, report.peer_decode
        yield f"{'llama.cpp':<24}{_figure(prefill):>18}{_figure(decode):>18}"
        prefill_ratio, decode_ratio = _ratio(report.prefill, prefill), _ratio(report.decode, decode)
        yield f"{'ratio':<24}{prefill_ratio:>18}{decode_ratio:>18}"
    yield f"first token after {_figure(report.first_token_ms)} ms"


def _figure(found: Speed) -> str:
    return "-" if found.median is None else f"{found.median:.1f}"


def _ratio(ours: Speed, theirs: Speed) -> str:
    if ours.median is None or not theirs.median:
        return "-"
    return f"{ours.median / theirs.median:.2f}x"
