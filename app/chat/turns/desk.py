"""Does what a person wants done with a turn. UI thread only; it knows no widget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app.chat.conversation import Turn
from app.chat.markdown.parse import groups_of
from app.chat.rendered.plain import blocks_as_text
from app.chat.session import ChatSession
from app.chat.store import Store
from app.chat.turns.deeds import TurnVerb, TurnWish
from app.language.words import tr

PLAIN_MOST: Final = 200_000
"""A longer text is copied as it is: to read its Markdown would hold the window up."""


@dataclass(frozen=True, slots=True)
class DeletedTurn:
    """A turn that went to the trash, and the chat that it was in."""

    session: ChatSession
    turn: Turn


class TurnDesk(QObject):
    """Works on one session after the other.

    Signals: ``edit_wanted`` the Turn to write anew, ``told`` the Turn to tell of, ``branched`` the
    number of the new chat, ``deleted`` a DeletedTurn.
    """

    edit_wanted = Signal(object)
    told = Signal(object)
    branched = Signal(object)
    deleted = Signal(object)

    def do(self, session: ChatSession, wish: TurnWish) -> None:
        """Do what is wished; nothing where the turn is gone or a reply runs."""
        turn = session.turn(wish.turn)
        if turn is None:
            return
        texts = {
            TurnVerb.COPY: lambda: turn.text,
            TurnVerb.COPY_PLAIN: lambda: plain_text(turn.text),
            TurnVerb.COPY_THOUGHTS: lambda: turn.thinking_text,
        }
        if wish.verb in texts:
            QGuiApplication.clipboard().setText(texts[wish.verb]())
            return
        match wish.verb:
            case TurnVerb.AGAIN:
                session.answer_again(turn.parent)
            case TurnVerb.CONTINUE:
                session.continue_reply()
            case TurnVerb.EDIT:
                self.edit_wanted.emit(turn)
            case TurnVerb.INFO:
                self.told.emit(turn)
            case TurnVerb.BRANCH:
                self._branch(session, turn)
            case TurnVerb.DELETE:
                self._delete(session, turn)

    def restore(self, deleted: DeletedTurn, shown: ChatSession | None = None) -> None:
        """Take a turn out of the trash again, with what followed it.

        Args:
            shown: the chat that is shown now; it may be the same one, opened anew.
        """
        old = deleted.session
        session = shown if shown is not None and shown.chat_id == old.chat_id else old
        session.change(lambda store: store.turns.restore(deleted.turn.id))

    def _delete(self, session: ChatSession, turn: Turn) -> None:
        if not session.state.busy:
            session.change(lambda store: store.turns.trash(turn.id))
            self.deleted.emit(DeletedTurn(session, turn))

    def _branch(self, session: ChatSession, turn: Turn) -> None:
        chat = session.conversation
        if chat is None or session.state.busy:
            return
        title = tr("{title} (branch)", title=chat.title)

        def branch(store: Store) -> int:
            return store.copies.branch(chat.id, chat.path_to(turn.id), title)

        session.ask(branch, self.branched.emit)


def plain_text(markdown: str) -> str:
    """What a text says without the signs of Markdown; a very long one stays as it is."""
    if len(markdown) > PLAIN_MOST:
        return markdown
    blocks = [block for group in groups_of(markdown) for block in group.blocks]
    return blocks_as_text(blocks)
