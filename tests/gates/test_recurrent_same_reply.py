"""The same reply where layers have recurrent states, per-layer inputs or shared pages.

Tiny random checkpoints through the real loader, plan and executors. Every page and slot begins as
NaN, so a state that was not cleared, not copied or is another stream's shows in the first token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import pytest
import torch

from engine.backend import build_runner
from engine.cache.lane import Lane
from engine.config import Compute, EngineConfig
from engine.loading.loaded import LoadedModel
from engine.loading.loader import CheckpointLoader, Measures
from engine.memory.ledger import Ledger
from engine.memory.pools import MEBIBYTE, RAM, PoolReading
from engine.protocol import EngineMessage, Finished, Load
from engine.runner import Runner, RunnerParts
from engine.sampling.keyed import DrawRule
from engine.sampling.rows import LogitRows, WholeRows
from engine.serving.rounds import Serving
from tests.helpers.checkpoints.saving import save_text
from tests.helpers.checkpoints.shapes import BLOCKS_OF_32, ODD
from tests.helpers.checkpoints.variants import make
from tests.helpers.fake_runner import END, FakeText, prompt_ids, request

WARM = DrawRule(temperature=1.0, top_k=50, top_p=1.0, min_p=0.0, seed=9)
REPLY = 10
LONG = prompt_ids(600, 1)
PROMPTS = {
    1: [*LONG, 1],
    2: [*LONG, *prompt_ids(40, 2), 2],
    3: [*LONG[:300], *prompt_ids(90, 3), 3],
    4: [*prompt_ids(16, 4), 4],
}
"""Each ends in its own number, by which ``Witness`` knows whose logits it saw."""
CONTROL = [(LONG[0] + 1) % END, *LONG[1:], 1]
"""Prompt 1 but for its very first token."""
Seen = dict[int, tuple[bytes, ...]]
CASES = [
    ("qwen3_5", Compute.AUTO),
    ("qwen3_5", Compute.FLOAT32),
    ("qwen3_5_moe", Compute.AUTO),
    ("qwen3_next", Compute.FLOAT32),
    ("gemma4 per layer", Compute.AUTO),
    ("gemma4 experts", Compute.FLOAT32),
]


class Witness:
    """A ``Runner`` that keeps a digest of every row of logits, by the prompt's last token.

    Logits tell a state's smallest fault, which a draw may hide.
    """

    def __init__(self, inner: Runner) -> None:
        self._inner = inner
        self._owners: dict[int, int] = {}
        self.rows: dict[int, list[bytes]] = {}

    @property
    def grid_rows(self) -> int:
        return self._inner.grid_rows

    @property
    def chunk_rows(self) -> int:
        return self._inner.chunk_rows

    @property
    def shares_steps(self) -> bool:
        return self._inner.shares_steps

    def prompt_chunk(
        self, lane: Lane, ids: Sequence[int], position: int, *, wants_logits: bool = True
    ) -> torch.Tensor:
        logits = self._inner.prompt_chunk(lane, ids, position, wants_logits=wants_logits)
        if wants_logits:
            self._owners[id(lane)] = ids[-1]
            self.rows[ids[-1]] = [_digest(logits)]
        return logits

    def step(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> torch.Tensor:
        logits = self._inner.step(lanes, ids, positions)
        for lane, row in zip(lanes, logits, strict=True):
            self.rows[self._owners[id(lane)]].append(_digest(row))
        return logits

    def step_rows(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> LogitRows:
        return WholeRows(self.step(lanes, ids, positions).numpy())


def _digest(row: torch.Tensor) -> bytes:
    assert bool(row.isfinite().all())
    return blake2b(row.contiguous().numpy().tobytes(), digest_size=8).digest()


@dataclass
class Engine:
    """One loaded model being served."""

    loaded: LoadedModel
    serving: Serving
    witness: Witness
    sent: list[EngineMessage]

    def ask(self, *numbers: int) -> None:
        """Queue some of the prompts, each under a number of its own."""
        for number in numbers:
            self.queue(number, PROMPTS[number])

    def queue(self, number: int, ids: list[int]) -> None:
        asked = request(number, ids, rule=WARM, max_tokens=REPLY)
        self.serving.accept(replace(asked, end_ids=frozenset()), FakeText())

    def run(self) -> Seen:
        """Work until all is done; digests of each reply's logits since the last call."""
        while self.serving.has_work:
            self.serving.round()
        found = {number: tuple(rows) for number, rows in self.witness.rows.items()}
        self.witness.rows.clear()
        return found

    def finished(self, number: int) -> Finished:
        """The latest reply to a prompt."""
        return [m for m in self.sent if isinstance(m, Finished) and m.request == number][-1]


