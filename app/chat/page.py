"""The page of a chat: transcript, notice, composer; it shows one session and drives it.

Only places its parts and passes on what they say; a chat goes on when its page shows another.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.chat.blocks.remarks import Choice, ErrorFacts, InlineError, StatusLine, TurnAction
from app.chat.blocks.text_blocks import Block
from app.chat.blocks.waiting_line import WaitingLine
from app.chat.composer import Composer
from app.chat.conversation import Turn, TurnState
from app.chat.session import ChatSession
from app.chat.session_facts import ChatState, Growth, Problem
from app.chat.transcript import Transcript
from app.chat.words import status_text, words_of
from app.icons import Icons
from app.library.loaded import ModelPhase, ModelState
from app.theme import Look
from engine.protocol import Progress

FOOT: Final = 16
WIDER: Final = 12
SHARE: Final = 0.4
WAITING_HINT: Final = "sends when the model is ready"


class ChatPage(QWidget):
    """One column. Emits ``model_wanted`` where a person asks for a model to be chosen or loaded."""

    model_wanted = Signal()

    def __init__(self, look: Look, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._icons = icons
        self._session: ChatSession | None = None
        self._waiting: WaitingLine | None = None
        self._last_status: StatusLine | None = None
        self._notice: InlineError | None = None
        self._model = ModelState(ModelPhase.ABSENT)
        self.transcript = Transcript(look, icons, self)
        self.composer = Composer(look, icons, self)
        self.composer.submitted.connect(self._on_submitted)
        self.composer.stopped.connect(self.stop)
        self.composer.height_wanted.connect(self._arrange)
        self.transcript.typed.connect(self._on_typed)
        look.changed.connect(self._on_look_changed)

    # What the window does ------------------------------------------------------------------------

    @property
    def session(self) -> ChatSession | None:
        """The chat that is shown."""
        return self._session

    def show_session(self, session: ChatSession) -> None:
        """Show another chat, with its draft."""
        if session is self._session:
            self.composer.setFocus()
            return
        self._leave()
        self._session = session
        session.added.connect(self._on_added)
        session.moved.connect(self._on_moved)
        session.grew.connect(self._on_grew)
        session.read.connect(self._on_read)
        session.ended.connect(self._on_ended)
        session.failed.connect(self._on_failed)
        self._fill(session)
        self.composer.set_draft(session.draft)
        self.composer.set_answering(session.state.busy)
        self._on_moved(session.state)
        self.transcript.follow()
        self.composer.setFocus()

    def show_model(self, state: ModelState) -> None:
        """Tell the composer whom it writes to."""
        self._model = state
        name = state.name if state.phase is ModelPhase.READY else ""
        self.composer.set_placeholder(f"Message {name}" if name else "Write a message")
        self._show_waiting()

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

    def add_note(self, text: str) -> None:
        """Put a quiet sentence into the transcript; an empty one has no place for it."""
        if not self.transcript.is_empty:
            self._add_before_waiting(self.transcript.note(text))

    def stop(self) -> None:
        """Stop the reply that is being written."""
        if self._session is not None:
            self._session.stop()

    def answer_again(self) -> None:
        """Have the last message answered once more."""
        if self._session is not None and not self._session.state.busy:
            self._session.answer_again()
            self.transcript.follow()

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

    # Filling -------------------------------------------------------------------------------------

    def _leave(self) -> None:
        session = self._session
        if session is None:
            return
        self.keep_draft()
        self.composer.forget_queue()
        for signal, slot in (
            (session.added, self._on_added),
            (session.moved, self._on_moved),
            (session.grew, self._on_grew),
            (session.read, self._on_read),
            (session.ended, self._on_ended),
            (session.failed, self._on_failed),
        ):
            signal.disconnect(slot)
        self._session = None

    def _fill(self, session: ChatSession) -> None:
        self._waiting = None
        self._last_status = None
        self.transcript.clear()
        blocks: list[Block] = []
        path = session.conversation.path() if session.conversation is not None else ()
        for turn in path:
            blocks.extend(self._blocks_of(turn))
        self.transcript.add(blocks)
        self._show_actions(blocks)
        if session.state in (ChatState.ANSWERING, ChatState.STOPPING) and session.reply_so_far:
            self.transcript.begin_reply(session.reply_so_far)
        self._arrange()

    def _blocks_of(self, turn: Turn) -> list[Block]:
        if turn.role != "assistant":
            return [self.transcript.user_turn(turn.text)]
        if turn.state is TurnState.STREAMING:
            return []
        blocks: list[Block] = [self.transcript.reply_turn(turn.text)] if turn.text else []
        blocks.append(self.transcript.status_line(status_text(turn)))
        return blocks

    def _show_actions(self, blocks: list[Block]) -> None:
        """The actions stand under the last reply only."""
        if self._last_status is not None:
            self._last_status.show_actions(self._icons, ())
            self._last_status = None
        if blocks and isinstance(blocks[-1], StatusLine):
            self._last_status = blocks[-1]
            self._last_status.show_actions(
                self._icons,
                (
                    TurnAction("copy", "Copy the reply (Ctrl+Shift+C)", self.copy_last_reply),
                    TurnAction("refresh", "Answer again (Ctrl+R)", self.answer_again),
                ),
            )

    # What the session tells ----------------------------------------------------------------------

    def _on_submitted(self, text: str) -> None:
        if self._session is not None:
            self.transcript.follow()
            self._session.send(text)

    def _on_added(self, turn: Turn) -> None:
        self._show_actions([])
        self.transcript.add(self._blocks_of(turn))
        self._arrange()
        self.transcript.follow()

    def _on_moved(self, state: ChatState) -> None:
        self.composer.set_answering(state.busy)
        self.composer.set_hint(WAITING_HINT if state is ChatState.WAITING else "")
        self._show_waiting()

    def _on_grew(self, growth: Growth) -> None:
        if growth.region == "answer":
            self._end_waiting()
            self.transcript.grow_reply(growth.text)
        elif self._waiting is not None:
            self._waiting.say("Thinking")

    def _on_read(self, progress: Progress) -> None:
        if self._waiting is not None and progress.total > 0:
            share = f"{progress.done / progress.total:.0%}".replace("%", " %")
            self._waiting.say(f"Reading {progress.total:,} tokens, {share}")

    def _on_ended(self, turn: Turn) -> None:
        self._end_waiting()
        self.transcript.end_reply(turn.text)
        status = self.transcript.status_line(status_text(turn))
        self.transcript.add([status])
        self._show_actions([status])

    def _on_failed(self, problem: Problem) -> None:
        self.composer.forget_queue()
        self._end_waiting()
        words = words_of(problem)
        choices: tuple[Choice, ...] = ()
        if problem.unsent is not None:
            self.composer.set_draft(problem.unsent)
        else:
            choices = (Choice("Answer again", self.answer_again),)
        facts = ErrorFacts(
            words.title, words.sentence, problem.detail, choices, recovered=problem.recovered
        )
        self.transcript.add([self.transcript.error(facts)])
        self._arrange()

    # The line before the first word --------------------------------------------------------------

    def _show_waiting(self) -> None:
        state = self._session.state if self._session is not None else ChatState.IDLE
        if state is ChatState.WAITING:
            self._say_waiting(self._waiting_words())
        elif state is ChatState.READING:
            self._say_waiting("Reading")
        elif state is ChatState.IDLE:
            self._end_waiting()

    def _waiting_words(self) -> str:
        match self._model.phase:
            case ModelPhase.LOADING | ModelPhase.STARTING:
                return f"Waiting for {self._model.name}"
            case ModelPhase.ABSENT | ModelPhase.FAILED:
                return "Waiting for a model"
            case _:
                return "Reading"

    def _say_waiting(self, words: str) -> None:
        if self._waiting is None:
            self._waiting = WaitingLine(self._look, self.transcript.column, words)
            self.transcript.add([self._waiting])
        else:
            self._waiting.say(words)

    def _end_waiting(self) -> None:
        if self._waiting is not None:
            self.transcript.remove(self._waiting)
            self._waiting = None

    def _add_before_waiting(self, block: Block) -> None:
        words = self._waiting.text if self._waiting is not None else None
        self._end_waiting()
        self.transcript.add([block])
        if words is not None:
            self._say_waiting(words)

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
            y = top - theme.px(WIDER) - tall
            self._notice.setGeometry(left, y, measure, tall)
            self._notice.raise_()
            if not empty:
                self.transcript.setGeometry(0, 0, self.width(), max(0, y))

    def _on_typed(self, event: QKeyEvent) -> None:
        """A letter typed in the transcript lands in the composer."""
        self.composer.setFocus()
        QApplication.sendEvent(self.composer.field, event)

    def _on_look_changed(self, _theme: object) -> None:
        self._arrange()
        self.update()
