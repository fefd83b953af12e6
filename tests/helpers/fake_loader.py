"""A loader whose models are fake runners, and an app end of two pipes, for tests of the loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from engine.cache.formats import PAGE_ROWS
from engine.cache.pages import PagePool
from engine.errors import CheckpointUnreadable
from engine.loading.loaded import LoadedModel
from engine.memory.ledger import Ledger
from engine.protocol import (
    CheckpointFacts,
    Finished,
    Generate,
    Load,
    ModelFacts,
    Phase,
    Plan,
    PlanLine,
    Planned,
)
from engine.serving.admission import Served
from engine.serving.request import ReplyText, Request
from engine.states.store import StateStore
from tests.helpers.fake_device import FakeDevice
from tests.helpers.fake_runner import END, FakeRunner, FakeText, request


class FakePrompts:
    """A prompt's ids are its bytes, below the end token."""

    def __init__(self) -> None:
        self.closed = 0
        self.followed: list[int] = []

    def prepare(
        self, wish: Generate, arrived_ns: int, context_tokens: int | None = None
    ) -> tuple[Request, ReplyText]:
        del context_tokens
        return self._request(wish, _text(wish), arrived_ns), FakeText()

    def follow_up(self, wish: Generate, finished: Finished) -> Request | None:
        self.followed.append(finished.request)
        return self._request(wish, _text(wish) + finished.text, 0)

    def _request(self, wish: Generate, text: str, arrived_ns: int) -> Request:
        max_tokens = wish.sampling.max_tokens
        made = request(
            wish.request,
            [byte % END for byte in text.encode()],
            max_tokens=8 if max_tokens is None else max_tokens,
            arrived_ns=arrived_ns,
        )
        return replace(made, conversation=wish.conversation, is_side=wish.purpose == "side")

    def count(self, text: str) -> int:
        return len(text.encode())

    def close(self) -> None:
        self.closed += 1


def _text(wish: Generate) -> str:
    return wish.raw if wish.raw is not None else "".join(m.text for m in wish.messages)


class FakeLoader:
    """Loads any path but those that contain "bad" (refused) or "bug" (an error of no kind)."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.models: list[LoadedModel] = []
        self.runners: list[FakeRunner] = []

    def load(self, wish: Load, report: Callable[[Phase, int, int], None]) -> LoadedModel:
        if "bad" in wish.path:
            raise CheckpointUnreadable("It is bad.", found=1)
        if "bug" in wish.path:
            raise ZeroDivisionError
        report("weights", 1, 2)
        with ExitStack() as stack:
            lease = stack.enter_context(self._ledger.reserve("fake", {"ram": 100}))
            lease.commit()
            pools = (PagePool(24), PagePool(24, 512))
            device = FakeDevice(pools)
            runner = FakeRunner(device)
            stack.callback(runner.close)
            prompts = FakePrompts()
            stack.callback(prompts.close)
            states = StateStore(device.memory, PAGE_ROWS)
            served = Served(runner, device.memory, states, 2048, wish.streams)
            facts = ModelFacts(
                name="fake",
                path=wish.path,
                architecture="fake",
                context_tokens=2048,
                vocabulary=97,
                file_bytes=1,
                format="F32",
                has_template=True,
                template_hash="fake",
            )
            line = PlanLine(pool="ram", owner="fake", bytes=100, reason="a test")
            model = LoadedModel(facts, (line,), served, prompts, stack.pop_all())
        self.models.append(model)
        self.runners.append(runner)
        return model

    def plan(self, wish: Plan) -> Planned:
        return Planned(request=wish.request, context_tokens=2048, lines=())

    def inspect(self, path: str) -> CheckpointFacts:
        return CheckpointFacts(path=path, name="fake")
