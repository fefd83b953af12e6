"""A small, fixed part of the long kill runs in ``tests/fuzz``."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz import kills, store_kills
from tests.helpers.fake_engine import fake_command


def test_ten_kills_of_the_engine_each_have_a_next_answer(tmp_path: Path) -> None:
    seen = kills.run(10, 1, fake_command(kills.FAKE), "/any.gguf", tmp_path)
    assert len(seen.recovery_s) == 10
    assert len(seen.phases) >= 2, "the kills met different moments"


def test_ten_kills_of_a_writer_lose_nothing_that_was_acknowledged() -> None:
    told = store_kills.run(10, 1)
    assert len(told.questions) >= 3, "the writers were killed before they wrote"
    assert told.reply_tokens
