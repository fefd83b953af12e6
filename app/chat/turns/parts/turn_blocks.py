"""The blocks that stand for the stored turns of a chat, and the rows among them. UI thread only."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.chat.blocks.make import BlockMaker
from app.chat.blocks.remarks import StatusWords
from app.chat.blocks.text_blocks import Block
from app.chat.blocks.words import status_text
from app.chat.conversation import Conversation, Turn, TurnState
from app.chat.kept.words import left_out_note, resume_words
from app.chat.session import ChatSession
from app.chat.turns.deeds import TurnDeed, TurnWish, Version, deeds_of, version_of, versions_of
from app.chat.turns.parts.row import ActionRow, RowFacts
from app.language.words import tr


class TurnBlocks:
    """Makes the blocks of one chat after the other; remembers what it has said of it.

    Attributes:
        rows: the row of each turn, by the turn's number.
        first_seen: the turn before which messages are left out; None for none.
    """

    def __init__(self, make: BlockMaker, run: Callable[[TurnWish], None]) -> None:
        self._make = make
        self._run = run
        self._session: ChatSession | None = None
        self._said: set[str] = set()
        self._model = ""
        self._versions: Mapping[int, Version | None] = {}
        self.rows: dict[int, ActionRow] = {}
        self.first_seen: int | None = None

    def begin(self, session: ChatSession) -> list[Block]:
        """The blocks of the path that ``session`` shows."""
        self._session = session
        self._said.clear()
        self.rows.clear()
        self._model = ""
        chat = session.conversation
        if chat is None:
            self.first_seen = None
            return []
        self.first_seen = chat.first_seen(chat.leaf)
        self._versions = versions_of(chat)
        return [block for turn in chat.path() for block in self.blocks_of(turn, chat)]

    def blocks_of(self, turn: Turn, chat: Conversation) -> list[Block]:
        """What stands for one turn; a reply that still grows has only what stands before it."""
        before: list[Block] = []
        if turn.id == self.first_seen:
            before.append(self._make.note(left_out_note()))
        if turn.role != "assistant":
            return [*before, self._make.user_turn(turn.text), *self.user_row(turn, chat)]
        before += self.model_note(turn.reply.model_name if turn.reply is not None else "")
        if turn.state is TurnState.STREAMING:
            return before
        if turn.thinking_text:
            thoughts = self._make.thinking(turn.thinking_text)
            facts = turn.reply
            thoughts.finish(
                turn.thinking_text,
                facts.thinking_ms if facts is not None else None,
                facts.thinking_tokens if facts is not None else None,
            )
            before.append(thoughts)
        text: list[Block] = [self._make.reply_turn(turn.text)] if turn.text else []
        return [*before, *text, *self.ends_of(turn, chat)]

    def user_row(self, turn: Turn, chat: Conversation) -> list[Block]:
        """The row under what a person wrote."""
        facts = RowFacts(
            turn.id,
            tr("Your message"),
            lambda: self._deeds(turn.id),
            self._run,
            self._version(turn, chat),
            at_end=True,
        )
        row = self.rows[turn.id] = self._make.row(facts)
        return [row]

    def ends_of(self, turn: Turn, chat: Conversation, *, told: bool = False) -> list[Block]:
        """What stands under a reply: notes, its facts or why there is not more of it, its row.

        Args:
            told: a card says why there is not more of it.
        """
        facts = RowFacts(
            turn.id,
            tr("Reply"),
            lambda: self._deeds(turn.id),
            self._run,
            self._version(turn, chat),
        )
        found: list[Block] = [*self._notes_of(turn)]
        if turn.state is TurnState.FAILED and turn.reply is not None and turn.reply.problem:
            why = tr("Not finished: {why}", why=turn.reply.problem)
            row = self._make.row(facts)
            found += [] if told else [self._make.note(why)]
        else:
            begins = chat.begins_with(turn)
            resume = resume_words(turn.reply, begins=begins) if turn.reply is not None else None
            row = self._make.status_line(facts, StatusWords(status_text(turn), resume))
        self.rows[turn.id] = row
        return [*found, row]

    def model_note(self, name: str) -> list[Block]:
        """A note where another model answers than before."""
        before, self._model = self._model, name or self._model
        if not name or not before or name == before:
            return []
        return [self._make.note(tr("From here on: {name}", name=name))]

    def _version(self, turn: Turn, chat: Conversation) -> Version | None:
        """Which version a turn is; one that came after ``begin`` is looked for."""
        if turn.id in self._versions:
            return self._versions[turn.id]
        return version_of(chat, turn)

    def _notes_of(self, turn: Turn) -> list[Block]:
        """What should be known of a reply and was not yet said in this chat."""
        notes = turn.reply.notes if turn.reply is not None else ()
        new = [note for note in notes if note not in self._said]
        self._said.update(new)
        return [self._make.note(note) for note in new]

    def _deeds(self, turn: int) -> tuple[TurnDeed, ...]:
        session = self._session
        chat = session.conversation if session is not None else None
        found = chat.turns.get(turn) if chat is not None else None
        if session is None or chat is None or found is None:
            return ()
        return deeds_of(chat, found, busy=session.state.busy)
