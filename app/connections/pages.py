"""Connects the pages with what they show and ask for: settings, log, doctor, about, crash reports.

Made by the composition; owns one thread for looking at files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec
from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices

from app.actions import Action
from app.chat.blocks.inline_error import Choice, ErrorFacts
from app.cli.engine import installed
from app.desktop.answers import Background
from app.directories import Directories
from app.errors import AppError
from app.language.words import tr
from app.link.events import EngineReady
from app.look.icons import Icons
from app.look.theme import Look, Preference
from app.machine.report import EngineReport, engine_said, lines, made_report, redacted
from app.pages.names import PageName
from app.pages.settings.fields import Wanted
from app.pages.settings.page import SettingsPage
from app.pages.text.about_page import AboutPage
from app.pages.text.crash import Fault, crash_of_before, last_lines, report_text
from app.pages.text.log_page import LogPage
from app.pages.text.report_dialog import ReportDialog
from app.pages.text.report_page import ReportPage
from app.panels.shortcuts import ShortcutList
from app.settings.file import SettingsFile
from app.settings.record import Settings
from app.window import Window

ZOOM_STEP: Final = 0.1
SMALLEST: Final = 0.8
LARGEST: Final = 2.0


@dataclass(frozen=True, slots=True)
class PageServices:
    """What the pages work with; ``save`` keeps settings on disk."""

    places: Directories
    settings: SettingsFile
    save: Callable[[Settings], None]


class PageConnections(QObject):
    """The pages of the window besides chat and memory."""

    def __init__(
        self, window: Window, look: Look, icons: Icons, services: PageServices, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._look = look
        self._services = services
        self._engine = EngineReport(problem=tr("The engine has not started yet."))
        self._background = Background(self)
        self._actions: tuple[Action, ...] = ()
        logs = services.places.engine_log.parent
        self.settings = SettingsPage(look, icons, lambda: services.settings.settings, window)
        self.log = LogPage(look, icons, logs, self._background, window)
        self.report = ReportPage(look, icons, self._report, self._background, window)
        about = AboutPage(look, icons, self._background, window)
        for name, page in (
            (PageName.SETTINGS, self.settings),
            (PageName.LOG, self.log),
            (PageName.DOCTOR, self.report),
            (PageName.ABOUT, about),
        ):
            window.add_page(name, page)
            page.head.chat_wanted.connect(lambda: window.show_page(PageName.CHAT))
        window.page.show_full(services.settings.settings.full_width)
        self.settings.changed.connect(self._on_changed)
        self.settings.wanted.connect(self._on_wanted)

    def start(self) -> None:
        """Tell of a crash of the time before."""
        crash = self._services.places.engine_log.parent / "window-crash.log"
        self._background.ask(lambda: crash_of_before(crash), self._on_crash)

    def follow_engine(self, ready: EngineReady) -> None:
        """Remember what the engine chose."""
        self._engine = engine_said(ready.welcome)

    def show_fault(self, fault: Fault) -> None:
        """Tell of something that went wrong, with a report to read."""
        choice = Choice(tr("Show report"), lambda: self._ask_report(fault), quiet=True)
        self._window.page.show_notice(
            ErrorFacts(tr("Please note"), fault.sentence, fault.detail, (choice,))
        )

    def know(self, actions: tuple[Action, ...]) -> None:
        """Take the actions that the list of shortcuts shows."""
        self._actions = actions

    def show_shortcuts(self) -> None:
        """Show every action with its keys."""
        ShortcutList(self._look, self._actions, self._window).open()

    def zoom(self, steps: int) -> None:
        """Make all text larger or smaller; 0 is the system's size."""
        settings = self._services.settings.settings
        wanted = round(settings.text_scale + steps * ZOOM_STEP, 1) if steps else 1.0
        scale = min(max(wanted, SMALLEST), LARGEST)
        self._look.magnify(scale)
        self._services.save(msgspec.structs.replace(settings, text_scale=scale))

    def close(self) -> None:
        """End the thread."""
        self._background.close()

    # Settings ------------------------------------------------------------------------------------

    def _on_changed(self, settings: Settings) -> None:
        """Keep what was set, and let the look follow at once."""
        look = self._look
        look.prefer(Preference(settings.theme))
        look.magnify(settings.text_scale)
        look.colour(settings.accent)
        self._window.page.show_full(settings.full_width)
        self._services.save(settings)

    def _on_wanted(self, wanted: Wanted) -> None:
        pages = {
            Wanted.LOG: PageName.LOG,
            Wanted.DOCTOR: PageName.DOCTOR,
            Wanted.ABOUT: PageName.ABOUT,
        }
        if wanted in pages:
            self._window.show_page(pages[wanted])
        elif wanted is Wanted.DATA_FOLDER:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._services.places.data)))
        elif wanted is Wanted.SHORTCUTS:
            self.show_shortcuts()

    # Reports -------------------------------------------------------------------------------------

    def _on_crash(self, fault: Fault | None) -> None:
        if fault is not None:
            self.show_fault(fault)

    def _ask_report(self, fault: Fault) -> None:
        log = self._services.places.engine_log.with_name("window.log")
        self._background.ask(
            lambda: report_text(fault, self._report(), last_lines(log)), self._show_report
        )

    def _show_report(self, text: str) -> None:
        ReportDialog(self._look, text, self._background, self._window).open()

    def _report(self) -> str:
        """What ``hearth doctor`` prints; not on the UI thread."""
        services = self._services
        settings = services.settings.settings
        found = installed(services.places, settings)
        try:
            report = made_report(
                services.places,
                self._engine,
                quota_bytes=settings.states_quota_bytes,
                models=tuple(entry.name for entry in found.catalogue.installed if entry.present),
                notices=(*services.settings.notices, *found.problems),
            )
        except OSError as error:
            raise AppError(f"This computer cannot be looked at: {error}.") from error
        return "\n".join(lines(redacted(report)))
