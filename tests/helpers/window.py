"""The whole window over a fake engine, for tests and pictures: built, driven, closed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop
from PySide6.QtGui import QFont
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.composition import Application
from app.desktop.immortal import make_constants_immortal
from app.directories import Directories, directories, make_private
from app.settings import SettingsFile
from tests.helpers.fake_engine import Script, fake_command

LIMIT_S = 20.0


def application() -> QApplication:
    """The one QApplication of the process."""
    make_constants_immortal()
    there = QApplication.instance()
    return there if isinstance(there, QApplication) else QApplication(["hearth"])


def wait_until(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Run the event loop until ``condition`` holds."""
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until, "the window did not get there in time"
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        time.sleep(0.002)


def run_for(seconds: float) -> None:
    """Run the event loop for a while."""
    QTest.qWait(round(1000 * seconds))


class TestWindow:
    """A window on a folder of its own, with a model file that the fake engine accepts."""

    __test__ = False

    def __init__(
        self,
        folder: Path,
        script: Script | None = None,
        *,
        model: bool = True,
        font: QFont | None = None,
    ) -> None:
        self.places: Directories = directories(folder)
        make_private(self.places.data)
        make_private(self.places.models)
        if model:
            (self.places.models / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
        self.qt = application()
        if font is not None:
            self.qt.setFont(font)
        settings = SettingsFile(self.places.settings_file)
        self.whole = Application(self.qt, self.places, settings, fake_command(script), font=font)
        self.window = self.whole.window
        self.page = self.window.page
        self.window.show()

    def start(self) -> TestWindow:
        """Start what is behind the window."""
        self.whole.start()
        return self

    def write(self, text: str) -> None:
        """Type ``text`` and press Enter."""
        self.page.composer.field.insertPlainText(text)
        self.page.composer.field.entered.emit()

    def idle(self) -> bool:
        """Whether a chat is shown and nothing runs in it."""
        session = self.page.session
        return session is not None and not session.state.busy

    def reply_so_far(self) -> str:
        """The text of the running reply of the chat that is shown."""
        return self.page.session.reply_so_far if self.page.session is not None else ""

    def close(self) -> None:
        """Close the window and everything behind it, and let Qt delete what it should."""
        self.window.close()
        self.whole.close()
        self.whole.look.deleteLater()
        self.whole.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.processEvents()
