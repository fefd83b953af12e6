"""Kills the engine at random points while it answers: ``python -m tests.fuzz.kills [options]``.

The client lives through each kill: every running request gets its Failure, a new engine comes, and
the next question is answered in full. By default the fake engine is killed; with ``--model FILE``
our own, over that checkpoint.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import EngineUnavailable
from app.link.client import EngineClient, Question
from app.link.deaths.crash_guard import CrashGuard
from app.link.deaths.restart import RestartPolicy
from app.link.engine_log import EngineLog
from app.link.events import EngineDied, EngineEvent, EngineReady
from app.link.mailbox import Mailbox
from app.link.process import EngineCommand, engine_command
from app.lock import start_time
from engine.protocol import ChatMessage, Failure, Finished, Loaded, Progress, Sampling, Tokens
from tests.helpers.fake_engine import Script, fake_command

LIMIT_S = 120.0
BACK_OFF_S = (0.05,)
REPLY_SHARE = 0.75
FAKE = Script(reply="word", times=60, words_per_s=200, load_s=0.1, load_steps=4, prompt_s=0.1)
QUESTION = (ChatMessage(role="user", text="Tell me about rivers and the towns beside them."),)
SAMPLING = Sampling(temperature=0.0, max_tokens=48)


@dataclass
class Seen:
    """What happened over all kills."""

    phases: Counter[str] = field(default_factory=Counter)
    recovery_s: list[float] = field(default_factory=list)


class Target:
    """A client that restarts its engine, and the checkpoint it uses."""

    def __init__(self, folder: Path, command: EngineCommand, model: str) -> None:
        self.model = model
        self.events: queue.Queue[EngineEvent] = queue.Queue()
        self.client = EngineClient(
            command,
            engine_log=EngineLog(folder / "engine.log"),
            guard=CrashGuard(folder / "crashes.json"),
            on_event=self.events.put,
            restart=RestartPolicy(BACK_OFF_S),
        )

    def wait(self, kind: type[EngineEvent]) -> None:
        """Take events up to one of this kind."""
        while not isinstance(event := self.events.get(timeout=LIMIT_S), kind):
            assert isinstance(event, EngineReady | EngineDied), event

    def load(self) -> Mailbox:
        """Begin to load."""
        box = Mailbox()
        self.client.load(self.model, on_message=box.put)
        return box

    def generate(self) -> Mailbox:
        """Begin a reply."""
        box = Mailbox()
        self.client.generate(Question(QUESTION), on_message=box.put, sampling=SAMPLING)
        return box

    def answer(self) -> Finished:
        """Load and ask; a whole reply."""
        self.load().answer(Loaded, LIMIT_S)
        return self.generate().answer(Finished, LIMIT_S)


def run(count: int, seed: int, command: EngineCommand, model: str, folder: Path) -> Seen:
    """Kill ``count`` engines; raises AssertionError where the client does not go on."""
    choose = random.Random(seed)
    seen = Seen()
    target = Target(folder, command, model)
    target.client.start()
    try:
        target.wait(EngineReady)
        begun = time.monotonic()
        target.load().answer(Loaded, LIMIT_S)
        loaded = time.monotonic()
        whole = target.generate().answer(Finished, LIMIT_S)
        spans = loaded - begun, time.monotonic() - loaded
        for _ in range(count):
            in_reply = choose.random() < REPLY_SHARE
            after_s = choose.uniform(0.0, 1.1 * spans[in_reply])
            kill_one(target, whole, seen, in_reply=in_reply, after_s=after_s)
    finally:
        target.client.close()
    return seen


def kill_one(
    target: Target, whole: Finished, seen: Seen, *, in_reply: bool, after_s: float
) -> None:
    """Kill so long after the load, or the reply, began; the next engine answers the same."""
    pid = target.client.pid
    if in_reply:
        target.load().answer(Loaded, LIMIT_S)
        seen.phases[moment(target.generate(), "reply begun", after_s)] += 1
    else:
        seen.phases[moment(target.load(), "load begun", after_s)] += 1
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    target.wait(EngineDied)
    assert start_time(pid) is None, "the killed engine is still there"
    target.wait(EngineReady)
    again = target.answer()
    assert again.ids == whole.ids, "the next answer differs"
    assert again.stop_reason == whole.stop_reason
    seen.recovery_s.append(time.monotonic() - killed)


def moment(box: Mailbox, phase: str, after_s: float) -> str:
    """Take messages for a while; what was going on at its end."""
    until = time.monotonic() + after_s
    while (left := until - time.monotonic()) > 0:
        try:
            message = next(box.messages(left))
        except EngineUnavailable:
            return phase
        assert not isinstance(message, Failure), message
        match message:
            case Progress():
                phase = message.phase
            case Tokens():
                phase = "tokens"
            case _:
                time.sleep(max(0.0, until - time.monotonic()))
                return "idle"
    return phase


def main() -> None:
    """Run and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--model", type=Path, help="a checkpoint for our own engine")
    found = parser.parse_args()
    print(f"seed {found.seed}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = found.model is not None
        command = engine_command(folder) if own else fake_command(FAKE)
        begun = time.monotonic()
        seen = run(found.count, found.seed, command, str(found.model or "/any.gguf"), folder)
    print(
        f"{found.count} kills of {'our' if own else 'the fake'} engine in "
        f"{time.monotonic() - begun:.0f} s; the next answer was the same each time; "
        f"slowest recovery {max(seen.recovery_s):.2f} s"
    )
    for phase, times in sorted(seen.phases.items()):
        print(f"  killed in {phase}: {times}")


if __name__ == "__main__":
    main()
