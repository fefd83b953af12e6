"""A chat gets a title after its first reply: not where one was given, not where none is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.chat.options.titles import LONGEST, cleaned_title, title_question
from tests.helpers.fake_engine import Script
from tests.helpers.qt import run_for, wait_until
from tests.helpers.window import TestWindow

SCRIPT = Script(reply='"Meters of gas".')


def title_of(window: TestWindow) -> str:
    session = window.page.session
    return session.conversation.title if session is not None and session.conversation else ""


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ('"Meters of gas".', "Meters of gas"),
        ("Title: **Gas**\nand more", "Gas"),
        ("<think>hm, so</think>\n\n# 「煤气」", "煤气"),
        ("<think>never ends", ""),
        ("\n \n", ""),
    ],
)
def test_a_title_is_one_line_without_what_stands_around_it(said: str, title: str) -> None:
    assert cleaned_title(said) == title


def test_a_title_is_short_and_what_is_asked_is_bounded() -> None:
    assert len(cleaned_title("word " * 100)) <= LONGEST + 1
    question = title_question("a" * 10**6, "b" * 10**6, can_think=True)
    assert len(question.messages[0].text) < 2_000
    assert (question.purpose, question.thinking, question.conversation) == ("side", False, None)


def test_the_first_reply_is_followed_by_a_title_and_later_ones_by_none(tmp_path: Path) -> None:
    window = TestWindow(tmp_path, SCRIPT, titles=True).started()
    window.ask("which month")
    wait_until(lambda: title_of(window) == "Meters of gas")
    wait_until(lambda: window.chats().entries[0].title == "Meters of gas")
    window.close()


def test_a_title_that_a_person_gave_stays(tmp_path: Path) -> None:
    window = TestWindow(tmp_path, Script(reply="Other", prompt_s=0.3), titles=True).started()
    window.write("which month")
    wait_until(lambda: bool(window.chats().entries))
    window.chats().rename(window.chats().entries[0].id, "Mine")
    wait_until(window.idle)
    run_for(0.8)
    assert title_of(window) == "Mine"
    assert window.chats().entries[0].title == "Mine"
    window.close()


def test_without_the_wish_the_first_words_stay_the_title(tmp_path: Path) -> None:
    window = TestWindow(tmp_path, SCRIPT, titles=False).started()
    window.ask("which month")
    run_for(0.3)
    assert title_of(window) == "which month"
    window.close()
