"""One running reply: asked of the engine, written as it comes, stored at its end. UI thread only.

Owns the reply's writer. A session has at most one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, Signal

from app.chat.conversation import ReplyContent, ReplyFacts, Turn, TurnState
from app.chat.session_facts import Growth, Problem, problem_of
from app.chat.turns.asking import Asking, SoFar, end_state, finished_facts
from app.chat.turns.reply_writer import ReplyWriter
from app.chat.turns.services import ChatServices
from engine.protocol import EngineMessage, Failure, Finished, Progress, Queued, Tokens


@dataclass(frozen=True, slots=True)
class Ended:
    """A reply that gets no more: as it is stored, and what went wrong.

    ``turn`` is None where it never got a row, or its end could not be written.
    """

    turn: Turn | None
    problem: Problem | None = None


class RunningReply(QObject):
    """A reply on its way.

    Signals: ``begun`` the Turn as it was put into the store, ``waits`` a Queued, ``read`` a
    Progress of the prompt, ``grew`` a Growth, ``unwritten`` an AppError while it runs, ``ended`` an
    Ended once its end is stored.
    ``queued`` says what it waits for inside the engine, None where it does not.
    """

    begun = Signal(object)
    waits = Signal(object)
    read = Signal(object)
    grew = Signal(object)
    unwritten = Signal(object)
    ended = Signal(object)

    def __init__(self, asking: Asking, services: ChatServices, parent: QObject) -> None:
        super().__init__(parent)
        self._services = services
        self._writer = ReplyWriter(asking, services.store, self)
        self._writer.failed.connect(self.unwritten)
        self._request = -1
        self._is_over = False
        self._is_closed = False
        self.asking = asking
        self.queued: Queued | None = None

    @property
    def so_far(self) -> SoFar:
        """What has come of it."""
        writer = self._writer
        return SoFar(writer.text, writer.thinking_text, writer.facts)

    def begin(self) -> None:
        """Ask the engine; raises EngineUnavailable, or another AppError where it refuses at once.

        Nothing is stored where it raises.
        """
        self._request = self._services.client.generate(
            self.asking.question,
            on_message=self._services.bridge.on_ui(self._on_message),
            sampling=self.asking.sampling,
        )
        self._writer.begin(self._on_begun)

    def stop(self) -> None:
        """Have it end here; ``ended`` still comes."""
        self._services.client.cancel(self._request)

    def close(self) -> None:
        """Stop and keep what has come, saying nothing any more."""
        self._is_closed = True
        if not self._is_over:
            self._is_over = True
            self._services.client.cancel(self._request)
            content, facts = self._writer.content(), self._writer.facts
            self._writer.end(TurnState.CUT, content, facts, _nobody, _nobody)

    def _on_begun(self, turn: Turn) -> None:
        if not self._is_closed:
            self.begun.emit(turn)

    # What the engine says ------------------------------------------------------------------------

    def _on_message(self, message: EngineMessage) -> None:
        if self._is_over:
            return
        match message:
            case Queued():
                self.queued = message
                self.waits.emit(message)
            case Progress():
                self.queued = None
                self.read.emit(message)
            case Tokens():
                self._writer.add(message)
                self.grew.emit(Growth(message.region, message.text))
            case Finished():
                self._on_finished(message)
            case Failure():
                self._on_failure(message)

    def _on_finished(self, finished: Finished) -> None:
        before = self.asking.goes_on
        facts = finished_facts(
            self._writer.facts, finished, before.reply if before is not None else None
        )
        content = ReplyContent(
            text=finished.text, thinking_text=finished.thinking_text, ids=finished.ids
        )
        self._end(end_state(finished), content, facts, None)

    def _on_failure(self, failure: Failure) -> None:
        problem = problem_of(failure)
        before = self.asking.goes_on.reply if self.asking.goes_on is not None else None
        known = self._writer.facts if before is None else before
        facts = replace(known, stop_reason="failed", problem=problem.sentence)
        self._end(TurnState.FAILED, self._writer.content(), facts, problem)

    def _end(
        self, state: TurnState, content: ReplyContent, facts: ReplyFacts, problem: Problem | None
    ) -> None:
        self._is_over = True

        def tell(ended: Ended) -> None:
            if not self._is_closed:
                self.ended.emit(ended)

        self._writer.end(
            state,
            content,
            facts,
            lambda turn: tell(Ended(turn, problem)),
            lambda error: tell(Ended(None, Problem(error.code, error.sentence))),
        )


def _nobody(_result: object) -> None:
    """Nobody waits for this result."""
