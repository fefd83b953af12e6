"""The same reply: alone or in company, once or twice, fresh or resumed, on the real models.

Each equality has a control that must differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from engine.models.native_limits import NATIVE_GRID_ROWS as GRID
from engine.protocol import ChatMessage, Finished, Sampling
from tests.helpers.live_engine import LiveEngine
from tests.helpers.models import gemma_path, smol_path

SHORT = Sampling(temperature=0.0, max_tokens=12)
SEEDED = Sampling(temperature=1.0, top_k=40, top_p=0.95, seed=11, max_tokens=12)
OTHER_SEED = Sampling(temperature=1.0, top_k=40, top_p=0.95, seed=12, max_tokens=12)
SENTENCE = "The river was high that spring, and the old mill stood half a foot deep in water. "
PROMPTS = (
    SENTENCE * 26 + "Then",
    "What is the capital of France?",
    "Once upon a time there was a",
    SENTENCE * 3,
)


@pytest.fixture(scope="module", params=[smol_path, gemma_path], ids=["smol", "gemma"])
def engine(request: pytest.FixtureRequest) -> Iterator[LiveEngine]:
    path: Callable[[], Path] = request.param
    with LiveEngine() as made:
        made.load(path(), context=2048)
        yield made


def reply(engine: LiveEngine, text: str, sampling: Sampling) -> Finished:
    return engine.ask(text, sampling, raw=True).finished()


def test_a_reply_is_the_same_beside_one_and_beside_three_others(engine: LiveEngine) -> None:
    for sampling, companies in ((SHORT, (2, 4)), (SEEDED, (4,))):
        alone = [reply(engine, text, sampling).ids for text in PROMPTS]
        assert len(set(alone)) == len(PROMPTS)
        for count in companies:
            asked = [engine.ask(text, sampling, raw=True) for text in PROMPTS[-count:]]
            assert [one.finished().ids for one in asked] == alone[-count:]
        backwards = [engine.ask(text, sampling, raw=True) for text in reversed(PROMPTS)]
        assert [one.finished().ids for one in backwards] == alone[::-1]


def test_greedy_twice_is_the_same_and_another_seed_is_not(engine: LiveEngine) -> None:
    some = PROMPTS[1:]
    for text in some:
        assert reply(engine, text, SHORT).ids == reply(engine, text, SHORT).ids
    seeded = [reply(engine, text, SEEDED).ids for text in some]
    assert [reply(engine, text, SEEDED).ids for text in some] == seeded
    assert [reply(engine, text, OTHER_SEED).ids for text in some] != seeded


@pytest.mark.parametrize("sampling", [SHORT, SEEDED], ids=["greedy", "seeded"])
def test_a_resumed_reply_equals_a_fresh_one(engine: LiveEngine, sampling: Sampling) -> None:
    """The control differs in its first words, so it must not resume, nor say the same."""
    title = f"Report {sampling.seed}. "
    text = title + SENTENCE * 14 + "The mill"
    fresh = reply(engine, text, sampling)
    resumed = reply(engine, text, sampling)
    assert (fresh.resumed_tokens, fresh.reason) == (0, fresh.reason)
    assert resumed.resumed_tokens == (fresh.prompt_tokens - 1) // GRID * GRID > 0
    assert resumed.ids == fresh.ids
    longer = text + " was built long ago by people who are"
    after = reply(engine, longer, sampling)
    assert after.resumed_tokens >= resumed.resumed_tokens
    control = reply(engine, longer.replace(title, f"Letter {sampling.seed}. "), sampling)
    assert (control.resumed_tokens, control.prompt_tokens) == (0, after.prompt_tokens)
    assert control.reason == "edited"


def test_a_resumed_reply_equals_that_of_an_engine_that_never_saw_the_prefix() -> None:
    """A second engine is the independent witness; the reply runs over a page's end."""
    text = SENTENCE * 14
    many = Sampling(temperature=0.0, max_tokens=48)
    replies = []
    for primed in (False, True):
        with LiveEngine() as engine:
            engine.load(gemma_path(), context=2048, streams=1)
            if primed:
                reply(engine, text, SHORT)
            replies.append(reply(engine, text + "And so", many))
    fresh, resumed = replies
    assert (fresh.resumed_tokens, resumed.resumed_tokens > 0) == (0, True)
    assert fresh.ids == resumed.ids


def test_a_second_turn_resumes_the_first_and_equals_a_fresh_engine_s() -> None:
    """The reply's own ids are spliced in, so the second prompt begins with the first one."""
    question = SENTENCE * 14 + "What is the capital of France?"
    follow_up = "And of Italy?"
    with LiveEngine() as engine:
        engine.load(smol_path(), context=2048, streams=1)
        first = engine.ask(question, SHORT).finished()
        before = (
            ChatMessage(role="user", text=question),
            ChatMessage(
                role="assistant",
                text=first.text,
                ids=first.ids,
                template_hash=first.template_hash,
            ),
        )
        second = engine.ask(follow_up, SHORT, before=before).finished()
    with LiveEngine() as engine:
        engine.load(smol_path(), context=2048, streams=1)
        fresh = engine.ask(follow_up, SHORT, before=before).finished()
    assert second.resumed_tokens >= (first.prompt_tokens - 1) // GRID * GRID > 0
    assert (fresh.resumed_tokens, fresh.prompt_tokens) == (0, second.prompt_tokens)
    assert fresh.ids == second.ids != first.ids


@pytest.mark.parametrize("sampling", [SHORT, SEEDED], ids=["greedy", "seeded"])
def test_a_reply_that_was_stopped_goes_on_as_if_it_never_was(
    engine: LiveEngine, sampling: Sampling
) -> None:
    """The control goes on after another first word."""
    messages = (ChatMessage(role="user", text=SENTENCE * 14 + "Go on with this story."),)

    def go_on(begun: ChatMessage | None, tokens: int) -> Finished:
        asked = msgspec.structs.replace(sampling, max_tokens=tokens)
        return engine.generate(messages, "a chat", asked, begun=begun).finished()

    whole = go_on(None, 24)
    first = go_on(None, 9)
    assert first.ids == whole.ids[:9]
    said = ChatMessage(
        role="assistant", text=first.text, ids=first.ids, template_hash=first.template_hash
    )
    rest = go_on(said, len(whole.ids) - 9)
    assert (rest.ids, rest.text, rest.begun_tokens) == (whole.ids, whole.text, 9)
    assert rest.resumed_tokens > 0
    other = go_on(ChatMessage(role="assistant", text="Nobody"), 15)
    assert other.text.startswith("Nobody")
    assert other.text != whole.text
