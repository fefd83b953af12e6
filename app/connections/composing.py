"""Connects the composer with the chat that is shown: cost, thinking, title, sending key.

Made by the composition once the workshop is there.
"""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject

from app.chat.options.cost_desk import CostDesk
from app.chat.options.titles import TitleWriter
from app.chat.session import ChatSession
from app.settings.record import Settings
from app.window import Window
from app.workshop import Workshop


class ComposerConnections(QObject):
    """What the composer needs to know besides the page."""

    def __init__(self, window: Window, workshop: Workshop, parent: QObject) -> None:
        super().__init__(parent)
        self._auto_titles = True
        self._workshop = workshop
        self._page = window.page
        self._composer = composer = window.page.composer
        self.cost = CostDesk(composer, workshop.client, workshop.bridge, workshop.model, self)
        self._titles = TitleWriter(
            workshop.store, workshop.client, workshop.bridge, workshop.model, self._titles_wanted
        )
        self._titles.titled.connect(lambda _chat: workshop.chats.refresh())
        composer.think.chosen.connect(self._on_thinking_chosen)
        workshop.chats.shown.connect(self._on_shown)
        workshop.model.changed.connect(self._on_model_changed)

    def follow_settings(self, settings: Settings) -> None:
        """Do as the person set it."""
        self._composer.send_with(settings.send_key)
        self._auto_titles = settings.auto_titles

    def _titles_wanted(self) -> bool:
        return self._auto_titles

    def _on_shown(self, session: ChatSession) -> None:
        self.cost.show_session(session)
        self._titles.follow(session)
        self._show_thinking()

    def _on_model_changed(self, _state: object) -> None:
        self._show_thinking()

    def _show_thinking(self) -> None:
        session, facts = self._page.session, self._workshop.model.state.facts
        can_think = facts is not None and facts.can_think
        if session is not None:
            self._composer.show_thinking(session.options.thinking, can_think=can_think)

    def _on_thinking_chosen(self, thinking: bool | None) -> None:
        session = self._page.session
        if session is not None:
            session.set_options(replace(session.options, thinking=thinking))
