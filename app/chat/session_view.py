"""What a transcript shows of a session: its turns, what comes of a reply, what went wrong.

Listens to one session at a time and turns what it tells into blocks. UI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from app.chat.blocks.inline_error import Choice, ErrorFacts, InlineError
from app.chat.blocks.text_blocks import Block
from app.chat.blocks.words import words_of
from app.chat.conversation import Turn
from app.chat.kept.words import reading_words
from app.chat.session import ChatSession
from app.chat.session_facts import ChatState, Growth, Problem
from app.chat.transcript import OpeningMenu, Transcript
from app.chat.turns.asking import may_go_on
from app.chat.turns.deeds import TurnVerb, TurnWish
from app.chat.turns.parts.announcer import Announcer
from app.chat.turns.parts.growing import GrowingReply
from app.chat.turns.parts.shown_rows import ShownRows
from app.chat.turns.parts.turn_blocks import TurnBlocks
from app.chat.turns.parts.waiting import WaitingPart
from app.language.words import tr
from app.library.loaded import ModelState
from engine.protocol import Progress, Queued


class SessionView(QObject):
    """The blocks of a session.

    Emits ``arranged`` where the first block came or the last went, ``edit_wanted`` where a card's
    button asks for the last message to be written anew, ``wanted`` with a TurnWish.

    Attributes:
        rows: which rows show what can be done.
        announcer: tells a screen reader of the reply.
    """

    arranged = Signal()
    edit_wanted = Signal()
    wanted = Signal(object)

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self._transcript = transcript
        self._column = transcript.column
        self._make = transcript.make
        self._session: ChatSession | None = None
        self._turns = TurnBlocks(transcript.make, self._on_wish)
        self._waiting = WaitingPart(transcript.column, transcript.make)
        self._growing = GrowingReply(transcript)
        self._unsaved: Block | None = None
        self.rows = ShownRows(transcript.column)
        self.announcer = Announcer(transcript)
        transcript.menu_opening.connect(self._on_menu_opening)

    def show(self, session: ChatSession) -> None:
        """Show ``session`` instead of what is shown."""
        self._listen(session)
        self._unsaved = None
        focus = QApplication.focusWidget()
        if focus is not None and self._column.isAncestorOf(focus):
            # The keyboard was at a button that goes.
            self._transcript.setFocus()
        self._waiting.forget()
        self._growing.forget()
        self.rows.forget()
        self.announcer.forget()
        self._transcript.clear()
        self._column.add(self._turns.begin(session))
        self.show_unsaved()
        if session.going_on is not None:
            self._growing.show(session.going_on)
        self._on_moved(session.state)
        self.arranged.emit()

    def show_model(self, state: ModelState) -> None:
        """Say of a waiting message what it waits for."""
        self._waiting.model = state
        self._waiting.show(self._session)

    def show_unsaved(self) -> None:
        """A message is seen at once, before the disk has it."""
        if self._session is not None and self._session.unsaved:
            self._unsaved = self._make.user_turn(self._session.unsaved)
            self._column.add([self._unsaved])
            self.arranged.emit()

    def add_note(self, text: str) -> None:
        """Add a quiet sentence, unless nothing is there or a card has just said it."""
        blocks = self._column.blocks
        if not blocks or isinstance(blocks[-1], InlineError):
            return
        self._add_before_waiting([self._make.note(text)])

    def go_to(self, turn: int | None) -> None:
        """Bring a turn into view; one that stands beside the shown path is shown first."""
        if turn is None or self._session is None:
            return
        if turn not in self._turns.rows:
            self._session.show_turn(turn)
        row = self._turns.rows.get(turn)
        if row is not None:
            self._transcript.verticalScrollBar().setValue(self.rows.top_of(row))

    def _on_menu_opening(self, opening: OpeningMenu) -> None:
        row = self.rows.row_at(opening.y)
        if row is not None:
            opening.menu.addSeparator()
            row.fill(opening.menu)

    # Versions ------------------------------------------------------------------------------------

    def _on_wish(self, wish: TurnWish) -> None:
        if wish.verb in (TurnVerb.EARLIER, TurnVerb.LATER):
            self._show_version(wish)
        else:
            self.wanted.emit(wish)

    def _show_version(self, wish: TurnWish) -> None:
        """Show another version where this one is: what is above it stays in its place."""
        chat = self._session.conversation if self._session is not None else None
        row = self._turns.rows.get(wish.turn)
        if self._session is None or chat is None or row is None:
            return
        versions = [turn.id for turn in chat.siblings(wish.turn)]
        later = wish.verb is TurnVerb.LATER
        at = versions.index(wish.turn) + (1 if later else -1)
        if not 0 <= at < len(versions):
            return
        bar = self._transcript.verticalScrollBar()
        seen_at = row.y() - bar.value()
        self._session.show_turn(versions[at])
        shown = self._turns.rows.get(versions[at])
        if shown is not None:
            bar.setValue(shown.y() - seen_at)
        if shown is not None and shown.versions is not None:
            arrows = (shown.versions.later, shown.versions.earlier)
            first, second = arrows if later else reversed(arrows)
            (first if first.isEnabled() else second).setFocus()

    # What the session tells ----------------------------------------------------------------------

    def _listen(self, session: ChatSession) -> None:
        for one, listens in ((self._session, False), (session, True)):
            if one is None:
                continue
            for signal, slot in (
                (one.added, self._on_added),
                (one.moved, self._on_moved),
                (one.rearranged, self._on_rearranged),
                (one.waits, self._on_waits),
                (one.grew, self._on_grew),
                (one.read, self._on_read),
                (one.ended, self._on_ended),
                (one.failed, self._on_failed),
            ):
                if listens:
                    signal.connect(slot)
                else:
                    signal.disconnect(slot)
        self._session = session

    def _on_rearranged(self, _conversation: object) -> None:
        """Other turns are shown; what is above them stays where it is."""
        if self._session is not None:
            follows = self._transcript.following
            bar = self._transcript.verticalScrollBar()
            before = bar.value()
            self.show(self._session)
            if not follows:
                bar.setValue(before)

    def _on_added(self, turn: Turn) -> None:
        session = self._session
        chat = session.conversation if session is not None else None
        if session is None or chat is None:
            return
        unsaved, self._unsaved = self._unsaved, None
        if turn.sibling > 0:
            self.show(session)
        elif unsaved is None:
            self._column.add(self._turns.blocks_of(turn, chat))
        else:
            self._column.add(self._turns.user_row(turn, chat))
        self.arranged.emit()

    def _on_moved(self, state: ChatState) -> None:
        self._waiting.show(self._session)
        facts = self._waiting.model.facts
        if state is ChatState.READING and facts is not None:
            self._add_before_waiting(self._turns.model_note(facts.name))
        chat = self._session.conversation if self._session is not None else None
        last = self._turns.rows.get(chat.leaf) if chat is not None and chat.leaf else None
        if state is ChatState.IDLE:
            self._growing.abandon()
        self.rows.keep(None if state.busy else last)

    def _on_waits(self, _queued: Queued) -> None:
        self._waiting.show(self._session)

    def _on_grew(self, growth: Growth) -> None:
        self._waiting.end()
        reply = self._session.going_on if self._session is not None else None
        self._growing.grow(growth, reply)
        if growth.region == "answer":
            self.announcer.hear(growth.text)

    def _on_read(self, progress: Progress) -> None:
        if self._waiting.words is not None and progress.total > 0:
            self._waiting.say(reading_words(progress))

    def _on_ended(self, turn: Turn) -> None:
        self._waiting.end()
        self._growing.finish(turn)
        self.announcer.finish()
        session = self._session
        chat = session.conversation if session is not None else None
        if session is None or chat is None:
            return
        if chat.first_seen(chat.leaf) != self._turns.first_seen:
            # The reply no longer saw all that the one before it did.
            self.show(session)
        else:
            self._column.add(self._turns.ends_of(turn, chat, told=True))

    def _on_failed(self, problem: Problem) -> None:
        self._waiting.end()
        if self._unsaved is not None and problem.unsent is not None:
            self._column.remove(self._unsaved)
            self._unsaved = None
        words = words_of(problem)
        facts = ErrorFacts(
            words.title,
            words.sentence,
            problem.detail,
            self._choices(problem),
            recovered=problem.recovered,
        )
        self._column.add([self._make.error(facts)])
        self.arranged.emit()

    def _choices(self, problem: Problem) -> tuple[Choice, ...]:
        session = self._session
        if problem.unsent is not None or session is None:
            return ()
        again = Choice(tr("Answer again"), session.answer_again)
        edit = Choice(tr("Edit the message"), self.edit_wanted.emit)
        chat = session.conversation
        last = session.turn(chat.leaf) if chat is not None else None
        if last is not None and may_go_on(last) and last.text:
            return (Choice(tr("Continue"), session.continue_reply), again)
        return (edit, again) if problem.code == "request-invalid" else (again,)

    def _add_before_waiting(self, blocks: list[Block]) -> None:
        """Add blocks at the end, above the line that says what is waited for."""
        words = self._waiting.words
        if not blocks:
            return
        self._waiting.end()
        self._column.add(blocks)
        if words is not None:
            self._waiting.say(words)
