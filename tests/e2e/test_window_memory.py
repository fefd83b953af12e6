"""The memory page in the window over a scripted engine: figures, pins, deletions, ways out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication

from app.chat.blocks.inline_error import InlineError
from app.library.loaded import ModelPhase
from app.link.events import OnMessage
from app.pages.names import PageName
from app.panels.chat_list import ChatListModel, ListRole
from app.panels.question import Question
from engine.protocol import ChatTier, StateFacts
from tests.helpers.fake_engine import Script
from tests.helpers.fake_script import Resume
from tests.helpers.qt import press, run_for, settle, wait_until
from tests.helpers.window import TestWindow

OpenWindow = Callable[..., TestWindow]
GIB = 2**30
KEPT = StateFacts(
    conversation="1", model="fake", tokens=4096, bytes=10**8, own_bytes=1, tier="disk", used_s=1.0
)
ON_DISK = ChatTier(conversation="1", tier="disk", tokens=4096)


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    return tmp_path / "heard"


def told(heard: Path, kind: str) -> list[dict[str, object]]:
    """The messages of one kind that the engine got."""
    lines = heard.read_bytes().splitlines() if heard.exists() else []
    messages = [msgspec.json.decode(line) for line in lines]
    return [message for message in messages if message["type"] == kind]


def at_memory(window: TestWindow) -> TestWindow:
    """Start, ask once so that there is a chat, and go to the page."""
    window.started()
    window.ask("What is the capital of France?")
    window.window.sidebar.memory.click()
    wait_until(lambda: bool(rows(window)))
    return window


def act(window: TestWindow, name: str) -> None:
    action = window.window.findChild(QAction, name)
    assert isinstance(action, QAction)
    action.trigger()


def rows(window: TestWindow) -> list[tuple[str, str, bool]]:
    shown = window.window.memory.kept.table.kept.rows
    return [(row.title, row.where, row.pinned) for row in shown]


def question() -> Question:
    dialog = QApplication.activeModalWidget()
    assert isinstance(dialog, Question)
    return dialog


def notice(window: TestWindow) -> InlineError:
    assert window.page.notice is not None
    return window.page.notice


def marks(window: TestWindow) -> list[tuple[str, str]]:
    """(tier, spoken words) of every chat in the sidebar."""
    model = window.window.sidebar.findChild(ChatListModel)
    assert isinstance(model, ChatListModel)
    found = [model.index(n) for n in range(model.rowCount())]
    spoken = int(Qt.ItemDataRole.AccessibleTextRole)
    return [
        (index.data(ListRole.TIER.value), index.data(spoken))
        for index in found
        if index.data(ListRole.CHAT.value) is not None
    ]


def shown(window: TestWindow) -> PageName:
    """The page that is shown at this moment."""
    return window.window.shown


def test_the_page_takes_the_chats_place_and_esc_or_a_chat_gives_it_back(
    open_window: OpenWindow,
) -> None:
    window = at_memory(open_window(Script(states=(KEPT,))))
    frame = window.window
    assert shown(window) is PageName.MEMORY
    assert not window.page.isVisible() and not frame.bar.isVisible()
    assert frame.sidebar.memory.isChecked()
    assert [card.accessibleName() for card in frame.memory.cards] == ["RAM", "Disk"]
    act(window, "chat.stop")
    assert shown(window) is PageName.CHAT and window.page.isVisible()
    assert not frame.sidebar.memory.isChecked()
    act(window, "view.memory")
    assert shown(window) is PageName.MEMORY
    frame.sidebar.chosen.emit(1)
    assert shown(window) is PageName.CHAT
    act(window, "view.memory")
    table = frame.memory.kept.table
    table.open_wanted.emit(table.kept.rows[0])
    assert shown(window) is PageName.CHAT


def test_a_chat_is_pinned_at_once_and_deleted_after_one_question(
    open_window: OpenWindow, heard: Path
) -> None:
    window = at_memory(open_window(Script(states=(KEPT,), heard=str(heard))))
    title = "What is the capital of France?"
    assert rows(window) == [(title, "On disk", False)]
    table = window.window.memory.kept.table
    table.setFocus()
    table.selectRow(0)
    press(table, Qt.Key.Key_P, "p")
    wait_until(lambda: rows(window) == [(title, "On disk", True)])
    press(table, Qt.Key.Key_Delete)
    question().no.click()
    settle()
    assert told(heard, "ClearStates") == [] and len(rows(window)) == 1
    press(table, Qt.Key.Key_Delete)
    question().yes.click()
    wait_until(lambda: rows(window) == [(title, "Text only", False)])
    assert told(heard, "ClearStates")[-1]["conversations"] == ["1"]


def test_everything_is_deleted_after_one_question(open_window: OpenWindow, heard: Path) -> None:
    window = at_memory(open_window(Script(states=(KEPT,), heard=str(heard))))
    window.window.memory.kept.clear.click()
    question().yes.click()
    wait_until(lambda: bool(told(heard, "ClearStates")))
    assert told(heard, "ClearStates")[-1]["conversations"] is None
    wait_until(window.window.memory.kept.clear.isHidden)


def test_what_the_engine_does_not_do_is_told_in_a_toast(open_window: OpenWindow) -> None:
    window = at_memory(open_window(Script(states=(KEPT,), states_failure="internal")))
    table = window.window.memory.kept.table
    table.pin_wanted.emit(table.kept.rows[0])
    wait_until(window.window.toast.isVisible)
    assert "It is not allowed." in window.window.toast.accessibleName()
    assert not window.window.toast.button.isVisible()


def test_a_chat_that_is_only_text_tells_its_length(open_window: OpenWindow) -> None:
    window = at_memory(open_window(Script()))
    wait_until(lambda: bool(window.window.memory.kept.table.kept.rows[0].note))
    assert window.window.memory.kept.table.kept.rows[0].note.endswith("tokens")


def test_marks_follow_what_the_engine_says_and_the_chat_that_answers(
    open_window: OpenWindow,
) -> None:
    script = Script(
        tiers=(ON_DISK,),
        reply="one two three four",
        words_per_s=10,
        resume=Resume(tokens=1, tier="disk"),
    )
    window = open_window(script).started()
    window.write("Hello")
    wait_until(lambda: bool(marks(window)))
    wait_until(lambda: marks(window)[0][1] == "Hello, Answering")
    wait_until(window.idle)
    wait_until(lambda: marks(window) == [("device", "Hello, Resumes at once from memory")])
    window.whole.workshop.client.kill()
    wait_until(lambda: marks(window)[0][0] == "none")
    wait_until(lambda: marks(window) == [("disk", "Hello, Resumes from disk after a short read")])


def test_the_model_is_unloaded_and_comes_back_with_the_next_message(
    open_window: OpenWindow, heard: Path
) -> None:
    window = at_memory(open_window(Script(states=(KEPT,), heard=str(heard))))
    window.window.memory.head.action.click()
    wait_until(window.window.memory.head.action.isHidden)
    assert window.model().phase is ModelPhase.UNLOADED
    run_for(0.1)
    assert notice(window).facts.title == "SmolLM2 135M Instruct is not loaded"
    assert marks(window)[0][0] == "disk"
    window.window.show_page(PageName.CHAT)
    window.ask("And of Spain?")
    assert window.model().phase is ModelPhase.READY and window.page.notice is None
    assert len(told(heard, "Load")) == 2


def test_an_unloaded_model_stays_so_when_the_engine_is_started_again(
    open_window: OpenWindow, heard: Path
) -> None:
    window = at_memory(open_window(Script(heard=str(heard))))
    window.whole.workshop.model.unload()
    run_for(0.1)
    window.whole.workshop.client.kill()
    wait_until(lambda: not window.whole.workshop.client.ready)
    wait_until(lambda: window.whole.workshop.client.ready)
    run_for(0.2)
    assert window.model().phase is ModelPhase.UNLOADED
    assert len(told(heard, "Load")) == 1


def refused(fitting: int, heard: Path) -> Script:
    return Script(
        load_failure="memory-refused",
        refusal={
            "needed_bytes": 14 * GIB,
            "free_bytes": 9 * GIB,
            "pool": "gpu0",
            "fitting_context_tokens": fitting,
        },
        heard=str(heard),
    )


@pytest.mark.parametrize(("button", "wish"), [(0, (16384, False)), (2, (None, True))])
def test_a_model_that_does_not_fit_has_buttons_that_load_it_another_way(
    open_window: OpenWindow, heard: Path, button: int, wish: tuple[int | None, bool]
) -> None:
    window = open_window(refused(16384, heard)).start()
    wait_until(lambda: window.model().phase is ModelPhase.FAILED)
    card = notice(window)
    assert card.facts.title == "SmolLM2 135M Instruct does not fit on GPU 0"
    assert [each.text() for each in card.buttons] == [
        "Use 16k context",
        "Choose a smaller file",
        "Load anyway",
    ]
    card.buttons[button].click()
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    last = told(heard, "Load")[-1]
    assert (last["context_tokens"], last["spends_headroom"]) == wish
    assert window.page.notice is None


def test_where_no_context_fits_none_is_offered(open_window: OpenWindow, heard: Path) -> None:
    window = open_window(refused(0, heard)).start()
    wait_until(lambda: window.model().phase is ModelPhase.FAILED)
    assert [each.text() for each in notice(window).buttons] == [
        "Choose a smaller file",
        "Load anyway",
    ]


@pytest.mark.parametrize("how", ["another page", "minimized"])
def test_nothing_is_asked_of_the_engine_while_the_page_cannot_be_seen(
    open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("app.memory.desk.PERIOD_MS", 20)
    window = at_memory(open_window(Script(states=(KEPT,))))
    desk = window.whole.memory.desk if window.whole.memory is not None else None
    assert desk is not None
    asked: list[int] = []
    client = window.whole.workshop.client
    memory = client.memory

    def counting(*, on_message: OnMessage) -> int:
        asked.append(1)
        return memory(on_message=on_message)

    monkeypatch.setattr(client, "memory", counting)
    wait_until(lambda: len(asked) >= 3)
    ways: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
        "another page": (
            lambda: window.window.show_page(PageName.CHAT),
            lambda: window.window.show_page(PageName.MEMORY),
        ),
        "minimized": (window.window.showMinimized, window.window.showNormal),
    }
    hide, show = ways[how]
    hide()
    run_for(0.3)
    asked.clear()
    run_for(0.3)
    assert asked == []
    show()
    wait_until(lambda: len(asked) >= 2)
