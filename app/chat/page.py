"""The page of a chat: transcript, notice, composer; it shows one session and drives it.

Only places its parts and passes on what they say; a chat goes on when its page shows another.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.chat.blocks.inline_error import ErrorFacts, InlineError
from app.chat.blocks.remarks import TurnAction
from app.chat.composer import Composer
from app.chat.session import ChatSession
from app.chat.session_facts import ChatState, Problem
from app.chat.session_view import SessionView
from app.chat.transcript import Transcript
from app.library.loaded import ModelPhase, ModelState
from app.look.icons import Icons
from app.look.theme import Look

FOOT: Final = 16
WIDER: Final = 12
SHARE: Final = 0.4
EDIT_HINT: Final = "replaces your last message"
WAITING_HINT: Final = "sends when the model is ready"


class ChatPage(QWidget):
    """One column of conversation."""

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._session: ChatSession | None = None
        self._notice: InlineError | None = None
        self.transcript = Transcript(look, icons, self)
        self.composer = Composer(look, icons, self)
        self.view = SessionView(
            self.transcript,
            (
                TurnAction("copy", "Copy the reply (Ctrl+Shift+C)", self.copy_last_reply),
                TurnAction("refresh", "Answer again (Ctrl+R)", self.answer_again),
            ),
        )
        self.composer.submitted.connect(self._on_submitted)
        self.composer.stopped.connect(self.stop)
        self.composer.height_wanted.connect(self._arrange)
        self.composer.field.up_pressed.connect(self.edit_last)
        self.composer.field.textChanged.connect(self._on_typing)
        self.view.edit_wanted.connect(self.edit_last)
        self.transcript.typed.connect(self._on_typed)
        self.view.arranged.connect(self._arrange)
        look.changed.connect(self._on_look_changed)

    # What the window does ------------------------------------------------------------------------

    @property
    def session(self) -> ChatSession | None:
        """The chat that is shown."""
        return self._session

    @property
    def notice(self) -> InlineError | None:
        """The card above the composer."""
        return self._notice

    def show_session(self, session: ChatSession) -> None:
        """Show another chat, with its draft."""
        if session is not self._session:
            typed_early = self.composer.draft() if self._session is None else ""
            self._leave()
            self._session = session
            session.moved.connect(self._on_moved)
            session.failed.connect(self._on_failed)
            self.view.show(session)
            self.composer.accept()
            self.composer.set_draft(typed_early or session.draft)
            self._on_moved(session.state)
            self.transcript.follow()
        self.composer.setFocus()

    def show_model(self, state: ModelState) -> None:
        """Tell the composer whom it writes to."""
        name = state.name if state.phase is ModelPhase.READY else ""
        self.composer.set_placeholder(f"Message {name}" if name else "Write a message")
        self.view.show_model(state)

    def show_notice(self, facts: ErrorFacts | None) -> None:
        """Show a card above the composer for what concerns no single turn, or none."""
        if self._notice is not None:
            self._notice.hide()
            self._notice.deleteLater()
            self._notice = None
        if facts is not None:
            self._notice = InlineError(
                self._look, self._icons, self, facts, lambda _block: self._arrange()
            )
            self._notice.show()
        self._arrange()

    def stop(self) -> None:
        """Stop the reply that is being written; a message that still waits can be changed."""
        if self._session is None:
            return
        waited = self._session.state is ChatState.WAITING
        self._session.stop()
        if waited and not self.composer.draft():
            self.edit_last()

    def answer_again(self) -> None:
        """Have the last message answered once more."""
        if self._session is not None and not self._session.state.busy:
            self._session.answer_again()
            self.transcript.follow()

    def edit_last(self) -> None:
        """Put the last own message into the composer; sending it makes a version beside it."""
        text = self._session.edit_last() if self._session is not None else ""
        if text:
            self.composer.set_draft(text)
            self.composer.set_hint(EDIT_HINT)
            self.composer.setFocus()

    def copy_last_reply(self) -> None:
        """Put the last reply's exact text on the clipboard."""
        if self._session is None or self._session.conversation is None:
            return
        for turn in reversed(self._session.conversation.path()):
            if turn.role == "assistant":
                QApplication.clipboard().setText(turn.text)
                return

    def keep_draft(self) -> None:
        """Leave what is typed and not sent with its chat."""
        if self._session is not None:
            self._session.keep_draft(self.composer.draft())

    def _on_typing(self) -> None:
        """An emptied composer edits nothing any more."""
        if self._session is not None and self.composer.field.document().isEmpty():
            self._session.leave_edit()
            self.composer.set_hint("")

    # What session and composer tell --------------------------------------------------------------

    def _leave(self) -> None:
        if self._session is not None:
            self.keep_draft()
            self.composer.forget_queue()
            self._session.moved.disconnect(self._on_moved)
            self._session.failed.disconnect(self._on_failed)
            self._session = None

    def _on_submitted(self, text: str) -> None:
        if self._session is not None:
            self._session.send(text)
            self.view.show_unsaved()
            self.transcript.follow()

    def _on_moved(self, state: ChatState) -> None:
        self.composer.set_hint(WAITING_HINT if state is ChatState.WAITING else "")
        self.composer.set_answering(state.busy)

    def _on_failed(self, problem: Problem) -> None:
        self.composer.forget_queue()
        if problem.unsent is not None:
            self.composer.set_draft(problem.unsent)

    def _on_typed(self, event: QKeyEvent) -> None:
        """A letter typed in the transcript lands in the composer."""
        self.composer.setFocus()
        QApplication.sendEvent(self.composer.field, event)

    # Places --------------------------------------------------------------------------------------

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Transcript above, composer below; in the middle while there is nothing above."""
        self._arrange()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The quiet ground."""
        QPainter(self).fillRect(self.rect(), self._look.theme.color("base"))

    def _arrange(self) -> None:
        theme = self._look.theme
        column = self.transcript.column
        self.transcript.fit(self.width())
        self.composer.set_tallest(int(self.height() * SHARE))
        height = self.composer.wanted_height()
        empty = self.transcript.is_empty
        foot = self.height() - theme.px(FOOT) - height
        top = (self.height() - height) // 2 if empty else foot
        self.transcript.setGeometry(0, 0, self.width(), max(0, foot))
        left, measure = column.left(), column.measure()
        wider = theme.px(WIDER)
        self.composer.setGeometry(left - wider, top, measure + 2 * wider, height)
        if self._notice is not None:
            tall = self._notice.lay_out(measure)
            y = top - wider - tall
            self._notice.setGeometry(left, y, measure, tall)
            self._notice.raise_()
            if not empty:
                self.transcript.setGeometry(0, 0, self.width(), max(0, y))

    def _on_look_changed(self, _theme: object) -> None:
        self._arrange()
        self.update()
