"""``hearth states`` over the fake engine: the list, pins, deletions, the lock."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from app.chat.store import open_store
from app.directories import directories
from app.lock import DirectoryLock
from engine.protocol import StateFacts, Tier
from tests.helpers.fake_engine import Script
from tests.helpers.hearth import Ended, hearth

TITLES = ("Trip to Crete", "twin", "twin", "In the trash")


def state(chat: str | None, tokens: int, tier: Tier = "disk") -> StateFacts:
    return StateFacts(
        conversation=chat,
        model="SmolLM2",
        tokens=tokens,
        bytes=23_040 * tokens,
        own_bytes=1000,
        tier=tier,
        used_s=1_796_040_000.0,
    )


SCRIPT = Script(
    states=(state("1", 8192), state("4", 300), state("99", 256), state(None, 512, "host"))
)


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A data directory with four conversations, the last of them in the trash."""
    with open_store(directories(tmp_path).store_file).store as store:
        for title in TITLES:
            store.conversations.create(title=title)
        store.conversations.trash(4)
    return tmp_path


def states(profile: Path, *arguments: str, script: Script = SCRIPT) -> Ended:
    return hearth(script, "states", "--data-directory", profile, *arguments)


def test_each_state_is_told_by_the_title_of_its_chat(profile: Path) -> None:
    ended = states(profile)
    assert (ended.code, ended.err) == (0, "")
    first, trashed, deleted, shared, total = ended.out.decode().splitlines()
    assert first.startswith("Trip to Crete")
    for words in ("SmolLM2", "8,192 tokens", "189 MB", "on disk", "used 2026-11-30"):
        assert words in first
    assert trashed.startswith("In the trash") and "300 tokens" in trashed
    assert deleted.startswith("(a deleted chat)")
    assert shared.startswith("(what several chats begin with)") and "in memory" in shared
    assert total == "213 MB of 20 GB; 214 GB free on the disk."


def test_json_is_one_object_with_every_figure(profile: Path) -> None:
    found = json.loads(states(profile, "--json").out)
    assert list(found) == ["states", "disk_bytes", "quota_bytes", "disk_free_bytes", "shared_bytes"]
    assert found["states"][0] == {
        "chat": "Trip to Crete",
        "conversation": 1,
        "model": "SmolLM2",
        "tokens": 8192,
        "bytes": 8192 * 23_040,
        "own_bytes": 1000,
        "tier": "disk",
        "pinned": False,
        "last_used": "2026-11-30T12:00:00+00:00",
    }
    assert [s["chat"] for s in found["states"]] == ["Trip to Crete", "In the trash", None, None]
    assert [s["conversation"] for s in found["states"]] == [1, 4, 99, None]


def test_nothing_kept_is_said_plainly(profile: Path) -> None:
    ended = states(profile, script=Script())
    assert ended.out.decode().startswith("Nothing is kept")


@pytest.mark.parametrize(("option", "pinned"), [("--pin", True), ("--unpin", False)])
def test_a_chat_is_pinned_by_its_title(profile: Path, option: str, pinned: bool) -> None:
    kept = tuple(msgspec.structs.replace(s, pinned=not pinned) for s in SCRIPT.states)
    script = msgspec.structs.replace(SCRIPT, states=kept)
    found = json.loads(states(profile, option, "Trip to Crete", "--json", script=script).out)
    assert [s["pinned"] for s in found["states"]] == [pinned, *[not pinned] * 3]
    told = states(profile, option, "Trip to Crete", script=script).out.decode().splitlines()
    assert ("pinned" in told[0]) is pinned


def test_states_are_cleared_one_chat_at_a_time_or_all(profile: Path) -> None:
    left = json.loads(states(profile, "--clear", "Trip to Crete", "--json").out)["states"]
    assert [s["conversation"] for s in left] == [4, 99, None]
    assert json.loads(states(profile, "--clear-all", "--json").out)["states"] == []
    with open_store(directories(profile).store_file).store as store:
        assert len(store.conversations.every_id()) == len(TITLES), "no conversation is touched"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--clear", "no such chat"], "No conversation is called 'no such chat'"),
        (["--pin", "twin"], "2 conversations are called 'twin'"),
        (["--pin", "a", "--clear", "b"], "not allowed with"),
        (["--pin"], "expected one argument"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_and_code_two(
    profile: Path, arguments: list[str], words: str
) -> None:
    ended = states(profile, *arguments)
    assert (ended.code, ended.out) == (2, b"")
    assert words in ended.err and ended.err.count("\n") == 1


def test_while_the_window_is_open_it_is_refused_and_the_window_named(profile: Path) -> None:
    with DirectoryLock(directories(profile).lock_file, "the window"):
        ended = states(profile)
    assert (ended.code, ended.out) == (1, b"")
    assert "the window" in ended.err and ended.err.count("\n") == 1


def test_a_quota_of_nothing_is_told(profile: Path) -> None:
    ended = states(profile, script=Script(quota_bytes=0))
    assert "nothing is kept on disk any more" in ended.out.decode()
