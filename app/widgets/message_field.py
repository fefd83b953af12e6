"""The field a message is written in: plain text, safe with input methods, quick with long text."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import QInputMethodEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from app.chat.blocks.text_flow import alignment_of, direction_of
from app.language.words import tr
from app.text import whole_characters


class MessageField(QPlainTextEdit):
    """The text of the message.

    Emits ``entered`` for an Enter that sends, ``up_pressed`` for an Up with nothing written.
    """

    entered = Signal()
    up_pressed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._composing = False
        self._sends_with_ctrl = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabChangesFocus(True)
        self.setCursorWidth(2)
        self.setAccessibleName(tr("Message"))
        self.document().setDocumentMargin(0)
        self.document().clearUndoRedoStacks()
        self.viewport().setAutoFillBackground(False)
        self.textChanged.connect(self._turn_to_first_letter)

    def _turn_to_first_letter(self) -> None:
        """The text begins at the side where its first strong letter says."""
        first = self.document().firstBlock().text()
        option = self.document().defaultTextOption()
        wanted = alignment_of(direction_of(first))
        if option.alignment() != wanted:
            option.setAlignment(wanted)
            self.document().setDefaultTextOption(option)

    def send_with(self, key: Literal["enter", "ctrl+enter"]) -> None:
        """Which key sends; the other Enter makes a new line."""
        self._sends_with_ctrl = key == "ctrl+enter"

    def exact_text(self) -> str:
        """The text as it was typed, with unpaired surrogates replaced."""
        raw = self.document().toRawText()
        return whole_characters(raw.replace("\u2029", "\n").replace("\u2028", "\n"))

    def event(self, event: QEvent) -> bool:
        """The window's keys stay the window's: undo with nothing to undo here, and Ctrl+K."""
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            undo = event.matches(QKeySequence.StandardKey.Undo)
            nothing = undo and not self.document().isUndoAvailable()
            # On Linux Qt's own editor would delete to the end of the line.
            if nothing or event.matches(QKeySequence.StandardKey.DeleteEndOfLine):
                event.ignore()
                return False
        return super().event(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Remember whether something is still being composed."""
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter sends or, by choice, Ctrl+Enter; with Shift it breaks the line."""
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.key() == Qt.Key.Key_Up and self.document().isEmpty():
            self.up_pressed.emit()
            return
        if not enter or self._composing:
            super().keyPressEvent(event)
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier or not self._sends(event):
            self.insertPlainText("\n")
            self.ensureCursorVisible()
        else:
            self.entered.emit()

    def _sends(self, event: QKeyEvent) -> bool:
        ctrl = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        return ctrl or not self._sends_with_ctrl

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste plain text only, whatever else the clipboard holds."""
        if source.hasText():
            utf8 = bytes(source.data("text/plain").data())
            self.insertPlainText(mended(source.text(), utf8))
            self.ensureCursorVisible()


def mended(text: str, utf8: bytes) -> str:
    """``text`` with U+FFFD where Qt's binding has dropped half a surrogate pair.

    Args:
        text: a QString as the binding gives it.
        utf8: the same QString as Qt encodes it, with another sign where ``text`` has nothing.
    """
    encoded = utf8.decode("utf-8", "replace")
    if len(encoded) <= len(text):
        return whole_characters(text)
    kept = iter(text)
    expected = next(kept, None)
    found: list[str] = []
    for letter in encoded:
        if letter == expected:
            found.append(letter)
            expected = next(kept, None)
        else:
            found.append("\ufffd")
    return "".join(found) if expected is None else whole_characters(text)
