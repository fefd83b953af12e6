"""Backups: one a day, three kept, sound ones only; a damaged store comes back from the newest."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.chat.storage.database import Database
from app.chat.store import open_store
from app.errors import StoreDamaged, StoreError, StoreFull
from app.exchange.backups import Backups, is_sound

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.sqlite3"


def say(path: Path, text: str) -> None:
    with open_store(path).store as store:
        store.turns.add_user(store.conversations.create().id, None, text)


def titles(path: Path) -> set[str]:
    with open_store(path).store as store:
        return {entry.title for entry in store.conversations.entries()}


def back_up(path: Path, days: float = 0) -> Path | None:
    return Backups(path, lambda: START + timedelta(days=days)).make_due()


def test_a_backup_is_made_once_a_day_while_the_store_is_open_and_three_are_kept(
    path: Path,
) -> None:
    say(path, "kept")
    with open_store(path).store as store:
        made = [back_up(path, days) for days in (0, 0.5, 1, 1.9, 2, 3, 4)]
        store.conversations.create()
    assert [copy is not None for copy in made] == [True, False, True, False, True, True, True]
    found = [when for when, _ in Backups(path).found()]
    assert found == [START + timedelta(days=days) for days in (4, 3, 2)]
    assert {p.name for p in path.with_name("backups").iterdir()} == {
        p.name for _, p in Backups(path).found()
    }


def test_an_empty_store_is_not_backed_up_and_a_clock_set_back_stops_no_backup(path: Path) -> None:
    open_store(path).store.close()
    assert back_up(path) is None
    say(path, "kept")
    assert back_up(path, 9) is not None
    assert back_up(path, 0) is not None


def test_a_damaged_store_comes_back_from_the_newest_sound_backup(path: Path) -> None:
    say(path, "old")
    back_up(path)
    say(path, "newer")
    newest = back_up(path, 1)
    say(path, "newest")
    path.write_bytes(b"\xff" * 5000)
    opened = open_store(path)
    opened.store.close()
    (notice,) = opened.notices
    assert "was damaged" in notice
    assert "back from the backup of 2026-03-0" in notice
    assert titles(path) == {"old", "newer"}
    assert next(path.parent.glob("*.damaged-*")).read_bytes() == b"\xff" * 5000
    assert newest is not None
    newest.write_bytes(b"\xff" * 5000)
    path.write_bytes(b"\xff" * 5000)
    assert titles(path) == {"old"}


def test_a_store_that_vanished_comes_back_from_its_backup(path: Path) -> None:
    say(path, "old")
    back_up(path)
    path.unlink()
    opened = open_store(path)
    opened.store.close()
    assert "is missing" in opened.notices[0]
    assert titles(path) == {"old"}


def test_a_copy_that_is_not_sound_replaces_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(path, "old")
    back_up(path)
    before = Backups(path).found()
    monkeypatch.setattr(Database, "back_up", lambda _self, to: to.write_bytes(b"\xff" * 5000))
    with pytest.raises(StoreDamaged, match="was not kept"):
        back_up(path, 1)
    assert Backups(path).found() == before
    assert is_sound(before[0][1])


@pytest.mark.parametrize("step", ["mkdir", "replace", "unlink"])
@pytest.mark.parametrize("number", [28, 5])
def test_a_backup_that_cannot_be_written_is_one_sentence_and_the_store_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    say(path, "old")
    back_up(path)

    def fail(*_args: object, **_named: object) -> None:
        raise OSError(number, "injected")

    with monkeypatch.context() as faulty:
        faulty.setattr(Path, step, fail)
        with pytest.raises(StoreFull if number == 28 else StoreError, match="backup"):
            back_up(path, 1)
    assert titles(path) == {"old"}
    assert back_up(path, 2) is not None


def test_a_full_disk_while_bringing_back_leaves_the_damaged_file_where_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(path, "old")
    back_up(path)
    path.write_bytes(b"\xff" * 5000)

    def fail(*_args: object) -> None:
        raise OSError(28, "injected")

    with monkeypatch.context() as faulty:
        faulty.setattr("app.exchange.backups.shutil.copyfile", fail)
        with pytest.raises(StoreFull):
            open_store(path)
    assert path.read_bytes() == b"\xff" * 5000
    assert titles(path) == {"old"}


def damaged(whole: bytes, chance: random.Random, kind: int) -> bytes:
    """``whole`` cut, with bytes flipped, or with a page zeroed."""
    changed = bytearray(whole)
    if kind == 0:
        return whole[: chance.randrange(1, len(whole))]
    if kind == 1:
        for _ in range(chance.randrange(1, 40)):
            changed[chance.randrange(len(changed))] ^= chance.randrange(1, 256)
    else:
        page = 4096 * chance.randrange(len(changed) // 4096)
        changed[page : page + 4096] = bytes(4096)
    return bytes(changed)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_a_hundred_damaged_stores_open_and_are_told_or_keep_all(path: Path, kind: int) -> None:
    for number in range(40):
        say(path, f"chat {number}")
    back_up(path)
    whole, all_titles = path.read_bytes(), titles(path)
    chance = random.Random(kind)
    told = 0
    for _ in range(34):  # x 3 kinds
        path.write_bytes(damaged(whole, chance, kind))
        opened = open_store(path)
        found = {entry.title for entry in opened.store.conversations.entries()}
        opened.store.turns.add_user(opened.store.conversations.create().id, None, "goes on")
        opened.store.close()
        told += bool(opened.notices)
        if opened.notices:
            assert found == all_titles
        for left in (*path.parent.glob("*.damaged-*"), *path.parent.glob("*-wal")):
            left.unlink()
    assert told > 5, "damage was met"


def test_a_damaged_index_of_words_is_made_again_and_loses_no_message(path: Path) -> None:
    say(path, "first")
    with open_store(path).store as store:
        database = store.turns._database
        with database.transaction():
            database.write("UPDATE turn_words_data SET block = x'ffffffffffffffffffff'")
    opened = open_store(path)
    with opened.store as store:
        store.turns.add_user(store.conversations.create().id, None, "second")
        assert opened.notices == ()
        assert {hit.title for hit in store.search.find("first")} == {"first"}
        assert {hit.title for hit in store.search.find("second")} == {"second"}
