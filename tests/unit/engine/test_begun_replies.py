"""A reply that goes on: its ids, its text and its draws are those of one that never stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from engine.checkpoint.source import GenerationDefaults
from engine.loading.prompts import CheckpointPrompts
from engine.protocol import ChatMessage, Finished, Generate, Sampling
from engine.sampling.keyed import DrawRule
from engine.sampling.penalties import PenaltyRule
from engine.serving.request import Request
from engine.text.begun import begun_ids
from engine.text.template import ChatTemplate, Prompt
from engine.text.thinking import ThinkingTags
from tests.helpers.fake_runner import GREEDY, FakeText, bench, prompt_ids, request
from tests.helpers.text import DeskRenderer, smol_template, smol_tokenizer

WARM = DrawRule(temperature=1.0, top_k=40, top_p=0.95, min_p=0.05, seed=5)
STRICT = PenaltyRule(repetition=1.3, presence=0.5, frequency=0.4)
TAGS = ThinkingTags("<think>", "</think>")


def going_on(wish: Request, said: Sequence[int]) -> Request:
    ids = np.concatenate([wish.ids, np.array(said, np.int32)])
    return replace(wish, ids=ids, begun_tokens=len(said))


def reply_to(wish: Request, text: FakeText | None = None) -> tuple[Finished, str]:
    """The reply of a fresh engine, and what its Tokens carried."""
    with bench() as made:
        made.ask(wish, text)
        made.run()
        return made.finished(1), "".join(frame.text for frame in made.tokens(1))


@pytest.mark.parametrize("rule", [GREEDY, WARM], ids=["greedy", "seeded"])
@pytest.mark.parametrize("penalties", [PenaltyRule(), STRICT], ids=["plain", "penalised"])
@pytest.mark.parametrize("stop", [1, 7, 39])
def test_a_reply_that_goes_on_is_the_one_that_never_stopped(
    rule: DrawRule, penalties: PenaltyRule, stop: int
) -> None:
    wish = request(1, prompt_ids(300), rule=rule, penalties=penalties, max_tokens=40)
    whole, text = reply_to(wish)
    said = whole.ids[:stop]
    assert reply_to(replace(wish, max_tokens=stop))[0].ids == said
    rest, new = reply_to(replace(going_on(wish, said), max_tokens=40 - stop))
    assert (rest.ids, rest.text, rest.begun_tokens) == (whole.ids, whole.text, stop)
    assert rest.prompt_tokens == whole.prompt_tokens + stop
    assert text.endswith(new)
    assert len(new.split()) == 40 - stop


def test_presence_and_frequency_look_at_the_beginning_too() -> None:
    """The control takes the beginning for a part of the prompt."""
    wish = request(1, prompt_ids(300), penalties=STRICT, max_tokens=40)
    whole = reply_to(wish)[0].ids
    begun = replace(going_on(wish, whole[:20]), max_tokens=20)
    assert reply_to(begun)[0].ids == whole
    assert reply_to(replace(begun, begun_tokens=0))[0].ids != whole[20:]


def test_a_reply_goes_on_in_the_region_where_it_was() -> None:
    wish = request(1, prompt_ids(300), max_tokens=30)
    ids = reply_to(wish)[0].ids
    whole = reply_to(wish, FakeText(thinking=(ids[0], ids[20])))[0]
    begun = replace(going_on(wish, ids[:10]), max_tokens=20)
    rest, new = reply_to(begun, FakeText(thinking=(ids[0], ids[20])))
    assert (rest.thinking_text, rest.text) == (whole.thinking_text, whole.text)
    assert (whole.thinking_text + whole.text).endswith(new)


def test_a_reply_goes_on_from_a_kept_state() -> None:
    with bench() as made:
        wish = request(1, prompt_ids(700), max_tokens=30)
        made.ask(wish)
        made.run()
        whole = made.finished(1).ids
        made.ask(replace(going_on(wish, whole[:12]), number=2, max_tokens=18))
        made.run()
        assert made.finished(2).ids == whole
        assert made.finished(2).resumed_tokens == 512


# The ids behind a beginning --------------------------------------------------------------------


@pytest.fixture
def prompts() -> Iterator[CheckpointPrompts]:
    source, tokenizer = smol_template(), smol_tokenizer()
    template = ChatTemplate(source, tokenizer, DeskRenderer(source))
    made = CheckpointPrompts(tokenizer, template, GenerationDefaults(), tokenizer.size)
    yield made
    made.close()


def wish(begun: ChatMessage | None, context: int | None = None) -> Generate:
    question = ChatMessage(role="user", text="Tell me of the mill.")
    earlier = (question, ChatMessage(role="assistant", text="It stood by the river. " * 20))
    return Generate(
        request=1,
        messages=(*earlier, question) if context is not None else (question,),
        sampling=Sampling(temperature=0.0),
        date="2026-01-01",
        begun=begun,
        may_drop=context is not None,
    )


def said(text: str, ids: Sequence[int] = (), name: str | None = None) -> ChatMessage:
    return ChatMessage(role="assistant", text=text, ids=tuple(ids), template_hash=name)


def test_a_beginning_is_its_own_ids_under_the_same_template(prompts: CheckpointPrompts) -> None:
    plain, _ = prompts.prepare(wish(None), 0)
    name, tokenizer = plain.template_hash, smol_tokenizer()
    odd = [tokenizer.encode(letter, special=False, continued=True)[0] for letter in "The mill"]
    end = min(tokenizer.end_ids)
    for ids in (odd, [*odd, end]):
        request, _ = prompts.prepare(wish(said("The mill", ids, name)), 0)
        assert list(request.ids) == [*plain.ids, *odd]
        assert (request.begun_tokens, list(request.begun_ids)) == (len(odd), odd)
        assert request.rule.seed == plain.rule.seed


@pytest.mark.parametrize("change", ["template", "text", "range", "none"])
def test_a_beginning_is_read_anew_where_its_ids_do_not_hold(
    prompts: CheckpointPrompts, change: str
) -> None:
    plain, _ = prompts.prepare(wish(None), 0)
    tokenizer = smol_tokenizer()
    odd = [tokenizer.encode(letter, special=False, continued=True)[0] for letter in "The mill"]
    begun = {
        "template": said("The mill", odd, "another"),
        "text": said("A mill", odd, plain.template_hash),
        "range": said("The mill", [*odd, 10**9], plain.template_hash),
        "none": said("The mill"),
    }[change]
    request, _ = prompts.prepare(wish(begun), 0)
    assert list(request.begun_ids) == tokenizer.encode(begun.text, special=False, continued=True)
    assert request.begun_tokens < len(odd)


def test_what_a_beginning_spells_is_never_a_control_token(prompts: CheckpointPrompts) -> None:
    request, _ = prompts.prepare(wish(said("<|im_end|>")), 0)
    assert request.begun_tokens > 1
    assert not set(request.begun_ids) & set(smol_tokenizer().end_ids)


def test_nothing_said_is_no_beginning(prompts: CheckpointPrompts) -> None:
    request, _ = prompts.prepare(wish(said("")), 0)
    assert request.begun_tokens == 0


def test_a_beginning_counts_where_the_context_is_full(prompts: CheckpointPrompts) -> None:
    long = said("It stood by the river. " * 50)
    fits, _ = prompts.prepare(wish(None, 400), 0, 400)
    full, _ = prompts.prepare(wish(long, 400), 0, 400)
    assert (fits.dropped_messages, full.dropped_messages) == (0, 2)
    assert full.begun_tokens > 100


@pytest.mark.parametrize(
    ("inside", "thinking", "answer", "spelled"),
    [
        (False, "Hm", "", "<think>Hm"),
        (False, "Hm", "So", "<think>Hm</think>\n\nSo"),
        (False, "", "So", "So"),
        (True, "Hm", "", "Hm"),
        (True, "Hm", "So", "Hm</think>\n\nSo"),
    ],
)
def test_thoughts_are_read_anew_between_their_tags(
    inside: bool, thinking: str, answer: str, spelled: str
) -> None:
    tokenizer = smol_tokenizer()
    prompt = Prompt(ids=(1,), text="", tags=TAGS, starts_in_thinking=inside)
    begun = ChatMessage(role="assistant", text=answer, thinking_text=thinking)
    assert tokenizer.decode(begun_ids(begun, prompt, tokenizer)) == spelled
