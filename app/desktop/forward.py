"""A second start asks the first window to come forward, by a file; no socket is opened.

``ForwardWatch`` belongs to the window that runs and is used from its UI thread.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from PySide6.QtCore import QFileSystemWatcher, QObject, Signal

FILE: Final = "come-forward"


def ask_forward(folder: Path) -> bool:
    """Ask the window that uses ``folder``; False where no window watches it."""
    if not folder.is_dir():
        return False
    try:
        (folder / FILE).touch()
    except OSError:
        return False
    return True


class ForwardWatch(QObject):
    """Watches ``folder``, which it makes. Emits ``wanted`` when another start asks."""

    wanted = Signal()

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._file = folder / FILE
        self._watcher = QFileSystemWatcher(self)
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            self._file.unlink(missing_ok=True)
            self._watcher.addPath(str(folder))
        self._watcher.directoryChanged.connect(self._on_changed)

    def _on_changed(self, _path: str) -> None:
        try:
            self._file.unlink()
        except OSError:
            return
        self.wanted.emit()
