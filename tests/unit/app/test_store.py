"""The store: what was written is there again, exactly; faults change nothing and are told."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from app.chat.conversation import ReplyContent, ReplyFacts, TurnState
from app.chat.storage.database import Database
from app.chat.storage.migrations import Schema, migrate
from app.chat.storage.rows import ids_from_bytes, ids_to_bytes
from app.chat.storage.schema import CREATE, VERSION
from app.chat.store import Store, open_store
from app.chat.store_thread import StoreThread
from app.errors import StoreError, StoreFull, StoreNewer
from engine.protocol import Sampling, Timings
from tests.helpers.store_version_1 import write_version_1

FACTS = ReplyFacts(
    model_name="SmolLM2",
    model_digest="ab" * 32,
    template_hash="t1",
    sampling=Sampling(temperature=0.5, seed=3, stop=("\n\n",)),
    seed=2**64 - 5,
    stop_reason="end-of-turn",
    prompt_tokens=31,
    resumed_tokens=7,
    resumed_from="disk",
    resumed_bytes=590_000_000,
    resumed_ms=204.5,
    on_gpu=False,
    reason="edited",
    dropped_messages=4,
    completion_tokens=3,
    timings=Timings(prefill_ms=1.5, first_token_ms=2.25, decode_ms=None),
    problem=None,
    thinking_ms=1250.5,
    thinking_tokens=17,
    notes=("a note",),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.sqlite3"


def filled(path: Path) -> int:
    """A store with one conversation of a question and a whole reply; the conversation's id."""
    with open_store(path).store as store:
        made = store.conversations.create(system="Be brief.", model="/m.gguf")
        asked = store.turns.add_user(made.id, None, "What is the capital of France?")
        reply = store.turns.begin_reply(made.id, asked.id, FACTS)
        content = ReplyContent("Paris.", "let me think", (1, 2, 2**31 - 1))
        store.turns.end_reply(reply.id, TurnState.WHOLE, content, FACTS)
    return made.id


def test_a_conversation_is_the_same_after_opening_again(path: Path) -> None:
    number = filled(path)
    with open_store(path).store as store:
        found = store.conversations.read(number)
    asked, reply = found.path()
    assert found.title == asked.text == "What is the capital of France?"
    assert (found.system, found.model) == ("Be brief.", "/m.gguf")
    assert found.date is not None
    assert (reply.text, reply.thinking_text, reply.ids) == (
        "Paris.", "let me think", (1, 2, 2**31 - 1)
    )  # fmt: skip
    assert reply.reply == FACTS
    assert reply.state is TurnState.WHOLE


def test_edits_and_regenerations_are_siblings(path: Path) -> None:
    with open_store(path).store as store:
        chat = store.conversations.create()
        asked = store.turns.add_user(chat.id, None, "a")
        first = store.turns.begin_reply(chat.id, asked.id, FACTS)
        second = store.turns.begin_reply(chat.id, asked.id, FACTS)
        edited = store.turns.add_user(chat.id, None, "b")
        found = store.conversations.read(chat.id)
        assert (first.sibling, second.sibling, edited.sibling) == (0, 1, 1)
        assert [t.id for t in found.siblings(first.id)] == [first.id, second.id]
        assert found.leaf == edited.id
        store.conversations.show(chat.id, first.id)
        assert [t.id for t in store.conversations.read(chat.id).path()] == [asked.id, first.id]
        assert found.title == "a", "a title is not changed by what is said later"


def test_a_given_title_is_kept(path: Path) -> None:
    with open_store(path).store as store:
        chat = store.conversations.create(title="trip")
        store.turns.add_user(chat.id, None, "Where to?")
        assert store.conversations.read(chat.id).title == "trip"
        assert [e.id for e in store.conversations.titled("trip")] == [chat.id]
        store.conversations.rename(chat.id, "holiday \ud83d")
        assert store.conversations.read(chat.id).title == "holiday \ufffd"
        assert store.conversations.titled("trip") == ()


