"""Builds every long-lived object of the window once and closes them in reverse.

The only file that knows all of them: it passes each what it needs.
"""

from __future__ import annotations

import logging

import msgspec
from PySide6.QtCore import QObject
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication

from app.actions import install
from app.connections.actions import Deeds, window_actions
from app.connections.chats import ChatConnections
from app.connections.composing import ComposerConnections
from app.connections.memory import MemoryConnections
from app.connections.models import ModelConnections
from app.connections.options import OptionConnections
from app.connections.pages import PageConnections, PageServices
from app.connections.trash import TrashConnections
from app.desktop.forward import ForwardWatch
from app.directories import Directories
from app.errors import AppError, SettingsInvalid
from app.language.words import tr
from app.library.choice import ModelChoice
from app.link.process import EngineCommand
from app.look.icons import Icons
from app.look.theme import Look, Preference
from app.pages.text.crash import Fault
from app.panels.notices import store_notice
from app.settings.file import SettingsFile
from app.settings.record import Settings, WindowSettings
from app.window import USUAL, Window, WindowPlace
from app.workshop import Workshop

log = logging.getLogger(__name__)


class Application(QObject):
    """The window and everything behind it.

    ``start`` is called once the window is shown, ``close`` once it is gone.
    """

    def __init__(
        self,
        application: QApplication,
        places: Directories,
        settings: SettingsFile,
        command: EngineCommand,
        *,
        font: QFont | None = None,
    ) -> None:
        super().__init__(application)
        self._places = places
        self._settings = settings
        self._command = command
        self._workshop: Workshop | None = None
        self.memory: MemoryConnections | None = None
        self.choice: ModelChoice | None = None
        self.chats: ChatConnections | None = None
        chosen = settings.settings
        theme, zoom = Preference(chosen.theme), chosen.text_scale
        self.look = Look(application, theme, font, zoom=zoom, accent=chosen.accent)
        self._icons = Icons()
        self.window = Window(self.look, self._icons)
        self.window.restore(_place(chosen.window))
        services = PageServices(places, settings, self._save)
        self.pages = PageConnections(self.window, self.look, self._icons, services, self)
        self._forward = ForwardWatch(places.data / "run", self)
        self._forward.wanted.connect(self._come_forward)
        deeds = Deeds(
            self._new_chat,
            self._trash,
            self.pages.show_shortcuts,
            self.pages.zoom,
            self._is_working,
        )
        actions = window_actions(self.window, deeds)
        install(actions, self.window)
        self.pages.know(actions)

    def start(self) -> None:
        """Open the store, start the engine, look for a model; none of it holds the window up."""
        settings = self._settings.settings
        try:
            sampling, wish = settings.sampling.to_sampling(), settings.to_wish()
            workshop = Workshop(self._places, self._command, sampling, self, wish)
        except AppError as error:
            self.window.page.show_notice(store_notice(error.sentence))
            return
        self._workshop = workshop
        workshop.store.failed.connect(self._on_error)
        workshop.bridge.ready.connect(self.pages.follow_engine)
        self.chats = ChatConnections(self.window, workshop, self._ask_for_model, self)
        for sentence in (*self._settings.notices, *workshop.notices):
            self.window.page.show_notice(store_notice(sentence))
        self.memory = MemoryConnections(self.window, workshop, self.look, self._icons, self)
        trash = TrashConnections(self.window, workshop, self.look, self._icons, self)
        composing = ComposerConnections(self.window, workshop, self)
        composing.follow_settings(settings)
        self.pages.settings.changed.connect(composing.follow_settings)
        OptionConnections(self.window, workshop, self.look, lambda: self._settings.settings, self)
        workshop.start(settings.window.conversation)
        trash.sweep()
        self.choice = ModelChoice(
            workshop.model, self._places, self._settings, self._save, self._on_error
        )
        ModelConnections(self.window, workshop.model, self.choice, self.look, self)
        self.choice.start()
        self.pages.start()

    def close(self) -> None:
        """Close everything in reverse order; may be called at any moment."""
        self._remember_place()
        self.window.page.keep_draft()
        if self.choice is not None:
            self.choice.close()
        if self.memory is not None:
            self.memory.close()
        if self._workshop is not None:
            self._workshop.close()
        self.pages.close()
        self.window.deleteLater()
        self.look.deleteLater()

    @property
    def workshop(self) -> Workshop:
        """What is behind the window; only once ``start`` has succeeded."""
        assert self._workshop is not None
        return self._workshop

    def show_fault(self, detail: str) -> None:
        """Tell of an error in the window itself; ``detail`` is for a report."""
        sentence = tr("Something in the window went wrong. Your chats are safe.")
        self.pages.show_fault(Fault(sentence, detail))

    # Small things --------------------------------------------------------------------------------

    def _new_chat(self) -> None:
        if self.chats is not None:
            self.chats.new()

    def _trash(self) -> None:
        if self.chats is not None:
            self.chats.trash_current()

    def _is_working(self) -> bool:
        return self._workshop is not None

    def _ask_for_model(self) -> None:
        if self.choice is not None:
            self.choice.ask(self.window)

    def _come_forward(self) -> None:
        self.window.showNormal() if self.window.isMinimized() else self.window.show()
        self.window.raise_()
        self.window.activateWindow()

    def _on_error(self, error: AppError) -> None:
        self.window.page.show_notice(store_notice(error.sentence))

    def _remember_place(self) -> None:
        session = self.window.page.session
        conversation = session.conversation if session is not None else None
        chat = conversation.id if conversation is not None else None
        kept = _kept(self._settings.settings.window, self.window.place(), chat)
        if kept != self._settings.settings.window:
            settings = msgspec.structs.replace(self._settings.settings, window=kept)
            self._save(settings)

    def _save(self, settings: Settings) -> None:
        try:
            self._settings.save(settings)
        except SettingsInvalid as error:
            log.warning("settings not saved reason=%s", error.sentence)


def _place(kept: WindowSettings) -> WindowPlace:
    width, height = kept.width or USUAL[0], kept.height or USUAL[1]
    return WindowPlace(kept.x, kept.y, width, height, kept.maximized, kept.sidebar_shown)


def _kept(before: WindowSettings, place: WindowPlace, chat: int | None) -> WindowSettings:
    return msgspec.structs.replace(
        before,
        x=place.x,
        y=place.y,
        width=place.width,
        height=place.height,
        maximized=place.maximized,
        sidebar_shown=place.sidebar_shown,
        conversation=chat,
    )
