"""What tests do with the turns of the window, and what they look at."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtGui import QHoverEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.chat.conversation import Conversation, Turn
from app.chat.session import ChatSession
from app.chat.turns.deeds import TurnVerb, TurnWish
from app.chat.turns.parts.row import ActionRow
from app.chat.turns.parts.thinking import ThinkingFold
from tests.helpers.qt import wait_until
from tests.helpers.window import TestWindow


def session(window: TestWindow) -> ChatSession:
    """The chat that is shown."""
    found = window.page.session
    assert found is not None
    return found


def chat(window: TestWindow) -> Conversation:
    """Its conversation."""
    found = session(window).conversation
    assert found is not None
    return found


def path(window: TestWindow) -> tuple[Turn, ...]:
    """The turns that are shown."""
    return chat(window).path()


def rows(window: TestWindow) -> list[ActionRow]:
    """The row of each turn."""
    return [b for b in window.page.transcript.column.blocks if isinstance(b, ActionRow)]


def do(window: TestWindow, verb: TurnVerb, turn: int) -> None:
    """Do it as the row's button does, and wait until nothing runs."""
    row = next(row for row in rows(window) if row.facts.turn == turn)
    row.facts.run(TurnWish(verb, turn))
    QTest.qWait(20)
    wait_until(window.idle)


def stop_after(window: TestWindow, text: str, letters: int) -> None:
    """Ask, and stop the reply once it has so many letters."""
    window.write(text)
    wait_until(lambda: len(window.reply_so_far()) > letters)
    window.page.stop()
    wait_until(window.idle)


def hover(window: TestWindow, y: int) -> None:
    """Move the pointer over height ``y`` of the column."""
    column = window.page.transcript.column
    place = QPointF(10, y)
    there = QPointF(column.mapToGlobal(place.toPoint()))
    event = QHoverEvent(QHoverEvent.Type.HoverMove, place, there, QPointF(0, 0))
    QApplication.sendEvent(column, event)


def names(row: ActionRow) -> list[str]:
    """What the buttons of a row are called."""
    return [button.accessibleName() for button in row.buttons]


def thoughts(window: TestWindow) -> ThinkingFold:
    """The first thoughts that are shown."""
    blocks = window.page.transcript.column.blocks
    return next(block for block in blocks if isinstance(block, ThinkingFold))
