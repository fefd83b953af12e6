"""After a reply an idle engine reads it; any request goes first, and nothing read is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import psutil
import pytest

from engine.errors import DeviceLost, TemplateFailed
from engine.protocol import Finished, Settled
from engine.serving.idle import power
from engine.serving.idle.upkeep import LOOK_PAUSE_S
from engine.serving.request import Request
from engine.serving.rounds import Serving
from tests.helpers.fake_runner import Bench, FakeText, bench, prompt_ids, request

CHAT = "a chat"
FIRST = prompt_ids(300, 1)
SAID = prompt_ids(700, 2)


@pytest.fixture
def served() -> Iterator[Bench]:
    with bench() as made:
        yield made


def turn(number: int, ids: list[int], chat: str = CHAT) -> Request:
    return replace(request(number, ids, max_tokens=4), conversation=chat)


def following(ids: list[int], said: list[int] = SAID) -> Callable[[Finished], Request]:
    """The next turn begins with the prompt and what was said, which here is of any length."""
    return lambda frame: turn(frame.request, [*ids, *said])


def reply(served: Bench, number: int = 1, ids: list[int] = FIRST, chat: str = CHAT) -> None:
    """Rounds until the request has ended; what comes after it is not run."""
    served.serving.accept(
        turn(number, ids, chat), FakeText(), lambda frame: turn(frame.request, [*ids, *SAID], chat)
    )
    while not any(isinstance(m, Finished) and m.request == number for m in served.sent):
        served.serving.round()


def prompts(served: Bench) -> list[int]:
    return [place for kind, place in served.runner.calls if kind == "prompt"]


def test_the_turn_after_an_idle_moment_begins_at_the_end_of_the_reply(served: Bench) -> None:
    """1,000 rows: all but the last 232 are read; the control had no moment."""
    longer = [*FIRST, *SAID, *prompt_ids(50, 3)]
    with bench() as hasty:
        reply(hasty)
        hasty.ask(turn(2, longer))
        hasty.run()
    reply(served)
    assert prompts(served) == [0, 256]
    served.run()
    assert prompts(served) == [0, 256, 256, 512]
    served.ask(turn(2, longer))
    served.run()
    assert (hasty.finished(2).resumed_tokens, served.finished(2).resumed_tokens) == (256, 768)
    assert served.finished(2).ids == hasty.finished(2).ids


@pytest.mark.parametrize("other", [CHAT, "another chat"])
def test_a_request_goes_first_and_what_was_read_is_kept(served: Bench, other: str) -> None:
    """The pass is resumed where it stood, unless its own chat goes on."""
    reply(served)
    for _ in range(2):
        served.serving.round()
    assert prompts(served) == [0, 256, 256]
    kept = served.states.census().kept
    served.ask(turn(2, [*FIRST, *SAID, 5] if other == CHAT else [5, 6], other))
    served.serving.round()
    assert served.states.census().kept > kept
    assert all(pool.census().promised_pages >= 0 for pool in served.pools)
    served.run()
    places = prompts(served)[3:]
    assert places == ([512, 768] if other == CHAT else [0, 512])
    assert served.finished(2).resumed_tokens == (512 if other == CHAT else 0)


def test_a_cancelled_request_is_not_begun_by_a_pass_that_gives_way(served: Bench) -> None:
    reply(served)
    for _ in range(2):
        served.serving.round()
    calls = list(served.runner.calls)
    served.ask(turn(2, prompt_ids(900, 7), "another chat"))
    served.serving.cancel(2)
    served.serving.round()
    assert served.finished(2).stop_reason == "stopped"
    served.run()
    assert served.runner.calls == [*calls, ("prompt", 512)]


def test_the_latest_reply_is_read_first_and_a_new_turn_makes_an_old_one_s_needless(
    served: Bench,
) -> None:
    reply(served, 1, prompt_ids(300, 11), "one")
    reply(served, 2, prompt_ids(300, 12), "two")
    reply(served, 3, prompt_ids(300, 13), "one")
    served.run()
    for number, chat, seed, resumed in (
        (4, "two", 12, 768),
        (5, "one", 13, 768),
        (6, "x", 11, 256),
    ):
        served.ask(turn(number, [*prompt_ids(300, seed), *SAID, 1], chat))
        served.run()
        assert served.finished(number).resumed_tokens == resumed


@pytest.mark.parametrize("what", ["no chat", "side", "stopped before text", "no follow-up", "tool"])
def test_nothing_is_read_where_nothing_would_be_gained(served: Bench, what: str) -> None:
    asked = turn(1, FIRST)
    text = FakeText()
    if what == "no chat":
        asked = replace(asked, conversation=None)
    if what == "side":
        asked = replace(asked, is_side=True)
    if what == "tool":
        text.tool_calls = ("a call",)  # type: ignore[assignment]
    follow = None if what == "no follow-up" else following(FIRST)
    served.serving.accept(asked, text, follow)
    if what == "stopped before text":
        served.serving.round()
        served.serving.cancel(1)
    while not any(isinstance(m, Finished) for m in served.sent[:]):
        if what == "tool" and served.runner.calls.count(("step", 1)) == 2:
            break
        served.serving.round()
    served.run()
    assert prompts(served) == ([0] if what == "stopped before text" else [0, 256])


def test_a_stopped_reply_is_read_too(served: Bench) -> None:
    served.serving.accept(replace(turn(1, FIRST), max_tokens=500), FakeText(), following(FIRST))
    while served.runner.calls.count(("step", 1)) < 3:
        served.serving.round()
    served.serving.cancel(1)
    served.run()
    assert served.finished(1).stop_reason == "stopped"
    assert prompts(served) == [0, 256, 256, 512]


def test_a_pass_with_nothing_new_to_read_computes_nothing(served: Bench) -> None:
    served.serving.accept(turn(1, FIRST), FakeText(), following(FIRST, SAID[:100]))
    served.run()
    assert prompts(served) == [0, 256]
    served.serving.accept(turn(2, FIRST), FakeText(), lambda _frame: None)
    served.run()
    assert prompts(served) == [0, 256, 256]


def test_on_battery_nothing_is_read_until_it_is_plugged_in() -> None:
    on_battery = [True]
    with bench() as made:
        serving = Serving(made.serving._served, made.sent.append, lambda: 0, lambda: on_battery[0])
        serving.accept(turn(1, FIRST), FakeText(), following(FIRST))
        while serving.has_work:
            serving.round()
        assert (prompts(made), serving.pause_s) == ([0, 256], LOOK_PAUSE_S)
        serving.settle(9, 1e6)
        assert made.sent[-1] == Settled(request=9, waiting_bytes=0)
        on_battery[0] = False
        assert serving.pause_s == 0.0
        serving.round()
        serving.round()
        assert prompts(made) == [0, 256, 256]
        on_battery[0] = True
        while serving.has_work:
            serving.round()
        assert (prompts(made), serving.pause_s) == ([0, 256, 256], LOOK_PAUSE_S)
        on_battery[0] = False
        while serving.has_work:
            serving.round()
        assert prompts(made) == [0, 256, 256, 512]
        assert serving.pause_s == LOOK_PAUSE_S
        serving.close()


def test_who_asked_hears_when_the_pass_has_ended_or_the_time_is_over(served: Bench) -> None:
    reply(served)
    served.serving.settle(7, 1e9)
    served.serving.settle(8, 1.0)
    heard = []
    for _ in range(4):
        served.serving.round()
        heard.append([m.request for m in served.sent if isinstance(m, Settled)])
        served.now_ns[0] += 1_000_000
    assert heard == [[], [8], [8], [8, 7]]
    assert prompts(served) == [0, 256, 256, 512]
    served.serving.settle(9, 1e9)
    assert served.sent[-1] == Settled(request=9, waiting_bytes=0)


def test_the_end_of_a_model_ends_its_passes_and_tells_who_waits(served: Bench) -> None:
    reply(served)
    served.serving.round()
    served.serving.round()
    served.serving.settle(7, 1e9)
    served.serving.close()
    assert served.sent[-1] == Settled(request=7, waiting_bytes=0)
    assert not served.serving.has_work
    assert prompts(served) == [0, 256, 256]


@pytest.mark.parametrize("where", ["template", "device"])
def test_a_pass_that_fails_is_given_up_and_the_next_turn_is_right(
    served: Bench, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    def fails(_frame: Finished) -> Request:
        raise TemplateFailed("It loops.")

    caplog.set_level(logging.INFO)
    follow = fails if where == "template" else following(FIRST)
    served.serving.accept(turn(1, FIRST), FakeText(), follow)
    while not any(isinstance(m, Finished) for m in served.sent):
        served.serving.round()

    def break_once(_kind: str) -> None:
        served.runner.before = lambda _kind: None
        raise DeviceLost("Injected.")

    if where == "device":
        served.runner.before = break_once
    served.run()
    assert "background pass failed" in caplog.text
    assert "background pass ended" not in caplog.text
    longer = [*FIRST, *SAID, 3]
    served.ask(turn(2, longer))
    served.run()
    with bench() as fresh:
        fresh.ask(turn(1, longer))
        fresh.run()
        assert served.finished(2).ids == fresh.finished(1).ids


def test_a_pass_without_room_is_not_begun() -> None:
    with bench(pages=(3, 16)) as made:
        made.serving.accept(turn(1, FIRST), FakeText(), following(FIRST))
        made.run()
        assert prompts(made) == [0, 256]


class Battery:
    def __init__(self, power_plugged: bool | None) -> None:
        self.power_plugged = power_plugged


@pytest.mark.parametrize(
    ("found", "expected"),
    [(None, False), (Battery(True), False), (Battery(None), False), (Battery(False), True)],
)
def test_only_a_battery_that_is_not_plugged_in_counts(
    monkeypatch: pytest.MonkeyPatch, found: Battery | None, expected: bool
) -> None:
    monkeypatch.setattr(psutil, "sensors_battery", lambda: found, raising=False)
    assert power.on_battery() is expected


def test_a_system_that_knows_no_batteries_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(psutil, "sensors_battery", raising=False)
    assert power.on_battery() is False
