"""The widgets of a reply's boxes: a Copy button on code, a bar where the content is too wide.

Made when a box is first seen; owned by the reply they stand in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QScrollBar, QWidget

from app.chat.rendered.boxes import BAR, HEAD, BoxPart, CodePart
from app.chat.rendered.parts import Part
from app.language.words import tr
from app.look.icons import Icons
from app.look.theme import Look
from app.widgets.icon_button import IconButton

COPIED_MS: Final = 1500


@dataclass(slots=True)
class Own:
    """The widgets of one box."""

    copy: IconButton | None = None
    bar: QScrollBar | None = None


class BoxWidgets(QObject):
    """Of all boxes of one reply."""

    def __init__(self, reply: QWidget, look: Look, icons: Icons) -> None:
        super().__init__(reply)
        self._reply = reply
        self._look = look
        self._icons = icons
        self._own: dict[Part, Own] = {}

    def show(self, part: BoxPart, top: float, growing: bool) -> None:
        """Make what a box lacks; one that still grows has no bar yet."""
        own = self._own.get(part)
        if own is None:
            own = self._own[part] = Own()
            if isinstance(part, CodePart):
                own.copy = self._copy_button(part)
        if own.bar is None and part.surplus and not growing:
            own.bar = self._bar(part)
        self.place(part, top)

    def place(self, part: BoxPart, top: float) -> None:
        """Put the widgets of a box, which begins at ``top``, where they belong."""
        own = self._own.get(part)
        if own is None:
            return
        theme, box = self._look.theme, part.box().translated(0, top)
        if own.copy is not None:
            side = own.copy.width()
            own.copy.move(round(box.right()) - side - 2, round(top) + (theme.px(HEAD) - side) // 2)
            own.copy.show()
        if own.bar is not None:
            tall = theme.px(BAR)
            y = round(box.bottom()) - tall - 2
            own.bar.setGeometry(round(box.x()) + 4, y, round(box.width()) - 8, tall)
            own.bar.setRange(0, part.surplus)
            own.bar.setPageStep(round(box.width()))
            own.bar.setVisible(part.surplus > 0)

    def scroll(self, part: BoxPart, by: int) -> None:
        """Move the content of a box."""
        own = self._own.get(part)
        if own is not None and own.bar is not None:
            own.bar.setValue(own.bar.value() + by)

    def forget(self, part: Part) -> None:
        """A box is no more."""
        own = self._own.pop(part, None)
        for widget in () if own is None else (own.copy, own.bar):
            if widget is not None:
                widget.hide()
                widget.deleteLater()

    def clear(self) -> None:
        """No box is there any more."""
        for part in list(self._own):
            self.forget(part)

    def _copy_button(self, part: CodePart) -> IconButton:
        name = tr("Copy the code")
        button = IconButton(self._look, self._icons, "copy", name, self._reply, side=28)

        def copy() -> None:
            QApplication.clipboard().setText(part.code.text)
            button.show_icon("check", tr("Copied"))
            QTimer.singleShot(COPIED_MS, button, lambda: button.show_icon("copy", name))

        button.clicked.connect(copy)
        return button

    def _bar(self, part: BoxPart) -> QScrollBar:
        bar = QScrollBar(Qt.Orientation.Horizontal, self._reply)
        bar.setAccessibleName(tr("Scroll to the side"))
        bar.setFocusPolicy(Qt.FocusPolicy.NoFocus)

        def moved(value: int) -> None:
            part.offset = value
            self._reply.update()

        bar.valueChanged.connect(moved)
        return bar
