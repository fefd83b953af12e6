"""Connects the panel of a chat's options with the chat that is shown; Ctrl+Alt+P shows it.

Made by the composition once the workshop is there.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject

from app.chat.options.panel import OptionsPanel
from app.chat.options.record import ChatOptions
from app.look.theme import Look
from app.settings.record import Settings
from app.window import Window
from app.workshop import Workshop


class OptionConnections(QObject):
    """Places the panel at the end of the page and has it speak of the chat that is shown."""

    def __init__(
        self,
        window: Window,
        workshop: Workshop,
        look: Look,
        settings: Callable[[], Settings],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._page = window.page
        self._settings = settings
        self.panel = OptionsPanel(look, window.page)
        self.panel.hide()
        self.panel.changed.connect(self._on_changed)
        window.page.installEventFilter(self)
        window.bar.options_wanted.connect(self.toggle)
        workshop.chats.shown.connect(lambda _session: self._show())

    def toggle(self) -> None:
        """Show the panel, or hide it."""
        self.panel.setVisible(not self.panel.isVisible())
        self._show()
        self._place()
        (self.panel.preset if self.panel.isVisible() else self._page.composer).setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The panel keeps to the end of the page."""
        if event.type() is QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def _place(self) -> None:
        page, wide = self._page, self.panel.width()
        beside = self.panel.isVisible() and page.width() >= 2 * wide
        page.setContentsMargins(0, 0, wide if beside else 0, 0)
        self.panel.setGeometry(page.width() - wide, 0, wide, page.height())
        self.panel.raise_()

    def _show(self) -> None:
        session = self._page.session
        if session is not None and self.panel.isVisible():
            self.panel.show_options(session.options, self._settings().presets)

    def _on_changed(self, options: ChatOptions) -> None:
        session = self._page.session
        if session is not None:
            session.set_options(options)
