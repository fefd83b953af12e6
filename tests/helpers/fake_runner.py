"""A runner without a model, and what else serving needs, for tests of the loop.

``FakeRunner`` keeps each row's token in the page and slot of a ``FakeDevice`` that the lane's block
tables, as uploaded, give. It makes logits from a digest of every (position, token) that the row may
see, read back through the tables, and of the lane's recurrent chain. So a wrong page, a lost row, a
stale one, or a slot that is not the stream's own changes the reply, as it would with a real model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import torch
from numpy.typing import NDArray

from engine.cache.formats import PAGE_ROWS
from engine.cache.lane import Lane
from engine.cache.pages import PagePool
from engine.cache.slots import SlotPool
from engine.protocol import EngineMessage, Failure, Finished, Tokens, ToolCall
from engine.sampling.keyed import DrawRule
from engine.sampling.penalties import PenaltyRule
from engine.sampling.rows import LogitRows, WholeRows
from engine.serving.admission import Served
from engine.serving.request import Piece, Request, WantedMark
from engine.serving.rounds import Serving
from engine.states.records import Role
from engine.states.store import StateStore
from tests.helpers.fake_device import POISON, FakeDevice, left_behind
from tests.helpers.fake_slots import FakeSlots

VOCABULARY = 97
END = 96
GREEDY = DrawRule(temperature=0.0, top_k=0, top_p=1.0, min_p=0.0, seed=0)


class FakeRunner:
    """Implements ``engine.runner.Runner``; ``calls`` records the work in order.

    Args:
        grid_rows: where chunks begin and states may be kept.
        chunk_rows: the most rows of one chunk.
    """

    def __init__(
        self,
        device: FakeDevice,
        *,
        shares_steps: bool = True,
        grid_rows: int = PAGE_ROWS,
        chunk_rows: int = PAGE_ROWS,
    ) -> None:
        self._device = device
        self._shares_steps = shares_steps
        self._grid_rows = grid_rows
        self._chunk_rows = chunk_rows
        self.calls: list[tuple[str, int]] = []
        self.before: Callable[[str], None] = lambda _kind: None
        self.edit: Callable[[NDArray[np.float32], int], None] = lambda _row, _position: None
        self.closed = 0

    @property
    def grid_rows(self) -> int:
        return self._grid_rows

    @property
    def chunk_rows(self) -> int:
        return self._chunk_rows

    @property
    def shares_steps(self) -> bool:
        return self._shares_steps

    def prompt_chunk(
        self, lane: Lane, ids: Sequence[int], position: int, *, wants_logits: bool = True
    ) -> torch.Tensor:
        assert position % self._grid_rows == 0
        assert 0 < len(ids) <= self._chunk_rows
        assert wants_logits or len(ids) % self._grid_rows == 0
        self.calls.append(("prompt", position))
        self.before("prompt")
        self._write(lane, ids, position)
        if not wants_logits:
            return torch.empty(0)
        return self._logits(lane, position + len(ids) - 1)

    def step(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> torch.Tensor:
        self.calls.append(("step", len(lanes)))
        self.before("step")
        for lane, token, position in zip(lanes, ids, positions, strict=True):
            self._write(lane, [token], position)
        return torch.stack([self._logits(*pair) for pair in zip(lanes, positions, strict=True)])

    def step_rows(
        self, lanes: Sequence[Lane], ids: Sequence[int], positions: Sequence[int]
    ) -> LogitRows:
        return WholeRows(self.step(lanes, ids, positions).numpy())

    def close(self) -> None:
        self.closed += 1

    def _write(self, lane: Lane, ids: Sequence[int], position: int) -> None:
        rows = np.arange(position, position + len(ids))
        for group, pool in enumerate(self._device.memory.pools):
            pages = self._device.seen(lane.table(group))[rows // PAGE_ROWS]
            assert (pages >= 0).all(), f"a row from {position} of group {group} has no page"
            assert all(pool.references(int(page)) == 1 for page in pages), "a held page is written"
            self._device.rows[group][pages, rows % PAGE_ROWS] = ids
        if self._device.slots is not None:
            assert lane.recurrent_slot is not None
            self._device.slots.extend(lane.recurrent_slot, ids)

    def _logits(self, lane: Lane, position: int) -> torch.Tensor:
        digest = blake2b(position.to_bytes(4, "little"), digest_size=8)
        for group, pool in enumerate(self._device.memory.pools):
            first = 0 if pool.window is None else max(0, position - pool.window + 1)
            rows = np.arange(first, position + 1)
            pages = self._device.seen(lane.table(group))[rows // PAGE_ROWS]
            assert (pages >= 0).all(), f"group {group} lost a row before {position}"
            seen = self._device.rows[group][pages, rows % PAGE_ROWS]
            assert (seen != POISON).all(), "a row was read that was never written"
            digest.update(seen.astype("<i8").tobytes())
        if self._device.slots is not None and lane.recurrent_slot is not None:
            digest.update(self._device.slots.chains[lane.recurrent_slot])
        rng = np.random.default_rng(int.from_bytes(digest.digest(), "little"))
        row = rng.standard_normal(VOCABULARY).astype(np.float32)
        row[END] = -30.0
        self.edit(row, position)
        return torch.from_numpy(row)


class FakeText:
    """Each token is its number and a space; thinking lies between the tokens given."""

    def __init__(self, *, stop: str | None = None, thinking: tuple[int, int] | None = None) -> None:
        self._stop = stop
        self._thinking = thinking
        self._inside = False
        self.stopped = False
        self.tool_calls: Sequence[ToolCall] = ()
        self.fault: Exception | None = None
        self.ending_fault: Exception | None = None

    def push(self, token: int) -> Sequence[Piece]:
        if self.fault is not None:
            raise self.fault
        if self._stop == str(token):
            self.stopped = True
            return ()
        if self._thinking is not None and token in self._thinking:
            self._inside = token == self._thinking[0]
            return ()
        return (("thinking" if self._inside else "answer", f"{token} "),)

    def finish(self) -> Sequence[Piece]:
        if self.ending_fault is not None:
            raise self.ending_fault
        return ()


@dataclass
class Bench:
    """One fake model being served, with a clock that the test moves, and what was sent."""

    device: FakeDevice
    runner: FakeRunner
    states: StateStore
    serving: Serving
    sent: list[EngineMessage]
    now_ns: list[int] = field(default_factory=lambda: [0])

    @property
    def pools(self) -> tuple[PagePool, ...]:
        return self.device.memory.pools

    @property
    def slots(self) -> SlotPool | None:
        return self.device.memory.slots

    @property
    def recurrent(self) -> FakeSlots | None:
        return self.device.slots

    def ask(self, wish: Request, text: FakeText | None = None) -> None:
        """Queue a request."""
        self.serving.accept(wish, text or FakeText())

    def run(self, limit: int = 10_000) -> None:
        """Rounds until nothing is left to do."""
        for _ in range(limit):
            if not self.serving.has_work:
                return
            self.serving.round()
            self.now_ns[0] += 1_000_000
        raise AssertionError("the serving never came to rest")

    def finished(self, number: int) -> Finished:
        """The one Finished of a request."""
        (found,) = [m for m in self.sent if isinstance(m, Finished) and m.request == number]
        return found

    def failure(self, number: int) -> Failure:
        """The one Failure of a request."""
        (found,) = [m for m in self.sent if isinstance(m, Failure) and m.request == number]
        return found

    def tokens(self, number: int) -> list[Tokens]:
        """The Tokens frames of a request."""
        return [m for m in self.sent if isinstance(m, Tokens) and m.request == number]


@contextmanager
def bench(
    *,
    pages: Sequence[int] = (24, 16),
    streams: int = 4,
    context: int = 2048,
    shares: bool = True,
    slot_count: int = 0,
    grid: int = PAGE_ROWS,
) -> Iterator[Bench]:
    """Serve a fake model with a full and a sliding group; the census must be zero at the end.

    Args:
        slot_count: of recurrent states; 0 is a model without recurrent layers.
        grid: rows at whose multiples states may be kept; a chunk has a page's rows at most.
    """
    pools = tuple(
        PagePool(count, window) for count, window in zip(pages, (None, 512), strict=False)
    )
    device = FakeDevice(pools, slot_count)
    runner = FakeRunner(device, shares_steps=shares, grid_rows=grid)
    states = StateStore(device.memory, grid)
    sent: list[EngineMessage] = []
    now_ns = [0]
    served = Served(runner, device.memory, states, context, streams)
    serving = Serving(served, sent.append, lambda: now_ns[0])
    yield Bench(device, runner, states, serving, sent, now_ns)
    serving.close()
    serving.close()
    assert not serving.has_work
    for pool in pools:
        assert pool.census().promised_pages == 0
    states.close()
    assert left_behind(device.memory) == []
    ended = [m.request for m in sent if isinstance(m, Finished | Failure)]
    assert len(ended) == len(set(ended)), "a request ended twice"


def request(
    number: int,
    ids: Sequence[int],
    *,
    rule: DrawRule = GREEDY,
    penalties: PenaltyRule | None = None,
    max_tokens: int | None = 8,
    wanted_marks: tuple[int, ...] = (),
    suppressed_ids: tuple[int, ...] = (),
    arrived_ns: int = 0,
) -> Request:
    """A request with everything but the prompt defaulted; each is a chat of its own."""
    return Request(
        number=number,
        ids=np.array(ids, np.int32),
        rule=rule,
        penalties=penalties or PenaltyRule(),
        max_tokens=max_tokens,
        end_ids=frozenset({END}),
        suppressed_ids=suppressed_ids,
        wanted_marks=tuple(WantedMark(at, Role.REWIND) for at in wanted_marks),
        template_hash=None,
        notes=(),
        arrived_ns=arrived_ns,
        conversation=f"chat {number}",
    )


def prompt_ids(length: int, seed: int = 0) -> list[int]:
    """Random ids below the end token."""
    ids: list[int] = np.random.default_rng(seed).integers(0, END, length).tolist()
    return ids
