"""Makes the blocks of a transcript: one method for each kind."""

from __future__ import annotations

from collections.abc import Callable

from app.chat.blocks.column import Column
from app.chat.blocks.inline_error import ErrorFacts, InlineError
from app.chat.blocks.remarks import Note, StatusLine, StatusWords
from app.chat.blocks.text_blocks import Block, UserBubble
from app.chat.blocks.waiting_line import WaitingLine
from app.chat.rendered.link_dialog import LinkDialog
from app.chat.rendered.reply import Reply
from app.chat.rendered.stack import Press
from app.chat.turns.parts.row import ActionRow, RowFacts
from app.chat.turns.parts.thinking import ThinkingFold
from app.look.icons import Icons
from app.look.theme import Look


class BlockMaker:
    """Knows what every block needs: the look, the icons and the column it will stand in."""

    def __init__(
        self, look: Look, icons: Icons, column: Column, press: Press, grew: Callable[[Block], None]
    ) -> None:
        """Make blocks; ``grew`` is told of one that is higher or lower than it was."""
        self._look = look
        self._icons = icons
        self._column = column
        self._press = press
        self._grew = grew

    def user_turn(self, text: str) -> UserBubble:
        """What the person wrote."""
        return UserBubble(self._look, self._column, text)

    def reply_turn(self, text: str) -> Reply:
        """A reply."""
        made = Reply(self._look, self._column, self._press, self._grew, text)
        made.link_wanted.connect(self._show_link)
        return made

    def _show_link(self, address: str) -> None:
        LinkDialog(self._look, address, self._column.window()).open()

    def thinking(self, text: str) -> ThinkingFold:
        """What was thought before a reply."""
        return ThinkingFold(self._look, self._icons, self._column, text, self._grew)

    def row(self, facts: RowFacts) -> ActionRow:
        """What can be done with a turn."""
        return ActionRow(self._look, self._icons, self._column, facts)

    def status_line(self, facts: RowFacts, words: StatusWords) -> StatusLine:
        """The facts of a reply, how its prompt was resumed, and what can be done with it."""
        return StatusLine(self._look, self._icons, self._column, facts, words)

    def note(self, text: str) -> Note:
        """One quiet sentence."""
        return Note(self._look, self._icons, self._column, text)

    def error(self, facts: ErrorFacts) -> InlineError:
        """A failure."""
        return InlineError(self._look, self._icons, self._column, facts, self._grew)

    def waiting(self, text: str) -> WaitingLine:
        """What is waited for."""
        return WaitingLine(self._look, self._column, text)
