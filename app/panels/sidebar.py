"""The sidebar: a new chat, the list of chats by date, and at its foot the way to the memory page.

The list is a plain model and a delegate that paints; the sidebar knows ids, not conversations.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Final

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QHideEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QFrame, QListView, QMenu, QWidget

from app.chat.storage.conversations import ConversationEntry
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look, Role
from app.pages.names import PageName
from app.panels.chat_list import ChatListModel, ChatRowDelegate, ListRole
from app.panels.chat_search import ChatPlace, Found, SearchField
from app.panels.dates import group_by_date
from app.panels.nav_button import HEIGHT, NavButton
from app.widgets.busy import BusyTurn
from app.widgets.icon_button import IconButton
from app.widgets.wide_button import WideButton
from engine.protocol import ChatTier

WIDTH: Final = 264
HEAD: Final = 52


class ChatListView(QListView):
    """The list; the "..." of a row and the right button ask for its menu."""

    menu_wanted = Signal(object)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A press on the "..." opens the menu instead of the chat."""
        index = self.indexAt(event.position().toPoint())
        delegate = self.itemDelegate()
        on_more = (
            index.isValid()
            and isinstance(delegate, ChatRowDelegate)
            and delegate.more_box(QRectF(self.visualRect(index))).contains(event.position())
        )
        if on_more or event.button() is Qt.MouseButton.RightButton:
            if index.isValid() and index.data(ListRole.CHAT.value) is not None:
                self.menu_wanted.emit(index)
            return
        super().mousePressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """The keyboard's menu key asks for the menu of the row it is at."""
        index = self.currentIndex()
        by_keys = event.reason() is QContextMenuEvent.Reason.Keyboard
        if by_keys and index.isValid() and index.data(ListRole.CHAT.value) is not None:
            self.menu_wanted.emit(index)


