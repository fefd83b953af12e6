"""A question before something that cannot be undone: one sentence, and the safe answer first.

Belongs to its window, holds it up for as long as it is open, and closes with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.look.icons import Icons
from app.look.theme import Look, Role

WIDTH: Final = 440
PADDING: Final = 24
BUTTON_HEIGHT: Final = 34


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    """What is asked: title, what it costs, the verb of the button, and what that does."""

    title: str
    sentence: str
    verb: str
    run: Callable[[], None]
    icon: str = "trash"


class Question(QDialog):
    """Asks once; ``run`` is called when the person says so, nothing otherwise.

    Attributes:
        yes: the button with the verb.
        no: the safe one, which has the focus.
    """

    def __init__(self, look: Look, icons: Icons, facts: QuestionFacts, parent: QWidget) -> None:
        super().__init__(parent)
        self._facts = facts
        theme = look.theme
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setWindowTitle(facts.title)
        self.setProperty("layer", "surface")
        self.setFixedWidth(theme.px(WIDTH))
        self.setAccessibleDescription(facts.sentence)
        self.no = self._button("Cancel", "tinted")
        self.yes = self._button(facts.verb, "danger")
        self.no.clicked.connect(self.reject)
        self.yes.clicked.connect(self._on_yes)
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.px(8))
        buttons.addStretch(1)
        buttons.addWidget(self.no)
        buttons.addWidget(self.yes)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(*(theme.px(PADDING),) * 4)
        whole.setSpacing(theme.px(20))
        whole.addLayout(self._words(icons))
        whole.addLayout(buttons)
        self.no.setDefault(True)
        self.no.setFocus()

    def _words(self, icons: Icons) -> QHBoxLayout:
        """Icon, title and sentence."""
        theme, facts = self._theme, self._facts
        mark = QLabel(self)
        icon = icons.pixmap(facts.icon, theme.px(20), theme.tokens.danger, self.devicePixelRatioF())
        mark.setPixmap(icon)
        title, sentence = QLabel(facts.title, self), QLabel(facts.sentence, self)
        title.setFont(theme.font(Role.PAGE))
        sentence.setProperty("tone", "quiet")
        words = QVBoxLayout()
        words.setSpacing(theme.px(6))
        for label in (title, sentence):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
            words.addWidget(label)
        head = QHBoxLayout()
        head.setSpacing(theme.px(14))
        head.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(words, 1)
        return head

    def _button(self, text: str, kind: str) -> QPushButton:
        button = QPushButton(text, self)
        button.setProperty("kind", kind)
        button.setFixedHeight(self._theme.px(BUTTON_HEIGHT))
        button.setAutoDefault(False)
        return button

    def _on_yes(self) -> None:
        self.accept()
        self._facts.run()
