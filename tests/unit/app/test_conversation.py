"""The tree of turns: paths, versions, and what of them is sent."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from app.chat.conversation import (
    Conversation,
    ReplyFacts,
    Turn,
    TurnState,
    chat_name,
    chat_of,
    with_turns,
)
from app.text import NEW_CHAT, TITLE_CHARACTERS, title_of, whole_characters
from engine.protocol import Role


def turn(number: int, parent: int | None, role: Role = "user", text: str = "", n: int = 0) -> Turn:
    return Turn(id=number, parent=parent, sibling=n, role=role, text=text, created_ms=number)


def conversation(*turns: Turn, leaf: int | None = None, system: str | None = None) -> Conversation:
    empty = Conversation(id=1, title="t", created_ms=0, updated_ms=0, system=system, leaf=leaf)
    return with_turns(empty, turns)


BRANCHED = conversation(
    turn(1, None, "user", "one"),
    turn(2, 1, "assistant", "first answer"),
    turn(3, 2, "user", "two"),
    turn(4, 1, "assistant", "second answer", n=1),
    turn(5, 3, "assistant", "deep"),
    turn(6, None, "user", "one, edited", n=1),
    leaf=5,
)


def test_the_shown_path_runs_from_the_first_turn_to_the_leaf() -> None:
    assert [t.id for t in BRANCHED.path()] == [1, 2, 3, 5]
    assert conversation().path() == ()


def test_versions_are_siblings_in_the_order_they_were_made() -> None:
    assert [t.id for t in BRANCHED.siblings(2)] == [2, 4]
    assert [t.id for t in BRANCHED.siblings(6)] == [1, 6]
    assert [t.id for t in BRANCHED.siblings(5)] == [5]


def test_showing_a_version_goes_on_by_the_newest_below_it() -> None:
    assert [t.id for t in BRANCHED.showing(4).path()] == [1, 4]
    assert [t.id for t in BRANCHED.showing(2).path()] == [1, 2, 3, 5]
    assert [t.id for t in BRANCHED.showing(1).path()] == [1, 4]
    assert BRANCHED.leaf == 5, "the conversation itself is never changed"


def test_the_next_sibling_numbers_replies_of_one_question() -> None:
    assert BRANCHED.next_sibling(1) == 2
    assert BRANCHED.next_sibling(None) == 2
    assert BRANCHED.next_sibling(5) == 0


def test_a_new_turn_becomes_the_leaf_and_a_changed_one_does_not() -> None:
    grown = BRANCHED.with_turn(turn(7, 5, "user", "three"))
    assert grown.leaf == 7
    assert BRANCHED.with_turn(turn(2, 1, "assistant", "changed")).leaf == 5


def test_no_system_prompt_and_an_empty_one_are_told_apart() -> None:
    asked = turn(1, None, "user", "hi")
    assert [m.role for m in conversation(asked).messages_to(1)] == ["user"]
    empty = conversation(asked, system="").messages_to(1)
    assert [(m.role, m.text) for m in empty] == [("system", ""), ("user", "hi")]


def test_a_reply_without_text_is_sent_as_an_empty_one() -> None:
    stopped = Turn(
        id=2, parent=1, sibling=0, role="assistant", text="", created_ms=0,
        state=TurnState.STOPPED, reply=ReplyFacts(template_hash="t"),
    )  # fmt: skip
    sent = conversation(turn(1, None, "user", "a"), stopped, turn(3, 2, "user", "b")).messages_to(3)
    assert [(m.role, m.text) for m in sent] == [("user", "a"), ("assistant", ""), ("user", "b")]


def test_questions_that_were_never_answered_are_sent_as_one() -> None:
    sent = conversation(turn(1, None, "user", "a"), turn(2, 1, "user", "b")).messages_to(2)
    assert [(m.role, m.text) for m in sent] == [("user", "a\n\nb")]


def test_exact_ids_are_sent_with_the_hash_they_belong_to_and_never_without() -> None:
    def reply(template_hash: str | None) -> Turn:
        return Turn(
            id=2, parent=1, sibling=0, role="assistant", text="x", created_ms=0, ids=(5, 6),
            reply=ReplyFacts(template_hash=template_hash),
        )  # fmt: skip

    asked = turn(1, None, "user", "a")
    with_hash = conversation(asked, reply("t")).messages_to(2)[-1]
    without = conversation(asked, reply(None)).messages_to(2)[-1]
    assert (with_hash.ids, with_hash.template_hash) == ((5, 6), "t")
    assert (without.ids, without.template_hash) == ((), None)


def test_an_unpaired_surrogate_becomes_one_replacement_character() -> None:
    assert whole_characters("hi \ud83d x") == "hi \ufffd x"
    assert whole_characters("\ude00\ud83d") == "\ufffd\ufffd"
    assert whole_characters("\ud83d\ude00") == "\N{GRINNING FACE}"


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_cleaned_text_can_be_encoded_and_whole_text_is_kept(text: str) -> None:
    cleaned = whole_characters(text)
    cleaned.encode("utf-8")
    assert whole_characters(cleaned) == cleaned
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert cleaned == text


def test_a_title_is_the_first_words() -> None:
    assert title_of("  What is\n the capital\tof France?  ") == "What is the capital of France?"
    assert title_of(" \n ") == NEW_CHAT
    assert title_of("\x1b[31m red") == "[31m red"


@given(st.text(max_size=150))
@settings(max_examples=60)
def test_a_title_is_short_and_on_one_line(text: str) -> None:
    title = title_of(text)
    assert 0 < len(title) <= TITLE_CHARACTERS
    assert title == " ".join(title.split())


def reply(number: int, parent: int, dropped: int | None, n: int = 0) -> Turn:
    facts = ReplyFacts(dropped_messages=dropped)
    made = turn(number, parent, "assistant", f"answer {number}", n)
    return dataclasses.replace(made, reply=facts)


FULL = conversation(
    turn(1, None, "user", "a"),
    turn(2, 1, "user", "never answered"),
    reply(3, 2, None),
    turn(4, 3, "user", "b"),
    reply(5, 4, 0),
    turn(6, 5, "user", "c"),
    reply(7, 6, 2),
    turn(8, 7, "user", "d"),
    reply(9, 6, 0, n=1),
    turn(10, 5, "user", "c, edited", n=1),
    leaf=8,
    system="S",
)


def test_what_no_longer_fitted_once_is_not_sent_again_on_that_path() -> None:
    assert [m.text for m in FULL.messages_to(8)] == ["S", "b", "answer 5", "c", "answer 7", "d"]
    assert FULL.left_out(8) == 2
    assert FULL.first_seen(8) == 4


def test_other_paths_still_send_all_of_theirs() -> None:
    for leaf in (6, 9, 10):
        assert FULL.left_out(leaf) == 0
        assert FULL.first_seen(leaf) is None
        assert [m.text for m in FULL.messages_to(leaf)][:2] == ["S", "a\n\nnever answered"]


def test_whatever_the_count_says_the_last_message_is_sent() -> None:
    odd = conversation(turn(1, None, "user", "a"), reply(2, 1, 9), leaf=2, system="S")
    assert [m.text for m in odd.messages_to(2)] == ["S", "answer 2"]
    assert conversation(system="S").first_seen(None) is None


def test_a_reply_to_a_first_message_begins_its_chat() -> None:
    assert BRANCHED.begins_with(BRANCHED.turns[2])
    assert not BRANCHED.begins_with(BRANCHED.turns[5])


def test_the_engines_name_of_a_chat_leads_back_to_it() -> None:
    assert chat_of(chat_name(1204)) == 1204
    assert chat_of("of another program") is None
