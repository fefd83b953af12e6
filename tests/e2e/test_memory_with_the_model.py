"""The memory page over our own engine and the starter model: its figures are the engine's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.library.loaded import ModelPhase
from app.link.process import engine_command
from app.memory.cards import Card, Mark
from app.memory.desk import MemoryDesk
from app.memory.rows import KeptRow
from app.pages.names import PageName
from tests.helpers.models import smol_path
from tests.helpers.qt import left_of_qt, wait_until
from tests.helpers.window import TestWindow

STORY = "The river ran past the mill and the people walked along it in the evening. " * 30
LIMIT_S = 120.0


@pytest.fixture
def window(tmp_path: Path) -> Iterator[TestWindow]:
    """A window whose model is loaded; replies are short and greedy."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "settings.toml").write_text(
        f"default_model = {json.dumps(str(smol_path()))}\n"
        "[sampling]\nmax_tokens = 4\ntemperature = 0\n"
    )
    made = TestWindow(folder, model=False, command=engine_command(folder)).start()
    wait_until(lambda: made.idle() and made.model().phase is ModelPhase.READY, LIMIT_S)
    yield made
    made.close()
    assert left_of_qt() == []


def desk(window: TestWindow) -> MemoryDesk:
    assert window.whole.memory is not None
    return window.whole.memory.desk


def card(window: TestWindow, title: str) -> Card:
    return next(card for card in desk(window).view.cards if card.title == title)


def row(window: TestWindow) -> KeptRow:
    (found,) = window.window.memory.kept.table.kept.rows
    return found


def test_a_chat_is_in_memory_then_on_disk_then_text_and_every_figure_adds_up(
    window: TestWindow,
) -> None:
    window.write(STORY)
    wait_until(lambda: not window.idle())
    wait_until(window.idle, LIMIT_S)
    window.window.show_page(PageName.MEMORY)
    wait_until(lambda: len(desk(window).view.cards) == 2, LIMIT_S)
    wait_until(lambda: row(window).where == "In memory", LIMIT_S)
    ram = card(window, "RAM")
    names = [part.name for part in ram.parts]
    assert {"Weights", "Chats", "Kept chats", "Workspace", "Free"} <= set(names)
    assert all(part.bytes >= 0 for part in ram.parts)
    assert ram.mark is Mark.GOOD and ram.foot.startswith("Planned ")
    assert row(window).model == window.model().name
    assert row(window).amounts[0] >= 256 and row(window).kept

    wait_until(lambda: card(window, "Disk").used != "0.0", LIMIT_S)
    window.whole.workshop.model.unload()
    wait_until(lambda: row(window).where == "On disk", LIMIT_S)
    wait_until(lambda: "Weights" not in [p.name for p in card(window, "RAM").parts], LIMIT_S)
    conversation = row(window).conversation
    assert conversation is not None
    desk(window).pin(conversation, True)
    wait_until(lambda: row(window).pinned, LIMIT_S)

    desk(window).clear((conversation,))
    wait_until(lambda: row(window).where == "Text only", LIMIT_S)
    wait_until(lambda: row(window).note != "", LIMIT_S)
    assert "tokens" in row(window).note
    wait_until(lambda: card(window, "Disk").used == "0.0", LIMIT_S)
