"""One open chat: its conversation and the request that runs for it.

Every user message is on disk before the engine sees it. A session knows no widget: the page listens
to its signals. UI thread only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, Signal

from app.chat.conversation import Conversation, ReplyContent, ReplyFacts, Turn, TurnState
from app.chat.reply_writer import ReplyWriter
from app.chat.session_facts import (
    ChatState,
    Growth,
    Problem,
    begun_facts,
    end_state,
    finished_facts,
    problem_of,
    question_of,
)
from app.chat.store import Store
from app.chat.store_bridge import StoreBridge
from app.errors import AppError, EngineUnavailable
from app.library.loaded import LoadedModel, ModelPhase, ModelState
from app.link.bridge import EngineBridge
from app.link.client import EngineClient
from app.text import whole_characters
from engine.protocol import EngineMessage, Failure, Finished, Progress, Queued, Sampling, Tokens


@dataclass(frozen=True, slots=True)
class ChatServices:
    """What every session works with; ``sampling`` is what the person set for all chats."""

    store: StoreBridge
    client: EngineClient
    bridge: EngineBridge
    model: LoadedModel
    sampling: Sampling


class ChatSession(QObject):
    """One chat. ``conversation`` is None until its first message is stored.

    ``queued`` says what the message waits for inside the engine, None where it does not.
    ``unsaved`` is a message on its way to the disk, ``draft`` one that was typed and not sent.
    An edited message and its old version are siblings; both stay.
    Signals carry one record each: ``changed`` the Conversation after it changed, ``moved`` the
    ChatState, ``added`` a user's Turn that was stored, ``waits`` a Queued, ``grew`` a Growth,
    ``read`` a Progress of the prompt, ``ended`` the finished Turn, ``failed`` a Problem.
    """

    changed = Signal(object)
    moved = Signal(object)
    added = Signal(object)
    waits = Signal(object)
    grew = Signal(object)
    read = Signal(object)
    ended = Signal(object)
    failed = Signal(object)

    def __init__(
        self, conversation: Conversation | None, services: ChatServices, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._services = services
        self._reply: ReplyWriter | None = None
        self._request = -1
        self._problem: Problem | None = None
        self._edited: Turn | None = None
        self._closed = False
        self.conversation = conversation
        self.draft = ""
        self.unsaved = ""
        self.state = ChatState.IDLE
        self.queued: Queued | None = None
        services.model.changed.connect(self._on_model_changed)

    @property
    def reply_so_far(self) -> str:
        """The text of the running reply, empty while there is none."""
        return self._reply.text if self._reply is not None else ""

    # What a person does --------------------------------------------------------------------------

    def send(self, text: str) -> None:
        """Keep ``text`` as the next message and have it answered. Blank text does nothing."""
        text = whole_characters(text)
        if self.state.busy or not text.strip():
            return
        self.unsaved = text
        self._move(ChatState.SAVING)
        conversation, edited = self.conversation, self._edited
        self._edited = None

        def keep(store: Store) -> tuple[Conversation, Turn]:
            there = conversation if conversation is not None else store.conversations.create()
            parent = edited.parent if edited is not None else there.leaf
            turn = store.turns.add_user(there.id, parent, text)
            return store.conversations.read(there.id), turn

        self._services.store.ask(keep, self._on_kept, lambda error: self._on_not_kept(error, text))

    def edit_last(self) -> str:
        """The text of the last user message; what is sent next stands beside it, not below it."""
        self._edited = self._last_user_turn() if not self.state.busy else None
        return self._edited.text if self._edited is not None else ""

    def leave_edit(self) -> None:
        """What is sent next stands below, as usual."""
        self._edited = None

    def stop(self) -> None:
        """Stop the running reply; a message that waits for the model is no longer sent."""
        if self.state is ChatState.WAITING:
            self._move(ChatState.IDLE)
        elif self._reply is not None and self.state is not ChatState.STOPPING:
            self._move(ChatState.STOPPING)
            self._services.client.cancel(self._request)

    def answer_again(self) -> None:
        """Have the last user message answered once more, beside what is there."""
        if not self.state.busy and self._last_user_turn() is not None:
            self._wait_for_model()

    def keep_draft(self, text: str) -> None:
        """Remember what is typed and not sent; a stored chat keeps it over a restart."""
        if text == self.draft:
            return
        self.draft = text
        if self.conversation is not None:
            chat = self.conversation.id
            self._services.store.tell(lambda store: store.conversations.set_draft(chat, text))

    def close(self) -> None:
        """Stop, keeping the text so far; nothing is emitted any more."""
        self._closed = True
        if self._reply is not None:
            self._services.client.cancel(self._request)
            reply, self._reply = self._reply, None
            reply.end(TurnState.CUT, reply.content(), reply.facts, _nobody, _nobody)

    # Keeping -------------------------------------------------------------------------------------

    def _on_kept(self, kept: tuple[Conversation, Turn]) -> None:
        if self._closed:
            return
        self.draft = self.unsaved = ""
        self.conversation, turn = kept
        self.changed.emit(self.conversation)
        self.added.emit(turn)
        self._wait_for_model()

    def _on_not_kept(self, error: AppError, text: str) -> None:
        self.unsaved = ""
        self._move(ChatState.IDLE)
        self._fail(Problem(error.code, error.sentence, unsent=text))

    # Asking the engine ---------------------------------------------------------------------------

    def _wait_for_model(self) -> None:
        """A message brings a model back whose memory was given back."""
        self._move(ChatState.WAITING)
        if self._services.model.state.phase is ModelPhase.UNLOADED:
            self._services.model.try_again()
        self._begin_when_ready()

    def _on_model_changed(self, _state: ModelState) -> None:
        if self.state is ChatState.WAITING:
            self._begin_when_ready()

    def _begin_when_ready(self) -> None:
        if self._services.model.state.phase is ModelPhase.READY and not self._closed:
            self._begin()

    def _begin(self) -> None:
        user = self._last_user_turn()
        model = self._services.model.state.facts
        conversation = self.conversation
        if user is None or model is None or conversation is None:
            self._move(ChatState.IDLE)
            return
        sampling = self._services.sampling
        plan = self._services.model.state.plan
        facts = begun_facts(model, plan, sampling, conversation.left_out(user.id))
        reply = ReplyWriter(conversation.id, user.id, facts, self._services.store)
        try:
            self._request = self._services.client.generate(
                question_of(conversation, user),
                on_message=self._services.bridge.on_ui(lambda m: self._on_message(reply, m)),
                sampling=sampling,
            )
        except EngineUnavailable:
            return  # It died just now; the model's next "ready" begins again.
        except AppError as error:
            self._move(ChatState.IDLE)
            self._fail(Problem(error.code, error.sentence))
            return
        self._reply = reply
        reply.failed.connect(self._on_not_written)
        reply.begin(self._on_turn_begun)
        chat, path = conversation.id, model.path
        self._services.store.tell(lambda store: store.conversations.set_model(chat, path))
        self._move(ChatState.READING)

    def _on_message(self, reply: ReplyWriter, message: EngineMessage) -> None:
        if self._closed or reply is not self._reply:
            return
        match message:
            case Queued():
                self.queued = message
                self.waits.emit(message)
            case Progress():
                self.queued = None
                self.read.emit(message)
            case Tokens():
                reply.add(message)
                if self.state is ChatState.READING:
                    self._move(ChatState.ANSWERING)
                self.grew.emit(Growth(message.region, message.text))
            case Finished():
                self._on_finished(reply, message)
            case Failure():
                self._on_failure(reply, message)

    def _on_finished(self, reply: ReplyWriter, finished: Finished) -> None:
        content = ReplyContent(
            text=finished.text, thinking_text=finished.thinking_text, ids=finished.ids
        )
        self._end(reply, end_state(finished), content, finished_facts(reply.facts, finished))

    def _on_failure(self, reply: ReplyWriter, failure: Failure) -> None:
        self._problem = problem_of(failure)
        facts = replace(reply.facts, stop_reason="failed", problem=self._problem.sentence)
        self._end(reply, TurnState.FAILED, reply.content(), facts)

    # Ends ----------------------------------------------------------------------------------------

    def _end(
        self, reply: ReplyWriter, state: TurnState, content: ReplyContent, facts: ReplyFacts
    ) -> None:
        self._reply = self.queued = None
        reply.end(state, content, facts, self._on_turn_ended, self._on_not_ended)

    def _on_turn_begun(self, turn: Turn) -> None:
        if self.conversation is not None:
            self.conversation = self.conversation.with_turn(turn)

    def _on_turn_ended(self, turn: Turn | None) -> None:
        if self._closed:
            return
        if turn is not None and self.conversation is not None:
            self.conversation = self.conversation.with_turn(turn)
            self.changed.emit(self.conversation)
            self.ended.emit(turn)
        problem, self._problem = self._problem, None
        if problem is not None:
            death = self._services.model.death
            if problem.recovered and death is not None:
                problem = replace(problem, detail=death.outcome.detail)
            self._fail(problem)
        self._move(ChatState.IDLE)

    def _on_not_written(self, error: AppError) -> None:
        """A full disk stops the reply and says so."""
        if self._reply is not None and self.state is not ChatState.STOPPING:
            self.stop()
            self._fail(Problem(error.code, error.sentence))

    def _on_not_ended(self, error: AppError) -> None:
        self._fail(Problem(error.code, error.sentence))
        self._move(ChatState.IDLE)

    # Small things --------------------------------------------------------------------------------

    def _last_user_turn(self) -> Turn | None:
        if self.conversation is None:
            return None
        return next((t for t in reversed(self.conversation.path()) if t.role == "user"), None)

    def _move(self, state: ChatState) -> None:
        if state is not self.state:
            self.state = state
            if not self._closed:
                self.moved.emit(state)

    def _fail(self, problem: Problem) -> None:
        if not self._closed:
            self.failed.emit(problem)


def _nobody(_result: object) -> None:
    """Nobody waits for this result."""