def poisoned(parts: RunnerParts) -> Witness:
    """The real runner over memory in which nothing is a number yet."""
    tensors = list(parts.kv.tensors)
    if parts.recurrent is not None:
        tensors += [parts.recurrent.states, parts.recurrent.tails]
    for tensor in tensors:
        tensor.fill_(float("nan"))
    return Witness(build_runner(parts))


@contextmanager
def engine(folder: Path, compute: Compute, streams: int = 4) -> Iterator[Engine]:
    ledger = Ledger({RAM: 0})
    reading = PoolReading(RAM, 4096 * MEBIBYTE, 4096 * MEBIBYTE)
    loader = CheckpointLoader(
        EngineConfig(data_directory=folder, compute=compute, threads=1),
        ledger,
        builder=lambda: poisoned,
        measures=Measures(ram=lambda: reading),
    )
    loaded = loader.load(
        Load(request=1, path=str(folder), context_tokens=1024, streams=streams),
        lambda _phase, _done, _total: None,
    )
    planned = {line.owner: line.bytes for line in loaded.plan}
    held = dict(ledger.pool(RAM).holders)
    assert held.get("recurrent states", 0) == planned.get("recurrent states", 0)
    assert sum(held.values()) <= sum(planned.values())
    sent: list[EngineMessage] = []
    serving = Serving(loaded.served, sent.append, lambda: 0)
    assert isinstance(loaded.served.runner, Witness)
    loaded.served.runner.rows.clear()
    try:
        yield Engine(loaded, serving, loaded.served.runner, sent)
        serving.close()
        loaded.served.states.close()
        slots = loaded.served.slots
        assert slots is None or slots.census().free_slots == slots.census().slot_count
        for pool in loaded.served.pools:
            assert pool.census().free_pages == pool.page_count
    finally:
        loaded.close()
    ledger.close()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, Compute], Path]:
    """Odd sizes take torch; where the native library is wanted, widths that it takes."""
    made = {}
    for name, compute in CASES:
        folder = tmp_path_factory.mktemp("model")
        widths = ODD if compute is Compute.FLOAT32 else BLOCKS_OF_32
        save_text(name, make(name, widths), folder)
        made[name, compute] = folder
    return made


@pytest.mark.parametrize(("name", "compute"), CASES)
def test_logits_are_the_same_cold_resumed_in_company_and_after_an_eviction(
    folders: dict[tuple[str, Compute], Path], name: str, compute: Compute
) -> None:
    """Cold passes are those of engines that saw nothing else."""
    folder = folders[name, compute]
    cold: Seen = {}
    for number in PROMPTS:
        with engine(folder, compute, streams=1) as made:
            made.ask(number)
            cold |= made.run()
    with engine(folder, compute, streams=1) as made:
        made.queue(1, CONTROL)
        assert made.run()[1] != cold[1]
    assert all(len(rows) == REPLY for rows in cold.values())
    with engine(folder, compute) as made:
        made.ask(*PROMPTS)
        assert made.run() == cold
        made.ask(*reversed(PROMPTS))
        assert made.run() == cold
        resumed = [made.finished(number).resumed_tokens for number in PROMPTS]
        grid = made.loaded.served.runner.grid_rows
        assert resumed == [(len(ids) - 1) // grid * grid for ids in PROMPTS.values()]
        assert resumed[0] > 256, "the control"
        made.ask(2, 1)
        for _ in range(2):
            made.serving.round()
        made.serving.cancel(2)
        assert made.run()[1] == cold[1]
        made.loaded.served.states.close()
        made.ask(2)
        assert made.run()[2] == cold[2]
        evicted = made.finished(2)
        assert (evicted.resumed_tokens, evicted.reason) == (0, "nothing-kept")