def test_the_list_has_the_last_used_first_and_no_trash(path: Path) -> None:
    clock = iter(range(1000, 9000, 10))
    with open_store(path, clock_ms=lambda: next(clock)).store as store:
        old, new = (store.conversations.create(title=t) for t in ("old", "new"))
        assert [e.title for e in store.conversations.entries()] == ["new", "old"]
        store.turns.add_user(old.id, None, "x")
        assert [e.title for e in store.conversations.entries()] == ["old", "new"]
        store.conversations.trash(old.id)
        assert [e.title for e in store.conversations.entries()] == ["new"]
        assert [e.title for e in store.conversations.entries(trashed=True)] == ["old"]
        assert sorted(store.conversations.every_id()) == [old.id, new.id]
        store.conversations.restore(old.id)
        store.conversations.erase(new.id)
        assert [e.title for e in store.conversations.entries()] == ["old"]
        with pytest.raises(StoreError, match="not there any more"):
            store.conversations.read(new.id)


def test_erasing_a_conversation_takes_its_turns_along(path: Path) -> None:
    number = filled(path)
    with open_store(path).store as store:
        store.conversations.erase(number)
    with sqlite3.connect(path) as raw:
        counts = [raw.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in ("turn", "reply")]
    raw.close()
    assert counts == [0, 0]


def test_a_reply_that_was_being_written_is_marked_as_cut_at_the_next_start(path: Path) -> None:
    opened = open_store(path)
    chat = opened.store.conversations.create()
    asked = opened.store.turns.add_user(chat.id, None, "a")
    reply = opened.store.turns.begin_reply(chat.id, asked.id, FACTS)
    opened.store.turns.write_reply(reply.id, ReplyContent("so f", "", (9,)))
    opened.store.close()
    with open_store(path).store as store:
        found = store.turns.read(reply.id)
    assert (found.state, found.text, found.ids) == (TurnState.CUT, "so f", (9,))
    assert found.reply is not None
    assert found.reply.template_hash == "t1", "its ids can still be sent"


def test_a_turn_cannot_follow_one_of_another_conversation(path: Path) -> None:
    with open_store(path).store as store:
        one, two = store.conversations.create(), store.conversations.create()
        turn = store.turns.add_user(one.id, None, "a")
        with pytest.raises(StoreError):
            store.turns.add_user(two.id, turn.id, "b")
        with pytest.raises(StoreError):
            store.turns.add_user(999, None, "b")
        assert store.conversations.read(two.id).turns == {}


def test_a_draft_is_kept_until_it_is_sent(path: Path) -> None:
    with open_store(path).store as store:
        chat = store.conversations.create()
        store.conversations.set_draft(chat.id, "not yet")
        assert store.conversations.draft(chat.id) == "not yet"
        store.turns.add_user(chat.id, None, "now")
        assert store.conversations.draft(chat.id) == ""


def test_only_this_user_can_read_the_files(path: Path) -> None:
    with open_store(path).store as store:
        store.conversations.create()
        modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {0o600}


def test_every_commit_is_synced(path: Path) -> None:
    database = Database(path)
    migrate(database)
    assert database.pragma("synchronous") == 2
    assert database.read("PRAGMA journal_mode")[0][0] == "wal"
    assert database.pragma("foreign_keys") == 1
    database.close()


def test_ids_are_little_endian_int32() -> None:
    assert ids_to_bytes((1, 258)) == b"\x01\x00\x00\x00\x02\x01\x00\x00"
    assert ids_from_bytes(b"\x01\x00\x00\x00\x02\x01\x00\x00\x07") == (1, 258)


# Faults ------------------------------------------------------------------------------------------


def limited(store: Store, more_pages: int) -> None:
    """Let the database grow by so many pages; then SQLite says that the disk is full."""
    database = store.turns._database
    pages = database.pragma("page_count")
    database.read(f"PRAGMA max_page_count = {pages + more_pages}")


