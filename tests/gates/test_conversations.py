"""Conversations on real models: each turn reads only what is new, and says what a fresh one says.

New are the tokens that the turn before neither was given nor said. Since states lie on the grid,
up to a grid less one of the old ones are read again. The witness of every reply is an engine that
keeps nothing. Each equality has a control that must differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.models.native_limits import NATIVE_GRID_ROWS
from engine.protocol import ChatMessage, Finished, Sampling
from tests.helpers.checkpoints.saving import save_text
from tests.helpers.checkpoints.shapes import BLOCKS_OF_32
from tests.helpers.checkpoints.variants import make
from tests.helpers.live_engine import LiveEngine
from tests.helpers.models import smol_path

GRID = NATIVE_GRID_ROWS
CONTEXT = 2048
SEEDED = Sampling(temperature=1.0, top_k=40, top_p=0.95, seed=11, max_tokens=10)
SYSTEM = "You are the keeper of an old mill, and you answer in few words. " * 4
SENTENCE = "The river was high that spring, and the old mill stood half a foot deep in water. "
QUESTIONS = (
    SENTENCE * 14 + "What did the miller do?",
    SENTENCE * 5 + "And what did his daughter say?",
    "And then?",
)
Place = Callable[[Path], Path]


def real(folder: Path) -> Path:
    del folder
    return smol_path()


def hybrid(folder: Path) -> Path:
    """A tiny random model with recurrent layers, at widths that the native library takes."""
    save_text("qwen3_5", make("qwen3_5", BLOCKS_OF_32), folder)
    return folder


@pytest.fixture(params=[real, hybrid], ids=["smol", "qwen3_5"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    place: Place = request.param
    folder = tmp_path / "model"
    folder.mkdir()
    return place(folder)


@dataclass(frozen=True)
class Chat:
    """A conversation as an app has it: messages, and what the last reply left behind.

    Attributes:
        known_tokens: of the last turn's prompt and its reply.
    """

    name: str = "a chat"
    messages: tuple[ChatMessage, ...] = (ChatMessage(role="system", text=SYSTEM),)
    known_tokens: int = 0
    replies: tuple[tuple[int, ...], ...] = ()

    def asked(self, question: str) -> tuple[ChatMessage, ...]:
        return (*self.messages, ChatMessage(role="user", text=question))

    def after(self, question: str, reply: Finished) -> Chat:
        said = ChatMessage(
            role="assistant",
            text=reply.text,
            ids=reply.ids,
            template_hash=reply.template_hash,
        )
        return replace(
            self,
            messages=(*self.asked(question), said),
            known_tokens=reply.prompt_tokens + len(reply.ids),
            replies=(*self.replies, reply.ids),
        )


def turn(engine: LiveEngine, chat: Chat, question: str, sibling: int = 0) -> tuple[Chat, Finished]:
    """One turn, and time for the engine to read its reply."""
    asked = engine.generate(chat.asked(question), chat.name, SEEDED, sibling=sibling)
    reply = asked.finished()
    engine.settle()
    return chat.after(question, reply), reply


def fresh(model: Path, chat: Chat, question: str, sibling: int = 0) -> Finished:
    """What an engine says that has seen nothing and keeps nothing."""
    with LiveEngine() as engine:
        engine.load(model, context=CONTEXT)
        return engine.generate(chat.asked(question), None, SEEDED, sibling=sibling).finished()


def assert_reads_only_new(reply: Finished, known_tokens: int) -> None:
    new = reply.prompt_tokens - known_tokens
    assert reply.prompt_tokens - reply.resumed_tokens <= new + GRID - 1, reply


def test_a_chat_over_three_restarts_reads_only_what_is_new(model: Path, tmp_path: Path) -> None:
    """Each turn in a process life of its own: what it resumes comes from the disk."""
    chat = Chat()
    for number, question in enumerate(QUESTIONS):
        with LiveEngine(keeps_in=tmp_path / "kept") as engine:
            engine.load(model, context=CONTEXT)
            before = chat
            chat, reply = turn(engine, before, question)
        assert reply.ids == fresh(model, before, question).ids
        if number:
            assert_reads_only_new(reply, before.known_tokens)
            assert (reply.resumed_from, reply.resumed_bytes > 0) == ("disk", True)
    assert len(set(chat.replies)) == len(QUESTIONS)


def test_edits_regenerated_replies_and_branches_read_only_what_is_new(model: Path) -> None:
    with LiveEngine() as engine:
        engine.load(model, context=CONTEXT)
        first, _ = turn(engine, Chat(), QUESTIONS[0])
        second, second_reply = turn(engine, first, QUESTIONS[1])
        assert_reads_only_new(second_reply, first.known_tokens)

        again, another = turn(engine, first, QUESTIONS[1], sibling=1)
        assert another.prompt_tokens - another.resumed_tokens <= GRID
        assert another.ids == fresh(model, first, QUESTIONS[1], sibling=1).ids

        edited, edit = turn(engine, first, SENTENCE * 4 + "What was the daughter's name?")
        assert_reads_only_new(edit, first.known_tokens)
        assert edit.ids == fresh(model, first, SENTENCE * 4 + "What was the daughter's name?").ids
        assert edit.ids != second_reply.ids

        for branch in (second, again, edited):
            _, reply = turn(engine, branch, QUESTIONS[2])
            assert_reads_only_new(reply, branch.known_tokens)
            assert reply.resumed_from == "device"
            assert reply.ids == fresh(model, branch, QUESTIONS[2]).ids


def test_two_chats_in_turn_read_only_what_is_new(model: Path) -> None:
    chats = {name: Chat(name=name) for name in "AB"}
    with LiveEngine() as engine:
        engine.load(model, context=CONTEXT)
        for number, question in enumerate(QUESTIONS):
            for name, chat in chats.items():
                asked = question.replace("miller", "baker" if name == "B" else "miller")
                chats[name], reply = turn(engine, chat, asked)
                if number:
                    assert_reads_only_new(reply, chat.known_tokens)
                assert reply.ids == fresh(model, chat, asked).ids
    assert chats["A"].replies != chats["B"].replies


@pytest.mark.parametrize("count", [2, 4, 8])
def test_chats_at_once_say_what_each_says_alone(model: Path, count: int) -> None:
    """Twice: cold, and resumed; the control is that they say different things."""
    questions = [f"{SENTENCE * (1 + number % 4)}Why {number}?" for number in range(count)]
    with LiveEngine() as engine:
        engine.load(model, context=1024, streams=1)
        alone = [
            engine.generate(Chat().asked(question), None, seeded(number)).finished().ids
            for number, question in enumerate(questions)
        ]
    assert len(set(alone)) == count
    with LiveEngine() as engine:
        engine.load(model, context=1024, streams=count)
        for _ in range(2):
            asked = [
                engine.generate(Chat().asked(question), f"chat {number}", seeded(number))
                for number, question in enumerate(questions)
            ]
            assert [one.finished().ids for one in asked] == alone


def seeded(seed: int) -> Sampling:
    return Sampling(temperature=1.5, seed=seed, max_tokens=10)
