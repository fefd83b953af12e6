"""Keeps every log record at WARNING or above, and Qt's own messages, while a test runs."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtCore import QMessageLogContext, QtMsgType

QT_NOISE = (
    # The offscreen platform has no window manager to tell sizes to.
    "This plugin does not support propagateSizeHints",
    "This plugin does not support raise",
)
REFERENCES = ("transformers",)
"""Loggers of what tests compare with: models made odd on purpose have them warn."""


class LoudRecords(logging.Handler):
    """A handler that keeps what a person would be warned of. Used from any thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record as a line."""
        if record.name.partition(".")[0] in REFERENCES:
            return
        self.found.append(f"{record.levelname} {record.name}: {record.getMessage()}")

    def keep_qt(self, kind: QtMsgType, context: QMessageLogContext, message: str | None) -> None:
        """Keep one message of Qt; debug and info messages are no warnings."""
        text = message or ""
        if kind.name not in ("QtDebugMsg", "QtInfoMsg") and not text.startswith(QT_NOISE):
            self.found.append(f"{kind.name} {context.category}: {text}")


def listen_to_qt(records: LoudRecords) -> None:
    """Send Qt's messages to ``records``, where Qt is loaded; costs nothing where it is not."""
    core = sys.modules.get("PySide6.QtCore")
    if core is not None:
        core.qInstallMessageHandler(records.keep_qt)