def test_a_full_disk_is_told_and_what_was_saved_stays(path: Path) -> None:
    number = filled(path)
    with open_store(path).store as store:
        limited(store, 0)
        leaf = store.conversations.read(number).leaf
        with pytest.raises(StoreFull, match="full"):
            store.turns.add_user(number, leaf, "x" * 100_000)
        assert len(store.conversations.read(number).path()) == 2
        limited(store, 1000)
        store.turns.add_user(number, leaf, "x" * 100_000)
        assert len(store.conversations.read(number).path()) == 3


def test_a_reply_that_meets_a_full_disk_keeps_what_was_written_before(path: Path) -> None:
    with open_store(path).store as store:
        chat = store.conversations.create()
        asked = store.turns.add_user(chat.id, None, "a")
        reply = store.turns.begin_reply(chat.id, asked.id, FACTS)
        store.turns.write_reply(reply.id, ReplyContent("kept", "", (1,)))
        limited(store, 0)
        with pytest.raises(StoreFull):
            store.turns.write_reply(reply.id, ReplyContent("x" * 100_000, "", (1, 2)))
        assert store.turns.read(reply.id).text == "kept"


def test_wherever_the_disk_gets_full_nothing_that_was_acknowledged_is_lost(path: Path) -> None:
    """One script of a whole chat, with room for 0, 1, 2, ... more pages."""
    refused = 0
    for room in range(0, 160, 8):
        with open_store(path).store as store:
            chat = store.conversations.create()
        acknowledged: list[str] = []
        with open_store(path).store as store:
            limited(store, room)
            try:
                for text in ("a" * 20_000, "b" * 20_000, "c" * 20_000):
                    store.turns.add_user(chat.id, store.conversations.read(chat.id).leaf, text)
                    acknowledged.append(text)
            except StoreFull:
                refused += 1
        with open_store(path).store as store:
            assert [t.text for t in store.conversations.read(chat.id).path()] == acknowledged
            store.turns._database.check()
            store.conversations.rename(chat.id, f"room {room}")
    assert 5 < refused < 20, "both outcomes were met"


@pytest.mark.parametrize("size", [100, 4096, 5000])
def test_a_file_that_is_no_database_is_moved_aside_and_never_deleted(path: Path, size: int) -> None:
    path.write_bytes(b"\xff" * size)
    opened = open_store(path)
    assert len(opened.notices) == 1
    assert "damaged" in opened.notices[0]
    assert opened.store.conversations.entries() == ()
    opened.store.close()
    (aside,) = path.parent.glob("*.damaged-*")
    assert aside.read_bytes() == b"\xff" * size


def test_a_database_with_a_zeroed_page_is_moved_aside(path: Path) -> None:
    filled(path)
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 4] = bytes(4096 * 2)
    path.write_bytes(content)
    opened = open_store(path)
    opened.store.close()
    assert "damaged" in opened.notices[0]
    assert next(path.parent.glob("*.damaged-*")).read_bytes() == content


def test_any_flipped_byte_leaves_a_store_that_opens(path: Path) -> None:
    filled(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 1777):
        changed = bytearray(whole)
        changed[place] ^= 0xA5
        path.write_bytes(changed)
        try:
            opened = open_store(path)
        except StoreError as error:
            assert path.exists(), error.sentence
            continue
        opened.store.conversations.entries()
        opened.store.close()
        for file in path.parent.iterdir():
            file.unlink()


def test_a_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE theirs (x)")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        open_store(path)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used"):
        open_store(tmp_path / "missing" / "chats.sqlite3")


def test_a_second_process_that_writes_is_waited_for(path: Path) -> None:
    number = filled(path)
    with open_store(path).store as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        store.turns._database.read("PRAGMA busy_timeout = 50")
        with pytest.raises(StoreError, match="in use"):
            store.conversations.rename(number, "x")
        other.execute("ROLLBACK")
        other.close()
        store.conversations.rename(number, "y")
        assert store.conversations.read(number).title == "y"


# Versions ----------------------------------------------------------------------------------------

