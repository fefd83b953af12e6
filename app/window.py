"""The frame: places sidebar, top bar and the page that is shown, and owns the window's geometry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chat.page import ChatPage
from app.look.icons import Icons
from app.look.theme import Look
from app.memory.view.page import MemoryPage
from app.pages.names import PageName
from app.pages.page import FullPage
from app.panels.modelbar import ModelBar
from app.panels.sidebar import Sidebar
from app.widgets.toast import Toast

NARROW: Final = 900
SIDEBAR: Final = 264
SMALLEST: Final = (480, 400)
USUAL: Final = (1280, 800)


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """Where the window is, in device-independent pixels; None where the system decides."""

    x: int | None
    y: int | None
    width: int
    height: int
    maximized: bool
    sidebar_shown: bool


class Window(QWidget):
    """The one window. Emits ``closing`` before it goes, ``minimized`` when it was or no longer is.

    Attributes:
        page, bar: of the chat.
        memory: the page of the engine's memory; ``add_page`` adds others.
    """

    closing = Signal()
    minimized = Signal(bool)

    def __init__(self, look: Look, icons: Icons) -> None:
        super().__init__()
        self._look = look
        self._sidebar_wanted = True
        self._sidebar_over = False
        self.setWindowTitle("Hearth")
        self.setWindowIcon(icons.application())
        self.setMinimumSize(*SMALLEST)
        self.page = ChatPage(look, icons, self)
        self.bar = ModelBar(look, icons, self)
        self.memory = MemoryPage(look, icons, self)
        self._pages: dict[PageName, MemoryPage | FullPage] = {}
        self._shown = PageName.CHAT
        self.sidebar = Sidebar(look, icons, self)
        self.toast = Toast(look, icons, self)
        self.bar.sidebar_wanted.connect(self.toggle_sidebar)
        self.add_page(PageName.MEMORY, self.memory)
        self.sidebar.close_wanted.connect(self.toggle_sidebar)
        look.changed.connect(self._on_look_changed)
        for before, after in (
            (self.sidebar, self.bar),
            (self.bar, self.page.transcript),
            (self.page.transcript, self.page.composer.field),
        ):
            QWidget.setTabOrder(before, after)

    def restore(self, place: WindowPlace) -> None:
        """Go where the window was, if that is on a screen, then no larger than it."""
        self._sidebar_wanted = place.sidebar_shown
        wanted = QRect(place.x or 0, place.y or 0, place.width, place.height)
        screens = [screen.availableGeometry() for screen in QGuiApplication.screens()]
        known = place.x is not None and place.y is not None
        own = next((room for room in screens if known and room.intersects(wanted)), None)
        self.resize(wanted.size() if own is None else wanted.size().boundedTo(own.size()))
        if own is not None:
            self.move(inside(QRect(wanted.topLeft(), self.size()), own))
        if place.maximized:
            self.showMaximized()

    def place(self) -> WindowPlace:
        """Where the window is now."""
        box = self.normalGeometry()
        return WindowPlace(
            box.x(),
            box.y(),
            box.width(),
            box.height(),
            self.isMaximized(),
            self._sidebar_wanted,
        )

    def toggle_sidebar(self) -> None:
        """Show or hide the sidebar; in a narrow window it lies over the page."""
        if self._is_narrow():
            self._sidebar_over = not self._sidebar_over
        else:
            self._sidebar_wanted = not self._sidebar_wanted
        self._arrange()

    def search(self) -> None:
        """Put the keyboard into the sidebar's search, shown if need be."""
        if not self.sidebar.isVisible():
            self.toggle_sidebar()
        self.sidebar.search.line.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.sidebar.search.line.selectAll()

    @property
    def shown(self) -> PageName:
        """The page that is shown."""
        return self._shown

    def add_page(self, name: PageName, page: MemoryPage | FullPage) -> None:
        """Take a page in, a child of this window; it is hidden until ``show_page``."""
        page.hide()
        page.head.sidebar_wanted.connect(self.toggle_sidebar)
        self._pages[name] = page
        self._arrange()

    def show_page(self, name: PageName) -> None:
        """Show a page in place of the one that is shown."""
        self.sidebar.show_page(name)
        if name is self._shown:
            return
        self._shown = name
        for other, page in self._pages.items():
            page.setVisible(other is name)
        chat = name is PageName.CHAT
        self.page.setVisible(chat)
        self.bar.setVisible(chat)
        (self.page.composer if chat else self._pages[name]).setFocus()

    def close_overlay(self) -> bool:
        """Hide a sidebar that lies over the page; whether there was one."""
        was = self._sidebar_over
        self._sidebar_over = False
        self._arrange()
        return was

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Parts to their places."""
        self._arrange()

    def changeEvent(self, event: QEvent) -> None:
        """Tell when the window is put away and when it is taken up again."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.WindowStateChange:
            self.minimized.emit(self.isMinimized())

    def closeEvent(self, event: QCloseEvent) -> None:
        """Say so and go."""
        self.closing.emit()
        event.accept()

    def _is_narrow(self) -> bool:
        return self.width() < self._look.theme.px(NARROW)

    def _arrange(self) -> None:
        narrow = self._is_narrow()
        if not narrow:
            self._sidebar_over = False
        beside = self._sidebar_wanted and not narrow
        wide = self._look.theme.px(SIDEBAR)
        left = wide if beside else 0
        self.sidebar.setGeometry(0, 0, wide, self.height())
        self.sidebar.setVisible(beside or self._sidebar_over)
        self.sidebar.raise_()
        self.bar.show_sidebar_buttons(shown=not beside)
        self.bar.setGeometry(left, 0, self.width() - left, self.bar.height())
        top = self.bar.height()
        self.page.setGeometry(left, top, self.width() - left, self.height() - top)
        for page in self._pages.values():
            page.head.show_sidebar_buttons(shown=not beside)
            page.setGeometry(left, 0, self.width() - left, self.height())
        self.toast.place()

    def _on_look_changed(self, _theme: object) -> None:
        self._arrange()
        self.update()


def inside(box: QRect, room: QRect) -> QPoint:
    """The place nearest to where ``box`` is at which all of it that fits is in ``room``."""
    x = max(min(box.x(), room.x() + room.width() - box.width()), room.x())
    y = max(min(box.y(), room.y() + room.height() - box.height()), room.y())
    return QPoint(x, y)