class Sidebar(QWidget):
    """Chats at the left. Signals carry the id of a chat.

    ``page_wanted`` carries a PageName.
    """

    new_wanted = Signal()
    close_wanted = Signal()
    page_wanted = Signal(object)
    search_wanted = Signal(str)
    place_chosen = Signal(object)
    pin_wanted = Signal(int)
    renamed = Signal(object)
    chosen = Signal(int)
    delete_wanted = Signal(int)

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._busy = BusyTurn(self)
        self._toggle = IconButton(look, icons, "sidebar", tr("Hide the sidebar (Ctrl+B)"), self)
        self._toggle.clicked.connect(self.close_wanted)
        self._new = WideButton(look, icons, self, icon="edit", text=tr("New chat"), keys="Ctrl+N")
        self._new.clicked.connect(self.new_wanted)
        self._model = ChatListModel(self)
        self._model.renamed.connect(self.renamed)
        self.search = SearchField(look, icons, self)
        self.search.wanted.connect(self._on_search)
        self._entries: tuple[ConversationEntry, ...] = ()
        self._list = self._make_list()
        self._foot = {
            PageName.TRASH: NavButton(look, icons, self, icon="trash", text=tr("Trash")),
            PageName.MEMORY: NavButton(look, icons, self, icon="layers", text=tr("Memory")),
            PageName.SETTINGS: NavButton(look, icons, self, icon="sliders", text=tr("Settings")),
        }
        for name, button in self._foot.items():
            button.clicked.connect(partial(self.page_wanted.emit, name))
        self._current: int | None = None
        self._shows_chat = True
        look.changed.connect(self._on_look_changed)
        self._on_look_changed()

    @property
    def memory(self) -> NavButton:
        """Leads to the memory page; checked while that is shown."""
        return self._foot[PageName.MEMORY]

    def show_entries(self, entries: tuple[ConversationEntry, ...]) -> None:
        """Show the chats, newest first."""
        self._entries = entries
        if not self.search.words:
            self._model.show_groups(group_by_date(entries, date.today()))
            self._select_current()

    def show_hits(self, found: Found) -> None:
        """Show what a search found, while its words are still those that are looked for."""
        if found.words == self.search.words:
            self._model.show_hits(found.hits)

    def show_current(self, chat: int | None) -> None:
        """Mark the chat that is shown."""
        self._current = chat
        self._select_current()

    def show_page(self, name: PageName) -> None:
        """Mark the page that is shown; the current chat where that is the chat's."""
        for own, button in self._foot.items():
            button.setChecked(own is name)
        self._shows_chat = name is PageName.CHAT
        self._select_current()

    def show_answering(self, chats: frozenset[int]) -> None:
        """Mark the chats that have a running reply."""
        self._model.show_answering(chats)
        self._busy.need(bool(chats) and self.isVisible())

    def show_tiers(self, tiers: Mapping[int, ChatTier], *, gpu: bool) -> None:
        """Mark from where each chat goes on."""
        self._model.show_tiers(tiers, gpu=gpu)

    def showEvent(self, _event: QShowEvent) -> None:
        """Arcs turn only while they can be seen."""
        self._busy.need(self._model.any_answering)

    def hideEvent(self, _event: QHideEvent) -> None:
        """Arcs stand still."""
        self._busy.need(False)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Ground, edge, icon and name."""
        theme = self._look.theme
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("window"))
        painter.fillRect(QRectF(self.width() - 1, 0, 1, self.height()), theme.color("line"))
        foot = QRectF(0, self._foot_top(), self.width() - 1, 1)
        painter.fillRect(foot, theme.color("line"))
        size = theme.px(22)
        head = theme.px(HEAD)
        mark = self._icons.pixmap("hearth", size, theme.tokens.text, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(theme.px(16), (head - size) / 2), mark)
        painter.setFont(theme.font(Role.BRAND))
        painter.setPen(theme.color("text"))
        box = QRectF(theme.px(48), 0, self.width(), head)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, "Hearth")

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Head, button, list, foot."""
        theme = self._look.theme
        head, side = theme.px(HEAD), theme.px(8)
        right = self.width() - 1 - side
        self._toggle.move(right - self._toggle.width(), (head - self._toggle.height()) // 2)
        self._new.setGeometry(side, head - 2, right - side, theme.px(36))
        tall = self.search.height()
        self.search.setGeometry(side, head + theme.px(36) + theme.px(6), right - side, tall)
        top = head + theme.px(36 + 6 + 2) + tall
        foot = self._foot_top()
        self._list.setGeometry(side, top, self.width() - 1 - side, max(0, foot - top))
        y = foot + 1 + side
        for button in self._foot.values():
            button.setGeometry(side, y, right - side, theme.px(HEIGHT))
            y += theme.px(HEIGHT)

    def _foot_top(self) -> int:
        theme = self._look.theme
        return self.height() - len(self._foot) * theme.px(HEIGHT) - 2 * theme.px(8) - 1

    def _make_list(self) -> ChatListView:
        view = ChatListView(self)
        view.setModel(self._model)
        view.setItemDelegate(ChatRowDelegate(self._look, self._icons, self._busy, view))
        view.setFrameShape(QFrame.Shape.NoFrame)
        view.setMouseTracking(True)
        # The sidebar paints the ground: a style sheet would keep the view's own from changing.
        view.viewport().setAutoFillBackground(False)
        view.setUniformItemSizes(False)
        view.setAccessibleName(tr("Chats"))
        view.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        view.clicked.connect(self._on_clicked)
        view.activated.connect(self._on_clicked)
        view.menu_wanted.connect(self._on_menu_wanted)
        self._busy.turned.connect(view.viewport().update)
        return view

    def _on_clicked(self, index: QModelIndex) -> None:
        chat, turn = index.data(ListRole.CHAT.value), index.data(ListRole.TURN.value)
        if chat is not None and turn is not None:
            self.place_chosen.emit(ChatPlace(chat, turn))
        elif chat is not None:
            self.chosen.emit(chat)

    def _on_menu_wanted(self, index: QModelIndex) -> None:
        chat = index.data(ListRole.CHAT.value)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if index.flags() & Qt.ItemFlag.ItemIsEditable:
            menu.addAction(tr("Rename")).triggered.connect(lambda: self._list.edit(index))
            pin = tr("Unpin") if index.data(ListRole.PINNED.value) else tr("Pin")
            menu.addAction(pin).triggered.connect(lambda: self.pin_wanted.emit(chat))
        menu.addAction(tr("Delete chat")).triggered.connect(lambda: self.delete_wanted.emit(chat))
        box = self._list.visualRect(index)
        menu.popup(self._list.viewport().mapToGlobal(box.bottomRight() - QPoint(box.height(), 0)))

    def _on_search(self, words: str) -> None:
        """Look for words; without any the chats are listed again."""
        if words:
            self.search_wanted.emit(words)
        else:
            self.show_entries(self._entries)

    def _select_current(self) -> None:
        index = self._model.index_of(self._current if self._shows_chat else None)
        selection = self._list.selectionModel()
        if index.isValid():
            flag = QItemSelectionModel.SelectionFlag.ClearAndSelect
            selection.setCurrentIndex(index, flag)
        else:
            selection.clear()

    def _on_look_changed(self, _theme: object = None) -> None:
        self._list.setFont(self._look.theme.font(Role.INTERFACE))
        self._list.doItemsLayout()
        self.update()
