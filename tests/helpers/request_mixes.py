"""Random mixes of requests through the serving of a fake model, watched at every round.

Checked each round: no pool is promised more than it has, no more streams run than were planned,
chats are admitted in the order in which they came, side work runs only where no chat waits or
runs, and no prompt has waited longer than its bound. At the end: every request ended once, every
page, promise and slot is free.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from engine.protocol import Failure, Finished
from engine.serving.request import Phase, Request
from engine.serving.scheduler import OVERTAKEN_CHUNKS
from tests.helpers.fake_runner import Bench, FakeText, bench, prompt_ids, request

PREFIX = prompt_ids(1500, 99)
LENGTHS = (1, 2, 63, 64, 65, 255, 256, 257, 400, 511, 513, 900, 1300)


@dataclass
class Watched:
    """What one mix did.

    Attributes:
        order: chats in the order of their admission.
        longest_wait: chunks that a prompt with a lane waited for at most.
        rounds: until all had ended.
    """

    order: list[int] = field(default_factory=list)
    longest_wait: int = 0
    rounds: int = 0
    refused: int = 0
    resumed: int = 0


def run_mix(seed: int) -> Watched:
    """One random machine, one random list of requests, cancels among them."""
    draw = random.Random(seed)
    streams = draw.randint(1, 5)
    slots = draw.choice((0, 0, 1, 2, 6))
    pages = (draw.randint(4, 14), draw.randint(4, 14))
    with bench(
        pages=pages,
        streams=streams,
        shares=draw.random() < 0.5,
        slot_count=slots,
        grid=draw.choice((64, 256)),
    ) as made:
        return _Mix(draw, made, streams).run()


@dataclass
class _Mix:
    draw: random.Random
    made: Bench
    streams: int
    accepted: list[int] = field(default_factory=list)
    cancelled: set[int] = field(default_factory=set)
    sides: set[int] = field(default_factory=set)
    found: Watched = field(default_factory=Watched)

    def run(self) -> Watched:
        self.made.runner.before = self._take_time
        wishes = list(self._wishes(self.draw.choice((1, 3, 6, 14))))
        while wishes or self.made.serving.has_work:
            while wishes and self.draw.random() < 0.4:
                self._ask(wishes.pop())
            if self.accepted and self.draw.random() < 0.05:
                number = self.draw.choice(self.accepted)
                self.cancelled.add(number)
                self.made.serving.cancel(number)
            self.made.serving.round()
            self._watch()
        self._check_ends()
        return self.found

    def _wishes(self, count: int) -> Iterator[Request]:
        for number in range(1, count + 1):
            length = self.draw.choice(LENGTHS)
            cut = self.draw.randint(0, length) if self.draw.random() < 0.7 else 0
            ids = [*PREFIX[:cut], *prompt_ids(length - cut, self.draw.randrange(1000))]
            limit = self.draw.choice((0, 1, 2, 5, 12, 200))
            made = request(number, ids, max_tokens=limit, wanted_marks=(cut,))
            chat = None if self.draw.random() < 0.1 else f"chat {self.draw.randint(1, 3)}"
            yield replace(made, conversation=chat, is_side=self.draw.random() < 0.2)

    def _ask(self, wish: Request) -> None:
        self.accepted.append(wish.number)
        if wish.is_side:
            self.sides.add(wish.number)
        self.made.serving.accept(wish, FakeText(), lambda _frame: self._follow_up(wish))

    def _follow_up(self, wish: Request) -> Request | None:
        return wish if self.draw.random() < 0.5 else None

    def _take_time(self, kind: str) -> None:
        self.made.now_ns[0] += 100_000 if kind == "prompt" else 20_000

    def _watch(self) -> None:
        """What has to hold after each round."""
        self.found.rounds += 1
        assert self.found.rounds < 5000, "a request starves"
        for pool in self.made.pools:
            pool.census()
        runs = self.made.serving._runs
        assert len(runs.running) <= self.streams
        for run in runs.running.values():
            if not run.is_side and run.number not in self.found.order:
                self.found.order.append(run.number)
        unread = [r.stream for r in runs.running.values() if r.stream.phase is Phase.FILLING]
        waits = [stream.overtaken for stream in unread if not stream.request.is_side]
        self.found.longest_wait = max(self.found.longest_wait, *waits, 0)
        bound = OVERTAKEN_CHUNKS + max(0, self.streams - 2)
        assert self.found.longest_wait <= bound

    def _check_ends(self) -> None:
        ends = {m.request: m for m in self.made.sent if isinstance(m, Finished | Failure)}
        assert set(ends) == set(self.accepted)
        for number, end in ends.items():
            if isinstance(end, Failure):
                assert end.code == "memory-refused", end
                self.found.refused += 1
            elif end.stop_reason == "stopped":
                assert number in self.cancelled
            else:
                self.found.resumed += end.resumed_tokens
        chats = [n for n in self.accepted if n not in self.sides]
        assert self.found.order == [n for n in chats if n in self.found.order]
