"""What is said before a reply's first word: that it waits, for what, or that it is read."""

from __future__ import annotations

from app.chat.blocks.column import Column
from app.chat.blocks.make import BlockMaker
from app.chat.blocks.waiting_line import WaitingLine
from app.chat.kept.words import waiting_words
from app.chat.session import ChatSession
from app.chat.session_facts import ChatState
from app.language.words import tr
from app.library.loaded import ModelPhase, ModelState


class WaitingPart:
    """The line with the arc at the end of a column; there or not."""

    def __init__(self, column: Column, make: BlockMaker) -> None:
        self._column = column
        self._make = make
        self._line: WaitingLine | None = None
        self.model = ModelState(ModelPhase.ABSENT)

    @property
    def words(self) -> str | None:
        """What it says; None while it is not there."""
        return self._line.text if self._line is not None else None

    def forget(self) -> None:
        """The column was emptied."""
        self._line = None

    def show(self, session: ChatSession | None) -> None:
        """Say what ``session`` waits for, or nothing where it waits for nothing."""
        state = session.state if session is not None else ChatState.IDLE
        if state is ChatState.WAITING:
            self.say(self._model_words())
        elif state is ChatState.READING and session is not None:
            queued = session.queued
            reading = tr("Reading")
            self.say(reading if queued is None else waiting_words(queued, self.model.streams))
        elif state is ChatState.IDLE:
            self.end()

    def say(self, words: str) -> None:
        """Show the line with these words."""
        if self._line is None:
            self._line = self._make.waiting(words)
            self._column.add([self._line])
        else:
            self._line.say(words)

    def end(self) -> None:
        """Take the line away."""
        line, self._line = self._line, None
        if line is not None:
            self._column.remove(line)

    def _model_words(self) -> str:
        match self.model.phase:
            case ModelPhase.LOADING | ModelPhase.STARTING:
                return tr("Waiting for {name}", name=self.model.name)
            case ModelPhase.ABSENT | ModelPhase.FAILED | ModelPhase.UNLOADED:
                return tr("Waiting for a model")
            case _:
                return tr("Reading")
