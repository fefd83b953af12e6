"""The window over our own engine and the starter model: a chat goes on where it stood."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.library.loaded import ModelPhase
from app.link.process import engine_command
from engine.protocol import EngineMessage, Sampling
from tests.helpers.models import smol_path
from tests.helpers.qt import left_of_qt, wait_until
from tests.helpers.turns import path, session
from tests.helpers.window import TestWindow

STORY = (
    "Here is a story. "
    + "The river ran past the mill and the people walked along it in the evening. " * 30
    + "What ran past the mill?"
)
LIMIT_S = 120.0
Open = Callable[[], TestWindow]


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A data directory whose model is the starter model; replies are short and greedy."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "settings.toml").write_text(
        f"default_model = {json.dumps(str(smol_path()))}\n"
        "[sampling]\nmax_tokens = 8\ntemperature = 0\n"
    )
    return folder


@pytest.fixture
def opened(profile: Path) -> Iterator[Open]:
    """Makes windows whose model is loaded; closes those that the test left open."""
    made: list[TestWindow] = []

    def open_one() -> TestWindow:
        window = TestWindow(profile, model=False, command=engine_command(profile))
        made.append(window)
        window.start()
        wait_until(lambda: window.idle() and window.model().phase is ModelPhase.READY, LIMIT_S)
        return window

    yield open_one
    for window in made:
        window.close()
    assert left_of_qt() == []


def ask(window: TestWindow, text: str) -> str:
    """Ask, and what is said of the reply's resume."""
    window.write(text)
    wait_until(lambda: not window.idle())
    wait_until(window.idle, LIMIT_S)
    return window.chips()[-1]


def settled(window: TestWindow) -> None:
    """Wait until what the engine does beside replies has ended."""
    workshop = window.whole.workshop
    got: list[EngineMessage] = []
    workshop.client.settle(30_000, on_message=workshop.bridge.on_ui(got.append))
    wait_until(lambda: bool(got), LIMIT_S)


def test_after_a_restart_a_chat_goes_on_from_the_disk(opened: Open) -> None:
    window = opened()
    kept = window.whole.workshop.kept
    assert kept.tiers == {}
    assert ask(window, STORY) == "", "nothing could be kept of a first message"
    wait_until(lambda: [tier.tier for tier in kept.tiers.values()] == ["device"], LIMIT_S)
    settled(window)
    window.close()

    window = opened()
    kept = window.whole.workshop.kept
    wait_until(lambda: {chat: t.tier for chat, t in kept.tiers.items()} == {1: "disk"}, LIMIT_S)
    chip = ask(window, "Who walked there?")
    found = re.match(r"resumed (\d+) of (\d+) tokens from disk, \d+ MB in ", chip)
    assert found is not None, chip
    assert 512 <= int(found[1]) < int(found[2])
    again = ask(window, "And when?")
    assert again.startswith("resumed ")
    window.close()


def test_a_reply_at_its_limit_goes_on_to_what_one_long_reply_says(opened: Open) -> None:
    window = opened()
    ask(window, "Tell me a long story about an old mill at a river.")
    assert len(path(window)[1].ids) == 8
    for tokens in (16, 24):
        window.page.continue_reply()
        wait_until(window.idle, LIMIT_S)
        assert len(path(window)[1].ids) == tokens
    joined = path(window)[1]
    long = Sampling(temperature=0.0, max_tokens=24)
    object.__setattr__(session(window)._services, "sampling", long)
    window.page.answer_again()
    wait_until(window.idle, LIMIT_S)
    whole = path(window)[1]
    assert whole.id != joined.id
    assert (whole.text, whole.ids) == (joined.text, joined.ids)
