"""What a transcript shows of a session: its turns, what comes of a reply, what went wrong.

Listens to one session at a time and turns what it tells into blocks. UI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.chat.blocks.inline_error import Choice, ErrorFacts, InlineError
from app.chat.blocks.remarks import StatusLine, TurnAction
from app.chat.blocks.text_blocks import Block
from app.chat.blocks.waiting_line import WaitingLine
from app.chat.blocks.words import status_text, words_of
from app.chat.conversation import Turn, TurnState
from app.chat.kept.words import LEFT_OUT, reading_words, resume_words, waiting_words
from app.chat.session import ChatSession
from app.chat.session_facts import ChatState, Growth, Problem
from app.chat.transcript import Transcript
from app.library.loaded import ModelPhase, ModelState
from engine.protocol import Progress, Queued


class SessionView(QObject):
    """The blocks of a session.

    Emits ``arranged`` where the first block came or the last went, ``edit_wanted`` where a card's
    button asks for the last message to be written anew.
    """

    arranged = Signal()
    edit_wanted = Signal()

    def __init__(self, transcript: Transcript, actions: tuple[TurnAction, ...]) -> None:
        super().__init__(transcript)
        self._transcript = transcript
        self._column = transcript.column
        self._make = transcript.make
        self._actions = actions
        self._session: ChatSession | None = None
        self._model = ModelState(ModelPhase.ABSENT)
        self._waiting: WaitingLine | None = None
        self._last_status: StatusLine | None = None
        self._unsaved: Block | None = None
        self._said: set[str] = set()
        self._first_seen: int | None = None

    def show(self, session: ChatSession) -> None:
        """Show ``session`` instead of what is shown."""
        self._listen(session)
        self._waiting = self._last_status = self._unsaved = None
        self._said.clear()
        self._transcript.clear()
        chat = session.conversation
        path = chat.path() if chat is not None else ()
        self._first_seen = chat.first_seen(chat.leaf) if chat is not None else None
        blocks = [block for turn in path for block in self._blocks_of(turn)]
        self._column.add(blocks)
        self._show_actions(blocks)
        self.show_unsaved()
        if session.state in (ChatState.ANSWERING, ChatState.STOPPING) and session.reply_so_far:
            self._transcript.begin_reply(session.reply_so_far)
        self._on_moved(session.state)
        self.arranged.emit()

    def show_model(self, state: ModelState) -> None:
        """Say of a waiting message what it waits for."""
        self._model = state
        self._show_waiting()

    def show_unsaved(self) -> None:
        """A message is seen at once, before the disk has it."""
        if self._session is not None and self._session.unsaved:
            self._show_actions([])
            self._unsaved = self._make.user_turn(self._session.unsaved)
            self._column.add([self._unsaved])
            self.arranged.emit()

    def add_note(self, text: str) -> None:
        """Add a quiet sentence, unless nothing is there or a card has just said it."""
        blocks = self._column.blocks
        if not blocks or isinstance(blocks[-1], InlineError):
            return
        words = self._waiting.text if self._waiting is not None else None
        self._end_waiting()
        self._column.add([self._make.note(text)])
        if words is not None:
            self._say_waiting(words)

    # Blocks of stored turns ----------------------------------------------------------------------

    def _blocks_of(self, turn: Turn) -> list[Block]:
        cut: list[Block] = [self._make.note(LEFT_OUT)] if turn.id == self._first_seen else []
        if turn.role != "assistant":
            return [*cut, self._make.user_turn(turn.text)]
        if turn.state is TurnState.STREAMING:
            return cut
        blocks: list[Block] = [self._make.reply_turn(turn.text)] if turn.text else []
        return [*cut, *blocks, *self._notes_of(turn), self._end_of(turn)]

    def _notes_of(self, turn: Turn) -> list[Block]:
        """What should be known of a reply and was not yet said in this chat."""
        notes = turn.reply.notes if turn.reply is not None else ()
        new = [note for note in notes if note not in self._said]
        self._said.update(new)
        return [self._make.note(note) for note in new]

    def _end_of(self, turn: Turn) -> Block:
        """What stands under a reply: its facts, or why there is not more of it."""
        if turn.state is TurnState.FAILED and turn.reply is not None and turn.reply.problem:
            return self._make.note(f"Not finished: {turn.reply.problem}")
        chat = self._session.conversation if self._session is not None else None
        begins = chat is not None and chat.begins_with(turn)
        resume = resume_words(turn.reply, begins=begins) if turn.reply is not None else None
        return self._make.status_line(status_text(turn), resume)

    def _show_actions(self, blocks: list[Block]) -> None:
        """The actions stand under the last reply only."""
        if self._last_status is not None:
            self._last_status.show_actions(())
            self._last_status = None
        if blocks and isinstance(blocks[-1], StatusLine):
            self._last_status = blocks[-1]
            self._last_status.show_actions(self._actions)

    # What the session tells ----------------------------------------------------------------------

    def _listen(self, session: ChatSession) -> None:
        for one, listens in ((self._session, False), (session, True)):
            if one is None:
                continue
            for signal, slot in (
                (one.added, self._on_added),
                (one.moved, self._on_moved),
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

    def _on_added(self, turn: Turn) -> None:
        if turn.sibling > 0 and self._session is not None:
            self.show(self._session)
        elif self._unsaved is None:
            self._column.add(self._blocks_of(turn))
        self._unsaved = None
        self.arranged.emit()

    def _on_moved(self, _state: ChatState) -> None:
        self._show_waiting()

    def _on_waits(self, _queued: Queued) -> None:
        self._show_waiting()

    def _on_grew(self, growth: Growth) -> None:
        if growth.region == "answer":
            self._end_waiting()
            self._transcript.grow_reply(growth.text)
        elif self._waiting is not None:
            self._waiting.say("Thinking")

    def _on_read(self, progress: Progress) -> None:
        if self._waiting is not None and progress.total > 0:
            self._waiting.say(reading_words(progress))

    def _on_ended(self, turn: Turn) -> None:
        self._end_waiting()
        self._transcript.end_reply(turn.text)
        if self._cut_moved():
            return
        if turn.state is not TurnState.FAILED:
            ends = [*self._notes_of(turn), self._end_of(turn)]
            self._column.add(ends)
            self._show_actions(ends)

    def _cut_moved(self) -> bool:
        """Show the chat anew where a reply no longer saw all that the one before it did."""
        session = self._session
        chat = session.conversation if session is not None else None
        if session is None or chat is None or chat.first_seen(chat.leaf) == self._first_seen:
            return False
        self.show(session)
        return True

    def _on_failed(self, problem: Problem) -> None:
        self._end_waiting()
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
        if problem.unsent is not None or self._session is None:
            return ()
        again = Choice("Answer again", self._session.answer_again)
        edit = Choice("Edit the message", self.edit_wanted.emit)
        return (edit, again) if problem.code == "request-invalid" else (again,)

    # The line before the first word --------------------------------------------------------------

    def _show_waiting(self) -> None:
        state = self._session.state if self._session is not None else ChatState.IDLE
        if state is ChatState.WAITING:
            self._say_waiting(self._waiting_words())
        elif state is ChatState.READING:
            self._say_waiting(self._reading_words())
        elif state is ChatState.IDLE:
            self._end_waiting()

    def _waiting_words(self) -> str:
        match self._model.phase:
            case ModelPhase.LOADING | ModelPhase.STARTING:
                return f"Waiting for {self._model.name}"
            case ModelPhase.ABSENT | ModelPhase.FAILED | ModelPhase.UNLOADED:
                return "Waiting for a model"
            case _:
                return "Reading"

    def _reading_words(self) -> str:
        """What a message that the engine has waits for, or that it is being read."""
        queued = self._session.queued if self._session is not None else None
        return "Reading" if queued is None else waiting_words(queued, self._model.streams)

    def _say_waiting(self, words: str) -> None:
        if self._waiting is None:
            self._waiting = self._make.waiting(words)
            self._column.add([self._waiting])
        else:
            self._waiting.say(words)

    def _end_waiting(self) -> None:
        if self._waiting is not None:
            self._column.remove(self._waiting)
            self._waiting = None
