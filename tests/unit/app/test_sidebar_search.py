"""The sidebar finds chats as one types, pins and renames them; the trash says until when."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QLineEdit, QListView, QPushButton

from app.chat.storage.conversations import ConversationEntry
from app.chat.storage.search import Hit
from app.pages.trash_page import KEPT_DAYS, TrashPage, gone_on
from app.panels.chat_list import ChatListModel, ListRole, Renaming
from app.panels.chat_search import ChatPlace, Found
from app.panels.sidebar import ChatListView, Sidebar
from tests.helpers.qt import settle, wait_until
from tests.unit.app.conftest import Stage

NOW = 1_790_000_000_000


def entry(
    chat: int, title: str, *, pinned: bool = False, trashed: int | None = None
) -> ConversationEntry:
    """A chat that was used now."""
    return ConversationEntry(chat, title, NOW, NOW, None, trashed, NOW if pinned else None)


def sidebar_of(stage: Stage) -> tuple[Sidebar, QListView, ChatListModel]:
    """A sidebar with its list and model."""
    made = Sidebar(stage.look, stage.icons, stage.window)
    made.setGeometry(0, 0, 264, 600)
    made.show()
    view = made.findChild(QListView)
    assert view is not None
    model = view.model()
    assert isinstance(model, ChatListModel)
    return made, view, model


def texts(model: ChatListModel) -> list[str]:
    """Every row's text."""
    return [model.index(n).data() for n in range(model.rowCount())]


def test_pinned_chats_stand_over_all_others(stage: Stage) -> None:
    sidebar, _, model = sidebar_of(stage)
    sidebar.show_entries((entry(1, "one"), entry(2, "two", pinned=True)))
    assert texts(model)[:2] == ["Pinned", "two"]
    assert model.index(1).data(ListRole.PINNED.value)
    assert texts(model)[-1] == "one"


def test_words_are_looked_for_once_typing_pauses_and_hits_replace_the_list(stage: Stage) -> None:
    sidebar, view, model = sidebar_of(stage)
    sidebar.show_entries((entry(1, "one"),))
    wanted: list[str] = []
    chosen: list[ChatPlace] = []
    sidebar.search_wanted.connect(wanted.append)
    sidebar.place_chosen.connect(chosen.append)
    sidebar.search.line.setText("pa")
    sidebar.search.line.setText("paris ")
    wait_until(lambda: bool(wanted))
    assert wanted == ["paris"]
    hits = (
        Hit(1, "Paris?", None, "Paris?", (range(5),), NOW),
        Hit(2, "Trips", 7, "to Paris and back", (range(3, 8),), NOW),
        Hit(2, "Trips", 9, "Paris again", (range(5),), NOW),
    )
    sidebar.show_hits(Found("other words", hits))
    assert "Paris?" not in texts(model)
    sidebar.show_hits(Found("paris", hits))
    assert texts(model) == ["Titles", "Paris?", "Trips", "to Paris and back", "Paris again"]
    view.clicked.emit(model.index(4))
    assert chosen == [ChatPlace(2, 9)]
    sidebar.show_entries((entry(1, "one"), entry(3, "new")))
    assert "Titles" in texts(model)
    sidebar.search.line.clear()
    assert texts(model)[1:] == ["one", "new"]


def test_a_search_without_hits_says_so(stage: Stage) -> None:
    sidebar, _, model = sidebar_of(stage)
    sidebar.search.line.setText("xyz")
    sidebar.show_hits(Found("xyz", ()))
    assert texts(model) == ["Nothing found"]


def test_a_chat_is_renamed_in_its_row_and_an_empty_title_changes_nothing(stage: Stage) -> None:
    sidebar, view, model = sidebar_of(stage)
    sidebar.show_entries((entry(5, "old"),))
    told: list[Renaming] = []
    sidebar.renamed.connect(told.append)
    view.edit(model.index(1))
    settle()
    editor = view.viewport().findChild(QLineEdit)
    assert editor is not None
    editor.setText("  a new\ttitle ")
    view.commitData(editor)
    assert told == [Renaming(5, "a new title")]
    assert not model.setData(model.index(1), "   ")
    assert not model.flags(model.index(0)) & Qt.ItemFlag.ItemIsEditable
    assert len(told) == 1


def test_the_menu_key_asks_for_the_menu_of_the_chat_it_is_at(stage: Stage) -> None:
    sidebar, view, model = sidebar_of(stage)
    sidebar.show_entries((entry(5, "one"), entry(6, "two")))
    assert isinstance(view, ChatListView)
    view.menu_wanted.disconnect()
    asked: list[int] = []
    view.menu_wanted.connect(lambda index: asked.append(index.data(ListRole.CHAT.value)))
    view.setCurrentIndex(model.index(2))
    for reason in (QContextMenuEvent.Reason.Mouse, QContextMenuEvent.Reason.Keyboard):
        view.contextMenuEvent(QContextMenuEvent(reason, QPoint(5, 5), QPoint(5, 5)))
    assert asked == [6]


def test_the_trash_says_until_when_and_offers_both_ways_out(stage: Stage) -> None:
    page = TrashPage(stage.look, stage.icons, stage.window)
    page.resize(700, 500)
    restored: list[ConversationEntry] = []
    erased: list[ConversationEntry] = []
    page.restore_wanted.connect(restored.append)
    page.erase_wanted.connect(erased.append)
    gone = entry(1, "Old plans", trashed=NOW)
    page.show_entries((gone,))
    assert len(page.rows) == 1 and not page.head.action.isHidden()
    names = {b.accessibleName(): b for b in page.rows[0].findChildren(QPushButton)}
    names["Restore Old plans"].click()
    assert restored == [gone] and erased == []
    assert gone_on(gone) == gone_on(entry(2, "other", trashed=NOW))
    assert KEPT_DAYS == 30
    page.show_entries(())
    assert not len(page.rows) and page.head.action.isHidden()
