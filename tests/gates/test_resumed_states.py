"""Resumed equals fresh, byte for byte: logits after a kept state and after a pass of its own.

From the device, from host memory and from the disk, into memory that holds no number; at prompt
lengths on, past, amid and below the grid; for the first step and eight generated rows after it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine.backend import build_runner
from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import Lane
from engine.config import Compute, EngineConfig
from engine.loading.loader import CheckpointLoader, Measures
from engine.memory.ledger import Ledger
from engine.memory.pools import MEBIBYTE, RAM, PoolReading
from engine.protocol import Load, Tier
from engine.runner import Runner, RunnerParts
from engine.serving.admission import Served
from engine.states.disk.library import DiskLibrary
from engine.states.records import SLOT, Role
from engine.states.resume import Resume, ResumeStatus
from tests.helpers.checkpoints.saving import save_text
from tests.helpers.checkpoints.shapes import BLOCKS_OF_32, ODD
from tests.helpers.checkpoints.variants import make
from tests.helpers.models import gemma_path, smol_path

CONTEXT = 1024
STEPS = 8
LIMIT_S = 30.0
CHAT = "chat"
NAN_CODE = 0x7F
"""Of an 8-bit number."""
NO_NUMBER = b"\xff"
"""Any count of them is NaN, in every format."""
EXPONENT_BIT = 4
"""In the highest byte of a number: it stays finite."""

Ids = NDArray[np.int32]
Logits = list[bytes]
Kv = Literal["full", "fp8"]


@dataclass(frozen=True)
class Case:
    """One model in one format of K and V."""

    name: str
    kv: Kv = "full"
    compute: Compute = Compute.AUTO

    def __str__(self) -> str:
        return f"{self.name} {self.kv} {self.compute.value}"


CASES = (
    Case("smol"),
    Case("smol", "fp8"),
    Case("gemma"),
    Case("gemma", "fp8"),
    Case("qwen3_5"),
    Case("qwen3_5", compute=Compute.FLOAT32),
    Case("gemma4 per layer"),
    Case("gemma4 per layer", compute=Compute.FLOAT32),
)


@dataclass(frozen=True)
class World:
    """One loaded model with its kept states, and the folder that they lie in."""

    served: Served
    folder: Path

    @property
    def runner(self) -> Runner:
        return self.served.runner

    def fresh(self, ids: Ids) -> Logits:
        """Logits of a pass that knows nothing of any state."""
        lane = Lane.open(self.served.memory, len(ids) + STEPS, self.runner.chunk_rows)
        assert isinstance(lane, Lane)
        with lane:
            return self.go_on(lane, ids)

    def go_on(self, lane: Lane, ids: Ids) -> Logits:
        """Logits of the prompt's last row and of the steps after it, each step's token given."""
        rows = self.runner.chunk_rows
        logits = torch.empty(0)
        while lane.length < len(ids):
            begin = lane.length
            chunk = ids[begin : begin + rows].tolist()
            lane.extend(len(chunk))
            last = begin + len(chunk) == len(ids)
            logits = self.runner.prompt_chunk(lane, chunk, begin, wants_logits=last)
        found = [seen(logits)]
        for step in range(STEPS):
            lane.extend(1)
            token = int(ids[step % len(ids)])
            found.append(seen(self.runner.step([lane], [token], [lane.length - 1])[0]))
        return found

    def keep(self, ids: Ids, at: int) -> None:
        """Compute a prompt, and keep its state after ``at`` rows."""
        lane = Lane.open(self.served.memory, len(ids), self.runner.chunk_rows)
        assert isinstance(lane, Lane)
        with lane:
            for begin in range(0, at, self.runner.chunk_rows):
                chunk = ids[begin : min(at, begin + self.runner.chunk_rows)].tolist()
                lane.extend(len(chunk))
                self.runner.prompt_chunk(lane, chunk, begin, wants_logits=False)
            assert self.served.states.keep(lane, ids[:at], Role.END, CHAT)

    @contextmanager
    def resumed(self, ids: Ids, at: int, tier: Tier) -> Iterator[tuple[Lane, Resume]]:
        """A lane with the state of the prompt's first ``at`` rows, from that tier."""
        states = self.served.states
        found = states.find(ids, CHAT)
        assert (found.at, found.tier) == (at, tier)
        with states.pinned(found):
            rows = self.runner.chunk_rows
            lane = Lane.open(self.served.memory, len(ids) + STEPS, rows, found.held)
        assert isinstance(lane, Lane)
        with lane, states.begin_resume(found, lane) as resume:
            self.bring(resume)
            yield lane, resume

    def bring(self, resume: Resume) -> None:
        """Take steps until a resume is over."""
        until = time.monotonic() + LIMIT_S
        while resume.status is ResumeStatus.READING:
            resume.step()
            assert time.monotonic() < until, "the resume stands still"

    def write_all(self) -> None:
        """Wait until nothing is left to be written."""
        until = time.monotonic() + LIMIT_S
        while self.served.states.census().waiting_bytes:
            if not self.served.states.write_step():
                time.sleep(0.002)
            assert time.monotonic() < until, "the writing stands still"

    def forget(self) -> None:
        """The device keeps nothing; what it held is no number any more."""
        self.served.states.clear(None)
        memory, device = self.served.memory, self.served.memory.device
        for group, pool in enumerate(memory.pools):
            noise = memoryview(NO_NUMBER * device.page_bytes(group))
            for page in range(pool.page_count):
                assert pool.references(page) == 0
                device.write_page(group, page, noise)
        if memory.slots is not None:
            for slot in range(memory.slots.census().slot_count):
                device.write_slot(slot, memoryview(NO_NUMBER * device.slot_bytes))

    def parts(self) -> Sequence[int]:
        """Every page group, and the recurrent state where there is one."""
        memory = self.served.memory
        return [*range(len(memory.pools)), *([] if memory.slots is None else [SLOT])]

    def flip(self, lane: Lane, part: int) -> None:
        """Flip a bit in the last number of an extent that the lane has: a newest row's."""
        device, slot = self.served.memory.device, lane.recurrent_slot
        if part == SLOT:
            assert slot is not None
            content = bytearray(device.slot_bytes)
            device.read_slot(slot, memoryview(content))
            content[-1] ^= EXPONENT_BIT
            device.write_slot(slot, memoryview(content))
            return
        page = int(lane.table(part)[lane.length // PAGE_ROWS - 1])
        content = bytearray(device.page_bytes(part))
        device.read_page(part, page, memoryview(content))
        content[-1] ^= EXPONENT_BIT
        device.write_page(part, page, memoryview(content))


def seen(logits: torch.Tensor) -> bytes:
    """One row's bytes; every number in it is one."""
    assert bool(logits.isfinite().all())
    return logits.contiguous().numpy().tobytes()


def poisoned(parts: RunnerParts) -> Runner:
    """The real runner over memory in which nothing is a number yet."""
    for tensor in (*parts.kv.tensors, *parts.kv.scales):
        tensor.fill_(NAN_CODE if tensor.dtype is torch.uint8 else float("nan"))
    if parts.recurrent is not None:
        parts.recurrent.states.fill_(float("nan"))
        parts.recurrent.tails.fill_(float("nan"))
    return build_runner(parts)


@contextmanager
def loaded(case: Case, path: Path, folder: Path) -> Iterator[World]:
    """Load a model whose states lie in ``folder``."""
    ledger = Ledger({RAM: 0})
    # Little beyond the headroom, so that there are few pages to be poisoned.
    free = 1100 * MEBIBYTE if path.is_file() else 576 * MEBIBYTE
    reading = PoolReading(RAM, free, free)
    with DiskLibrary(folder) as library:
        loader = CheckpointLoader(
            EngineConfig(data_directory=folder, compute=case.compute, threads=2),
            ledger,
            builder=lambda: poisoned,
            measures=Measures(ram=lambda: reading),
            library=library,
        )
        wish = Load(request=1, path=str(path), context_tokens=CONTEXT, streams=2, kv=case.kv)
        model = loader.load(wish, lambda _phase, _done, _total: None)
        try:
            yield World(model.served, folder)
        finally:
            model.close()
        for pool in model.served.pools:
            assert pool.census().free_pages == pool.page_count
    ledger.close()


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Path]:
    """The models' files; tiny ones are made."""
    found: dict[Case, Path] = {}
    for case in CASES:
        if case.name in ("smol", "gemma"):
            found[case] = smol_path() if case.name == "smol" else gemma_path()
            continue
        folder = tmp_path_factory.mktemp("model")
        widths = ODD if case.compute is Compute.FLOAT32 else BLOCKS_OF_32
        save_text(case.name, make(case.name, widths), folder)
        found[case] = folder
    return found


def prompt(count: int, seed: int = 3) -> Ids:
    return np.random.default_rng(seed).integers(10, 900, count, dtype=np.int32)


def states_and_lengths(grid: int) -> Sequence[tuple[int, int]]:
    """(rows of the state, length of the prompt): just past it, amid the next grid step, farther."""
    return [(grid, grid + 1), (256, 256 + grid // 2 + 5), (512, 513), (256 + grid, 620)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_logits_after_a_kept_state_are_those_of_a_fresh_pass(
    paths: dict[Case, Path], case: Case, tmp_path: Path
) -> None:
    """Every state is resumed from the device, from host memory and after a restart."""
    wanted: dict[tuple[int, int], Logits] = {}
    with loaded(case, paths[case], tmp_path) as world:
        grid = world.runner.grid_rows
        pairs = states_and_lengths(grid)
        for at, length in pairs:
            ids = prompt(length, length)
            wanted[at, length] = world.fresh(ids)
            assert world.served.states.find(ids, CHAT).at == 0
            world.keep(ids, at)
            with world.resumed(ids, at, "device") as (lane, resume):
                assert resume.total_bytes == 0
                assert world.go_on(lane, ids) == wanted[at, length]
            world.write_all()
            world.forget()
            with world.resumed(ids, at, "host") as (lane, resume):
                assert resume.read_bytes == resume.total_bytes > 0
                assert world.go_on(lane, ids) == wanted[at, length]
            world.forget()
            below_the_grid = ids[: grid - 1]
            assert world.served.states.find(below_the_grid, CHAT).reason == "short-prompt"
    with loaded(case, paths[case], tmp_path) as world:
        for at, length in pairs:
            ids = prompt(length, length)
            with world.resumed(ids, at, "disk") as (lane, resume):
                assert resume.read_bytes == resume.total_bytes > 0
                assert world.go_on(lane, ids) == wanted[at, length]
            world.served.states.clear(None)


CONTROLS = tuple(case for case in CASES if case.compute is Compute.AUTO)


@pytest.mark.parametrize("case", CONTROLS, ids=str)
def test_one_flipped_bit_in_a_state_changes_the_logits(
    paths: dict[Case, Path], case: Case, tmp_path: Path
) -> None:
    """The control: a bit of every kind of extent is flipped behind the checksum's back."""
    ids = prompt(600)
    with loaded(case, paths[case], tmp_path) as world:
        wanted = world.fresh(ids)
        world.keep(ids, 512)
        world.write_all()
        for part in world.parts():
            world.forget()
            with world.resumed(ids, 512, "host") as (lane, _):
                world.flip(lane, part)
                assert world.go_on(lane, ids) != wanted
        world.forget()
        with world.resumed(ids, 512, "host") as (lane, _):
            assert world.go_on(lane, ids) == wanted


@pytest.mark.parametrize("case", CONTROLS[:1], ids=str)
def test_a_damaged_file_costs_a_pass_and_nothing_else(
    paths: dict[Case, Path], case: Case, tmp_path: Path
) -> None:
    ids = prompt(600)
    with loaded(case, paths[case], tmp_path) as world:
        wanted = world.fresh(ids)
        world.keep(ids, 512)
        world.write_all()
    extents = [path for path in tmp_path.rglob("extents/*/*") if path.is_file()]
    assert len(extents) == 2
    content = bytearray(extents[1].read_bytes())
    content[-5] ^= 1
    extents[1].write_bytes(content)
    with loaded(case, paths[case], tmp_path) as world:
        states, memory = world.served.states, world.served.memory
        found = states.find(ids, CHAT)
        assert found.at == 512
        lane = Lane.open(memory, len(ids) + STEPS, world.runner.chunk_rows, found.held)
        assert isinstance(lane, Lane)
        with lane, states.begin_resume(found, lane) as resume:
            world.bring(resume)
            assert resume.status is ResumeStatus.DAMAGED
        assert states.find(ids, CHAT, 512).reason == "damaged"
        assert world.fresh(ids) == wanted
