"""Random histories of requests, cancels and faults: every reply is right and ends exactly once.

With recurrent layers too: a stream's state is a chain over all its tokens, so a slot that was not
cleared, not copied, copied at another place or shared gives another reply than the stream alone.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import cache

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from engine.errors import DeviceLost
from engine.protocol import Failure, Finished
from engine.sampling.keyed import DrawRule
from tests.helpers.fake_runner import Bench, FakeText, bench, prompt_ids, request

WARM = DrawRule(temperature=1.0, top_k=20, top_p=1.0, min_p=0.0, seed=3)
LONGEST = 24
PREFIX = prompt_ids(1100, 1)
PROMPTS = (
    PREFIX[:1],
    PREFIX[:300],
    PREFIX[:600],
    PREFIX[:1030],
    [*PREFIX[:500], *prompt_ids(400, 2)],
    [*PREFIX[:256], *prompt_ids(30, 3)],
    prompt_ids(520, 4),
)


@cache
def alone(which: int, recurrent: bool = False) -> tuple[int, ...]:
    """The longest reply to a prompt in an engine of its own."""
    with bench(slot_count=1 if recurrent else 0) as made:
        made.ask(request(1, PROMPTS[which], rule=WARM, max_tokens=LONGEST))
        made.run()
        return made.finished(1).ids


class Histories(RuleBasedStateMachine):
    """A small engine that must evict and let wait: ten full pages, nine sliding ones.

    ``recurrent_slots`` beyond one lets states be kept; 0 is a model without recurrent layers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.asked: dict[int, tuple[int, int]] = {}
        self.faults = 0
        self.recurrent = False
        self.bench: Bench

    @initialize(
        shares=st.booleans(),
        streams=st.integers(1, 4),
        recurrent_slots=st.sampled_from((0, 1, 2, 3, 5, 9)),
    )
    def start(self, shares: bool, streams: int, recurrent_slots: int) -> None:
        self.recurrent = recurrent_slots > 0
        made = bench(pages=(10, 9), streams=streams, shares=shares, slot_count=recurrent_slots)
        self.bench = self.stack.enter_context(made)

    @rule(
        which=st.integers(0, len(PROMPTS) - 1),
        limit=st.integers(0, LONGEST),
        chat=st.sampled_from((None, "one", "two")),
        is_side=st.booleans(),
    )
    def ask(self, which: int, limit: int, chat: str | None, is_side: bool) -> None:
        """Side work too; after each reply of a chat another prompt is read in the background."""
        number = len(self.asked) + 1
        self.asked[number] = (which, limit)
        wish = request(number, PROMPTS[which], rule=WARM, max_tokens=limit)
        wish = replace(wish, conversation=chat, is_side=is_side)
        other = request(number, [*PROMPTS[which], *PREFIX[:300]])
        later = replace(other, conversation=chat)
        self.bench.serving.accept(wish, FakeText(), lambda _frame: later)

    @rule(rounds=st.integers(1, 12))
    def work(self, rounds: int) -> None:
        for _ in range(rounds):
            self.bench.serving.round()

    @rule(back=st.integers(0, 4))
    def cancel(self, back: int) -> None:
        self.bench.serving.cancel(len(self.asked) - back)

    @rule()
    def break_the_next_piece_of_work(self) -> None:
        def once(_kind: str) -> None:
            self.bench.runner.before = lambda _kind: None
            self.faults += 1
            raise DeviceLost("Injected.")

        self.bench.runner.before = once

    def teardown(self) -> None:
        if not hasattr(self, "bench"):
            return
        self.bench.run()
        ended = {m.request: m for m in self.bench.sent if isinstance(m, Finished | Failure)}
        assert set(ended) == set(self.asked)
        failed = [m for m in ended.values() if isinstance(m, Failure)]
        refused = [m for m in failed if m.code == "memory-refused"]
        assert bool(len(failed) - len(refused)) <= bool(self.faults)
        for number, (which, limit) in self.asked.items():
            found = ended[number]
            if isinstance(found, Finished):
                assert found.ids == alone(which, self.recurrent)[: len(found.ids)]
                assert len(found.ids) == limit or found.stop_reason == "stopped"
        self.stack.close()


def test_a_recurrent_model_replies_otherwise() -> None:
    """The control: what the machine compares with does depend on the recurrent state."""
    assert all(alone(which) != alone(which, recurrent=True) for which in range(len(PROMPTS)))


Histories.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestHistories = Histories.TestCase
