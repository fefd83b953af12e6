"""The store's newer parts: what a chat was set to, its trash, its branches, and finding it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.chat.conversation import (
    Conversation,
    ReplyContent,
    ReplyFacts,
    Scroll,
    Turn,
    TurnState,
)
from app.chat.storage.search import Hit, snippet_of
from app.chat.store import Store, open_store
from app.errors import StoreError
from app.settings.sampling import SamplingSettings

FACTS = ReplyFacts(model_name="m", template_hash="t")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "chats.sqlite3").store as opened:
        yield opened


def exchange(
    store: Store, chat: int, parent: int | None, ask: str, reply: str
) -> tuple[Turn, Turn]:
    """A message and its reply."""
    user = store.turns.add_user(chat, parent, ask)
    begun = store.turns.begin_reply(chat, user.id, FACTS)
    content = ReplyContent(reply, ids=(1, 2))
    return user, store.turns.end_reply(begun.id, TurnState.WHOLE, content, FACTS)


def found(store: Store, words: str) -> list[tuple[int, int | None]]:
    """Chat and turn of every hit."""
    return [(hit.conversation, hit.turn) for hit in store.search.find(words)]


def test_what_a_chat_was_set_to_is_there_again(store: Store) -> None:
    chat = store.conversations.create().id
    store.options.set_preset(chat, "brief")
    store.options.set_sampling(chat, SamplingSettings(top_k=3))
    store.options.set_thinking(chat, False)
    store.options.set_scroll(chat, Scroll(7, 0.25))
    store.options.pin(chat, True)
    read = store.conversations.read(chat)
    assert (read.preset, read.sampling, read.thinking) == (
        "brief",
        SamplingSettings(top_k=3),
        False,
    )
    assert store.options.scroll(chat) == Scroll(7, 0.25)
    assert store.conversations.entries()[0].pinned_ms is not None
    store.options.set_sampling(chat, None)
    store.options.set_thinking(chat, None)
    store.options.set_scroll(chat, None)
    store.options.pin(chat, False)
    assert store.conversations.read(chat).sampling is None
    assert store.options.scroll(chat) is None
    assert store.conversations.entries()[0].pinned_ms is None


def test_a_title_that_a_person_gave_stays(store: Store) -> None:
    first, second = store.conversations.create().id, store.conversations.create().id
    store.conversations.rename(first, "Mine")
    store.conversations.suggest_title(first, "The model's")
    store.conversations.suggest_title(second, "The model's")
    assert store.conversations.read(first).title == "Mine"
    assert store.conversations.read(second).title == "The model's"
    store.turns.add_user(second, None, "hello")
    assert store.conversations.read(second).title == "hello"


def tree(store: Store) -> tuple[int, list[Turn]]:
    """q1 - a1 - q2 - a2, and a second version of q2 with a reply."""
    chat = store.conversations.create().id
    q1, a1 = exchange(store, chat, None, "q1", "a1")
    q2, a2 = exchange(store, chat, a1.id, "q2", "a2")
    q3, a3 = exchange(store, chat, a1.id, "q2 again", "a2 again")
    return chat, [q1, a1, q2, a2, q3, a3]


def path(chat: Conversation) -> list[str]:
    """The shown texts."""
    return [turn.text for turn in chat.path()]


def test_a_turn_in_the_trash_takes_what_follows_with_it_and_comes_back(store: Store) -> None:
    chat, (_, a1, q2, _, q3, _) = tree(store)
    store.turns.trash(q3.id)
    assert path(store.conversations.read(chat)) == ["q1", "a1", "q2", "a2"]
    store.turns.trash(q2.id)
    assert path(store.conversations.read(chat)) == ["q1", "a1"]
    store.turns.restore(q3.id)
    assert path(store.conversations.read(chat)) == ["q1", "a1", "q2 again", "a2 again"]
    store.turns.trash(a1.id)
    read = store.conversations.read(chat)
    assert path(read) == ["q1"] and len(read.turns) == 1
    store.turns.restore(a1.id)
    assert path(store.conversations.read(chat)) == ["q1", "a1", "q2 again", "a2 again"]
    assert found(store, "a2 again") != []


def test_the_first_message_in_the_trash_leaves_an_empty_chat(store: Store) -> None:
    chat, (q1, *_) = tree(store)
    store.turns.trash(q1.id)
    read = store.conversations.read(chat)
    assert read.leaf is None and not read.turns
    new = store.turns.add_user(chat, None, "anew")
    assert new.sibling == 1


def test_a_branch_is_a_chat_of_its_own(store: Store) -> None:
    chat, (_, a1, _, a2, *_) = tree(store)
    store.conversations.set_system(chat, "Be brief.")
    whole = store.conversations.read(chat)
    made = store.conversations.read(store.copies.branch(chat, whole.path_to(a2.id), "Copy"))
    assert (path(made), made.title, made.system) == (["q1", "a1", "q2", "a2"], "Copy", "Be brief.")
    assert made.path()[1].ids == (1, 2) and made.path()[1].reply == a1.reply
    store.turns.add_user(made.id, made.leaf, "more")
    assert path(store.conversations.read(chat)) == path(whole)
    assert found(store, "Copy") == [(made.id, None)]
    with pytest.raises(StoreError):
        store.copies.branch(chat, (), "Nothing")


def test_a_reply_that_a_person_wrote_stands_beside_the_models(store: Store) -> None:
    chat, (q1, a1, *_) = tree(store)
    mine = store.turns.add_reply(chat, q1.id, "mine", FACTS)
    assert (mine.sibling, mine.state, mine.ids) == (a1.sibling + 1, TurnState.WHOLE, ())


@pytest.mark.parametrize(
    ("words", "hits"),
    [
        ("capital", 2),
        ("CAPITAL france", 1),
        ("apit", 2),
        ("巴黎", 1),
        ("黎", 1),
        ("été", 1),
        ("of", 1),
        ('"capital', 0),
        ("cap*", 0),
        ("capital OR nothing", 0),
        ("50%", 1),
        ("5_", 0),
        ("nothing", 0),
        ("", 0),
        ("  ", 0),
    ],
)
def test_any_part_of_any_word_in_any_language_is_found(store: Store, words: str, hits: int) -> None:
    chat = store.conversations.create().id
    exchange(store, chat, None, "The capital of France?", "Paris, 巴黎. It is 50% larger.")
    other = store.conversations.create().id
    exchange(store, other, None, "A capital idea for l'été", "Sure.")
    assert len({hit for hit in found(store, words) if hit[1] is not None}) == hits


def test_titles_come_first_and_the_trash_is_not_searched(store: Store) -> None:
    chat, (q1, *_) = tree(store)
    store.conversations.rename(chat, "About q1")
    assert found(store, "q1") == [(chat, None), (chat, q1.id)]
    store.turns.trash(q1.id)
    assert found(store, "q1") == [(chat, None)]
    store.conversations.trash(chat)
    assert found(store, "q1") == []


def test_a_running_reply_is_found_once_it_ended_or_was_cut(store: Store) -> None:
    chat = store.conversations.create().id
    user = store.turns.add_user(chat, None, "ask")
    begun = store.turns.begin_reply(chat, user.id, FACTS)
    store.turns.write_reply(begun.id, ReplyContent("halfway"))
    assert found(store, "halfway") == []
    store.turns.mark_cut()
    assert found(store, "halfway") == [(chat, begun.id)]


def test_nothing_of_an_erased_chat_stays_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "chats.sqlite3"
    with open_store(file).store as store:
        chat = store.conversations.create().id
        exchange(store, chat, None, "xyzzy-secret-question", "plugh-secret-answer")
        kept = store.conversations.create().id
        exchange(store, kept, None, "kept question", "kept answer")
        store.conversations.erase(chat)
        assert found(store, "secret") == []
        assert len(found(store, "kept")) >= 2
    content = file.read_bytes()
    assert b"xyzzy" not in content and b"plugh" not in content
    assert b"kept question" in content


def test_a_snippet_is_one_line_around_the_word_with_every_word_marked() -> None:
    text = "a" * 100 + "\nthe word\nstands here, the end " + "b" * 200
    shown, marks = snippet_of(text, ["word", "the"])
    assert shown.startswith("…") and shown.endswith("…") and "\n" not in shown
    assert {shown[m.start : m.stop] for m in marks} == {"word", "the"}


def test_a_word_of_letters_that_fold_longer_is_shown_without_marks() -> None:
    assert snippet_of("İstanbul", ["i"])[1] == ()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=20), st.text(max_size=12))
def test_marks_lie_inside_the_snippet(text: str, typed: str) -> None:
    shown, marks = snippet_of(text, typed.casefold().split())
    assert all(0 <= m.start < m.stop <= len(shown) for m in marks)


SIGNS = ('"', "'", "a AND b", "NEAR(a b)", "text:a", "^a", "-a", "(", "*", "\x00", "%_\\")


@pytest.mark.parametrize("typed", SIGNS)
def test_signs_of_the_query_language_are_only_signs(store: Store, typed: str) -> None:
    tree(store)
    assert isinstance(store.search.find(typed), tuple)


def test_a_hit_knows_when_its_chat_was_used(store: Store) -> None:
    chat, _ = tree(store)
    (title, *_) = store.search.find("q2 again")
    assert isinstance(title, Hit)
    assert title.updated_ms == store.conversations.read(chat).updated_ms


def test_a_store_of_version_two_can_be_searched_after_the_change(tmp_path: Path) -> None:
    file = tmp_path / "chats.sqlite3"
    with open_store(file).store as store:
        tree(store)
    connection = sqlite3.connect(file)
    for table, columns in (
        ("conversation", ("pinned_ms", "preset", "sampling", "thinking")),
        ("conversation", ("scroll_turn", "scroll_share")),
        ("turn", ("trashed_ms",)),
        ("reply", ("thinking_ms", "thinking_tokens")),
    ):
        for column in columns:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    connection.execute("DROP TABLE turn_words")
    connection.execute("DROP TABLE title_words")
    connection.execute("PRAGMA user_version = 2")
    connection.commit()
    connection.close()
    opened = open_store(file)
    with opened.store as store:
        assert len(opened.notices) == 1 and "new format" in opened.notices[0]
        assert len(found(store, "again")) == 2
