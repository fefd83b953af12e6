"""Opens the window and gives the exit code: display, lock, log, Qt. No Qt before it is needed."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import logging.handlers
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from app.desktop.display import NO_DISPLAY, has_display
from app.directories import Directories, make_private
from app.errors import DirectoryInUse, InputInvalid
from app.link.process import EngineCommand, engine_command
from app.lock import DirectoryLock, read_owner
from app.settings.file import SettingsFile

if TYPE_CHECKING:
    from app.composition import Application

WINDOW: Final = "the window"
LOG_BYTES: Final = 1_000_000
MakeCommand = Callable[[Path], EngineCommand]
log = logging.getLogger(__name__)


def open_window(places: Directories, make_command: MakeCommand = engine_command) -> int:
    """Open the window on a data directory and run until it is closed.

    Raises:
        InputInvalid: there is no display.
        DirectoryInUse: a command has the directory; another window comes forward instead.
        DirectoryUnusable: the directory cannot be made or written.
    """
    if not has_display(os.environ):
        raise InputInvalid(NO_DISPLAY)
    make_private(places.data)
    try:
        lock = DirectoryLock(places.lock_file, WINDOW)
    except DirectoryInUse:
        from app.desktop.forward import ask_forward  # noqa: PLC0415 - Qt only where there is a window

        owner = read_owner(places.lock_file)
        if owner is not None and owner.what == WINDOW and ask_forward(places.data / "run"):
            print("Hearth is already open; its window was asked to come forward.", file=sys.stderr)
            return 0
        raise
    with lock, _logs_in(places.data / "logs"):
        return _run(places, make_command(places.data))


def _run(places: Directories, command: EngineCommand) -> int:
    from PySide6.QtCore import QTimer  # noqa: PLC0415
    from PySide6.QtWidgets import QApplication  # noqa: PLC0415

    from app.composition import Application  # noqa: PLC0415
    from app.language.install import install  # noqa: PLC0415

    application = QApplication(["hearth"])
    application.setApplicationName("Hearth")
    application.setDesktopFileName("hearth")
    settings = SettingsFile(places.settings_file)
    install(application, settings.settings.language)
    command = (*command, *settings.settings.engine_arguments())
    whole = Application(application, places, settings, command)
    sys.excepthook = _hook(whole)
    # Windows has no such signals, and its pair of sockets would be a real connection.
    ends = None if sys.platform == "win32" else _SignalEnd(application.quit)
    try:
        whole.window.show()
        QTimer.singleShot(0, whole.start)
        return application.exec()
    finally:
        whole.window.hide()
        whole.close()
        if ends is not None:
            ends.close()
        sys.excepthook = sys.__excepthook__


class _SignalEnd:
    """Turns Ctrl+C and SIGTERM into a clean close. Owns a pair of sockets and a notifier."""

    def __init__(self, quit_: Callable[[], None]) -> None:
        from PySide6.QtCore import QSocketNotifier  # noqa: PLC0415

        self._here, self._there = socket.socketpair()
        self._there.setblocking(False)
        self._before = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)
        self._handlers = {s: signal.signal(s, _ignore) for s in (signal.SIGINT, signal.SIGTERM)}
        self._notifier = QSocketNotifier(self._here.fileno(), QSocketNotifier.Type.Read)
        self._notifier.activated.connect(quit_)

    def close(self) -> None:
        """Give the signals back."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._before)
        for number, before in self._handlers.items():
            signal.signal(number, before)
        self._here.close()
        self._there.close()


def _ignore(_number: int, _frame: object) -> None:
    """The wakeup descriptor has already told."""


def _hook(
    whole: Application,
) -> Callable[[type[BaseException], BaseException, TracebackType | None], None]:
    """What happens to an exception that a Qt slot lets out: it is logged and told, once."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        text = "".join(traceback.format_exception(kind, error, trace))
        log.error("exception in the window\n%s", text)
        whole.show_fault(text)

    return hook


@contextlib.contextmanager
def _logs_in(folder: Path) -> Iterator[None]:
    """Keep the window's log, and a crash's stack, beside the engine's log."""
    make_private(folder)
    handler = logging.handlers.RotatingFileHandler(
        folder / "window.log", maxBytes=LOG_BYTES, backupCount=2, encoding="utf-8"
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    # A file of its own, open to the end: the log's file changes when it is rotated.
    with (folder / "window-crash.log").open("a") as crash:
        faulthandler.enable(crash)
        try:
            yield
        finally:
            faulthandler.disable()
            root.removeHandler(handler)
            handler.close()
