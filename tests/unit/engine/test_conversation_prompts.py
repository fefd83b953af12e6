"""Prompts of conversations: marks, what drops out of a full context, how the next turn begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

import pytest

from engine.checkpoint.source import GenerationDefaults
from engine.loading.dropping import first_turn, is_full, turns_to_drop, without_oldest
from engine.loading.prompts import CheckpointPrompts, wanted_marks
from engine.protocol import ChatMessage, Finished, Generate, Sampling, Timings
from engine.serving.request import WantedMark
from engine.states.records import Role
from engine.text.template import Boundary, ChatTemplate, Prompt
from tests.helpers.text import DeskRenderer, smol_template, smol_tokenizer

CONTEXT = 400
WORDS = "The river was high that spring, and the old mill stood half a foot deep in water. "


@pytest.fixture
def prompts() -> Iterator[CheckpointPrompts]:
    source = smol_template()
    tokenizer = smol_tokenizer()
    template = ChatTemplate(source, tokenizer, DeskRenderer(source))
    made = CheckpointPrompts(tokenizer, template, defaults(), tokenizer.size)
    yield made
    made.close()


@cache
def defaults() -> GenerationDefaults:
    return GenerationDefaults()


def conversation(turns: int, *, system: str | None = "Be brief.") -> tuple[ChatMessage, ...]:
    """A system message, so many answered turns, and a last question."""
    found = [] if system is None else [ChatMessage(role="system", text=system)]
    for turn in range(turns):
        found += [
            ChatMessage(role="user", text=f"{turn}: {WORDS}"),
            ChatMessage(role="assistant", text=f"Answer {turn}. {WORDS}"),
        ]
    return (*found, ChatMessage(role="user", text="And then?"))


def wish(messages: Sequence[ChatMessage], *, may_drop: bool = True) -> Generate:
    return Generate(
        request=7,
        messages=tuple(messages),
        sampling=Sampling(temperature=0.0),
        conversation="a chat",
        may_drop=may_drop,
        date="2026-01-01",
    )


def finished(text: str, ids: Sequence[int], dropped: int = 0, name: str | None = None) -> Finished:
    return Finished(
        request=7,
        text=text,
        ids=tuple(ids),
        prompt_tokens=1,
        resumed_tokens=0,
        timings=Timings(),
        stop_reason="end-of-turn",
        seed=1,
        template_hash=name,
        dropped_messages=dropped,
    )


def test_marks_are_wanted_at_the_history_s_end_the_last_question_and_the_system_text() -> None:
    messages = tuple(
        ChatMessage(role=role, text="x") for role in ("system", "user", "assistant", "user")
    )
    places = (Boundary(1, 300), Boundary(310, 400), Boundary(410, 700), Boundary(710, 900))
    prompt = Prompt(ids=(0,) * 910, text="", boundaries=places, history_end=905)
    assert wanted_marks(prompt, messages) == (
        WantedMark(905, Role.END),
        WantedMark(710, Role.REWIND),
        WantedMark(300, Role.SHARED),
    )
    assert wanted_marks(Prompt(ids=(0,), text=""), ()) == ()
    asked = Prompt(ids=(0,) * 9, text="", boundaries=places[1:2])
    assert wanted_marks(asked, messages[1:2]) == (WantedMark(310, Role.REWIND),)


# Context full ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "context", "limit", "full"),
    [
        (3072, 4096, None, False),
        (3073, 4096, None, True),
        (300, 400, None, False),
        (301, 400, None, True),
        (395, 400, 5, False),
        (396, 400, 5, True),
        (100_000 - 1024, 100_000, None, False),
    ],
)
def test_a_context_is_full_where_too_little_is_left_for_a_reply(
    prompt: int, context: int, limit: int | None, full: bool
) -> None:
    """1,024 tokens, a quarter of the context, or what the reply may have at most."""
    assert is_full(prompt, context, limit) is full


def test_the_fewest_turns_drop_out_that_leave_half_the_context() -> None:
    messages = conversation(3)
    places = [Boundary(100 * index, 100 * index + 90) for index in range(len(messages))]
    assert [messages[i].role for i in (0, 1, 3, 5, 7)] == ["system"] + ["user"] * 4
    assert turns_to_drop(messages, places, 800, 1600) == 2
    assert turns_to_drop(messages, places, 800, 1200) == 2
    assert turns_to_drop(messages, places, 800, 1198) == 4
    assert turns_to_drop(messages, places, 800, 400) == 6
    assert turns_to_drop(messages, places, 800, 10) == 6
    assert turns_to_drop(messages[:2], places[:2], 800, 10) == 0
    assert turns_to_drop(messages[:1], places[:1], 800, 10) == 0
    assert first_turn(messages) == 1
    assert without_oldest(messages, 4) == (messages[0], *messages[5:])


def test_the_oldest_turns_of_a_full_context_drop_out_once_in_many_turns(
    prompts: CheckpointPrompts,
) -> None:
    """What is left takes at most half of the context; the system text and the question stay."""
    dropped, drops = 0, []
    for turns in range(1, 30):
        messages = without_oldest(conversation(turns), dropped)
        request, _ = prompts.prepare(wish(messages), 0, CONTEXT)
        assert not is_full(request.prompt_tokens, CONTEXT, None)
        if request.dropped_messages:
            assert request.prompt_tokens <= CONTEXT // 2
            assert request.dropped_messages % 2 == 0
            left = without_oldest(messages, request.dropped_messages)
            assert (left[0].role, left[1].role, left[-1]) == ("system", "user", messages[-1])
            same, _ = prompts.prepare(wish(left), 0, CONTEXT)
            assert same.ids.tolist() == request.ids.tolist()
            assert same.dropped_messages == 0
            drops.append(turns)
            dropped += request.dropped_messages
    assert len(drops) > 3
    assert all(second - first >= 2 for first, second in pairwise(drops))


def test_nothing_drops_out_where_it_may_not_or_cannot(prompts: CheckpointPrompts) -> None:
    long = conversation(9)
    for asked, context in ((wish(long, may_drop=False), CONTEXT), (wish(long), None)):
        request, _ = prompts.prepare(asked, 0, context)
        assert request.dropped_messages == 0
        assert request.prompt_tokens > CONTEXT
    alone = (ChatMessage(role="user", text=WORDS * 40),)
    request, _ = prompts.prepare(wish(alone), 0, CONTEXT)
    assert (request.dropped_messages, request.prompt_tokens > CONTEXT) == (0, True)
    request, _ = prompts.prepare(wish((*conversation(2), *alone)), 0, CONTEXT)
    assert request.dropped_messages == 5


# Follow-ups ------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["What?", "\nA line before", "x", "  ", "1", "\n\n"])
def test_what_is_read_after_a_reply_is_how_the_next_turn_begins(
    prompts: CheckpointPrompts, question: str
) -> None:
    """The control: another reply begins otherwise."""
    messages = conversation(2)
    reply = "It was a mill."
    ids = smol_tokenizer().encode(reply, special=False)
    name = prompts.prepare(wish(messages), 0)[0].template_hash
    found = prompts.follow_up(wish(messages), finished(reply, ids, name=name))
    assert found is not None
    assert (found.conversation, found.keeps_states) == ("a chat", True)
    said = ChatMessage(role="assistant", text=reply, ids=tuple(ids), template_hash=name)
    later = (*messages, said, ChatMessage(role="user", text=question))
    request, _ = prompts.prepare(wish(later), 0)
    shared = found.prompt_tokens
    assert request.ids[:shared].tolist() == found.ids.tolist()
    first, _ = prompts.prepare(wish(messages), 0)
    assert shared > first.prompt_tokens + len(ids)
    other = prompts.follow_up(wish(messages), finished("It was an inn.", (), name=name))
    assert other is not None
    assert other.ids.tolist() != found.ids.tolist()


def test_what_is_read_after_a_reply_leaves_out_what_dropped_out(prompts: CheckpointPrompts) -> None:
    messages = conversation(9)
    request, _ = prompts.prepare(wish(messages), 0, CONTEXT)
    dropped = request.dropped_messages
    assert dropped
    found = prompts.follow_up(wish(messages), finished("Yes.", (), dropped))
    left = without_oldest(messages, dropped)
    same = prompts.follow_up(wish(left), finished("Yes.", ()))
    assert found is not None
    assert same is not None
    assert found.ids.tolist() == same.ids.tolist()


def test_nothing_is_read_after_a_raw_text(prompts: CheckpointPrompts) -> None:
    raw = Generate(request=1, raw="Once", conversation="a chat")
    assert prompts.follow_up(raw, finished("upon", ())) is None
