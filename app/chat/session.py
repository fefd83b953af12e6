"""One open chat: its conversation and the request that runs for it.

Every user message is on disk before the engine sees it. A session knows no widget: the page listens
to its signals. UI thread only.
"""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.chat.conversation import Conversation, Turn, TurnState
from app.chat.session_facts import ChatState, Growth, Problem
from app.chat.turns.asking import SoFar, Wanted, may_go_on, so_far_of
from app.chat.turns.keeping import kept_turn
from app.chat.turns.open_chat import OpenChat
from app.chat.turns.running import Ended, RunningReply
from app.chat.turns.services import ChatServices, asking_of
from app.errors import AppError, EngineUnavailable
from app.library.loaded import ModelPhase, ModelState
from app.text import whole_characters
from engine.protocol import Queued


class ChatSession(OpenChat):
    """A chat that is answered.

    ``unsaved`` is a message on its way to the disk. An edited turn and its old version are
    siblings; both stay. Signals carry one record each: ``added`` a user's Turn that was stored,
    ``waits`` a Queued, ``grew`` a Growth, ``read`` a Progress of the prompt, ``ended`` the finished
    Turn.
    """

    added = Signal(object)
    waits = Signal(object)
    grew = Signal(object)
    read = Signal(object)
    ended = Signal(object)

    def __init__(
        self, conversation: Conversation | None, services: ChatServices, parent: QObject
    ) -> None:
        super().__init__(conversation, services, parent)
        self._reply: RunningReply | None = None
        self._wanted: Wanted | None = None
        self._edited: Turn | None = None
        self.unsaved = ""
        services.model.changed.connect(self._on_model_changed)

    @property
    def going_on(self) -> SoFar | None:
        """What has come of the reply that grows or shall go on; None where there is none."""
        if self._reply is not None:
            return self._reply.so_far
        turn = self._wanted.goes_on if self._wanted is not None else None
        return so_far_of(turn) if turn is not None else None

    @property
    def reply_so_far(self) -> str:
        """The text of the running reply, empty while there is none."""
        return self._reply.so_far.text if self._reply is not None else ""

    @property
    def queued(self) -> Queued | None:
        """What the running reply waits for inside the engine."""
        return self._reply.queued if self._reply is not None else None

    # What a person does --------------------------------------------------------------------------

    def send(self, text: str) -> None:
        """Keep ``text`` as the next message and have it answered. Blank text does nothing.

        An edited turn gets it as its new version; that of a reply is not answered.
        """
        text = whole_characters(text)
        if self.state.busy or not text.strip():
            return
        edited, self._edited = self._edited, None
        self.unsaved = text if edited is None or edited.role == "user" else ""
        self._move(ChatState.SAVING)
        keep = kept_turn(self.conversation, edited, text, self.options)
        self._services.store.ask(keep, self._on_kept, lambda error: self._on_not_kept(error, text))

    def edit(self, turn: int | None = None) -> str:
        """The text of a turn, None of the last user message; what is sent next stands beside it."""
        chosen = self._last_user_turn() if turn is None else self.turn(turn)
        self._edited = chosen if not self.state.busy else None
        return self._edited.text if self._edited is not None else ""

    def leave_edit(self) -> None:
        """What is sent next stands below, as usual."""
        self._edited = None

    def stop(self) -> None:
        """Stop the running reply; a message that waits for the model is no longer sent."""
        if self.state is ChatState.WAITING:
            self._give_up()
        elif self._reply is not None and self.state is not ChatState.STOPPING:
            self._move(ChatState.STOPPING)
            self._reply.stop()

    def answer_again(self, user: int | None = None) -> None:
        """Have a user message, None the last one, answered once more, beside what is there."""
        asked = self._last_user_turn() if user is None else self.turn(user)
        chat = self.conversation
        if self.state.busy or asked is None or chat is None:
            return
        self._wanted = Wanted(asked.id)
        self._move(ChatState.WAITING)
        if chat.leaf != asked.id:
            self._rearrange(replace(chat, leaf=asked.id))
        self._wait_for_model()

    def continue_reply(self) -> None:
        """Let the last reply go on where it was stopped, cut or reached its limit."""
        chat = self.conversation
        turn = self.turn(chat.leaf) if chat is not None else None
        if self.state.busy or chat is None or turn is None or not may_go_on(turn):
            return
        assert turn.parent is not None
        self._wanted = Wanted(turn.parent, turn)
        self._move(ChatState.WAITING)
        self._rearrange(chat.with_turn(replace(turn, state=TurnState.STREAMING)))
        self._wait_for_model()

    def close(self) -> None:
        """Stop, keeping the text so far; nothing is emitted any more."""
        self._closed = True
        if self._reply is not None:
            self._reply.close()
            self._reply = None

    # Keeping -------------------------------------------------------------------------------------

    def _on_kept(self, kept: tuple[Conversation, Turn]) -> None:
        if self._closed:
            return
        self.draft = self.unsaved = ""
        options, (kept_chat, turn) = self.options, kept
        self.conversation = options.on(kept_chat)
        self.changed.emit(self.conversation)
        if turn.role == "assistant":
            self._move(ChatState.IDLE)
            self.rearranged.emit(self.conversation)
            return
        self.added.emit(turn)
        self._wanted = Wanted(turn.id)
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
        model, conversation = self._services.model.state.facts, self.conversation
        wanted = self._wanted
        if wanted is None or model is None or conversation is None:
            self._give_up()
            return
        asking = asking_of(conversation, wanted, model, self._services)
        reply = RunningReply(asking, self._services, self)
        self._listen(reply)
        try:
            reply.begin()
        except EngineUnavailable:
            return  # It died just now; the model's next "ready" begins again.
        except AppError as error:
            self._give_up()
            self._fail(Problem(error.code, error.sentence))
            return
        self._reply, self._wanted = reply, None
        chat, path = conversation.id, model.path
        self._services.store.tell(lambda store: store.conversations.set_model(chat, path))
        self._move(ChatState.READING)

    def _listen(self, reply: RunningReply) -> None:
        reply.begun.connect(self._on_turn_begun)
        reply.waits.connect(self.waits)
        reply.read.connect(self.read)
        reply.grew.connect(self._on_grew)
        reply.unwritten.connect(self._on_not_written)
        reply.ended.connect(self._on_ended)

    def _give_up(self) -> None:
        """Ask no more for what waits, and show what was shown before."""
        wanted, self._wanted = self._wanted, None
        self._move(ChatState.IDLE)
        if wanted is None or self.conversation is None:
            return
        if wanted.goes_on is not None:
            self._rearrange(self.conversation.with_turn(wanted.goes_on))
        elif self.conversation.children(wanted.asked):
            self._rearrange(self.conversation.showing(wanted.asked))

    # What the reply tells ------------------------------------------------------------------------

    def _on_turn_begun(self, turn: Turn) -> None:
        if self.conversation is not None:
            self.conversation = self.conversation.with_turn(turn)

    def _on_grew(self, growth: Growth) -> None:
        if self.state is ChatState.READING:
            self._move(ChatState.ANSWERING)
        self.grew.emit(growth)

    def _on_ended(self, ended: Ended) -> None:
        self._reply = None
        if ended.turn is not None and self.conversation is not None:
            self.conversation = self.conversation.with_turn(ended.turn)
            self.changed.emit(self.conversation)
            self.ended.emit(ended.turn)
        problem = ended.problem
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