NEXT = Schema(
    VERSION + 1,
    (*CREATE, "ALTER TABLE conversation ADD COLUMN colour TEXT"),
    {VERSION: ("ALTER TABLE conversation ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'",)},
)


def test_an_older_database_is_copied_first_and_then_brought_up_to_date(path: Path) -> None:
    number = filled(path)
    opened = open_store(path, schema=NEXT)
    assert opened.store.conversations.read(number).title.startswith("What is")
    opened.store.close()
    (copy,) = path.parent.glob(f"*.version-{VERSION}.*")
    assert str(copy) in opened.notices[0]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with open_store(copy).store as before:
        assert len(before.conversations.read(number).path()) == 2
    again = open_store(path, schema=NEXT)
    again.store.close()
    assert again.notices == ()


def test_a_store_of_the_first_version_keeps_all_and_knows_no_new_facts(path: Path) -> None:
    write_version_1(path)
    opened = open_store(path)
    assert "a copy of before" in opened.notices[0]
    asked, reply = opened.store.conversations.read(7).path()
    assert (asked.text, reply.text, reply.ids) == ("What is it?", "It is that.", (1, 2))
    facts = reply.reply
    assert facts is not None
    assert (facts.prompt_tokens, facts.resumed_tokens) == (31, 7)
    later = (facts.resumed_from, facts.resumed_bytes, facts.resumed_ms, facts.on_gpu)
    assert (*later, facts.reason, facts.dropped_messages) == (None,) * 6
    again = opened.store.turns.begin_reply(7, asked.id, FACTS)
    assert again.reply == FACTS
    opened.store.close()
    assert open_store(path).notices == ()


def test_a_new_store_and_one_brought_up_to_date_have_the_same_columns(tmp_path: Path) -> None:
    write_version_1(tmp_path / "old")
    open_store(tmp_path / "old").store.close()
    open_store(tmp_path / "new").store.close()
    columns = []
    for name in ("old", "new"):
        raw = sqlite3.connect(tmp_path / name)
        tables = [
            row[0] for row in raw.execute("SELECT name FROM sqlite_schema WHERE type='table'")
        ]
        columns.append(
            {t: sorted(row[1:4] for row in raw.execute(f"PRAGMA table_info({t})")) for t in tables}
        )
        raw.close()
    assert columns[0] == columns[1]


def test_a_migration_that_fails_leaves_the_old_version(path: Path) -> None:
    number = filled(path)
    broken = Schema(NEXT.version, NEXT.create, {VERSION: (*NEXT.steps[VERSION], "NONSENSE")})
    with pytest.raises(StoreError):
        open_store(path, schema=broken)
    with open_store(path).store as store:
        assert len(store.conversations.read(number).path()) == 2


def test_a_newer_database_is_refused_in_one_sentence_and_left_alone(path: Path) -> None:
    open_store(path, schema=NEXT).store.close()
    before = path.read_bytes()
    with pytest.raises(StoreNewer, match="newer Hearth"):
        open_store(path)
    assert path.read_bytes() == before


def test_a_new_database_is_of_the_schemas_version(path: Path) -> None:
    database = Database(path)
    assert migrate(database, NEXT) is None
    assert database.pragma("user_version") == NEXT.version
    database.close()


# The thread --------------------------------------------------------------------------------------


def test_the_store_thread_works_in_order_and_reports_errors(path: Path) -> None:
    with StoreThread(lambda: open_store(path)) as thread:
        chat = thread.submit(lambda store: store.conversations.create(title="a")).result()
        for title in "bcdefg":
            thread.submit(lambda store, t=title: store.conversations.rename(chat.id, t))  # type: ignore[misc]
        assert thread.submit(lambda s: s.conversations.read(chat.id)).result().title == "g"
        failed = thread.submit(lambda s: s.conversations.read(99))
        assert isinstance(failed.exception(), StoreError)


def test_a_store_that_does_not_open_leaves_no_thread(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreError):
        StoreThread(lambda: open_store(path))
    assert path.is_dir()
