"""The page of a chat: transcript, notice, composer; it shows one session and drives it.

Only places its parts and passes on what they say; a chat goes on when its page shows another.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.chat.blocks.inline_error import ErrorFacts, InlineError
from app.chat.composer import Composer
from app.chat.conversation import Turn, last_reply
from app.chat.session import ChatSession
from app.chat.session_facts import ChatState, Problem
from app.chat.session_view import SessionView
from app.chat.transcript import Transcript
from app.chat.turns.code import last_code
from app.chat.turns.deeds import TurnVerb, TurnWish
from app.chat.turns.desk import TurnDesk
from app.chat.turns.info import info_of
from app.chat.turns.parts.info_dialog import InfoDialog
from app.language.words import tr
from app.library.loaded import ModelPhase, ModelState
from app.look.icons import Icons
from app.look.theme import Look

FOOT: Final = 16
WIDER: Final = 12
SHARE: Final = 0.4


class ChatPage(QWidget):
    """One column of conversation."""

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._session: ChatSession | None = None
        self._notice: InlineError | None = None
        self._set_aside = ""
        self.transcript = Transcript(look, icons, self)
        self.composer = Composer(look, icons, self)
        self.view = SessionView(self.transcript)
        self.desk = TurnDesk(self)
        self.view.wanted.connect(self._on_wish)
        self.desk.edit_wanted.connect(self._on_edit_wanted)
        self.desk.told.connect(self._on_told)
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
            self._set_aside = ""
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
        to_model = tr("Message {name}", name=name)
        self.composer.set_placeholder(to_model if name else tr("Write a message"))
        self.view.show_model(state)

    def show_full(self, full: bool) -> None:
        """Let the chat be as wide as the page."""
        self.transcript.column.show_full(full)
        self._arrange()

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
        chat = self._session.conversation
        last = self._session.turn(chat.leaf) if chat is not None else None
        unanswered = last is not None and last.role == "user"
        if waited and unanswered and not self.composer.draft():
            self.edit_last()

    def answer_again(self) -> None:
        """Have the last message answered once more."""
        if self._session is not None and not self._session.state.busy:
            self._session.answer_again()
            self.transcript.follow()

    def continue_reply(self) -> None:
        """Let the last reply go on."""
        if self._session is not None:
            self._session.continue_reply()
            self.transcript.follow()

    def edit_last(self) -> None:
        """Put the last own message into the composer; sending it makes a version beside it."""
        self._edit(None, tr("replaces your last message"))

    def _edit(self, turn: int | None, hint: str) -> None:
        """Put a turn's text into the composer; what is typed there comes back afterwards."""
        text = self._session.edit(turn) if self._session is not None else ""
        if text:
            typed = self.composer.draft()
            self.composer.set_draft(text)
            self._set_aside = typed
            self.composer.set_hint(hint)
            self.composer.setFocus()

    def _on_edit_wanted(self, turn: Turn) -> None:
        if turn.role == "assistant":
            self._edit(turn.id, tr("makes another version of this reply"))
        else:
            self._edit(turn.id, tr("makes another version of this message"))

    def _on_wish(self, wish: TurnWish) -> None:
        if self._session is not None:
            self.desk.do(self._session, wish)
            if wish.verb in (TurnVerb.AGAIN, TurnVerb.CONTINUE):
                self.transcript.follow()

    def _on_told(self, turn: Turn) -> None:
        chat = self._session.conversation if self._session is not None else None
        if chat is not None:
            InfoDialog(self._look, info_of(chat, turn), self).open()

    def copy_last_reply(self) -> None:
        """Put the last reply's exact text on the clipboard."""
        if self._session is None or self._session.conversation is None:
            return
        reply = last_reply(self._session.conversation)
        if reply is not None:
            QApplication.clipboard().setText(reply.text)

    def copy_last_code(self) -> None:
        """Put the last block of code of the last reply on the clipboard."""
        chat = self._session.conversation if self._session is not None else None
        reply = last_reply(chat) if chat is not None else None
        code = last_code(reply.text) if reply is not None else None
        if code is not None:
            QApplication.clipboard().setText(code)

    def keep_draft(self) -> None:
        """Leave what is typed and not sent with its chat."""
        if self._session is not None:
            self._session.keep_draft(self._set_aside or self.composer.draft())

    def _on_typing(self) -> None:
        """An emptied composer edits nothing any more."""
        if self._session is not None and self.composer.field.document().isEmpty():
            self._session.leave_edit()
            self.composer.set_hint("")
            typed, self._set_aside = self._set_aside, ""
            if typed:
                self.composer.set_draft(typed)

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
        waits = state is ChatState.WAITING
        self.composer.set_hint(tr("sends when the model is ready") if waits else "")
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
        wide = self.contentsRect().width()
        column = self.transcript.column
        self.transcript.fit(wide)
        self.composer.set_tallest(int(self.height() * SHARE))
        height = self.composer.wanted_height()
        empty = self.transcript.is_empty
        foot = self.height() - theme.px(FOOT) - height
        top = (self.height() - height) // 2 if empty else foot
        self.transcript.setGeometry(0, 0, wide, max(0, foot))
        left, measure = column.left(), column.measure()
        wider = theme.px(WIDER)
        self.composer.setGeometry(left - wider, top, measure + 2 * wider, height)
        if self._notice is not None:
            tall = self._notice.lay_out(measure)
            y = top - wider - tall
            self._notice.setGeometry(left, y, measure, tall)
            self._notice.raise_()
            if not empty:
                self.transcript.setGeometry(0, 0, wide, max(0, y))

    def _on_look_changed(self, _theme: object) -> None:
        self._arrange()
        self.update()
